"""Streams and events of HIP's, its errors, and what forks and the end of a process do."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import hamr
from tests.hip import runtime

A = hamr.Allocator


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
    runtime.do("hipStreamDestroy", handle)


def test_streams_are_of_one_runtime():
    ours, cudas = hamr.Stream(device="hip:0"), hamr.Stream(device=0)
    b, c = hamr.Buffer(4, "u1", "hip"), hamr.Buffer(4, "u1", "cuda")
    with pytest.raises(ValueError, match="of cuda: accepted for memory of hip are streams of hip"):
        b.set_stream(cudas)
    with pytest.raises(ValueError, match="of hip: accepted for memory of cuda are streams of cuda"):
        c.set_stream(ours)
    with pytest.raises(ValueError, match="accepted for memory of device 0 are streams of that"):
        b.set_stream(hamr.Stream(device="hip:1"))
    with pytest.raises(ValueError, match="accepted is the handle of a stream that exists"):
        b.set_stream(4711)
    with pytest.raises(ValueError, match="device is 'hip:x'"):
        hamr.Stream(device="hip:x")


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


def test_a_forked_child_is_refused():
    b = hamr.Buffer(4, "f4", "hip", fill=1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            b.fill(2)
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
