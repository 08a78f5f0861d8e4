"""The struct that ``cudaDeviceProp.get`` points to, for libraries that take one."""

from __future__ import annotations

import ctypes

from .pointers import OpaquePointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_Three = ctypes.c_int * 3


class Properties(ctypes.Structure):
    """The head of ``struct cudaDeviceProp``, and room for what versions have behind it."""

    _fields_ = (
        ("name", ctypes.c_char * 256),
        ("uuid", ctypes.c_ubyte * 16),
        ("luid", ctypes.c_char * 8),
        ("luidDeviceNodeMask", ctypes.c_uint),
        ("totalGlobalMem", ctypes.c_size_t),
        ("sharedMemPerBlock", ctypes.c_size_t),
        ("regsPerBlock", ctypes.c_int),
        ("warpSize", ctypes.c_int),
        ("memPitch", ctypes.c_size_t),
        ("maxThreadsPerBlock", ctypes.c_int),
        ("maxThreadsDim", _Three),
        ("maxGridSize", _Three),
        ("_behind", ctypes.c_ubyte * 2048),
    )


def struct_of(found: Any) -> OpaquePointer:
    """A pointer to a struct with what a cudaDeviceProp has found."""
    made = Properties()
    made.name = found.name().encode()[:255]
    made.uuid[:] = bytes.fromhex(found.uuid() or "00" * 16)
    for name in ("totalGlobalMem", "sharedMemPerBlock", "regsPerBlock", "warpSize", "memPitch"):
        setattr(made, name, getattr(found, name)())
    made.maxThreadsPerBlock = found.maxThreadsPerBlock()
    made.maxThreadsDim = _Three(*found.maxThreadsDim())
    made.maxGridSize = _Three(*found.maxGridSize())
    return OpaquePointer(ctypes.addressof(made), made)
