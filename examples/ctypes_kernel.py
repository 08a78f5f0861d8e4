"""A CUDA kernel called through ctypes, with nothing but the driver and its PTX.

saxpy.ptx is made from saxpy.cu, which says how. hamr makes the stream and the memory;
both work in the device's primary context, as the kernel does.
"""

import ctypes
from pathlib import Path

import numpy as np

import hamr

driver = ctypes.CDLL("libcuda.so.1")


def check(code: int) -> None:
    if code:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(code, ctypes.byref(name))
        raise RuntimeError(f"CUDA: {name.value.decode() if name.value else code}")


def load(path: Path, name: str) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuModuleLoadData(ctypes.byref(module), path.read_bytes() + b"\0"))
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function


def launch(function: ctypes.c_void_p, n: int, stream: hamr.Stream, *arguments: object) -> None:
    """Run a kernel on n threads, in blocks of 256."""
    pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
    grid, block = ((n + 255) // 256, 1, 1), (256, 1, 1)
    check(driver.cuLaunchKernel(function, *grid, *block, 0, handle(stream), pointers, None))


def handle(stream: hamr.Stream) -> ctypes.c_void_p:
    return ctypes.c_void_p(int(stream))


n = 1000
ramp = np.arange(n, dtype="float32")
with hamr.device(0):
    saxpy = load(Path(__file__).with_name("saxpy.ptx"), "saxpy")
    stream = hamr.Stream(device=0)
    with (
        # Moved to the GPU on the stream, which the kernel then runs on: no need to wait.
        hamr.buffer(ramp, stream=stream).get_cuda_accessible() as x,
        hamr.Buffer(n, "float32", hamr.Allocator.cuda_async, fill=1, stream=stream) as y,
    ):
        pointers = ctypes.c_void_p(y.ptr), ctypes.c_void_p(x.ptr)
        launch(saxpy, n, stream, *pointers, ctypes.c_float(2), ctypes.c_ulonglong(n))

        # The buffer's stream is the kernel's: reading waits for it.
        print(np.asarray(y.get_host_accessible())[-5:])
