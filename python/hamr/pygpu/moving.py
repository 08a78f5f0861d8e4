"""Copies between GPUArrays and the host: to memory and on streams that the caller chooses."""

from __future__ import annotations

import os
from _thread import RLock

import hamr._native as _native

from .._base.allocator import backend_of, is_pinned
from .._base.element import name_of
from .._base.stream import Stream, as_stream
from .._buffer.buffers import Buffer, buffer
from .runtime import pagelocked_allocator
from .sides import (
    copy_elements,
    enqueue,
    host_array,
    new_array,
    new_host_side,
    order_of,
    pinned_array,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: Held while an array gets its host side, since threads and signal handlers may ask at once.
_making = RLock()


def _after_fork() -> None:
    global _making
    _making = RLock()


os.register_at_fork(after_in_child=_after_fork)


def new_side(array: Any) -> Any:
    """Make and set the host side of an array that has none of its shape yet."""
    with _making:
        made = None
        while True:
            host = getattr(array, "_host_side", None)
            if host is not None and host.shape == array.shape:
                return host
            if made is None or made.shape != array.shape:
                made = _host_side(array)  # meanwhile a signal handler may have set one
                continue
            array._host_side = made


def _host_side(array: Any) -> Any:
    origin = getattr(array, "_origin", None)
    if origin is not None:
        given = origin.host_data
        if given.shape == array.shape:
            return given
        if origin._device.shape == array.shape:
            return given.reshape(array.shape)
    if array._host and not is_pinned(array._allocator):
        plain = array._snapshot(_native.Array).get_host_accessible()
        try:
            import numpy
        except ImportError:
            return buffer(plain)
        return numpy.asarray(plain)
    return new_host_side(array.shape, name_of(array._element), order_of(array))


def stream_for(array: Any, stream: Any) -> Stream:
    """The stream to use for an array: the one given, or the array's own."""
    if stream is None:
        own: Stream = array.stream
        return own
    return as_stream(stream, array.device, backend_of(array._allocator))


def on_stream(array: Any, stream: Any) -> Buffer:
    """The same memory, used on a stream."""
    order = stream_for(array, stream)
    made: Buffer = array._snapshot(Buffer)
    made._set_order(order._value, array._transfer, order)
    return made


def get(array: Any, ary: Any, pagelocked: bool, async_: bool, stream: Any, copy: bool) -> Any:
    """``GPUArray.get`` with arguments."""
    if isinstance(ary, bool):  # PybindGPU's get(copy)
        ary, copy = None, ary
        if not pagelocked and not async_ and stream is None:
            return array.get(copy=copy)
    side: _native.Array | None = None
    if ary is None and (pagelocked or async_):
        target, side = _pagelocked(array)
    elif ary is None:
        target = _unshared(array) if copy else array._side(True)
    else:
        if pagelocked:
            raise TypeError("ary and pagelocked are both given: accepted is one of them")
        target = ary
        host = host_array(target)
        if host.shape != array.shape:
            raise ValueError(f"ary has shape {host.shape}: accepted is {array.shape}")
        if host._element != array._element:
            raise TypeError(
                f"ary has {name_of(host._element)} elements: accepted are {name_of(array._element)}"
            )
        if host.readonly:
            raise ValueError("ary is read-only: accepted is a writable array")
    if async_:
        side = pinned_array(target) if side is None else side
        enqueue(side, array, stream_for(array, stream))
        _keep(array, side)
    elif stream is not None:
        order = stream_for(array, stream)
        enqueue(host_array(target), array, order)
        order.synchronize()
    elif not (array.is_contiguous and _native.read_into(array, target)):
        copy_elements(host_array(target), array)
    return target


def _unshared(array: Any) -> Any:
    """A new NumPy array for an array's elements."""
    import numpy

    make: Any = numpy.empty
    return make(array.shape, name_of(array._element), order_of(array))


def _pagelocked(array: Any) -> tuple[Any, Buffer]:
    """A new NumPy array in page-locked memory for an array's elements, and that memory."""
    import numpy

    side = new_array(
        Buffer, array.shape, name_of(array._element), pagelocked_allocator(), order_of(array)
    )
    return numpy.asarray(side.get_host_accessible()), side


def _keep(array: Any, side: _native.Array) -> None:
    """Keep host memory with an array while a copy is in flight. Its end waits for the copy."""
    pending = [kept for kept in getattr(array, "_pending", ()) if not _native.settled(kept)]
    if not _native.settled(side):
        pending.append(side)
    array._pending = pending


def set_elements(array: Any, ary: Any, async_: bool, stream: Any) -> None:
    """``GPUArray.set`` with arguments."""
    source = ary if isinstance(ary, _native.Array) else buffer(ary)
    shape = _native.Array.shape.__get__(source)
    if shape != array.shape:
        raise ValueError(f"ary has shape {shape}: accepted is {array.shape}")
    if source._element != array._element:
        raise TypeError(
            f"ary has {name_of(source._element)} elements: accepted are {name_of(array._element)}"
        )
    if not async_ and stream is None:
        copy_elements(array, source)
        return
    order = stream_for(array, stream)
    if source._host:
        source = pinned_array(ary)
    enqueue(array, source, order)
    if async_:
        _keep(array, source)
    else:
        order.synchronize()
