"""Sharing an object's memory by the best protocol it offers."""

from __future__ import annotations

import sys

from . import _native
from ._library import call
from .array_interface import adopt_array_interface
from .cuda_array_interface import NAME as CUDA_ARRAY_INTERFACE
from .cuda_array_interface import adopt_cuda_array_interface, unreadable, wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

_SYNC_HOST = 1

#: Types known to need no look beyond the buffer protocol and __array_interface__.
plain_types: set[type] = set()

#: Types of which an object was on a CUDA device: others may be, too.
cuda_types: set[type] = set()
_MOST_TYPES = 100


def share(
    cls: type[_A], obj: Any, stream: int = 0, transfer: int = _SYNC_HOST, wait: Any = None
) -> tuple[_A, str]:
    """An array of a class over the memory of ``obj``, and the protocol that told of it.

    ``wait`` is whether a CUDA producer's stream is waited for; None is what the
    environment says. An object without a protocol, or with elements that hamr does
    not have, is a TypeError; a description that cannot be right is a ValueError.
    """
    kind = type(obj)
    if kind not in plain_types:
        shared: _A | None
        if kind in cuda_types:
            shared = _native.adopt_cuda(cls, obj, stream, transfer, wait_of(wait))
            if shared is not None:
                return shared, CUDA_ARRAY_INTERFACE
        if not _is_plain(obj):
            return _view(cls, obj, stream, transfer), "hamr"
        try:
            interface = getattr(obj, CUDA_ARRAY_INTERFACE, None)
        except Exception as error:
            raise unreadable(obj, error) from error
        if interface is not None and not isinstance(obj, type):
            if len(cuda_types) < _MOST_TYPES:
                cuda_types.add(kind)
            waits = wait_of(wait)
            shared = adopt_cuda_array_interface(cls, obj, interface, stream, transfer, waits)
            return shared, CUDA_ARRAY_INTERFACE
    shared = _native.adopt_buffer(cls, obj, stream, transfer)
    if shared is not None:
        return shared, "buffer"
    interface = getattr(obj, "__array_interface__", None)
    if interface is not None and not isinstance(obj, type):
        return adopt_array_interface(cls, obj, interface, stream, transfer), "__array_interface__"
    raise _refusal(obj)


def operand(x: Any) -> _native.Array:
    """A number, array, list or buffer as something the core can read."""
    if isinstance(x, _native.Array):
        return x._pin()
    number = _native.scalar(x)
    if number is not None:
        return number
    if isinstance(x, (list, tuple, range)):
        x = _from_sequence(x)
    return share(_native.Array, x)[0]._pin()


def _is_plain(obj: Any) -> bool:
    """Whether an object is to be asked for protocols; False for hamr's own."""
    if isinstance(obj, _native.Array):
        return False
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(obj, masked.MaskedArray):
        raise TypeError(
            "a masked array cannot be shared, since its mask would be lost: pass .data or .filled()"
        )
    if type(obj).__module__ == "numpy" and type(obj).__name__ in ("datetime64", "timedelta64"):
        # They export their bytes.
        raise TypeError(f"{type(obj).__name__} objects are not supported: pass a view as int64")
    if type(obj).__module__ in ("builtins", "numpy", "array", "mmap"):
        plain_types.add(type(obj))
    return True


def _view(cls: type[_A], obj: _native.Array, stream: int, transfer: int) -> _A:
    source = obj._snapshot(_native.Array)
    view = _native.view(cls, source, 0, source.shape, source.strides)
    view._set_order(stream, transfer)
    return view


def _refusal(obj: Any) -> TypeError:
    """What is wrong with an object that shares nothing that hamr takes."""
    kind = type(obj).__name__
    try:
        view = memoryview(obj)
    except (TypeError, ValueError, BufferError) as error:
        return TypeError(
            f"{kind} object cannot be shared: accepted is what has {CUDA_ARRAY_INTERFACE}, "
            f"the buffer protocol or __array_interface__ ({error})"
        )
    with view:
        call("ParseFormat", view.format, view.itemsize)  # raises, and says why
    return TypeError(f"{kind} object with elements of format {view.format!r} cannot be shared")


def _from_sequence(values: Any) -> Any:
    """The numbers in a list or tuple as an array, by NumPy's rules for their type.

    Without NumPy the list must be flat.
    """
    try:
        import numpy
    except ImportError:
        return _from_flat(values)
    array = numpy.asarray(values)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"the list's elements are of type {array.dtype}: accepted are numbers")
    return array


def _from_flat(values: Any) -> Any:
    from array import array

    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return memoryview(bytes(values)).cast("?")
    if not kinds <= {bool, int, float}:
        raise TypeError("without NumPy a list must be flat and hold int or float")
    for code in "qQ" if kinds <= {bool, int} else "d":
        try:
            return array(code, values)
        except OverflowError:
            pass
    raise ValueError(
        f"no element type holds all the list's numbers, {min(values)} to {max(values)}"
    )
