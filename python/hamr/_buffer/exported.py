"""Buffers in memory that other processes open: a pickle says where it is, and has no elements."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Transfer, allocator_of
from .._base.element import element_of, item_size, name_of
from .._base.library import core
from .._base.unopened import or_unopened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)


def place_of(source: _native.Array) -> tuple[Any, ...]:
    """What ``opened`` makes a buffer of the same memory from: also of a part, a view."""
    text = core().Export(source._allocator, source.device, source.ptr)
    offset, handle = text.split(" ")
    layout = source.shape, source.strides, source.readonly
    return handle, source._allocator, source.device, int(offset), name_of(source._element), *layout


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
    """The buffer over the memory that another process has; where that is gone, an Unopened."""
    element, allocator = element_of(dtype), allocator_of(allocator)
    size = end_of(offset, item_size(element), shape, strides)
    start = core().Import(allocator, device, handle, size)
    # It owns the mapping, and lasts as long as the buffer and whatever is made from that.
    place = allocator, device, start
    mapping = _adopted(_native.Array, element_of("uint8"), *place, (size,), take=True)
    layout = shape, strides, readonly
    return _adopted(kind, element, allocator, device, start + offset, *layout, owner=mapping)


def end_of(offset: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Where the elements of a pickle end, in bytes of their memory; it may say anything."""
    if len(shape) != len(strides) or min(shape, default=0) < 0:
        raise ValueError(
            f"shape is {shape} and strides are {strides}: accepted are as many of each"
        )
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)] if all(shape) else []
    first = offset + sum(step for step in steps if step < 0)
    if first < 0:
        raise ValueError(
            f"elements begin {-first} bytes before their memory, as strides {strides} say"
        )
    return offset + (itemsize if all(shape) else 0) + sum(step for step in steps if step > 0)


def _adopted(
    kind: type[_A],
    element: int,
    allocator: int,
    device: int,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    readonly: bool = False,
    owner: object = None,
    take: bool = False,
) -> _A:
    place = allocator, device, 0, Transfer.sync_host, pointer
    return _native.adopt_pointer(kind, element, *place, shape, strides, readonly, owner, take)
