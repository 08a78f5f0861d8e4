"""A few calls of the CUDA driver by ctypes, for tests and without any array library."""

from __future__ import annotations

import ctypes
import functools


@functools.cache
def driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def check(code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        driver().cuGetErrorName(code, ctypes.byref(text))
        raise RuntimeError((text.value or b"?").decode())


def ensure_context(device: int = 0) -> None:
    """The device's primary context, current if no context is."""
    current = ctypes.c_void_p()
    check(driver().cuInit(0))
    check(driver().cuCtxGetCurrent(ctypes.byref(current)))
    if not current:
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        check(driver().cuDeviceGet(ctypes.byref(handle), device))
        check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
        check(driver().cuCtxSetCurrent(context))


def free_bytes() -> int:
    """Free memory of the current device."""
    ensure_context()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(driver().cuCtxSynchronize())
    check(driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value


def device_of(pointer: int) -> int:
    """The number of the device that the driver says memory belongs to."""
    ensure_context()
    number = ctypes.c_int()
    ordinal = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    attribute = driver().cuPointerGetAttribute
    attribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
    check(attribute(ctypes.byref(number), ordinal, pointer))
    return number.value
