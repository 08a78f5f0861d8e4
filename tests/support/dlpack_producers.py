"""Producers of DLPack by ctypes: tensors with any field wrong, and how often each was ended."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tests.support.dlpack_structs import (
    CODES,
    CPU,
    READ_ONLY,
    DataType,
    Device,
    Legacy,
    Version,
    Versioned,
    pointer_to,
)  # fmt: skip


class ExchangeAPI(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("view_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new_capsule = _python(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_name = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
# In a destructor the capsule is no object any more that Python may count references of.
_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


def name_of(capsule: Any) -> str:
    """The name of a capsule."""
    return _name(capsule).decode()


_kept: list[Any] = []  # names of capsules, which do not copy them, and C functions


def capsule_of(address: int, name: str | None) -> Any:
    """A capsule that nobody ends."""
    text = None if name is None else name.encode()
    _kept.append(text)
    return new_capsule(address, text, None)


def unused(capsule: int) -> int | None:
    """The address of the tensor in a capsule that ends, if nobody consumed it."""
    for name in (b"dltensor", b"dltensor_versioned"):
        if _valid(capsule, name):
            address: int = _pointer(capsule, name)
            return address
    return None


@_DESTRUCTOR
def _destroy(capsule: int) -> None:
    """What producers do with a capsule that nobody consumed."""
    address = unused(capsule)
    if address is not None:
        _tensors[address].unused += 1
        if _tensors[address].managed.deleter:
            _delete(address)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    _tensors[address].ended += 1


_tensors: dict[int, Tensor] = {}


class Tensor:
    """A managed tensor over the memory of an array.

    ``ended`` is how often its deleter was called, ``unused`` how often by a capsule
    that nobody consumed. Fields may be changed in ``fields`` and ``managed``, or by
    name: those of DLTensor, flags, version, deleter (None is NULL).
    """

    def __init__(self, array: Any = None, *, versioned: bool = True, **changes: Any) -> None:
        array = np.arange(6, dtype="f4").reshape(2, 3) if array is None else np.asarray(array)
        self.array, self.versioned = array, versioned
        self.ended = self.unused = 0
        self.rooms: list[Any] = []
        self.managed = Versioned(Version(1, 3)) if versioned else Legacy()
        self.fields = self.managed.tensor
        self.managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
        self.fields.data = array.ctypes.data if array.size else None
        self.fields.device = Device(CPU, 0)
        self.fields.dtype = DataType(CODES.get(array.dtype.kind, 0), 8 * array.dtype.itemsize, 1)
        self.fields.ndim = array.ndim
        self.set("shape", array.shape)
        self.set("strides", [s // array.dtype.itemsize for s in array.strides])
        if versioned and not array.flags.writeable:
            self.managed.flags = READ_ONLY
        for name, value in changes.items():
            self.set(name, value)
        self.address = ctypes.addressof(self.managed)
        _tensors[self.address] = self

    def set(self, name: str, value: Any) -> None:
        if name in ("shape", "strides"):
            room = None if value is None else pointer_to(value)
            self.rooms.append(room)
            setattr(self.fields, name, room)
        elif name == "device":
            self.fields.device = Device(*value)
        elif name == "dtype":
            self.fields.dtype = DataType(*value)
        elif name == "version":
            self.managed.version = Version(*value)
        elif name in ("flags", "deleter"):
            setattr(self.managed, name, value)
        else:
            setattr(self.fields, name, value)

    def forget(self) -> None:
        """End the test's own share of a tensor that was ended."""
        assert self.ended
        del _tensors[self.address]

    @property
    def device(self) -> tuple[int, int]:
        return self.fields.device.type, self.fields.device.id

    def capsule(self) -> Any:
        """A new capsule of the tensor, which ends it if nobody consumes it."""
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return new_capsule(self.address, name, ctypes.cast(_destroy, ctypes.c_void_p))


def forget_ended() -> None:
    """End the tests' own share of all tensors that were ended, or never consumed."""
    for tensor in [t for t in _tensors.values() if t.ended or t.unused]:
        del _tensors[tensor.address]


class Producer:
    """An object whose only protocol is DLPack; ``asked`` is what it was asked with."""

    def __init__(self, tensor: Tensor | None = None, **changes: Any) -> None:
        self.tensor = Tensor(**changes) if tensor is None else tensor
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        return self.tensor.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.device


class OldProducer(Producer):
    """A producer of before version 1."""

    def __dlpack__(self, stream: Any = None) -> Any:
        self.asked.append({"stream": stream})
        return self.tensor.capsule()


class Refusing(Producer):
    """A producer that raises what it is given, one after the other."""

    def __init__(self, *errors: BaseException) -> None:
        super().__init__()
        self.errors = list(errors)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        if self.errors:
            raise self.errors.pop(0)
        return self.tensor.capsule()


class Exchange:
    """The C functions of a type, which hands out the tensor that an object has.

    ``failing`` makes them return -1; ``stream`` is the current one; ``asked`` counts.
    """

    def __init__(self, major: int = 1, previous: Exchange | None = None) -> None:
        self.failing, self.stream, self.asked, self.devices = False, 0, 0, []

        @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
        def from_object(obj: Any, out: Any) -> int:
            self.asked += 1
            if self.failing:
                return -1
            out[0] = obj.tensor.address
            return 0

        @ctypes.PYFUNCTYPE(
            ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
        )
        def current_stream(kind: int, number: int, out: Any) -> int:
            self.devices.append((kind, number))
            if self.stream is None:
                return -1
            out[0] = self.stream
            return 0

        self.api = ExchangeAPI(major, 3)
        self.api.from_object = ctypes.cast(from_object, ctypes.c_void_p)
        self.api.current_stream = ctypes.cast(current_stream, ctypes.c_void_p)
        if previous is not None:
            self.api.previous = ctypes.addressof(previous.api)
        self.capsule = capsule_of(ctypes.addressof(self.api), "dlpack_exchange_api")
        _kept.append((self, from_object, current_stream, previous))


def exchanging(**options: Any) -> tuple[type, Exchange]:
    """A new type of producers that offers C functions."""
    exchange = Exchange(**options)
    kind = type("Exchanging", (Producer,), {"__dlpack_c_exchange_api__": exchange.capsule})
    return kind, exchange
