"""HAMR_CHECK and work that other libraries enqueue: on freed memory, and out of order."""

import pytest

from tests.cuda import driver
from tests.cuda.test_cuda_fork import SCRIPTS
from tests.support.processes import run_code, run_script, scaled

START = '''
import random, warnings
import hamr
import numpy as np
from hamr.allocators import _core
from tests.cuda import driver

told = []
warnings.showwarning = lambda message, *more: told.append(message)
warnings.simplefilter("always", hamr.MemoryMisuse)
N = 1000

def found(kind):
    """What was told of since the last call, soon after it was found or now."""
    hamr.check_memory()
    these = [each for each in told if each.kind == kind]
    told.clear()
    return these

def fill(stream, address, count, device=0):
    with driver.on(device):
        driver.do("cuMemsetD8Async", address, 1, count, stream.handle)

def copy(stream, target, source, count, device=0):
    with driver.on(device):
        driver.do("cuMemcpyDtoDAsync_v2", target, source, count, stream.handle)

def over():
    for device in range(driver.DEVICES):
        with driver.on(device):
            driver.do("cuCtxSynchronize")

one, other = driver.Stream(), driver.Stream()
first = hamr.Buffer(1, "u1", "cuda", fill=0)
del first
'''

pytestmark = pytest.mark.usefixtures("needs_device")


@pytest.fixture(scope="module", autouse=True)
def observed(needs_device):
    """CUPTI is there, on the emulated driver always."""
    why = run_code(START + 'print(hamr.checked_backends()["cuda"])', env={"HAMR_CHECK": "1"})
    if why.strip():
        assert driver.emulator is None
        pytest.skip(f"nobody tells of work: {why.strip()}")


def checked(code, **settings):
    return run_code(START + code, env={"HAMR_CHECK": "1", **settings})


ALLOCATORS = ["cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm"]


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("way", ["a kernel", "a copy", "a fill"])
def test_work_on_freed_memory_is_told_with_three_stacks(allocator, way):
    checked(
        f"""
def made(): return hamr.Buffer(N, "f4", {allocator!r}, fill=1)
def freed(): buffer.close()
def used():
    if {way!r} == "a kernel":
        driver.write_late(one, address + 40, 10, 7.0)
    elif {way!r} == "a copy":
        copy(one, target.ptr, address + 40, 10)
    else:
        fill(one, address + 40, 10)
target = hamr.Buffer(N, "f4", "cuda", fill=1)
buffer = made()
address = buffer.ptr
over()
freed()
used()
(misuse,) = found("used")
over()
assert (misuse.allocator, misuse.library) == ({allocator!r}, "hamr")
assert (misuse.address, misuse.size, misuse.offset) == (address, 4 * N, 40)
for name, stack in dict(made=misuse.allocated, freed=misuse.freed, used=misuse.used).items():
    assert name in [frame["name"] for frame in stack["stack"]], (name, stack)
assert misuse.earlier is None and misuse.freed_again is None
access = {{"a kernel": "may write", "a copy": "reads", "a fill": "writes"}}[{way!r}]
assert misuse.used["access"] == access and misuse.used["stream"] == one.handle
assert misuse.used["name"] in str(misuse) and access in str(misuse)
"""
    )


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize("name", ["cupy", "torch", "numba"])
def test_work_on_what_a_library_freed_is_told_of(name):
    checked(
        f"""
address = _core.allocate(getattr(_core, {name.upper()!r}), 0, N, 0)
over()
_core.free(address)
fill(one, address, 10)
(misuse,) = found("used")
assert (misuse.library, misuse.address, misuse.size) == ({name!r}, address, N)
over()
"""
    )


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("way", ["fill, kernel", "kernel, fill", "copy, kernel", "fill, copy"])
def test_work_that_waits_for_nothing_is_told_of(allocator, way):
    checked(
        f"""
source = hamr.Buffer(N, "f4", "cuda", fill=1)
buffer = hamr.Buffer(N, "f4", {allocator!r}, fill=1)
address, size = buffer.ptr, 4 * N
ways = dict(
    fill=lambda stream: fill(stream, address, size),
    copy=lambda stream: copy(stream, source.ptr, address, size),
    kernel=lambda stream: driver.write_late(stream, address, N, 7.0),
)
if {way!r} == "copy, kernel":  # the copy writes
    ways["copy"] = lambda stream: copy(stream, address, source.ptr, size)
before, after = {way!r}.split(", ")
def early(stream): ways[before](stream)
def late(stream): ways[after](stream)
over()
early(one)
late(one)
over()
early(one)
other.wait(one)
late(other)
over()
assert found("unordered") == []
early(one)
late(other)
(misuse,) = found("unordered")
over()
assert (misuse.allocator, misuse.address, misuse.size) == ({allocator!r}, address, 4 * N)
assert misuse.earlier["stream"] == one.handle and misuse.used["stream"] == other.handle
assert "late" in [frame["name"] for frame in misuse.used["stack"]]
assert "is not in order with" in str(misuse)
"""
    )


def test_hamrs_own_work_counts():
    """What a buffer is filled with comes late, and a library does not wait for it."""
    checked(
        """
own = hamr.Stream(device=0)
for dtype, value in (("u1", 3), ("c16", 1 + 2j), ("f8", 0.5)):
    buffer = hamr.Buffer(N, dtype, "cuda", fill=0, stream=own, transfer="async")
    buffer.fill(value)
    driver.write_late(other, buffer.ptr, 10, 7.0)
    (misuse,) = found("unordered")
    assert misuse.earlier["stream"] == own.ptr and misuse.earlier["access"] == "writes", misuse
    assert misuse.earlier["name"].startswith(("cuMemset", "hamr_fill")), misuse
    over()
"""
    )


def test_who_frees_does_not_wait_either():
    """A library's kernel is under way on another stream than the memory is given back on."""
    checked(
        """
own = hamr.Stream(device=0)
buffer = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=own)
address = hamr.memory_snapshot().allocations[-1]["address"]  # who has .ptr is waited for
buffer.synchronize()
driver.write_late(other, address, 10, 7.0)
buffer.close()
(misuse,) = found("unordered")
assert misuse.used["name"].startswith("cuMemset") and misuse.earlier["stream"] == other.handle
over()
"""
    )


@pytest.mark.parametrize("waits", ["the event", "the stream", "the device", "a poll"])
def test_whatever_a_thread_has_waited_for_is_over(waits):
    checked(
        f"""
import time
buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
over()
for _ in range(3):
    fill(one, buffer.ptr, 4 * N)
    if {waits!r} == "the event":
        with driver.on(0):
            event = driver.get("cuEventCreate", 2)
            driver.do("cuEventRecord", event, one.handle)
            driver.do("cuEventSynchronize", event)
            driver.do("cuEventDestroy_v2", event)
    elif {waits!r} == "the stream":
        one.synchronize()
    elif {waits!r} == "the device":
        over()
    else:
        while not one.idle():
            time.sleep(0.001)
    fill(other, buffer.ptr, 4 * N)
    other.synchronize()
assert found("unordered") == []
"""
    )


def test_streams_that_come_and_go_are_others():
    """Handles may be used again, for streams that nothing orders."""
    checked(
        """
buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
over()
for _ in range(50):
    stream = driver.Stream()
    fill(stream, buffer.ptr, 100)
    stream.synchronize()
    del stream
assert found("unordered") == []
stream = driver.Stream()
fill(stream, buffer.ptr, 100)
del stream
stream = driver.Stream()
fill(stream, buffer.ptr, 100)
assert len(found("unordered")) == 1
over()
""",
        HAMR_EMULATOR_REUSE="1",
    )


@pytest.mark.multigpu
def test_devices_wait_for_each_other():
    checked(
        """
buffer = hamr.Buffer(N, "f4", "cuda_uva", fill=0)
far = driver.Stream(1)
over()
fill(one, buffer.ptr, 100)
with driver.on(0):
    event = driver.get("cuEventCreate", 2)
    driver.do("cuEventRecord", event, one.handle)
with driver.on(1):
    driver.do("cuStreamWaitEvent", far.handle, event, 0)
fill(far, buffer.ptr, 100, device=1)
assert found("unordered") == []
over()
fill(one, buffer.ptr, 100)
fill(far, buffer.ptr, 100, device=1)
assert len(found("unordered")) == 1
over()
"""
    )


def test_without_cupti_writes_are_found_as_ever():
    said = checked(
        """
buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
address = buffer.ptr
over()
buffer.close()
hamr.check_memory()
print(hamr.checked_backends()["cuda"])
""",
        HAMR_CUPTI_LIBRARY="/nowhere/libcupti.so",
    )
    assert "/nowhere/libcupti.so" in said


def test_a_thread_that_has_the_lock_tells_its_stack():
    """A thread that has Python's lock tells its own stack."""
    checked(
        """
import ctypes
buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
address = buffer.ptr
over()
buffer.close()
locked = ctypes.PyDLL(driver.library._name)
def used():
    with driver.on(0):
        assert locked.cuMemsetD8Async(ctypes.c_uint64(address), 1, ctypes.c_uint64(4), None) == 0
used()
(misuse,) = found("used")
assert "used" in [frame["name"] for frame in misuse.used["stack"]]
over()
"""
    )


def test_a_forked_child_goes_on():
    checked(
        """
import os
buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
over()
child = os.fork()
if not child:
    assert hamr.Buffer(3, "f4", fill=1)[1] == 1
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
fill(one, buffer.ptr, 4)
one.synchronize()
"""
    )


@pytest.mark.usefixtures("emulator")
def test_a_walk_tells_of_what_the_emulated_driver_does():
    """Nothing is told of that is in order, and all that hamr can know is not."""
    arguments = 1, scaled(2000), 60
    said = run_script("check_walk", *arguments, folder=SCRIPTS, env={"HAMR_CHECK": "1"})
    walks, raced = map(int, said.split())
    assert 0 < raced < walks
