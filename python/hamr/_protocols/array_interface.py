"""Reading __array_interface__, version 3."""

from __future__ import annotations

import sys

import hamr._native as _native

from .fields import check, integer, pair_of, read, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__array_interface__"

_REQUIRED = ("shape", "typestr")
_HOST = -1
_MALLOC = 1


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A | None:
    """An array of a class over the memory that the interface of ``obj`` describes, or None."""
    del wait  # host memory has no stream
    if isinstance(obj, type):
        return None
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(obj, numpy.generic):
        obj = numpy.array(obj)  # a scalar's interface describes a temporary array
        obj.setflags(write=False)  # as the buffers that scalars export
    interface = getattr(obj, NAME, None)
    if interface is None:
        return None
    return adopt_interface(cls, obj, interface, stream, transfer)


def adopt_interface(cls: type[_A], obj: Any, interface: Any, stream: int, transfer: int) -> _A:
    """An array of a class over the memory that an interface dictionary of ``obj`` describes."""
    fields, typestr, shape, strides, version = read(NAME, interface, _REQUIRED)
    offset = integer("offset", fields.get("offset", 0))
    pointer, readonly, length, owner = _data(obj, fields.get("data"))
    mask = fields.get("mask")
    element = check(obj, typestr, shape, strides, pointer, offset, length, mask, version)
    if length >= 0:
        pointer += offset
    return _native.adopt_pointer(
        cls,
        element,
        _MALLOC,
        _HOST,
        stream,
        transfer,
        pointer,
        shape,
        strides,
        readonly,
        (obj, owner),
        False,
    )


def _data(obj: Any, data: Any) -> tuple[int, bool, int, Any]:
    """Address, read-only flag, length (-1 if unknown) and what keeps the memory alive."""
    if isinstance(data, tuple):
        return *pair_of(data), -1, None
    source = obj if data is None else data
    try:
        # The array interface takes any bytes, whatever their type and shape.
        view = memoryview(source).cast("B")
    except (TypeError, ValueError, BufferError) as error:
        raise TypeError(
            f"data is {short(data)}: accepted is (address, read-only flag), "
            f"or a contiguous buffer: {error}"
        ) from None
    held = _native.adopt_buffer(_native.Array, view, 0, 0)
    assert held is not None
    return held.ptr, held.readonly, held.nbytes, held
