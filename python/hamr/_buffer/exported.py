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
    start = core().Import(allocator, device, handle)
    # It owns the mapping, and lasts as long as the buffer and whatever is made from that.
    pairs = zip(shape, strides, strict=True)
    size = offset + item_size(element) + sum((n - 1) * s for n, s in pairs if s > 0)
    place = allocator, device, start
    mapping = _adopted(_native.Array, element_of("uint8"), *place, (size,), take=True)
    layout = shape, strides, readonly
    return _adopted(kind, element, allocator, device, start + offset, *layout, owner=mapping)


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
