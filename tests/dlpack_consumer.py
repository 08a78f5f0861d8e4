"""A consumer of DLPack by ctypes: what it does to a capsule, one step at a time."""

from __future__ import annotations

import ctypes
from typing import Any

_VERSIONED, _USED = b"dltensor_versioned", b"used_dltensor_versioned"


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [
        ("version", _Version),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_api = ctypes.PyDLL(None)  # functions of its own, whose types nobody else sets
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = _api.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]

#: A deleter called as extensions call it that hold Python's lock, and without the lock.
WITH_LOCK = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
WITHOUT_LOCK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Consumed:
    """A tensor that a consumer has taken out of its capsule, until end()."""

    def __init__(self, producer: Any, stream: int | None) -> None:
        capsule = producer.__dlpack__(stream=stream, max_version=(1, 3))
        self._managed = _pointer(capsule, _VERSIONED)
        _rename(capsule, _USED)
        found = _Managed.from_address(self._managed)
        assert found.version.major == 1
        self.tensor = found.tensor
        self.address: int = found.tensor.data + found.tensor.byte_offset

    def end(self, how: Any = WITH_LOCK) -> None:
        """Call the deleter, once."""
        deleter = how(_Managed.from_address(self._managed).deleter)
        deleter(self._managed)
