"""Bare calls of the CUDA driver, which ``hamr bench`` measures others by."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_POINTER, _SIZE = ctypes.c_uint64, ctypes.c_size_t
_HANDLE = ctypes.c_void_p

#: Argument types, so that a call converts nothing it need not.
_FUNCTIONS: dict[str, list[Any]] = {
    "cuCtxSynchronize": [],
    "cuCtxPushCurrent_v2": [_HANDLE],
    "cuCtxPopCurrent_v2": [ctypes.POINTER(_HANDLE)],
    "cuMemAlloc_v2": [ctypes.POINTER(_POINTER), _SIZE],
    "cuMemFree_v2": [_POINTER],
    "cuMemAllocAsync": [ctypes.POINTER(_POINTER), _SIZE, _HANDLE],
    "cuMemFreeAsync": [_POINTER, _HANDLE],
    "cuMemcpyDtoH_v2": [_HANDLE, _POINTER, _SIZE],
    "cuMemcpyHtoD_v2": [_POINTER, _HANDLE, _SIZE],
    "cuMemcpyDtoHAsync_v2": [_HANDLE, _POINTER, _SIZE, _HANDLE],
    "cuMemcpyHtoDAsync_v2": [_POINTER, _HANDLE, _SIZE, _HANDLE],
    "cuMemcpyDtoDAsync_v2": [_POINTER, _POINTER, _SIZE, _HANDLE],
    "cuMemcpyAsync": [_POINTER, _POINTER, _SIZE, _HANDLE],
    "cuMemcpyPeerAsync": [_POINTER, _HANDLE, _POINTER, _HANDLE, _SIZE, _HANDLE],
    "cuMemsetD32Async": [_POINTER, ctypes.c_uint, _SIZE, _HANDLE],
}


class Driver:
    """The driver's functions; device 0's primary context is current."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ.get("HAMR_CUDA_LIBRARY") or "libcuda.so.1")
        for name, types in _FUNCTIONS.items():
            getattr(self.library, name).argtypes = types
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.count = count.value
        self.contexts = [self._context(i) for i in range(self.count)]
        self.call("cuCtxSetCurrent", self.contexts[0])

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; a code other than 0 is a RuntimeError with its name."""
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()} ({code})")

    def _context(self, device: int) -> ctypes.c_void_p:
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        return context

    def name(self, device: int) -> str:
        """A device's name."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, device)
        return text.value.decode()

    def version(self) -> str:
        """The CUDA version of the driver."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def synchronize(self) -> None:
        """Wait for all work on device 0."""
        self.call("cuCtxSynchronize")

    def waiting(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """An operation until device 0 is done with it."""
        synchronize = self.synchronize

        def until_done() -> Any:
            result = run()
            synchronize()
            return result

        return until_done

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """A device's primary context is current."""
        before = ctypes.c_void_p()
        self.call("cuCtxPushCurrent_v2", self.contexts[device])
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(before))

    def synchronize_all(self) -> None:
        """Wait for all work on every device."""
        for device in range(self.count):
            with self.on(device):
                self.call("cuCtxSynchronize")

    def reader(self, host: int, device: int, nbytes: int) -> Callable[[], Any]:
        """A copy from the device that has no more to do than call the driver."""
        function = self.library.cuMemcpyDtoH_v2
        arguments = ctypes.c_void_p(host), ctypes.c_uint64(device), ctypes.c_size_t(nbytes)
        return lambda: function(*arguments)

    def writer(self, device: int, host: int, nbytes: int) -> Callable[[], Any]:
        """A copy to the device, likewise."""
        function = self.library.cuMemcpyHtoD_v2
        arguments = ctypes.c_uint64(device), ctypes.c_void_p(host), ctypes.c_size_t(nbytes)
        return lambda: function(*arguments)

    def upload(self, device: int, host: int, nbytes: int) -> None:
        """Bytes brought to a device's address, and there when this returns."""
        self.call("cuMemcpyHtoD_v2", device, host, nbytes)
        self.synchronize()

    def download(self, host: int, device: int, nbytes: int) -> None:
        """Bytes brought from a device's address."""
        self.call("cuMemcpyDtoH_v2", host, device, nbytes)

    def allocate_and_free(self, nbytes: int) -> Callable[[], Any]:
        """Device memory taken and given back."""
        allocate, free = self.library.cuMemAlloc_v2, self.library.cuMemFree_v2
        pointer = ctypes.c_uint64()
        into = ctypes.pointer(pointer)

        def run() -> None:
            allocate(into, nbytes)
            free(pointer)

        return run

    def allocate_and_free_in_order(self, nbytes: int) -> Callable[[], Any]:
        """Memory of the device's pool taken and given back on a stream."""
        allocate, free = self.library.cuMemAllocAsync, self.library.cuMemFreeAsync
        pointer, stream = ctypes.c_uint64(), self.stream()
        into = ctypes.pointer(pointer)

        def run() -> None:
            allocate(into, nbytes, stream)
            free(pointer, stream)

        return run

    def stream(self) -> ctypes.c_void_p:
        """A new stream, which stays until the process ends."""
        made, non_blocking = ctypes.c_void_p(), 1
        self.call("cuStreamCreate", ctypes.byref(made), non_blocking)
        return made


class Memory:
    """Bytes of a device's, of which a part is an array of the host's."""

    def __init__(self, driver: Driver, address: int, nbytes: int) -> None:
        self._driver, self._address, self.nbytes = driver, address, nbytes

    def __getitem__(self, part: slice) -> Any:
        import numpy as np

        values = np.empty(min(part.stop, self.nbytes) - part.start, "u1")
        self._driver.download(values.ctypes.data, self._address + part.start, values.nbytes)
        return values


def driver_facts(driver: Driver) -> dict[str, Any]:
    """What to record of the GPUs and their driver."""
    kernel_module = None
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            words = file.readline().split()
        kernel_module = next((w for w in words if w[0].isdigit() and w.count(".") >= 1), None)
    except OSError:
        pass
    return {
        "gpus": [driver.name(i) for i in range(driver.count)],
        "driver": kernel_module,
        "cuda": driver.version(),
    }
