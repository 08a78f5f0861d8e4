"""Buffers of memory at an address that a user gives."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, Transfer, allocator_of, transfer_of
from .._base.element import element_of
from .._base.place import new_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from .._base.allocator import AllocatorName, TransferName
    from .._base.place import Device

    _Base = _native.Array
else:
    _Base = object


class Pointers(_Base):
    """Buffers of foreign memory."""

    __slots__ = ()

    @classmethod
    def from_pointer(
        cls,
        pointer: Any,
        shape: int | tuple[int, ...],
        dtype: Any = "float64",
        allocator: Allocator | int | AllocatorName = Allocator.malloc,
        *,
        strides: tuple[int, ...] | None = None,
        readonly: bool = False,
        owner: Any = None,
        take: bool = False,
        free: Callable[[Any], Any] | None = None,
        device: Device | None = None,
        stream: Any = None,
        transfer: Transfer | int | TransferName = Transfer.sync_host,
    ) -> Self:
        """Share memory at an address, without a copy.

        ``pointer`` is an int, a pointer, array or struct of ctypes, or a pointer or array of cffi.
        Objects of ctypes and cffi are kept alive, and elements beyond the end of an array are a
        ValueError. ``owner`` is any object; it is kept alive until the memory is no longer used.
        Then ``free`` is called once, with ``pointer`` as it was given, on any thread and without a
        lock; a forked child calls it for its own copy. With ``take`` the buffer owns the memory,
        which must come from ``allocator`` (``malloc``: C's heap, ``cpp``: ``new[]``), and frees
        it. ``strides`` are in bytes. After an error the memory is the caller's.
        """
        if take and (owner is not None or strides is not None or readonly or free is not None):
            raise ValueError("take=True goes with none of owner, strides, readonly and free")
        given, freed = pointer, None
        if type(pointer) is not int or free is not None:
            from .foreign import owned

            pointer, owner, freed = owned(pointer, owner, free, take)
        if not 0 <= pointer < 2**64:
            raise ValueError(f"pointer is {pointer!r}: accepted are 0 ... 2**64-1")
        number, place = allocator_of(allocator), -1
        if device is not None:
            number, place = new_place(allocator, device)
        order = None
        if stream is not None or _native.blocks_entered:
            from .._base.memory_stream import stream_for_memory

            order = stream_for_memory(stream, number, place, pointer)
        self = _native.adopt_pointer(
            cls,
            element_of(dtype),
            number,
            place,
            0 if order is None else order._value,
            transfer_of(transfer),
            pointer,
            dimensions_of(shape),
            strides,
            readonly,
            owner,
            take,
        )
        if given is not pointer and not take:
            from .foreign import check_room

            check_room(given, self)
        if freed is not None:
            freed.armed = True
        self._source = "pointer"
        if order is not None:
            self._set_order(order._value, self._transfer, order)
        return self


def dimensions_of(shape: Any) -> tuple[int, ...]:
    """The sizes that a user gave for a shape: an int, or a tuple or list of int."""
    dimensions = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        return tuple(_native.index(d) for d in dimensions)
    except TypeError:
        raise TypeError(f"shape is {shape!r}: accepted is an int or a tuple of int") from None
