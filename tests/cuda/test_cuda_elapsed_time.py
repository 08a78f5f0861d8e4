"""How long a device's work took, between two events."""

import ctypes
import math

import pytest

import hamr
from hamr._base.library import core
from tests.cuda import driver
from tests.support import function_table

N = 1000
NOT_DONE = "the work that an event stands for is not done yet"


@pytest.fixture
def stream():
    return hamr.Stream(device=0)


@pytest.mark.parametrize("kind", ["own", "default", "foreign"])
def test_work_takes_time(kind):
    foreign = driver.Stream()
    stream = {"own": hamr.Stream(device=0), "default": hamr.Stream(), "foreign": foreign}[kind]
    stream = hamr.Stream(stream)
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0, stream=stream, device=0)
    start = stream.record(timing=True)
    for _ in range(5):
        driver.write_late(stream.ptr, buffer.ptr, N, 1, device=0)
    end = hamr.Event(stream, timing=True)
    end.synchronize()
    found = start.elapsed_time(end)
    assert found >= 0
    assert math.isclose(end.elapsed_time(start), -found, abs_tol=1e-3)
    assert start.elapsed_time(start) == 0


def test_events_of_two_streams_of_a_device(stream):
    start = stream.record(timing=True)
    stream.synchronize()
    end = hamr.Stream(device=0).record(timing=True)
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_work_that_is_not_done(stream, emulator):
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=stream, transfer="async")
    start = stream.record(timing=True)
    driver.write_late(stream.ptr, buffer.ptr, N, 1)
    end = stream.record(timing=True)
    with pytest.raises(RuntimeError, match="is not done yet"):
        start.elapsed_time(end)
    with pytest.raises(ValueError, match=NOT_DONE):
        core().Elapsed("cuda", 0, start.ptr, end.ptr)
    end.wait()
    assert start.elapsed_time(end) >= 0


def test_timed_events_are_events_like_any_other(stream):
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=stream, transfer="async")
    driver.write_late(stream.ptr, buffer.ptr, N, 4)
    event, other = stream.record(timing=True), hamr.Stream(device=0)
    event.wait(other)
    other.synchronize()
    assert event.done


def test_events_without_timing_are_not_given_timed_ones_to_reuse(stream):
    """The list of idle events is theirs alone."""
    for _ in range(100):
        timed, plain = stream.record(timing=True), stream.record()
        del timed, plain
    timed, plain = stream.record(timing=True), stream.record()
    stream.synchronize()
    assert timed.elapsed_time(timed) == 0
    with pytest.raises(ValueError, match="an event was made without timing"):
        core().Elapsed("cuda", 0, timed.ptr, plain.ptr)


@pytest.mark.multigpu
def test_events_of_two_devices():
    start, end = (hamr.Stream(device=i).record(timing=True) for i in range(2))
    end.synchronize()
    with pytest.raises(ValueError, match="accepted are events of cuda device 0"):
        start.elapsed_time(end)


@pytest.mark.parametrize("call", ["cuEventCreate", "cuEventRecord", "cuEventElapsedTime_v2"])
def test_failures_of_the_driver(stream, emulator, call):
    start = stream.record(timing=True)
    start.synchronize()
    emulator.fail(call, 1, 719)
    with pytest.raises(hamr.DeviceError, match=call):
        start.elapsed_time(stream.record(timing=True)) if "Elapsed" not in call else (
            start.elapsed_time(start)
        )
    emulator.stop_failing()
    assert start.elapsed_time(start) == 0


def test_the_table_of_c_functions(stream):
    """What a program in C is told, in nanoseconds."""
    numbers = [ctypes.c_uint64() for _ in range(2)]
    record = ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p
    )(function_table.entry("record_timed_event").value)
    elapsed = ctypes.CFUNCTYPE(
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int32,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_void_p,
    )(function_table.entry("elapsed").value)
    for number in numbers:
        assert record(b"cuda", 0, stream.ptr, ctypes.addressof(number)) is None
    stream.synchronize()
    found = ctypes.c_int64(-1)
    assert elapsed(b"cuda", 0, *(n.value for n in numbers), ctypes.addressof(found)) is None
    assert found.value >= 0
    for number in numbers:
        hamr._native.destroy_event(hamr._native.generation(), "cuda", 0, number.value)
