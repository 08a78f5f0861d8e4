"""Access for writing in memory of devices: what is written late, where, and what comes after."""

import gc

import numpy as np
import pytest

import hamr
from hamr import _native
from hamr._base.library import core
from tests.cuda import driver
from tests.cuda.test_cuda_allocators import FEW_PLACES, PLACES, name
from tests.support.processes import run_code

A = hamr.Allocator
N = 1000
RAMP = np.arange(N, dtype="f4")


@pytest.fixture(params=FEW_PLACES, ids=name)
def place(request):
    return request.param


@pytest.fixture(params=["default", "own"])
def ordered(request, place):
    """A ramp at a place, with a stream of its own or without."""
    allocator, device = place
    stream = driver.Stream(max(device, 0)) if request.param == "own" else None
    if allocator in (A.malloc, A.cpp):
        stream = None
    return hamr.Buffer(N, "f4", allocator, data=RAMP, device=device, stream=stream)


def late(handle, value, device=0):
    """A kernel of another library's on the stream that the handle is used on."""
    driver.write_late(handle._stream or driver.LEGACY, handle.ptr, N, value, device=device)


def held(buffer):
    return np.asarray(buffer.get_host_accessible())


@pytest.mark.parametrize("mode", ["w", "rw"])
def test_what_the_host_writes_is_the_buffers(ordered, mode):
    with ordered.on_host(mode) as array:
        if mode == "rw":
            assert np.array_equal(array, RAMP)
        array[...] = RAMP + 7
    assert np.array_equal(held(ordered), RAMP + 7)
    assert ordered.size() == N


@pytest.mark.parametrize("mode", ["w", "rw"])
def test_what_a_device_writes_late_is_the_buffers(ordered, mode):
    with ordered.on_cuda(mode, device=0) as handle:
        assert handle.is_temporary == (ordered.device != 0 and ordered.allocator != A.cuda_uva)
        late(handle, 5)
    assert np.array_equal(held(ordered), np.full(N, 5, "f4"))


@pytest.mark.multigpu
@pytest.mark.parametrize("place", PLACES, ids=name)
def test_what_another_device_writes_late_is_the_buffers(ordered):
    for device in (1, 0):
        with ordered.on_cuda("rw", device=device) as handle:
            late(handle, 5 + device, device)
    assert np.array_equal(held(ordered), np.full(N, 5, "f4"))


@pytest.mark.parametrize("mode", ["w", "rw"])
def test_elements_that_lie_on_each_other_are_not_written_back(place, mode):
    """A write to one copy was undone by the others; refused wherever the elements are."""
    allocator, device = place
    room = hamr.Buffer(6, "f4", allocator, data=RAMP[:6], device=device)
    windows = hamr.Buffer.from_pointer(
        room.ptr, (4, 3), "f4", allocator, strides=(4, 4), owner=room, device=device
    )
    for access in windows.on_cuda(mode, device=0), windows.on_host(mode):
        with pytest.raises(ValueError, match="lie on each other"):
            access.__enter__()
    with windows.on_cuda("r", device=0) as handle:
        assert handle.shape == (4, 3)
    with room.on_host("rw") as array:  # nothing of it is in use
        array[5] = 9
    assert held(windows)[3].tolist() == [3, 4, 9]


def test_what_was_pending_on_the_buffer_comes_first(cuda_allocator):
    """Work of another library's on the buffer's stream, of which nobody told hamr."""
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", cuda_allocator, fill=0, stream=stream)
    buffer.synchronize()
    driver.write_late(stream, buffer.ptr, N, 3)
    with buffer.on_host("rw") as array:
        assert array[0] == array[-1] == 3
        array += 1
    driver.write_late(stream, buffer.ptr, N, 1, source=buffer.ptr, scale=2)
    assert np.array_equal(held(buffer), np.full(N, 9, "f4"))


def test_who_comes_later_waits(device_allocator):
    """A reader on a stream of its own, which waits for what the interface names."""
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=0, stream=driver.Stream())
    with buffer.on_cuda("w", device=0) as handle:
        driver.write_late(int(buffer.stream), handle.ptr, N, 4)
    assert np.array_equal(driver.content(buffer), np.full(N, 4, "f4"))
    with buffer.on_host("rw") as array:
        array += 1
    assert np.array_equal(driver.content(buffer), np.full(N, 5, "f4"))


def test_strided_elements_and_no_others_are_written_back(place):
    allocator, device = place
    whole = hamr.Buffer((10, 10), "f4", allocator, device=device, fill=0)
    for part in (whole[::2, 1::3], whole[1::2, ::-4], whole[3]):
        with part.on_host("rw") as array:
            array += 1
        with part.on_cuda("rw", device=0) as handle:
            shared = hamr.buffer(handle)
            shared.fill(7)
    want = np.zeros((10, 10), "f4")
    for part in (want[::2, 1::3], want[1::2, ::-4], want[3]):
        part[...] = 7
    assert np.array_equal(held(whole), want)


@pytest.mark.parametrize("space", ["host", "cuda"])
def test_after_an_exception_a_temporary_is_dropped(ordered, space):
    in_place = None

    def fail():
        nonlocal in_place
        with ordered.on(space, "rw") as given:
            if space == "host":
                in_place = ordered.host_accessible()
                given[...] = 5
            else:
                in_place = not given.is_temporary
                late(given, 5)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert np.array_equal(held(ordered), np.full(N, 5) if in_place else RAMP)
    ordered.fill(1)


def _logged():
    return [line for (line,) in _native.take_log()]


@pytest.mark.parametrize(("mode", "copies"), [("r", 1), ("w", 0), ("rw", 1)])
def test_a_mode_says_what_is_brought_in(mode, copies):
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
    core().SetVerbose(2)
    try:
        with buffer.on_host(mode):
            lines = _logged()
        lines, end = [line for line in lines if line.startswith("copy")], " ".join(_logged())
    finally:
        core().SetVerbose(0)
    assert len(lines) == copies
    assert ("write back" in end) == (mode != "r")


@pytest.mark.parametrize("second", ["host", "cuda"])
@pytest.mark.parametrize("first", ["host", "cuda"])
def test_two_at_once_are_refused_wherever_the_memory_is(place, first, second):
    allocator, device = place
    buffer = hamr.Buffer(N, "f4", allocator, device=device, fill=0)
    for one in (buffer, buffer[10:20], hamr.buffer(buffer)):
        with buffer[5:15].on(first, "rw") as given:
            assert given.shape == (10,)
            with pytest.raises(hamr.InUse):
                one.on(second, "r").__enter__()
        with buffer.on(first, "r"), one.on(second, "r"):
            pass
    with buffer.on(first, "rw"):
        for change in (lambda: buffer.fill(1), lambda: buffer.resize(3), lambda: buffer.append(1)):
            with pytest.raises(hamr.InUse):
                change()
        assert buffer.size() == N


def test_what_the_block_was_given_may_be_used_in_any_way(place):
    allocator, device = place
    buffer = hamr.Buffer(N, "f4", allocator, device=device, fill=0)
    with buffer.on_cuda("rw", device=0) as handle:
        shared, foreign = hamr.buffer(handle), hamr.from_dlpack(handle)
        shared.fill(1)
        with foreign.on_host("rw") as array:
            array[:10] = 2
        with shared.on_host("rw") as array:
            array += 1
            hamr.buffer(array)[0] = 9
            with pytest.raises(hamr.InUse):
                shared.fill(1)
        with pytest.raises(hamr.InUse):
            buffer.fill(1)
    want = np.full(N, 2, "f4")
    want[:10] = 3
    want[0] = 9
    assert np.array_equal(held(buffer), want)


@pytest.mark.parametrize("end", ["close", "free"])
def test_the_buffer_may_end_inside(ordered, end):
    view = ordered[:]
    with ordered.on_host("rw") as array:
        getattr(ordered, end)()
        array += 1
        with pytest.raises(hamr.InUse):
            view.fill(1)
    assert np.array_equal(held(view), RAMP + 1)


def test_the_last_user_may_end_inside(ordered):
    """What is written back then is nobody's, and hurts nobody."""
    with ordered.on_cuda("rw", device=0) as handle:
        ordered.close()
        late(handle, 5)


def test_the_stream_may_end_inside(cuda_allocator):
    stream = hamr.Stream(device=0)
    buffer = hamr.Buffer(N, "f4", cuda_allocator, fill=0, stream=stream)
    with buffer.on_host("rw") as array:
        buffer.set_stream(hamr.Stream(device=0))
        stream = None
        gc.collect()
        array += 1
    assert stream is None
    assert np.array_equal(held(buffer), np.ones(N))


def test_a_failing_write_back_is_raised(emulator):
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
    access = buffer.on_host("rw")
    array = access.__enter__()
    array += 1
    emulator.fail("cuMemcpyAsync", 1, driver.OUT_OF_MEMORY)
    emulator.fail("cuMemcpyHtoDAsync_v2", 1, driver.OUT_OF_MEMORY)
    with pytest.raises(hamr.Error):
        access.__exit__(None, None, None)
    emulator.stop_failing()
    buffer.fill(2)
    assert held(buffer)[0] == 2


def test_libraries_for_devices_take_what_is_for_reading(device_allocator):
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=2)
    with buffer.on_cuda("r", device=0) as handle:
        assert not handle.readonly  # most know no such arrays
        assert np.array_equal(driver.content(handle), np.full(N, 2))


def test_a_forked_child_cannot_write_back():
    run_code(
        f"""
import os
import sys
sys.path.insert(0, {str(driver.Path(__file__).parents[2])!r})
from tests.cuda import driver
import hamr
b = hamr.Buffer(3, "f4", "cuda", fill=1)
status = 0
try:
    with b.on_host("rw") as array:
        array += 1
        child = os.fork()
except hamr.ForkError:
    os._exit(7)
assert child and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert str(b) == "{{2, 2, 2}}"
"""
    )
