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
    from typing import Any, NoReturn

_DEFAULT_TRANSFER = int(Transfer.sync_host)


def buffer(obj: Any, stream: Any = None, sync: Transfer | int | str = Transfer.sync_host) -> Buffer:
    """A buffer that shares the memory of ``obj``, without a copy.

    Accepted is what exports the buffer protocol (NumPy arrays, bytes, bytearray,
    memoryview, array.array, mmap, …), what has ``__array_interface__``, and hamr's
    own buffers and handles. Type, shape, strides and the read-only flag are kept,
    and ``obj`` is kept alive as long as its memory is used. ``stream`` is the one
    that the caller will use, ``sync`` says which movements are waited for.

    An object without such a protocol, or with elements that hamr does not have, is
    a TypeError; a description that cannot be right is a ValueError.
    """
    number = 0 if stream is None else stream_of(stream)
    mode = _DEFAULT_TRANSFER if sync is Transfer.sync_host else transfer_of(sync)
    if isinstance(obj, _native.Array):
        view: Buffer = _native.view(Buffer, obj, 0, obj.shape, obj.strides)
        view._set_order(number, mode)
        view._source = "hamr"
        return view
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(obj, masked.MaskedArray):
        raise TypeError("a masked array cannot be shared, since the mask would be lost: pass .data or .filled()")
    shared: Buffer | None = _native.adopt_buffer(Buffer, obj, number, mode)
    if shared is not None:
        shared._source = "buffer"
        return shared
    interface = getattr(obj, "__array_interface__", None)
    if interface is not None and not isinstance(obj, type):
        shared = adopt_array_interface(obj, interface, number, mode)
        shared._source = "__array_interface__"
        return shared
    _refuse(obj)


def _refuse(obj: Any) -> NoReturn:
    kind = type(obj).__name__
    try:
        view = memoryview(obj)
    except (TypeError, ValueError, BufferError) as error:
        raise TypeError(
            f"{kind} object cannot be shared: accepted is what has the buffer protocol "
            f"or __array_interface__ ({error})"
        ) from None
    with view:
        call("ParseFormat", view.format, view.itemsize)
    raise TypeError(f"{kind} object with elements of format {view.format!r} cannot be shared")


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
    if kinds <= {bool, int}:
        return buffer(array("q", values)) if kinds != {bool} else buffer(bytes(values)).astype("bool")
    if kinds <= {bool, int, float}:
        return buffer(array("d", values))
    raise TypeError("without NumPy a list must be flat and hold int or float")
