"""Streams and events of HIP's, its errors, and what forks and the end of a process do."""

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hamr
from tests.hip import runtime

A = hamr.Allocator
PER_THREAD = 2


def test_streams_of_hips():
    stream = hamr.Stream(device="hip:1")
    assert stream.device == 1
    b = hamr.Buffer(1000, "f4", A.hip_async, device=1, stream=stream, transfer="async", fill=3)
    assert b.stream.ptr == stream.ptr
    c = b.copy()
    event = stream.record()
    assert "hip device 1" in repr(event)
    event.synchronize()
    assert event.done
    assert stream.idle
    assert np.asarray(c.get_host_accessible()).tolist() == [3.0] * 1000
    other = hamr.Stream(device="hip:1")
    other.wait(event)
    other.synchronize()
    start, end = stream.record(timing=True), stream.record(timing=True)
    end.synchronize()
    assert start.elapsed_time(end) >= 0


@pytest.mark.parametrize("name", ["hip", "hip_async"])
def test_work_of_a_foreign_stream_is_waited_for(name):
    handle = runtime.new_stream()
    b = hamr.Buffer(64, "u1", name, fill=0)
    runtime.do("hipDeviceSynchronize")
    b.set_stream(handle)
    assert b.stream.ptr == handle
    runtime.fill_late(b.data(), 7, 64, handle)
    assert set(np.asarray(b.get_host_accessible()).tolist()) == {7}
    with hamr.Stream(handle, device="hip:0") as stream:
        inside = hamr.Buffer(64, "u1", name, fill=1)
        assert inside.stream.ptr == stream.ptr
        assert hamr.Buffer(4, "u1", "cuda").stream.ptr != stream.ptr
    stream.synchronize()
    del b, inside, stream
    gc.collect()
    runtime.end_stream(handle)


def test_streams_are_of_one_runtime():
    ours, cudas = hamr.Stream(device="hip:0"), hamr.Stream(device=0)
    b, c = hamr.Buffer(4, "u1", "hip"), hamr.Buffer(4, "u1", "cuda")
    with pytest.raises(ValueError, match="of cuda: accepted here are streams of hip"):
        b.set_stream(cudas)
    with pytest.raises(ValueError, match="of hip: accepted here are streams of cuda"):
        c.set_stream(ours)
    with pytest.raises(ValueError, match="accepted for memory of device 0 are streams of that"):
        b.set_stream(hamr.Stream(device="hip:1"))
    with pytest.raises(ValueError, match="accepted is the handle of a stream that exists"):
        b.set_stream(4711)
    with pytest.raises(ValueError, match="device is 'hip:x'"):
        hamr.Stream(device="hip:x")


def test_blocks_give_streams_to_memory_of_their_runtime():
    with hamr.Stream(device=0) as cudas:
        assert hamr.Buffer(4, "u1").stream.ptr == cudas.ptr
        assert hamr.Buffer(4, "u1", "hip_host").stream.ptr == 0
        with hamr.Stream(device="hip:0") as ours:
            assert hamr.Buffer(4, "u1", "hip_host").stream.ptr == ours.ptr
            assert hamr.Buffer(4, "u1", "hip").stream.ptr == ours.ptr
            assert hamr.Buffer(4, "u1").stream.ptr == cudas.ptr


class Tensor:
    """Another library's, which says by DLPack that its memory is ROCm's."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __dlpack__(self, **named):
        return self.buffer.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.buffer.__dlpack_device__()


class StreamOfPyTorch:
    def __init__(self, handle):
        self.cuda_stream = handle


@pytest.mark.parametrize("name", ["hip", "hip_host"])
def test_shared_memory_has_streams_of_its_runtime(name):
    ours, cudas = hamr.Stream(device="hip:0"), hamr.Stream(device=0)
    memory = hamr.Buffer(4, "u1", name, fill=1)
    handle = runtime.new_stream()
    for given in (ours, handle, StreamOfPyTorch(handle), hamr.Stream(), None, 0):
        stream = hamr.buffer(Tensor(memory), given, "async").stream
        assert stream.ptr == (0 if given is None else hamr.Stream(given).ptr)
        assert "on hip device 0" in repr(stream.record())
    assert hamr.buffer(memory.__dlpack__(), ours).stream is ours
    for foreign in (Tensor(memory), memory.__dlpack__()):
        with pytest.raises(ValueError, match="of cuda: accepted here are streams of hip"):
            hamr.buffer(foreign, cudas)
    for foreign in (Tensor(hamr.Buffer(4, "u1", "cuda")), np.zeros(4).__dlpack__()):
        with pytest.raises(ValueError, match="of hip: accepted here are streams of cuda"):
            hamr.buffer(foreign, ours)
    with ours, cudas:
        for foreign in (Tensor(memory), memory.__dlpack__()):
            assert hamr.buffer(foreign).stream.ptr == ours.ptr
        assert hamr.from_dlpack(Tensor(memory)).stream.ptr == ours.ptr
    gc.collect()
    runtime.end_stream(handle)


def test_the_per_thread_default_stream_becomes_one_that_all_threads_mean():
    late = hamr.Buffer(64, "u1", "hip_async", device=1, fill=0)
    late.synchronize()
    runtime.do("hipSetDevice", 1)
    runtime.fill_late(late.data(), 7, 64, PER_THREAD)
    late.set_stream(PER_THREAD)
    runtime.do("hipSetDevice", 0)
    assert late.stream.ptr > PER_THREAD
    assert late.stream.device == 1
    with ThreadPoolExecutor(1) as other:
        found = other.submit(lambda: np.asarray(late.get_host_accessible()).tolist()).result()
    assert found == [7] * 64


def test_errors_have_hips_names(emulator):
    b = hamr.Buffer(64, "u1", "hip", fill=0)
    emulator.fail("cuMemsetD8Async", 1, 719)
    with pytest.raises(
        hamr.DeviceError, match=r"hipMemsetD8Async.*hipErrorLaunchFailure"
    ) as caught:
        b.fill(1)
    assert caught.value.name == "hipErrorLaunchFailure"
    assert runtime.library.hipPeekAtLastError() == 0
    with pytest.raises(hamr.OutOfMemory, match="hipErrorOutOfMemory") as full:
        hamr.Buffer(1 << 45, "u1", "hip")
    assert full.value.size == 1 << 45
    with pytest.raises(ValueError, match="device is 2"):
        hamr.Buffer(4, "u1", "hip", device=2)
    b.fill(2)
    assert set(np.asarray(b.get_host_accessible()).tolist()) == {2}


@pytest.mark.parametrize("use", [lambda b: b.fill(2), lambda b: hamr.Buffer(4, "f4", "hip")])
def test_a_forked_child_is_refused(use):
    b = hamr.Buffer(4, "f4", "hip", fill=1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            use(b)
            answer = "no error"
        except BaseException as error:
            answer = type(error).__name__
        os.write(write, answer.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 100) == b"ForkError"
    os.close(read)
    assert np.asarray(b.get_host_accessible()).tolist() == [1.0] * 4


END = """
import hamr, numpy
names = "hip", "hip_async", "hip_uva", "hip_host", "cuda"
kept = [hamr.Buffer(1000, "f4", name, fill=1) for name in names]
late = hamr.Stream(device="hip:0")
kept[0].set_stream(late)
kept[0].fill(2)
cycle = [kept]
cycle.append(cycle)
print(numpy.asarray(kept[0].get_host_accessible())[0])
"""


@pytest.mark.parametrize("loaded_first", ["hip", "cuda"])
def test_processes_end_cleanly(loaded_first):
    first = f"import hamr; hamr.Buffer(1, 'u1', {loaded_first!r})"
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", first + END], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")


ALONE = """
import hamr, numpy

class Offers:
    def __init__(self, interface):
        self.__cuda_array_interface__ = interface

assert [hamr.backends()[name]["available"] for name in ("cuda", "hip")] == [False, True]
assert hamr.get_device_allocator().name == "hip"
for name in ("hip", "hip_uva"):
    b = hamr.buffer(numpy.arange(4, dtype="f4")).copy(name)
    for shared in (hamr.buffer(Offers(b.__cuda_array_interface__)), hamr.from_dlpack(b)):
        assert (shared.allocator.name, hamr.device_of(shared)) == (name, 0)
        assert numpy.asarray(shared.get_host_accessible()).tolist() == [0, 1, 2, 3]
assert hamr.from_dlpack(hamr.Buffer(4, "u1", "hip_host")).allocator.name == "hip_host"
late = hamr.Buffer(100_000, "u1", "hip", fill=1)
late.fill(9)
assert late.__cuda_array_interface__["stream"] is None  # HIP's default stream has no number
stream = hamr.Stream(device="hip:0")
late.set_stream(stream)
late.fill(8)
interface = late.__cuda_array_interface__
assert interface["stream"] == stream.ptr
assert hamr.buffer(Offers(interface), stream).stream.ptr == stream.ptr
with stream:
    assert hamr.buffer(Offers(interface)).stream.ptr == stream.ptr
assert set(hamr.buffer(Offers(interface)).get(numpy.empty(100_000, "u1"))) == {8}
assert hamr.buffer(numpy.arange(3)).get_device_accessible().__dlpack_device__() == (10, 0)
assert hamr.device_properties("hip:1")["pci_bus_id"] and hamr.memory_info("hip:0").total
print("all of it")
"""


def test_on_a_machine_with_hip_alone():
    environment = os.environ | {"HAMR_CUDA_LIBRARY": "/nowhere/libcuda.so"}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "all of it\n", "")


def test_the_interface_of_pending_work_names_no_default_stream(emulator):
    b = hamr.Buffer(1000, "u1", "hip", fill=1)
    b.fill(9)
    interface = b.__cuda_array_interface__
    assert interface["stream"] is None
    assert set(emulator.peek(interface["data"][0], 1000, "u1").tolist()) == {9}


def test_without_the_library():
    program = """
import hamr
try:
    hamr.Buffer(1, "u1", "hip")
except hamr.BackendUnavailable as error:
    print(error)
print(hamr.backends()["hip"]["available"])
"""
    environment = os.environ | {"HAMR_HIP_LIBRARY": "/nowhere/libamdhip64.so"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert "/nowhere/libamdhip64.so" in done.stdout
    assert done.stdout.endswith("False\n")
