"""HAMR_CHECK beside CuPy and torch: what they do wrong is told, and nothing else."""

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

misuses = []
warnings.showwarning = lambda message, *more: misuses.append(message)
warnings.simplefilter("always", hamr.MemoryMisuse)
N = 1 << 20

def found(kind, *beside):
    # Soon after it was found, or now.
    hamr.check_memory()
    kinds = {each.kind for each in misuses}
    assert kinds <= {kind, *beside}, misuses
    these = [each for each in misuses if each.kind == kind]
    misuses.clear()
    return these

class Stale:
    # An array that nobody keeps.
    def __init__(self, address, dtype="<f4"):
        self.__cuda_array_interface__ = dict(
            shape=(100,), typestr=dtype, data=(address, False), version=3, stream=None
        )

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
    (misuse,) = found("written", "used")
    assert (misuse.library, misuse.address, misuse.offset) == (library, address, offset), misuse
    assert (misuse.written, misuse.value) == (1, 7), misuse
    return misuse
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
    misuse = told(address, offset, "hamr")
    assert misuse.allocator == {allocator!r}
    assert misuse.freed["stack"][-1]["name"] == "<module>"
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
misuse = told(address, 5, "cupy")
assert "made" in [frame["name"] for frame in misuse.allocated["stack"]], misuse
assert "dropped" in [frame["name"] for frame in misuse.freed["stack"]], misuse
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
(misuse,) = found("freed")
assert (misuse.library, misuse.size, misuse.address) == ("cupy", N, address)
assert "<module>" in [frame["name"] for frame in misuse.freed_again["stack"]]
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


@pytest.fixture(scope="module")
def observed() -> None:
    """The driver's calls are told of: CUPTI is there."""
    why = checked('hamr.Buffer(1, "f4", "cuda"); print(hamr.checked_backends()["cuda"])').strip()
    if why:
        pytest.skip(f"nobody tells of work: {why}")


@pytest.mark.usefixtures("observed")
@pytest.mark.parametrize(
    ("way", "access"),
    [
        ("cupy.asarray(Stale(address)) + 1", "may write"),
        ("cupy.asarray(Stale(address)).sum()", "may write"),
        ("cupy.asarray(Stale(address)).get()", "reads"),
        ("cupy.asarray(Stale(address)).fill(3)", "may write"),
        ("cupy.cuda.runtime.memsetAsync(address, 3, 100, 0)", "writes"),
        ("torch.as_tensor(Stale(address), device='cuda') + 1", "may write"),
        ("torch.as_tensor(Stale(address), device='cuda').cpu()", "reads"),
        ("torch.as_tensor(Stale(address), device='cuda').zero_()", "may write"),
        ("torch.as_tensor(Stale(address), device='cuda').copy_(torch.ones(100))", "writes"),
    ],
)
def test_work_on_freed_memory(way: str, access: str) -> None:
    """With the stacks of who enqueued it, made the memory, and freed it."""
    checked(
        f"""
import torch
torch.zeros(1, device="cuda")
def made(): return hamr.Buffer(1000, "f4", "cuda", fill=1)
def freed(): buffer.close()
def used(): return {way}
buffer = made()
address = buffer.ptr
used()  # what it needs is compiled
cupy.cuda.Device().synchronize()
assert found("used") == []
freed()
used()
these = found("used", "written")
assert {access!r} in [misuse.used["access"] for misuse in these], these
for misuse in these:
    assert (misuse.address, misuse.offset, misuse.size) == (address, 0, 4000), misuse
    for name in ("made", "freed", "used"):
        moment = dict(made=misuse.allocated, freed=misuse.freed, used=misuse.used)[name]
        assert name in [frame["name"] for frame in moment["stack"]], (name, misuse)
print(these[0])
"""
    )


@pytest.mark.usefixtures("observed")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_reader_that_does_not_wait_for_the_producer(library: str) -> None:
    checked(
        f"""
import numpy as np
import torch
buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
producer = cupy.cuda.Stream(non_blocking=True)
source = cupy.cuda.alloc_pinned_memory(4 * N)
if {library!r} == "cupy":
    array, reader = cupy.asarray(buffer), cupy.cuda.Stream(non_blocking=True)
    def read():
        with reader:
            return array + 1
else:
    array, reader = torch.as_tensor(buffer, device="cuda"), torch.cuda.Stream()
    def read():
        with torch.cuda.stream(reader):
            return array + 1
def produce():
    cupy.cuda.runtime.memcpyAsync(buffer.ptr, source.ptr, 4 * N, 1, producer.ptr)
read()
cupy.cuda.Device().synchronize()
produce()
event = producer.record()
if {library!r} == "cupy":
    reader.wait_event(event)
else:
    reader.wait_event(torch.cuda.ExternalStream(producer.ptr).record_event())
read()
cupy.cuda.Device().synchronize()
assert found("unordered") == []
produce()
read()
cupy.cuda.Device().synchronize()
(misuse,) = found("unordered")
assert "emcpy" in misuse.earlier["name"] and misuse.earlier["access"] == "writes", misuse
assert "read" in [frame["name"] for frame in misuse.used["stack"]], misuse
print(misuse)
"""
    )
