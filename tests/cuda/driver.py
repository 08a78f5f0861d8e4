"""The CUDA driver itself, by ctypes: what a foreign library does beside hamr in these tests.

It is the driver that hamr uses, emulated or real. Work that a foreign library
has under way is a kernel that writes float32 values late: on the emulator when
somebody waits for it, on a device after spinning for some milliseconds.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import emulation

EMULATED = emulation.CHOSEN == "emulator"

INVALID_VALUE, OUT_OF_MEMORY, NOT_READY, ILLEGAL_ADDRESS = 1, 2, 600, 700
LEGACY, PER_THREAD = 1, 2

#: How the emulated driver tells of work that is not in order with other work on the same bytes.
RACE = "is not in order with work"

#: Whether hamr hands freed memory of `cuda` out again by itself.
POOLED = os.environ.get("HAMR_CUDA_POOL") != "0"
#: Bytes that hamr's pool takes from the driver by themselves, once it was trimmed.
LARGE = 2 << 20
#: Bytes that it gives back at once, as an emulated device's pool keeps 8 MiB.
MORE_THAN_IS_KEPT = 12 << 20

_NON_BLOCKING, _NO_TIMING, _ATTACH_GLOBAL = 1, 2, 1
_SPIN_CYCLES = 4_000_000  # about two milliseconds
_BLOCK = 256


class DriverError(Exception):
    """A call failed with a code."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} returned {code}")
        self.code = code


def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(os.environ.get("HAMR_CUDA_LIBRARY") or "libcuda.so.1")
    except OSError:
        return None


library = _load()


def code(name: str, *arguments: Any) -> int:
    """What a call returns; int arguments are passed in 64 bits."""
    return getattr(library, name)(
        *(ctypes.c_uint64(a & 2**64 - 1) if isinstance(a, int) else a for a in arguments)
    )


def do(name: str, *arguments: Any) -> None:
    """A call that must succeed."""
    result = code(name, *arguments)
    if result != 0:
        raise DriverError(name, result)


def get(name: str, *arguments: Any, kind: Any = ctypes.c_uint64) -> int:
    """What a call writes to its first argument."""
    value = kind()
    do(name, ctypes.byref(value), *arguments)
    return value.value


def count_devices() -> int:
    """How many devices there are: the probe that decides which tests can run."""
    if library is None or code("cuInit", 0) != 0:
        return 0
    return get("cuDeviceGetCount", kind=ctypes.c_int)


DEVICES = count_devices()


# Contexts.

_contexts: dict[int, int] = {}


def context(device: int) -> int:
    """A device's primary context, which is hamr's and everybody else's, too."""
    if device not in _contexts:
        _contexts[device] = get("cuDevicePrimaryCtxRetain", device)
    return _contexts[device]


def current_context() -> int:
    """The calling thread's; 0 is none."""
    return get("cuCtxGetCurrent")


def set_current(handle: int) -> None:
    """Replace the calling thread's current context."""
    do("cuCtxSetCurrent", handle)


@contextmanager
def on(device: int) -> Iterator[None]:
    """Make a device current inside the block."""
    do("cuCtxPushCurrent_v2", context(device))
    try:
        yield
    finally:
        get("cuCtxPopCurrent_v2")


# Memory.


def allocate(size: int, device: int = 0, kind: str = "cuda") -> int:
    """Memory of a foreign library; give it back by free()."""
    with on(device):
        if kind == "cuda_uva":
            return get("cuMemAllocManaged", max(size, 1), _ATTACH_GLOBAL)
        if kind == "cuda_host":
            return get("cuMemHostAlloc", max(size, 1), 0)
        if kind == "cuda_async":
            return get("cuMemAllocAsync", max(size, 1), 0)
        return get("cuMemAlloc_v2", max(size, 1))


def free(address: int, device: int = 0, kind: str = "cuda") -> None:
    """Give back what allocate() returned."""
    with on(device):
        if kind == "cuda_async":
            do("cuMemFreeAsync", address, 0)
        else:
            do("cuMemFreeHost" if kind == "cuda_host" else "cuMemFree_v2", address)


def write(address: int, array: np.ndarray, device: int = 0) -> None:
    """Copy a contiguous array to memory, and wait for all work of the device before and after."""
    with on(device):
        do("cuCtxSynchronize")
        if array.nbytes:
            do("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, LEGACY)
        do("cuCtxSynchronize")


def read(address: int, shape: Any, dtype: Any, device: int = 0) -> np.ndarray:
    """What memory holds when all work of the device is over."""
    array = np.empty(shape, dtype)
    with on(device):
        do("cuCtxSynchronize")
        if array.nbytes:
            do("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, LEGACY)
        do("cuCtxSynchronize")
    return array


PORTABLE = 1  # page-locked for all contexts


def register(array: np.ndarray, device: int = 0, flags: int = 0) -> None:
    """Page-lock memory of the host's, in a device's context."""
    with on(device):
        do("cuMemHostRegister_v2", array.ctypes.data, array.nbytes, flags)


def unregister(array: np.ndarray, device: int = 0) -> None:
    """End that. No work may be pending."""
    with on(device):
        do("cuMemHostUnregister", array.ctypes.data)


@contextmanager
def locked(array: np.ndarray, device: int = 0, flags: int = 0) -> Iterator[np.ndarray]:
    """Page-lock memory of the host's inside the block."""
    register(array, device, flags)
    try:
        yield array
    finally:
        finish()
        unregister(array, device)


def finish() -> None:
    """Wait for all devices, without hamr."""
    for device in range(DEVICES):
        with on(device):
            do("cuCtxSynchronize")


def memory_info(device: int) -> tuple[int, int]:
    """Free and total bytes."""
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    with on(device):
        do("cuMemGetInfo_v2", ctypes.byref(available), ctypes.byref(total))
    return available.value, total.value


# Streams and late work.


class Stream:
    """A stream of a foreign library, which knows nothing of the default streams."""

    def __init__(self, device: int = 0) -> None:
        self.device = device
        with on(device):
            self.handle = get("cuStreamCreate", _NON_BLOCKING)

    def __del__(self) -> None:
        with on(self.device):
            code("cuStreamDestroy_v2", self.handle)

    def synchronize(self) -> None:
        with on(self.device):
            do("cuStreamSynchronize", self.handle)

    def idle(self) -> bool:
        """Whether all work is over. Asking makes the emulator do some, sooner or later."""
        with on(self.device):
            result = code("cuStreamQuery", self.handle)
        if result not in (0, NOT_READY):
            raise DriverError("cuStreamQuery", result)
        return result == 0

    def wait(self, other: Stream) -> None:
        """Make later work run after what another stream holds now."""
        with on(other.device):
            event = get("cuEventCreate", _NO_TIMING)
            do("cuEventRecord", event, other.handle)
        with on(self.device):
            do("cuStreamWaitEvent", self.handle, event, 0)
            do("cuEventDestroy_v2", event)


_kernels: dict[int, int] = {}


def _kernel(device: int) -> int:
    if device not in _kernels:
        text = (Path(__file__).parent / "late_write.ptx").read_bytes()
        module = get("cuModuleLoadData", ctypes.c_char_p(text))
        _kernels[device] = get("cuModuleGetFunction", module, ctypes.c_char_p(b"late_write"))
    return _kernels[device]


def write_late(
    stream: Stream | int,
    target: int,
    count: int,
    offset: float,
    source: int = 0,
    scale: float = 1,
    device: int | None = None,
) -> None:
    """Queue target[i] = source[i] * scale + offset on float32; without a source, = offset."""
    handle = stream.handle if isinstance(stream, Stream) else stream
    if device is None:
        device = stream.device if isinstance(stream, Stream) else 0
    numbers = ctypes.c_float(scale), ctypes.c_float(offset)
    with on(device):
        if EMULATED:
            do("emulator_kernel", handle, target, source, count, *numbers)
            return
        values = [
            *map(ctypes.c_uint64, (target, source, count)),
            *numbers,
            ctypes.c_uint64(_SPIN_CYCLES),
        ]
        pointers = (ctypes.c_void_p * 6)(*map(ctypes.addressof, values))
        blocks = -(-count // _BLOCK)
        shape = [ctypes.c_uint(n) for n in (blocks, 1, 1, _BLOCK, 1, 1, 0)]
        do("cuLaunchKernel", _kernel(device), *shape, handle, pointers, None)


# Arrays.


class Array:
    """A foreign library's array: memory of the driver's and __cuda_array_interface__ alone."""

    live = 0

    def __init__(
        self,
        content: Any,
        device: int = 0,
        kind: str = "cuda",
        stream: int | None = None,
        **changes: Any,
    ) -> None:
        """Changes are made to the interface's dictionary; ... leaves an entry out."""
        content = np.asarray(content)
        self.device, self.kind = device, kind
        self.shape, self.dtype, self.nbytes = content.shape, content.dtype, content.nbytes
        self.ptr = allocate(self.nbytes, device, kind)
        write(self.ptr, np.ascontiguousarray(content), device)
        type(self).live += 1
        interface = {
            "shape": content.shape,
            "typestr": content.dtype.str,
            "data": (self.ptr if content.size else 0, False),
            "version": 3,
            "strides": None,
            "stream": stream,
            **changes,
        }
        self.__cuda_array_interface__ = {k: v for k, v in interface.items() if v is not ...}

    def __del__(self) -> None:
        free(self.ptr, self.device, self.kind)
        type(self).live -= 1

    def read(self) -> np.ndarray:
        """The content when all work is over."""
        return read(self.ptr, self.shape, self.dtype, self.device)


class Only:
    """An object of nothing but another one's __cuda_array_interface__, perhaps changed."""

    def __init__(self, source: Any, **changes: Any) -> None:
        self.source = source
        fields = {**source.__cuda_array_interface__, **changes}
        self.__cuda_array_interface__ = {k: v for k, v in fields.items() if v is not ...}


def content(shared: Any) -> np.ndarray:
    """What a consumer of __cuda_array_interface__ reads, in the order of its own stream.

    It does what the protocol asks for: wait for the stream that the interface
    names, and for nothing else.
    """
    interface = shared.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    count = int(np.prod(interface["shape"], dtype=int))
    if count == 0:
        return np.empty(interface["shape"], dtype)
    address, strides = interface["data"][0], interface.get("strides")
    strides = strides or np.empty(interface["shape"], dtype).strides
    reach = [(n - 1) * s for n, s in zip(interface["shape"], strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + dtype.itemsize
    raw = np.empty(high - low, "u1")
    device = device_of(address)
    reader = Stream(device)
    producer = interface.get("stream")
    with on(device):
        if producer is not None:
            do("cuStreamSynchronize", producer)
        do("cuMemcpyAsync", raw.ctypes.data, address + low, raw.nbytes, reader.handle)
    reader.synchronize()
    return np.ndarray(interface["shape"], dtype, raw, -low, strides).copy()


def device_of(address: int) -> int:
    """The device that memory is on, as the driver has it."""
    value = ctypes.c_int()
    do("cuPointerGetAttribute", ctypes.byref(value), 9, address)
    return value.value


#: What the emulator shows and makes fail; None with a real driver.
emulator = emulation.Emulator(library) if EMULATED and library is not None else None

# Hands out values that no test has used before.
fresh_value = itertools.count(1).__next__
