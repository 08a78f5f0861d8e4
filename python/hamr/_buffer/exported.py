"""Buffers in memory that other processes can open: a pickle has its place, and no elements."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import allocator_of
from .._base.element import element_of, item_size, name_of
from .._base.library import core
from .._base.unopened import or_unopened
from .views import adopted, extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)


def place_of(source: _native.Array) -> tuple[Any, ...]:
    """The arguments of ``opened`` for the same memory, or for a part of it, a view."""
    [(offset, handle)] = _native.export_memory(source._allocator, source.device, source.ptr)
    layout = source.shape, source.strides, source.readonly
    return handle, source._allocator, source.device, offset, name_of(source._element), *layout


@or_unopened
def opened(
    kind: type[_A],
    handle: str,
    allocator: int,
    device: int,
    offset: int,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    readonly: bool,
) -> _A:
    """A buffer over another process's memory; an Unopened if the memory is gone."""
    element, allocator = element_of(dtype), allocator_of(allocator)
    size = end_of(offset, item_size(element), shape, strides)
    start = core().Import(allocator, device, handle, size)
    # This array owns the mapping. The buffer, and whatever is made from it, keeps it.
    place = allocator, device, start
    mapping = adopted(_native.Array, element_of("uint8"), *place, (size,), take=True)
    layout = shape, strides, readonly
    return adopted(kind, element, allocator, device, start + offset, *layout, owner=mapping)


def end_of(offset: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Where the elements of a pickle end, in bytes of their memory. The pickle is not trusted."""
    if len(shape) != len(strides) or min(shape, default=0) < 0:
        raise ValueError(
            f"shape is {shape} and strides are {strides}: accepted are as many of each"
        )
    first, end = extent(shape, strides, itemsize)
    if offset + first < 0:
        raise ValueError(
            f"elements begin {-first - offset} bytes before their memory, as strides {strides} say"
        )
    return offset + end
