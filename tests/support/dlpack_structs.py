"""DLPack's structs by ctypes: capsules read and consumed, and capsules made, of any content."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

CPU, CUDA, CUDA_HOST, OPENCL, ROCM, ROCM_HOST, CUDA_MANAGED, ONE_API = 1, 2, 3, 4, 10, 11, 13, 14
READ_ONLY, IS_COPIED = 1, 2
#: NumPy asks for DLPack 1, may be asked for a device and a copy, and takes bool.
NEW_NUMPY = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
LEGACY_NAME, VERSIONED_NAME = b"dltensor", b"dltensor_versioned"

#: DLPack's type code of each kind of NumPy's.
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [
        ("tensor", Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("version", Version),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_STRUCTS = {LEGACY_NAME: Legacy, VERSIONED_NAME: Versioned}
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_api = ctypes.PyDLL(None)
_new = _api.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_get_name = _api.PyCapsule_GetName
_get_name.restype = ctypes.c_char_p
_get_name.argtypes = [ctypes.py_object]
_get_pointer = _api.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_name = _api.PyCapsule_SetName
_set_name.argtypes = [ctypes.py_object, ctypes.c_void_p]

# A capsule keeps the pointer to its name, not the text.
_UNUSED = {name: ctypes.create_string_buffer(name) for name in _STRUCTS}
_USED = {name: ctypes.create_string_buffer(b"used_" + name) for name in _STRUCTS}


# Reading.


class Seen:
    """What a managed tensor says: shape, strides in elements, device, dtype, flags, data."""

    def __init__(self, struct: Any) -> None:
        self.struct = struct
        tensor = struct.tensor
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
        self.device = (tensor.device.type, tensor.device.id)
        self.dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.data, self.byte_offset = tensor.data, tensor.byte_offset
        self.is_versioned = isinstance(struct, Versioned)
        self.flags = struct.flags if self.is_versioned else 0
        self.version = (struct.version.major, struct.version.minor) if self.is_versioned else None

    @property
    def address(self) -> int:
        """That of the managed struct."""
        return ctypes.addressof(self.struct)

    @property
    def deleter(self) -> int:
        found: int = self.struct.deleter
        return found

    def delete(self) -> None:
        """Call the deleter without Python's lock, as from a library's own code."""
        DELETER(self.deleter)(self.address)

    def delete_with_lock(self) -> None:
        """Call the deleter as most extensions do."""
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.deleter)(self.address)

    def array(self, dtype: Any) -> np.ndarray:
        """The elements, where the host reaches them: not kept by what is returned."""
        dtype = np.dtype(dtype)
        if not self.data:
            return np.empty(self.shape, dtype)
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = sum(r for r in reach if r < 0) * dtype.itemsize
        high = sum(r for r in reach if r > 0) * dtype.itemsize + dtype.itemsize
        start = self.data + self.byte_offset + low
        raw = (ctypes.c_char * (high - low)).from_address(start)
        strides = [s * dtype.itemsize for s in self.strides]
        return np.ndarray(self.shape, dtype, raw, -low, strides)


def name_of(capsule: Any) -> bytes:
    found: bytes = _get_name(capsule)
    return found


def pointer_of(capsule: Any, name: bytes) -> int:
    """What a capsule of a name holds."""
    found: int = _get_pointer(capsule, name)
    return found


def read(capsule: Any) -> Seen:
    """What a capsule says; it stays unused."""
    name = name_of(capsule)
    return Seen(_STRUCTS[name].from_address(pointer_of(capsule, name)))


def consume(capsule: Any) -> Seen:
    """The same, and the caller is to delete it."""
    seen = read(capsule)
    _set_name(capsule, ctypes.addressof(_USED[name_of(capsule)]))
    return seen


# Making.


def pointer_to(values: Any) -> Any:
    """Integers as C has them."""
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class Made:
    """A managed tensor over an array's memory, which counts the calls of its deleter.

    ``fields`` replace members of DLTensor, by name: ``data``, ``device`` and ``dtype``
    as tuples, ``ndim``, ``shape`` and ``strides`` as sequences or None, ``byte_offset``.
    """

    def __init__(
        self,
        array: np.ndarray,
        *,
        versioned: bool = True,
        version: tuple[int, int] = (1, 0),
        flags: int = 0,
        has_deleter: bool = True,
        **fields: Any,
    ) -> None:
        self.array, self.deleted = array, 0
        self.kept: list[Any] = []
        self.name = VERSIONED_NAME if versioned else LEGACY_NAME
        self.struct = Versioned() if versioned else Legacy()
        if versioned:
            self.struct.version = Version(*version)
            self.struct.flags = flags
        self.callback = DELETER(self._delete)
        if has_deleter:
            self.struct.deleter = ctypes.cast(self.callback, ctypes.c_void_p).value
        kind, size = array.dtype.kind, array.dtype.itemsize
        values: dict[str, Any] = {
            "data": array.ctypes.data if array.size else None,
            "device": (CPU, 0),
            "ndim": array.ndim,
            "dtype": (CODES.get(kind, 3), 8 * size, 1),
            "shape": array.shape,
            "strides": [s // size for s in array.strides],
            "byte_offset": 0,
            **fields,
        }
        tensor = self.struct.tensor
        for field in ("data", "ndim", "byte_offset"):
            setattr(tensor, field, values[field])
        tensor.device, tensor.dtype = Device(*values["device"]), DataType(*values["dtype"])
        for field in ("shape", "strides"):
            if values[field] is not None:
                self.kept.append(pointer_to(values[field]))
                setattr(tensor, field, self.kept[-1])

    def _delete(self, address: int) -> None:
        assert address == self.address
        self.deleted += 1

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    def capsule(self) -> Any:
        """A new capsule of it, without a destructor. Keep the object until it is deleted."""
        return _new(self.address, ctypes.addressof(_UNUSED[self.name]), None)


class Producer:
    """An object whose only protocol is DLPack's; each call is recorded in ``calls``."""

    def __init__(self, made: Made, device: tuple[int, int] | None = None) -> None:
        self.made, self.calls = made, list[dict[str, Any]]()
        found = made.struct.tensor.device
        self.device = (found.type, found.id) if device is None else device

    def __dlpack__(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        return self.made.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


# Threads that Python never saw.

_libc = ctypes.CDLL(None)


def delete_on_thread(seen: Seen, wait: bool = True) -> int:
    """Call the deleter on a thread of C's, whose start routine it is; the thread's handle."""
    thread = ctypes.c_uint64()
    start, argument = ctypes.c_void_p(seen.deleter), ctypes.c_void_p(seen.address)
    failed = _libc.pthread_create(ctypes.byref(thread), None, start, argument)
    assert failed == 0, failed
    if wait:
        _libc.pthread_join(thread, None)
    return thread.value


def delete_after_the_end(seen: Seen) -> None:
    """Have C call the deleter at exit(), when the interpreter has ended."""
    failed = _libc.__cxa_atexit(ctypes.c_void_p(seen.deleter), ctypes.c_void_p(seen.address), None)
    assert failed == 0, failed
