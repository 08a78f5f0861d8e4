"""HAMR_CHECK beside CuPy and torch: their writes to freed memory are told, and nothing else."""

from __future__ import annotations

import pytest

from tests.support.processes import run_code

SECONDS = 200.0
START = """
import ctypes
import time
import warnings
import cupy
import hamr
import hamr.allocators

warnings.simplefilter("ignore", hamr.MemoryMisuse)
N = 1 << 20
write = cupy.RawKernel("extern \\"C\\" __global__ void write(char *at) { *at = 7; }", "write")

def poisoned(address):
    # Until the device was waited for, and the pattern is there.
    byte, end = ctypes.c_ubyte(), time.monotonic() + 30
    while byte.value != 0xDB:
        assert time.monotonic() < end, byte
        cupy.cuda.Device().synchronize()
        cupy.cuda.runtime.memcpy(ctypes.addressof(byte), address, 1, 4)
    cupy.cuda.Device().synchronize()

def told(address, offset, library):
    poisoned(address + N - 1)
    write((1,), (1,), (cupy.int64(address + offset),))
    cupy.cuda.Device().synchronize()
    (found,) = hamr.check_memory()
    assert (found.library, found.address, found.offset) == (library, address, offset), found
    assert (found.written, found.value) == (1, 7), found
    return found
"""


def checked(code: str) -> str:
    return run_code(START + code, timeout=SECONDS, env={"HAMR_CHECK": "1"})


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_a_kernel_of_cupys(allocator: str) -> None:
    """At the first byte, the last, and one between."""
    checked(
        f"""
for offset in (0, N - 1, N // 2):
    buffer = hamr.Buffer(N, "u1", {allocator!r}, fill=1)
    address = buffer.ptr
    buffer.close()
    found = told(address, offset, "hamr")
    assert found.allocator == {allocator!r}
    assert found.freed["stack"][-1]["name"] == "<module>"
assert hamr.check_memory() == []
"""
    )


def test_memory_that_cupy_gave_back() -> None:
    checked(
        """
hamr.allocators.use_in_cupy()
def made(): return cupy.zeros(N, "u1")
def dropped():
    global array
    del array
array = made()
address = array.data.ptr
dropped()
found = told(address, 5, "cupy")
assert "made" in [frame["name"] for frame in found.allocated["stack"]], found
assert "dropped" in [frame["name"] for frame in found.freed["stack"]], found
assert hamr.check_memory() == []
"""
    )


def test_memory_that_torch_gave_back() -> None:
    checked(
        """
import torch
hamr.allocators.use_in_torch(everywhere=True)
tensor = torch.zeros(N, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
address = tensor.data_ptr()
del tensor
told(address, 5, "torch")
assert hamr.check_memory() == []
"""
    )


def test_a_pool_of_cupys_that_frees_twice() -> None:
    checked(
        """
hamr.allocators.use_in_cupy()
array = cupy.empty(N, "u1")
address = array.data.ptr
del array
from hamr.allocators import _core
import ctypes
_, library = _core.hooks()
free = ctypes.PyDLL(library._name).hamr_cupy_free
free(None, ctypes.c_void_p(address), 0)
(found,) = hamr.check_memory()
assert (found.kind, found.library, found.size, found.address) == ("freed", "cupy", N, address)
assert "<module>" in [frame["name"] for frame in found.freed_again["stack"]]
"""
    )


def test_work_without_a_fault() -> None:
    """Memory goes from library to library, on several streams."""
    checked(
        """
import torch
hamr.allocators.use_in_cupy()
streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
for step in range(60):
    with streams[step % 3] as stream:
        array = cupy.full(N, step, "f4")
        buffer = hamr.buffer(array)
        copy = buffer.copy()
        tensor = torch.utils.dlpack.from_dlpack(copy)
        host = copy.get()
        assert (host == step).all()
        other = cupy.asarray(copy) * 2
        assert float(other[7]) == 2 * step
    del array, buffer, copy, tensor, other
    if step % 20 == 19:
        assert hamr.check_memory() == []
hamr.trim()
assert hamr.check_memory() == []
"""
    )
