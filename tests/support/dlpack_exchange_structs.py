"""The table of DLPack's C exchange API, called by ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

from tests.support import dlpack_structs as dl

ATTRIBUTE, CAPSULE = "__dlpack_c_exchange_api__", b"dlpack_exchange_api"

_pointer = ctypes.c_void_p
_place = ctypes.POINTER(ctypes.c_void_p)

SET_ERROR = ctypes.CFUNCTYPE(None, _pointer, ctypes.c_char_p, ctypes.c_char_p)
#: Without Python's lock, as it may be called; the others run with it, and raise.
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(dl.Tensor), _place, _pointer, SET_ERROR)
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _place)
TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, _pointer, ctypes.POINTER(ctypes.py_object))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _place)


class Table(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = [
        ("version", dl.Version),
        ("previous", _pointer),
        ("allocate", _pointer),
        ("from_object", _pointer),
        ("to_object", _pointer),
        ("borrow", _pointer),
        ("stream", _pointer),
    ]


def table_of(kind: type) -> Table:
    """The table on a type."""
    return Table.from_address(dl.pointer_of(getattr(kind, ATTRIBUTE), CAPSULE))


def from_object(obj: Any, table: Table) -> dl.Seen:
    """The tensor of an object; the caller is to delete it."""
    tensor = ctypes.c_void_p(1)
    result = FROM_OBJECT(table.from_object)(obj, ctypes.byref(tensor))
    assert result == 0
    return dl.Seen(dl.Versioned.from_address(tensor.value))


def to_object(address: int, table: Table) -> Any:
    """The object of a tensor, which is the object's from now on."""
    made = ctypes.py_object()
    assert TO_OBJECT(table.to_object)(address, ctypes.byref(made)) == 0
    return _taken(made)


def _taken(made: Any) -> Any:
    """The object in a place that owns a reference, which ctypes does not know of."""
    obj = made.value
    ctypes.pythonapi.Py_DecRef(made)
    return obj


def current_stream(device: tuple[int, int], table: Table) -> int | None:
    stream = ctypes.c_void_p(1)
    assert STREAM(table.stream)(*device, ctypes.byref(stream)) == 0
    return stream.value


def allocate(
    table: Table,
    shape: tuple[int, ...],
    dtype: tuple[int, int, int] = (2, 32, 1),
    device: tuple[int, int] = (1, 0),
) -> dl.Seen | tuple[str, str]:
    """A new tensor, or the kind and the text of the error."""
    errors: list[tuple[str, str]] = []

    @SET_ERROR
    def note(context: int, kind: bytes, message: bytes) -> None:
        assert context == 7
        errors.append((kind.decode(), message.decode()))

    dimensions = dl.pointer_to(shape)
    prototype = dl.Tensor(
        device=dl.Device(*device), ndim=len(shape), dtype=dl.DataType(*dtype), shape=dimensions
    )
    tensor = ctypes.c_void_p(1)
    result = ALLOCATE(table.allocate)(prototype, ctypes.byref(tensor), 7, note)
    assert (result, tensor.value is None, len(errors)) in ((0, False, 0), (-1, True, 1))
    return errors[0] if errors else dl.Seen(dl.Versioned.from_address(tensor.value))
