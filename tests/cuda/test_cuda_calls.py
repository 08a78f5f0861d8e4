"""What is asked of the driver, and of the Go core: nothing in place, and little for a little."""

import ctypes
import gc
import os
import sys
import threading

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import core_calls, function_table
from tests.support.processes import run_code

N = 256

#: With several devices, which one is the current one.
CURRENT = {} if driver.DEVICES == 1 else {"cuCtxGetDevice": 1}

#: With HAMR_CUDA_POOL=check, freed memory is overwritten.
SPOILT = (
    {"cuCtxGetCurrent": 1, "cuMemsetD8Async": 1}
    if os.environ.get("HAMR_CUDA_POOL") == "check"
    else {}
)


@pytest.fixture(autouse=True)
def of_the_driver(needs_device):
    """The calls are made where the device's context is current, as beside other libraries."""
    with driver.on(0):
        yield


def host() -> hamr.Buffer:
    return hamr.Buffer((N // 2, 2), "f4", fill=1)


def device(allocator: str = "cuda") -> hamr.Buffer:
    made = hamr.Buffer((N // 2, 2), "f4", allocator, device=0, fill=1)
    made.synchronize()
    return made


ATTRIBUTES = (
    "shape", "strides", "ndim", "nbytes", "itemsize", "typestr", "dtype", "device", "owner",
    "allocator", "readonly", "is_contiguous", "is_fortran_contiguous", "stream", "transfer",
    "source_protocol", "is_cached", "ptr",
)  # fmt: skip

VIEWS = {
    "a slice": lambda b: b[1:3],
    "every other": lambda b: b[::2, 1],
    "a row": lambda b: b[0],
    "all": lambda b: b[...],
    "transposed": lambda b: b.T,
    "a snapshot": lambda b: b.pointer(),
}

IN_PLACE = {
    **{name: lambda b, name=name: getattr(b, name) for name in ATTRIBUTES},
    **VIEWS,
    "len": len,
    "size": lambda b: b.size(),
    "capacity": lambda b: b.capacity(),
    "accessible": lambda b: b.accessible("cuda"),
}
ON_HOST = {
    **IN_PLACE,
    "get_host_accessible": lambda b: b.get_host_accessible(),
    "of a handle": lambda b: b.get_host_accessible().get_host_accessible(),
    "of a view": lambda b: b[1:].get_host_accessible(),
    "numpy": lambda b: np.asarray(b.get_host_accessible()),
    "memoryview": lambda b: memoryview(b).release(),
    "__array_interface__": lambda b: b.__array_interface__,
}
ON_DEVICE = {
    **IN_PLACE,
    "get_cuda_accessible": lambda b: b.get_cuda_accessible(0),
    "of a handle": lambda b: b.get_cuda_accessible(0).get_cuda_accessible(0),
    "of a view": lambda b: b[1:].get_cuda_accessible(0),
}


def assert_nothing_is_asked(emulator, run, buffer):
    run(buffer)  # the first time may import
    gc.collect()
    before = hamr.stats()
    with core_calls.counted() as made:
        assert emulator.count_calls(lambda: run(buffer)) == {}
    assert made == [], "a call of the core lets go of Python's lock, and back"
    assert hamr.stats() == before


@pytest.mark.parametrize("name", ON_HOST)
def test_nothing_is_asked_in_place_on_the_host(emulator, name):
    assert_nothing_is_asked(emulator, ON_HOST[name], host())


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
@pytest.mark.parametrize("name", ON_DEVICE)
def test_nothing_is_asked_in_place_on_the_device(emulator, name, allocator):
    assert_nothing_is_asked(emulator, ON_DEVICE[name], device(allocator))


def test_the_current_device_is_asked_for_where_there_are_several(emulator):
    buffer = device()
    with core_calls.counted() as made:
        assert emulator.count_calls(lambda: buffer.get_cuda_accessible()) == CURRENT
    assert made == []


def test_the_core_is_seen_to_be_called(emulator):
    buffer = device()
    with core_calls.counted() as made:
        buffer.reshape(-1, copy=False)
    assert made == ["reshape"]


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize("nbytes", [1024, 65536])
@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_memory_that_was_freed_is_taken_without_the_driver(emulator, allocator, nbytes):
    if allocator == "cuda_async" and SPOILT:
        calls = {"cuCtxGetCurrent": 2, "cuMemAllocFromPoolAsync": 1, "cuMemFreeAsync": 1}
    else:
        calls = SPOILT

    def pair(**options):
        hamr.Buffer(nbytes, "u1", allocator, **options)

    pair()
    assert emulator.count_calls(pair) == CURRENT | calls
    pair(device=0)
    assert emulator.count_calls(lambda: pair(device=0)) == calls


def others_run(run, calls=100) -> bool:
    """Whether a thread that waits for Python's lock gets it before so many calls are over."""
    kept, ready, ran = sys.getswitchinterval(), threading.Lock(), []
    waiting = threading.Thread(target=lambda: (ready.acquire(), ran.append(1)))
    ready.acquire()
    sys.setswitchinterval(100)  # nobody takes it away meanwhile
    try:
        waiting.start()
        ready.release()
        for _ in range(calls):
            if not ran:
                run()
        return bool(ran)
    finally:
        sys.setswitchinterval(kept)
        waiting.join()


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
def test_no_other_thread_runs_meanwhile():
    """Where the driver might have to be waited for, one may: as on another stream than before."""
    hamr.Buffer(N, "u1", "cuda")
    many = 100_000  # a machine that is busy wakes the other thread late
    calls = many if SPOILT else 100
    assert others_run(lambda: hamr.Buffer(N, "u1", "cuda"), calls) is bool(SPOILT)
    assert others_run(lambda: hamr.Buffer(N, "u1", "cuda", stream=hamr.Stream(device=0)), many)


def test_a_little_is_copied_by_one_call(emulator):
    buffer, values, out = device(), np.ones((N // 2, 2), "f4"), np.empty((N // 2, 2), "f4")
    operations = {
        "cuMemcpyHtoDAsync_v2": lambda: buffer.__setitem__(..., values),
        "cuMemcpyDtoH_v2": lambda: buffer.get(out),
    }
    for call, run in operations.items():
        run()
        buffer.synchronize()
        # Whether the host's memory is page-locked, in whose order it is read then.
        asked = {"cuPointerGetAttributes": 1} if call == "cuMemcpyHtoDAsync_v2" else {}
        assert emulator.count_calls(run) == {"cuCtxGetCurrent": 1, call: 1, **asked}
    assert out.tolist() == values.tolist()


@pytest.mark.parametrize("nbytes", [4, 65536, 65540, 262144])
def test_a_little_is_read_without_the_core(emulator, nbytes):
    values = np.arange(nbytes // 4, dtype="f4")
    buffer, out = hamr.buffer(values).copy("cuda", device=0), np.empty_like(values)
    buffer.synchronize()
    for read in (lambda: buffer.get(out), lambda: np.copyto(out, buffer.get_host_accessible())):
        out[:] = -1
        read()
        out[:] = -1
        with core_calls.counted() as made:
            read()
        assert made == []
        assert np.array_equal(out, values)
        # Above 64 KiB it is asked, without entering the core, whether there is much to wait for.
        asked = {"cuStreamIsCapturing": 1, "cuStreamQuery": 1} if nbytes > 65536 else {}
        found = {"cuCtxGetCurrent": 1, "cuMemcpyDtoH_v2": 1}
        if asked:
            found["cuCtxGetCurrent"] = 2
        assert emulator.count_calls(read) == {**found, **asked}


def test_more_than_a_little_is_left_to_the_core():
    """Which may stage it, and sees to signals."""
    place = function_table.entry("read")
    read = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 4)
    function, asked = read(place.value), []

    def asking(*arguments):
        asked.append(arguments[2])
        return function(*arguments)

    stand = read(asking)
    kept, place.value = place.value, ctypes.cast(stand, ctypes.c_void_p).value
    try:
        for nbytes in (262144, 262145):
            buffer = hamr.Buffer(nbytes, "u1", "cuda", device=0, fill=1)
            buffer.synchronize()
            assert buffer.get(np.zeros(nbytes, "u1")).all()
    finally:
        place.value = kept
    assert asked == [262145]


def test_a_little_that_is_read_is_told_of(capfd):
    buffer, out = device(), np.empty((N // 2, 2), "f4")
    hamr.set_verbose(1)
    try:
        buffer.get(out)
    finally:
        hamr.set_verbose(0)
    assert f"copy {4 * N} bytes cuda device 0" in capfd.readouterr().err


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_read_as_it_lies(name):
    values = np.arange(N, dtype="f4").reshape(N // 2, 2)
    buffer = hamr.buffer(values).copy("cuda", device=0)
    buffer.synchronize()
    view, expected = VIEWS[name](buffer), values if name == "a snapshot" else VIEWS[name](values)
    out = np.empty(expected.shape, "f4")
    assert view.get(out) is out
    assert np.array_equal(out, expected)
    assert np.array_equal(view.get_host_accessible(), expected)


def test_what_is_kept_of_memory_that_is_read_into_goes():
    values = np.zeros(N, "f4")
    cached, buffer = hamr.buffer(values).cached(), device().reshape(N)
    assert cached.get_cuda_accessible(0).get().tolist() == [0] * N
    buffer.get(values)
    assert cached.get_cuda_accessible(0).get().tolist() == [1] * N
    cached.close()


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize("nbytes", [4, 65536, 262144])
def test_a_little_is_brought_to_a_device_by_one_call(emulator, nbytes):
    values = np.arange(nbytes // 4, dtype="f4")
    buffer = hamr.buffer(values)
    expected = {"cuCtxGetCurrent": 1, "cuPointerGetAttributes": 1, "cuMemcpyHtoDAsync_v2": 1}
    for _ in range(2):
        handle = buffer.get_cuda_accessible(0)
        assert handle.is_temporary
        assert handle.allocator == hamr.Allocator.cuda
        assert np.array_equal(handle.get(), values)
        del handle
    made = []
    assert emulator.count_calls(lambda: made.append(buffer.get_cuda_accessible(0))) == expected
    assert np.array_equal(made.pop().get(), values)


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
def test_the_end_of_memory_whose_address_was_told_waits_for_nobody(emulator):
    """It is put aside until the device has passed, a temporary's as a buffer's."""
    values = np.ones(N, "f4")
    makers = (
        lambda: hamr.buffer(values),
        device,
        lambda: hamr.buffer(hamr.buffer(values).get_cuda_accessible(0)),
    )
    for make in makers:
        handle = make().get_cuda_accessible(0)
        assert handle.__cuda_array_interface__["data"][0] == handle.ptr
        holder = [handle]
        del handle
        calls = emulator.count_calls(holder.clear)
        assert not any("Synchronize" in name for name in calls), calls
    assert "cuCtxSynchronize" in emulator.count_calls(hamr.trim)


def test_a_temporary_is_on_the_stream_of_what_it_is_of():
    stream = hamr.Stream(device=0)
    for of, number in ((None, 0), (stream, int(stream))):
        buffer = hamr.Buffer(N, "f4", fill=1, stream=of)
        handle = buffer.get_cuda_accessible(0)
        assert handle._stream == number
        assert handle.is_temporary


BEFORE_CUDA = """
import hamr
from tests.support import core_calls, function_table
buffer = hamr.Buffer(4, fill=1)
with core_calls.counted() as made:
    buffer.get_cuda_accessible(0)
assert made == ["access"], made
"""


def test_the_driver_is_started_where_other_threads_run():
    """Python's lock is given up for it: by the call that takes memory at once it is not."""
    run_code(BEFORE_CUDA)


def test_a_copy_that_fails_says_so(emulator):
    buffer = device()
    for read in (lambda: buffer.get(np.empty((N // 2, 2), "f4")), buffer.get_host_accessible):
        emulator.fail("cuMemcpyDtoH_v2", 1, driver.ILLEGAL_ADDRESS)
        with pytest.raises(hamr.DeviceError, match=r"cuMemcpyDtoH.*ILLEGAL_ADDRESS \(700\)"):
            read()
        read()


def test_what_was_written_may_change_at_once(emulator):
    """Whether somebody has page-locked it or not."""
    page_locked = driver.allocate(4 * N, kind="cuda_host")
    values = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * N).from_address(page_locked))
    buffer = hamr.Buffer(N, "f4", "cuda", device=0)
    try:
        for value in (1, 2, 3):
            values[:] = value
            buffer[...] = values
            values[:] = -1
            assert np.asarray(buffer.get_host_accessible()).tolist() == [value] * N
    finally:
        driver.free(page_locked, kind="cuda_host")
