"""hamr.buffer: share an object's memory by the best protocol it offers."""

from __future__ import annotations

import sys

from . import _native
from ._library import call
from .allocator import Transfer, transfer_of
from .array_interface import adopt_array_interface
from .buffer import Buffer
from .stream import stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SYNC_HOST = Transfer.sync_host

#: Types known to need no look beyond the buffer protocol and __array_interface__.
_plain_types: set[type] = set()


def buffer(obj: Any, stream: Any = None, sync: Transfer | int | str = _SYNC_HOST) -> Buffer:
    """A buffer that shares the memory of ``obj``, without a copy.

    Accepted is what exports the buffer protocol (NumPy arrays, bytes, bytearray,
    memoryview, array.array, mmap, …), what has ``__array_interface__``, and hamr's
    own buffers and handles. Type, shape, strides and the read-only flag are kept,
    and ``obj`` is kept alive as long as its memory is used. ``stream`` is the one
    that the caller will use, ``sync`` says which movements are waited for.

    An object without such a protocol, or with elements that hamr does not have, is
    a TypeError; a description that cannot be right is a ValueError.
    """
    if stream is None and sync is _SYNC_HOST:
        number, mode = 0, 1
    else:
        number, mode = stream_of(stream), transfer_of(sync)
    if type(obj) not in _plain_types and not _is_plain(obj):
        return _view(obj, number, mode)
    shared: Buffer | None = _native.adopt_buffer(Buffer, obj, number, mode)
    if shared is not None:
        shared._source = "buffer"
        return shared
    interface = getattr(obj, "__array_interface__", None)
    if interface is not None and not isinstance(obj, type):
        shared = adopt_array_interface(obj, interface, number, mode)
        shared._source = "__array_interface__"
        return shared
    raise _refusal(obj)


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
        _plain_types.add(type(obj))
    return True


def _view(obj: _native.Array, stream: int, transfer: int) -> Buffer:
    source = obj._snapshot(_native.Array)
    view = _native.view(Buffer, source, 0, source.shape, source.strides)
    view._set_order(stream, transfer)
    view._source = "hamr"
    return view


def _refusal(obj: Any) -> TypeError:
    """What is wrong with an object that shares nothing that hamr takes."""
    kind = type(obj).__name__
    try:
        view = memoryview(obj)
    except (TypeError, ValueError, BufferError) as error:
        return TypeError(
            f"{kind} object cannot be shared: accepted is what has the buffer protocol "
            f"or __array_interface__ ({error})"
        )
    with view:
        call("ParseFormat", view.format, view.itemsize)  # raises, and says why
    return TypeError(f"{kind} object with elements of format {view.format!r} cannot be shared")


def from_sequence(values: Any) -> Buffer:
    """A buffer of the numbers in a list or tuple, by NumPy's rules for their type.

    Without NumPy the list must be flat.
    """
    try:
        import numpy
    except ImportError:
        return _from_flat(values)
    array = numpy.asarray(values)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"the list's elements are of type {array.dtype}: accepted are numbers")
    return buffer(array)


def _from_flat(values: Any) -> Buffer:
    from array import array

    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return buffer(bytes(values)).astype("bool")
    if not kinds <= {bool, int, float}:
        raise TypeError("without NumPy a list must be flat and hold int or float")
    for code in "qQ" if kinds <= {bool, int} else "d":
        try:
            return buffer(array(code, values))
        except OverflowError:
            pass
    raise ValueError(
        f"no element type holds all the list's numbers, {min(values)} to {max(values)}"
    )
