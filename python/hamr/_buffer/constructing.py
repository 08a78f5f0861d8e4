"""The part of ``Buffer(...)`` that is not in C: see native/array/construct.c."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, Transfer, allocator_of, transfer_of
from .._base.element import element_of, held_large, numbers
from .._base.place import new_place
from .pointers import dimensions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from .._base.allocator import AllocatorName, TransferName
    from .._base.place import Device

    _B = TypeVar("_B", bound=Any)


def construct(
    cls: type[_B],
    shape: int | tuple[int, ...],
    dtype: Any = "float64",
    allocator: Allocator | int | AllocatorName | None = None,
    *,
    fill: Any = None,
    data: Any = None,
    device: Device | None = None,
    stream: Any = None,
    transfer: Transfer | int | TransferName = Transfer.sync_host,
) -> _B:
    """``Buffer(...)`` with arguments that C does not handle, and with wrong ones."""
    if fill is not None and data is not None:
        raise TypeError("fill and data are both given: accepted is one of them")
    number = fill if fill is None or type(fill) in (int, float, bool, complex) else None
    if device is None:
        number_of = Allocator.malloc if allocator is None else allocator_of(allocator)
        place = -1
    else:
        number_of, place = new_place(allocator, device)
    order = None
    if stream is not None or _native.blocks_entered:
        from .._base.memory_stream import stream_for_memory

        order = stream_for_memory(stream, number_of, place)
    try:
        self = _native.create(
            cls,
            element_of(dtype),
            number_of,
            place,
            0 if order is None else order._value,
            transfer_of(transfer),
            shape if type(shape) is int else dimensions_of(shape),
            number,
        )
    except ValueError:
        held = held_large(number, element_of(dtype))
        if held is None:
            raise
        return construct(
            cls,
            shape,
            dtype,
            allocator,
            fill=held,
            device=device,
            stream=order,
            transfer=transfer,
        )
    if order is not None:
        self._set_order(order._value, self._transfer, order)
    try:
        if fill is not None and number is None:
            self.fill(fill)
        if data is not None:
            self[...] = data
    except TypeError:
        from .operands import refuse_value

        refuse_value(*((fill, "fill") if data is None else (data, "data")))
        raise
    return self


construct.__qualname__ = "Buffer.__new__"  # what a call with wrong arguments shows
_native.set_constructor(construct, numbers, Allocator, {a.name: a for a in Allocator})
