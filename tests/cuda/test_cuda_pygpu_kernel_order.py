"""What kernels that users launch wait for, and who waits for them."""

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver
from tests.support.processes import run_script, scaled

PTX = Path(__file__).with_name("user_kernels.ptx")
SCRIPTS = Path(__file__).resolve().parent / "scripts"
N = 1000
GRID = {"grid": 8, "block": 128}


@pytest.fixture
def module():
    return pygpu.Module(PTX)


@pytest.fixture
def fill(module):
    return module.function("fill")


@pytest.fixture
def saxpy(module):
    return module.function("saxpy")


def zeros(allocator="cuda", **options):
    return hamr.Buffer(N, "f4", allocator, fill=0, **options)


def elements(b):
    return np.asarray(b.get_host_accessible())


KINDS = ["cuda", "cuda_async", "cuda_uva"]


@pytest.mark.parametrize("allocator", KINDS)
@pytest.mark.parametrize("launched_on", ["the default stream", "the buffer's", "another"])
@pytest.mark.parametrize("of_the_buffer", ["default", "own"])
def test_work_of_others_is_followed_and_waited_for(
    fill, saxpy, allocator, of_the_buffer, launched_on
):
    own = driver.Stream() if of_the_buffer == "own" else None
    x = zeros(allocator, stream=own and own.handle)
    y = zeros(allocator, stream=own and own.handle)
    other = hamr.Stream(device=0)
    stream = {"the default stream": None, "the buffer's": own and own.handle, "another": other}[
        launched_on
    ]
    for value in 3, 4, 5:
        driver.write_late(own.handle if own else driver.LEGACY, x.ptr, N, value)
        saxpy(N, 1.0, x, y, stream=stream, **GRID)
        fill(x, N, -1.0, stream=stream, **GRID)
        x.synchronize()  # the next one is not hamr's to order
    assert (elements(y) == 12).all()
    assert (elements(x) == -1).all()
    if own:
        for b in x, y:
            b.close()


@pytest.mark.parametrize("allocator", KINDS)
def test_kernels_on_several_streams_are_in_order(fill, saxpy, allocator):
    streams = [hamr.Stream(device=0), None, hamr.Stream(device=0)]  # None is the buffers' own
    x, y = zeros(allocator), zeros(allocator)
    for i in range(7):
        fill(x, N, float(i), stream=streams[i % 3], **GRID)
        saxpy(N, 1.0, x, y, stream=streams[(i + 1) % 3], **GRID)
    view, whole = y[::2], y.copy()
    assert (elements(view) == 21).all()
    assert (elements(whole) == 21).all()


@pytest.mark.parametrize("allocator", [*KINDS, "cuda_vmm"])
@pytest.mark.parametrize("own", [False, True])
def test_memory_is_freed_after_the_kernels_that_use_it(fill, emulator, allocator, own):
    for _ in range(3):
        stream = hamr.Stream(device=0)
        b = zeros(allocator, stream=stream if own else None)
        for each in stream, stream, None:
            fill(b, N, 1.0, stream=each, **GRID)
        b.close()
        again = zeros(allocator)
        del b, stream
        gc.collect()
        assert not elements(again).any(), "nobody writes to what was given back"
    assert emulator.violations() == []


def test_changes_come_after_kernels(fill):
    b, stream = zeros(), hamr.Stream(device=0)
    fill(b, N, 1.0, stream=stream, **GRID)
    b.resize(2 * N, 2)
    assert (elements(b) == np.repeat([1, 2], N)).all()
    fill(b, N, 3.0, stream=stream, **GRID)
    b[N // 2 :] = 4
    fill(b, 10, 5.0, stream=stream, **GRID)
    assert (elements(b) == np.repeat([5, 3, 4], [10, N // 2 - 10, 3 * N // 2])).all()


def test_views_of_another_stream_wait_for_a_kernel(fill):
    b = zeros()
    view = b[10:20]
    view.set_stream(hamr.Stream(device=0))
    for value in 1.0, 2.0:
        fill(b, N, value, **GRID)
        assert (elements(view) == value).all()


def launches(capfd, call):
    """The streams that the trace tells of."""
    hamr.set_verbose(1)
    try:
        call()
    finally:
        hamr.set_verbose(0)
    lines = [line for line in capfd.readouterr().err.splitlines() if "launch" in line]
    return [int(line.split("stream ")[1], 16) for line in lines]


def test_with_stream_names_the_stream(fill, capfd):
    b, stream = zeros(), hamr.Stream(device=0)

    def launch_in_a_block():
        with stream:
            fill(b, N, 1.0, **GRID)
            fill(b, N, 1.0, stream=hamr.Stream(), **GRID)

    assert launches(capfd, launch_in_a_block) == [stream.ptr, driver.LEGACY]
    assert launches(capfd, lambda: fill(b, N, 2.0, **GRID)) == [driver.LEGACY]
    assert (elements(b) == 2).all()


def test_the_stream_of_another_librarys_array_is_followed(saxpy, fill):
    late, y = driver.Stream(), zeros()
    x = driver.Array(np.zeros(N, "f4"), stream=late.handle)
    for value in 3, 4:
        driver.write_late(late, x.ptr, N, value)
        saxpy(N, 1.0, x, y, **GRID)
        saxpy(N, 1.0, x, y, stream=hamr.Stream(device=0), **GRID)
        assert (elements(y) == [6, 14][value - 3]).all()
    late.synchronize()


class Stream:
    """Another library's stream, by one of the ways to say so."""

    def __init__(self, stream, how):
        self.stream = stream
        setattr(self, how, (lambda: (0, stream.handle)) if how[0] == "_" else stream.handle)


@pytest.mark.parametrize("how", ["__cuda_stream__", "ptr", "cuda_stream", "handle"])
def test_streams_of_other_libraries(fill, capfd, how):
    b, streams = zeros(), [driver.Stream()]
    handle = streams[0].handle
    told = launches(capfd, lambda: fill(b, N, 1.0, stream=Stream(streams[0], how), **GRID))
    assert told == [handle]
    assert (elements(b) == 1).all()
    fill(b, N, 2.0, stream=Stream(streams.pop(), how), **GRID)  # both go on without it
    assert (elements(b) == 2).all()


@pytest.mark.multigpu
def test_kernels_of_two_devices_at_once(fill, saxpy, emulator):
    a, b = zeros(), zeros(device=1)
    there = hamr.Stream(device=1)
    for value in 1.0, 2.0:
        fill(a, N, value, **GRID)
        fill(b, N, 10 * value, stream=there, **GRID)
        a[...] = b
        fill(b, N, 0.0, **GRID)
        assert (elements(a) == 10 * value).all()
        assert not elements(b).any()
    assert emulator.calls("cuModuleLoadDataEx") == 2


def test_the_driver_is_called_at_once_where_nothing_is_to_be_waited_for(fill, emulator):
    """From the second launch on where one device is current, as beside other libraries."""
    b = zeros()
    b.synchronize()
    fill(b, N, 1.0, **GRID)
    made = emulator.count_calls(lambda: fill(b, N, 2.0, **GRID))
    assert made["cuLaunchKernel"] == 1
    if driver.DEVICES == 1:
        assert set(made) <= {"cuLaunchKernel", "cuCtxGetCurrent"}
    assert (elements(b) == 2).all()


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_failed_launch_leaves_all_as_it_was(fill, emulator, nth):
    b, stream = zeros(), hamr.Stream(device=0)
    fill(b, N, 1.0, stream=stream, **GRID)
    assert (elements(b) == 1).all()
    for call in "cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuStreamIsCapturing":
        emulator.fail(call, nth, 719)
        failed = 0
        for _ in range(nth):
            try:
                fill(b, N, 2.0, stream=stream, **GRID)
            except hamr.DeviceError:
                failed += 1
        emulator.stop_failing()
        assert failed <= 1
        fill(b, N, 3.0, stream=stream, **GRID)
        assert (elements(b) == 3).all()


def test_a_kernel_in_a_graph_stays_loaded(emulator):
    gc.collect()
    before = emulator.live("modules")
    captured = driver.Stream()
    function, b, busy = pygpu.Module(PTX).function("fill"), zeros(), zeros()
    function(b, N, 1.0, **GRID)
    b.synchronize()
    with driver.on(0):
        emulator.hold(driver.LEGACY)
        busy.fill(1)
        driver.do("cuStreamBeginCapture_v2", captured.handle, 2)
        with pytest.raises(ValueError, match="stream is being captured into a graph"):
            function(busy, N, 2.0, stream=captured.handle, **GRID)
        emulator.let_go()
        busy.synchronize()
        function(b, N, 2.0, stream=captured.handle, **GRID)
        graph = ctypes.c_uint64()
        driver.do("cuStreamEndCapture", captured.handle, ctypes.byref(graph))
    b.close()
    busy.close()
    emulator.finish()
    del function
    gc.collect()
    hamr.trim()
    assert emulator.live("modules") == before + 1


def test_a_stream_may_end_before_its_kernels_module(emulator):
    gc.collect()
    before = emulator.live("modules")
    function = pygpu.Module(PTX).function("fill")
    b = zeros()
    stream = hamr.Stream(device=0)
    fill_on(function, b, stream)
    fill_on(function, b, stream)
    del stream
    gc.collect()
    del function
    gc.collect()
    assert emulator.live("modules") == before + 1
    emulator.finish()
    hamr.trim()
    assert emulator.live("modules") == before
    b.close()


def fill_on(function, b, stream):
    function(b, N, 1.0, stream=stream, **GRID)


def test_threads_launch_and_close(saxpy, fill):
    def work(seed):
        x, y = zeros(), zeros()
        mine = pygpu.Module(PTX).function("fill")
        stream = hamr.Stream(device=0)
        for i in range(scaled(40)):
            (mine if i % 2 else fill)(x, N, 1.0, stream=stream if i % 3 else None, **GRID)
            saxpy(N, 1.0, x, y, **GRID)
        return elements(y)[seed]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(8))) == [scaled(40)] * 8


def test_forked_children_are_told():
    assert run_script("pygpu_forks", folder=SCRIPTS).endswith("done\n")
