"""hamr.pygpu's streams, events and devices, what is pending on streams, and statuses."""

import gc
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver
from tests.support.processes import run_script

SCRIPTS = Path(__file__).resolve().parent / "scripts"
TIMED, UNTIMED, NON_BLOCKING = 0, 2, 1


def test_devices():
    with hamr.device(0):
        assert pygpu.cudaGetDeviceCount() == (driver.DEVICES, 0)
        last = driver.DEVICES - 1
        assert pygpu.cudaSetDevice(last) == 0
        assert pygpu.cudaGetDevice() == (last, 0)
        for wrong in (-1, driver.DEVICES):
            assert pygpu.cudaSetDevice(wrong) == 101
            assert pygpu.cudaGetLastError().name == "cudaErrorInvalidDevice"
        assert pygpu.cudaGetDevice() == (last, 0)
        assert pygpu.cudaGetLastError() == 0
        with pytest.raises(TypeError, match="device is 'a'"):
            pygpu.cudaSetDevice("a")
        assert pygpu.cudaDeviceSynchronize() == 0
    assert (pygpu.cuda_enabled, pygpu.use_hip) == (True, False)


@pytest.mark.multigpu
def test_each_thread_has_its_device():
    seen = []

    def work():
        with hamr.device(0):
            pygpu.cudaSetDevice(1)
            seen.append(pygpu.cudaGetDevice()[0])

    with hamr.device(0):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert (seen, pygpu.cudaGetDevice()[0]) == ([1], 0)


def test_reset_leaves_arrays():
    array = pygpu.to_gpu(np.arange(3.0))
    pygpu.cudaSetDevice(-1)
    assert pygpu.cudaDeviceReset() == 0
    assert pygpu.cudaGetLastError() == 0
    assert array.get().tolist() == [0, 1, 2]


def test_streams():
    with hamr.device(0):
        default, apart = pygpu.cudaStream_t(), pygpu.cudaStream_t(NON_BLOCKING)
        for stream in (default, apart):
            assert stream.last_status() == 0
            assert int(stream.get()) == stream.ptr != 0
            assert not stream.get().is_safe()
            assert pygpu.cudaStreamQuery(stream) == 0 == pygpu.cudaStreamSynchronize(stream)
        assert "CUstream_st" in repr(default.get())
        unmade = pygpu.cudaStream_t(8)
        assert unmade.last_status() == 1 == pygpu.cudaGetLastError()
        assert pygpu.cudaStreamSynchronize(unmade) == pygpu.cudaStreamQuery(unmade) == 400
        assert pygpu.cudaEventRecord(pygpu.cudaEvent_t(), unmade) == 400
        with pytest.raises(ValueError, match="could not be made"):
            pygpu.zeros(3).fill(1, stream=unmade)
        for wrong in ("a", True, 1.5):
            with pytest.raises(TypeError, match="flags are"):
                pygpu.cudaStream_t(wrong)
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(default)
        pointer = apart.get()
        del apart, stream
        gc.collect()
        assert pygpu.cudaStreamSynchronize(int(pointer)) == 0  # the pointer keeps it


def test_default_streams_take_turns(emulator):
    """A stream with flags 0 waits for the default one, as cudaStreamCreate's do; 1 is apart."""
    with hamr.device(0):
        for flags, together in ((0, True), (NON_BLOCKING, False)):
            stream = pygpu.cudaStream_t(flags)
            emulator.hold(driver.LEGACY)
            try:
                end = pygpu.cudaEvent_t()
                pygpu.cudaEventRecord(end, stream)
                assert end._wait(50) != together
                assert pygpu.cudaEventQuery(end) == (600 if together else 0)
            finally:
                emulator.let_go()
            assert pygpu.cudaDeviceSynchronize() == 0


def test_events():
    with hamr.device(0):
        stream = pygpu.cudaStream_t()
        start, end = pygpu.cudaEvent_t(), pygpu.cudaEvent_t(TIMED)
        assert start.last_status() == 0
        handle = int(start.get())
        assert handle
        assert pygpu.cudaEventElapsedTime(start, end) == (0.0, 400)
        assert pygpu.cudaEventSynchronize(start) == 0  # of nothing
        assert pygpu.cudaEventRecord(start) == 0
        pygpu.zeros(100)
        assert pygpu.cudaEventRecord(end, stream) == 0
        assert pygpu.cudaEventSynchronize(start) == pygpu.cudaEventSynchronize(end) == 0
        elapsed, status = pygpu.cudaEventElapsedTime(start, end)
        assert status == 0
        assert elapsed >= 0
        assert pygpu.cudaEventQuery(end) == 0
        assert pygpu.cudaEventRecord(start, stream) == 0  # again: the same event
        assert int(start.get()) == handle
        assert pygpu.cudaEventSynchronize(start) == 0
        assert pygpu.cudaEventElapsedTime(end, start)[0] >= 0
        untimed = pygpu.cudaEvent_t(UNTIMED)
        pygpu.cudaEventRecord(untimed)
        pygpu.cudaEventSynchronize(untimed)
        assert pygpu.cudaEventElapsedTime(start, untimed) == (0.0, 400)
        assert pygpu.cudaEvent_t(4).last_status() == 1 == pygpu.cudaGetLastError()
        assert pygpu.cudaStreamWaitEvent(stream, start) == 0
        with pytest.raises(TypeError, match="event is 3"):
            pygpu.cudaEventRecord(3)


@pytest.mark.multigpu
def test_events_of_another_device():
    with hamr.device(0):
        here = pygpu.cudaEvent_t()
        pygpu.cudaSetDevice(1)
        there, stream = pygpu.cudaEvent_t(), pygpu.cudaStream_t()
        assert pygpu.cudaEventRecord(here, stream) == 400
        assert pygpu.cudaEventRecord(there, stream) == 0
        assert pygpu.cudaEventRecord(here) == 0
        assert pygpu.cudaEventElapsedTime(here, there) == (0.0, 400)
        pygpu.cudaDeviceSynchronize()


def test_copies_are_pending_on_their_stream(emulator):
    with hamr.device(0):
        stream = pygpu.cudaStream_t(NON_BLOCKING)
        array = pygpu.to_gpu(np.arange(4.0))
        pinned = pygpu.PagelockedAllocator((4,), "float64")
        target = pinned.get()
        target[:] = -1
        array.synchronize()
        emulator.hold(stream.ptr)
        try:
            assert array.get(target, async_=True, stream=stream) is target
            assert pygpu.cudaStreamQuery(stream) == 600
            assert target.tolist() == [-1] * 4
            made = array.get_async(stream)
            assert pygpu.cudaStreamQuery(stream) == 600
        finally:
            emulator.let_go()
        assert pygpu.cudaStreamSynchronize(stream) == 0
        assert target.tolist() == made.tolist() == [0, 1, 2, 3]
        target[:] = 8
        emulator.hold(stream.ptr)
        try:
            array.set_async(target, stream)
            array.fill(9, stream=stream)
            other = pygpu.to_gpu_async(target, stream=stream)
            assert pygpu.cudaStreamQuery(stream) == 600
        finally:
            emulator.let_go()
        assert array.get().tolist() == [9] * 4  # after what is pending on the other stream
        assert other.get().tolist() == [8] * 4
        assert array.get(stream=stream).tolist() == [9] * 4
        pygpu.cudaDeviceSynchronize()
        assert pygpu.cudaStreamQuery(stream) == 0
        array.fill(4, stream=stream)
        assert pygpu.cudaStreamQuery(stream) == 600
        assert array.get().tolist() == [4] * 4


def test_transfers_without_async_are_over(emulator):
    """As cudaMemcpy's are: page-locked memory may be written to at once."""
    with hamr.device(0):
        pinned = pygpu.PagelockedAllocator((4,), "float64")
        host = pinned.get()  # asked for once: that waits
        host[:] = 5
        low = pygpu.DeviceArray_float64(pinned.ptr(), [4])
        low.allocate()
        low.to_device()
        host[:] = 0
        low.to_host()
        assert host.tolist() == [5] * 4
        array = pygpu.GPUArray((4,))
        array.set(hamr.buffer(pinned._memory))
        host[:] = 0
        assert array.get().tolist() == [5] * 4
        array = pygpu.GPUArray((4,))
        host[:] = 6
        array.set(host)
        host[:] = 0
        assert array.get().tolist() == [6] * 4
        host[:] = 7
        array = pygpu.to_gpu(host)
        host[:] = 0
        assert array.get(np.empty(4)).tolist() == [7] * 4


def test_failures_are_statuses_here_and_exceptions_there(emulator):
    values = np.arange(4.0)
    low = pygpu.DeviceArray_float64(values)
    low.allocate()
    array = pygpu.GPUArray(values)
    pygpu.cudaGetLastError()
    for call in ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2"):
        emulator.fail(call, 0, 719)
    low.to_device()
    array.to_device()
    assert low.last_status() == array.last_status == pygpu.cudaPeekAtLastError() == 719
    assert low.last_status().name == "cudaErrorLaunchFailure"
    with pytest.raises(hamr.DeviceError):
        array.set(values)
    emulator.stop_failing()
    low.to_device()
    array.to_device()
    assert low.last_status() == array.last_status == 0
    assert pygpu.cudaGetLastError() == 719  # until it is asked for
    assert pygpu.cudaGetLastError() == 0


def test_out_of_memory():
    memory = pygpu.DeviceAllocator_float64()
    assert memory.allocate(1 << 50) == 2 == pygpu.cudaGetLastError()
    assert not memory.ptr()
    with pytest.raises(hamr.OutOfMemory):
        pygpu.GPUArray((1 << 50,))
    assert pygpu.cudaGetLastError().name == "cudaErrorMemoryAllocation"


def test_a_forked_child_is_told():
    """CUDA does not survive a fork, of which its runtime says cudaErrorInitializationError."""
    status = "<CudaError: 'code=3'>"
    assert run_script("pygpu_arrays_forks", folder=SCRIPTS).splitlines() == [
        f"{status} {status}",
        f"(0, {status}) (-1, {status}) {status}",
        f"{status} {status}",
        f"{status} {status}",
        "ForkError",
        "[1. 1. 1.] [0. 1. 2.]",
        "[0. 1. 2.]",
    ]
