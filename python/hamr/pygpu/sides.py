"""The two sides of an array, on the host and on a device, in C or Fortran order, and copies."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, allocator_from, is_pinned
from .._base.element import name_of
from .._buffer.buffers import Buffer, buffer
from .._buffer.pointers import dimensions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

#: The transfer mode that waits for copies out of page-locked memory, too.
_SYNC = 2

_C_ORDER, _FORTRAN_ORDER = "C", "F"


def order_from(order: Any) -> str:
    """The order that a user gave: "C" or "F", where None and "A" stand for "C"."""
    if order in ("F", "f"):
        return _FORTRAN_ORDER
    if order in (None, "C", "c", "A", "a", "K", "k"):
        return _C_ORDER
    if isinstance(order, str):
        raise ValueError(f"order is {order!r}: accepted are 'C' and 'F'")
    raise TypeError(f"order is {order!r}: accepted are 'C' and 'F'")


def strides_in(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    """The strides in bytes of elements without gaps."""
    strides, step = [], itemsize
    for n in shape if order == _FORTRAN_ORDER else shape[::-1]:
        strides.append(step)
        step *= n
    return tuple(strides if order == _FORTRAN_ORDER else strides[::-1])


def order_of(array: _native.Array) -> str:
    """The order of elements: "F" if they are only in Fortran order, else "C"."""
    fortran = array.is_fortran_contiguous and not array.is_contiguous
    return _FORTRAN_ORDER if fortran else _C_ORDER


def sizes_from(shape: Any) -> tuple[int, ...]:
    """A shape that a user gave, as a tuple; one below zero is a ValueError."""
    sizes = dimensions_of(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"shape is {shape!r}: accepted are sizes of 0 and more")
    return sizes


def new_array(
    kind: type[_A], shape: tuple[int, ...], element: str, allocator: int, order: str
) -> _A:
    """An array of a class in new memory, which is not initialised."""
    sizes = shape if order == _C_ORDER else shape[::-1]
    made = Buffer(sizes, element, allocator_from(allocator))
    if order == _C_ORDER and kind is Buffer:
        return made  # type: ignore[return-value]
    source = made._snapshot(_native.Array)
    return _native.view(kind, source, 0, shape, strides_in(shape, source.itemsize, order))


def new_host_side(shape: tuple[int, ...], element: str, order: str) -> Any:
    """A NumPy array in new memory, which is not initialised; a Buffer without NumPy."""
    try:
        import numpy
    except ImportError:
        return new_array(Buffer, shape, element, Allocator.malloc, order)
    return numpy.empty(shape, element, order)  # type: ignore[call-overload]


def reversed_view(array: _native.Array) -> _native.Array:
    """The same elements with the dimensions in reverse order."""
    source = array._snapshot(_native.Array)
    return _native.view(_native.Array, source, 0, source.shape[::-1], source.strides[::-1])


def copy_elements(target: _native.Array, source: _native.Array) -> None:
    """Write the elements of one array to another of the same shape, as cudaMemcpy does.

    When it returns the host may use its side again, even if that is page-locked.
    """
    if is_pinned(source._allocator) or not target._transfer:
        waiting = target._snapshot(_native.Array)
        waiting._set_order(None, _SYNC)
        target = waiting
    if order_of(target) == _FORTRAN_ORDER:
        target, source = reversed_view(target), reversed_view(source)
    _native.write_elements(target, source)


def enqueue(target: _native.Array, source: _native.Array, stream: Any) -> None:
    """Enqueue a copy between a device and host memory; asynchronous if that is page-locked."""
    sides = []
    for side in (target, source):
        moved = side._snapshot(_native.Array)
        moved._set_order(stream._value, 0, stream)
        sides.append(moved)
    target, source = sides
    if order_of(target) == _FORTRAN_ORDER:
        target, source = reversed_view(target), reversed_view(source)
    _native.write_elements(target, source)


def host_array(array: Any) -> _native.Array:
    """An array over a NumPy array, or over another exporter of host memory."""
    shared = array if isinstance(array, Buffer) else buffer(array)
    if not shared._host:
        raise TypeError(
            f"{type(array).__name__} is in {shared.allocator.name} memory: accepted are arrays "
            "on the host; GPUArray(allocator=Allocator(x)) shares a device's"
        )
    return shared


def pinned_array(array: Any) -> _native.Array:
    """``host_array``, with the right allocator for page-locked memory."""
    shared = host_array(array)
    if is_pinned(shared._allocator) or not shared._count:
        return shared
    allocator = _native.locate(shared.ptr)[0]
    if not is_pinned(allocator):
        return shared
    return Buffer.from_pointer(
        shared.ptr,
        shared.shape,
        name_of(shared._element),
        allocator,
        strides=shared.strides,
        readonly=shared.readonly,
        owner=array,
    )
