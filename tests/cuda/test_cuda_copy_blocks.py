"""copy_blocks with memory of devices: as NumPy's, in order, by indices that a device has, too."""

import ctypes
import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.in_threads import in_threads
from tests.support.processes import launch, scaled

SCRIPT = Path(__file__).parent / "scripts" / "block_copies.py"
SMALL_CHUNKS = {"HAMR_COPY_CHUNK": "700", "HAMR_COPY_THREADS": "3"}
BLOCKS, N = 16, 32


def run(kind, *, seed=1, steps=1, **settings):
    """What a process says."""
    status, output = launch(
        [sys.executable, str(SCRIPT), kind, str(seed), str(steps)], 600, settings
    )
    assert status == 0, output[-4000:]
    return output


@pytest.mark.parametrize(
    "more",
    [{}, SMALL_CHUNKS, {"HAMR_COPY_THREADS": "0"}, {"HAMR_CUDA_KERNELS": "0"}],
    ids=["as it is", "small chunks", "no threads", "no kernels"],
)
def test_it_is_numpys_assignment(more):
    seed = len(str(more))
    assert run("walk", seed=seed, steps=scaled(500, 8), **more).endswith("OK\n")


def test_each_call_fails_once(emulator):
    assert run("faults").endswith("OK\n")


def pool(allocator="cuda", first=0, stream=None, transfer="async"):
    values = np.arange(BLOCKS * N, dtype="f4").reshape(BLOCKS, N) + first
    return hamr.Buffer(values.shape, "f4", allocator, data=values, stream=stream, transfer=transfer)


def values_of(first=0):
    return np.arange(BLOCKS * N, dtype="f4").reshape(BLOCKS, N) + first


WAYS = [
    ("cuda", "cuda_host"),
    ("cuda_host", "cuda"),
    ("cuda", "malloc"),
    ("malloc", "cuda"),
    ("cuda", "cuda_async"),
    ("cuda_uva", "cuda"),
]


@pytest.mark.parametrize(("to", "of"), WAYS)
@pytest.mark.parametrize("at", ["malloc", "cuda_host", "cuda"])
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_between_two_spaces(to, of, at, dtype):
    destination, source = pool(to), pool(of, 1000)
    numbers = [15, 2, -3, 2], [0, 7, 7, -1]
    indices = [hamr.Buffer(4, dtype, at, data=np.array(n)) for n in numbers]
    hamr.copy_blocks(destination, indices[0], source, indices[1])
    want = values_of()
    want[numbers[0]] = values_of(1000)[numbers[1]]
    assert np.array_equal(destination.get(), want)


@pytest.mark.parametrize(("to", "of"), WAYS)
def test_an_index_out_of_range_on_a_device(to, of):
    destination, source = pool(to), pool(of, 1000)
    good, bad = (hamr.Buffer(3, "i8", "cuda", data=np.array(n)) for n in ([1, 2, 3], [4, 16, 5]))
    for indices, name in (((bad, good), "destination_index"), ((good, bad), "source_index")):

        def act(indices=indices):
            hamr.copy_blocks(destination, indices[0], source, indices[1])
            destination.synchronize()

        with pytest.raises(IndexError, match=rf"{name}\[1\] is 16: accepted is -16 … 15"):
            act()
        assert np.array_equal(destination.get(), values_of())
    hamr.copy_blocks(destination, good, source, good)
    want = values_of()
    want[1:4] += 1000
    assert np.array_equal(destination.get(), want)


def test_the_next_copy_of_the_thread_tells_what_nobody_has_waited_for():
    destination, source = pool(), pool("cuda_async", 1000)
    other = pool("malloc")
    bad = hamr.Buffer(1, "i4", "cuda", data=np.array([77]))
    try:
        hamr.copy_blocks(destination, bad, source, bad)
    except IndexError:
        return  # it was read first
    with driver.on(0):
        driver.do("cuCtxSynchronize")
    in_threads(lambda _: hamr.copy_blocks(other, [0], other, [1]))  # which have no part in it
    with pytest.raises(IndexError, match=r"destination_index\[0\] is 77"):
        hamr.copy_blocks(other, [2], other, [3])
    want = values_of()
    want[0] = want[1]
    assert np.array_equal(other.get(), want)
    assert np.array_equal(source.get(), values_of(1000))


def test_the_index_and_the_source_may_go_before_anybody_waits(emulator):
    """Their release waits for the copy, and leaves its error to who waits for the destination."""
    destination = pool()
    array = driver.Array(np.array([1, 77], "i8"))
    hamr.copy_blocks(destination, array, driver.Array(values_of(1000)), [0, 1])
    with pytest.raises(IndexError, match=r"destination_index\[1\] is 77"):
        destination.synchronize()
    source = hamr.buffer(driver.Array(values_of(1000)))
    hamr.copy_blocks(destination, array, source, [0, 1])
    source.synchronize()
    source.close()
    with pytest.raises(IndexError, match=r"destination_index\[1\] is 77"):
        destination.synchronize()
    assert np.array_equal(destination.get(), values_of())


@pytest.mark.parametrize(
    "reads", [lambda b: b.get(), lambda b: b[3:5].get(), lambda b: b.get_host_accessible()]
)
def test_who_reads_the_destination_is_told(emulator, reads):
    destination, source = pool(), pool("cuda", 1000)
    bad = hamr.Buffer(2, "i8", "cuda", data=np.array([1, 77]))
    emulator.finish()
    hamr.copy_blocks(destination, bad, source, [0, 1])
    with pytest.raises(IndexError, match=r"destination_index\[1\] is 77"):
        reads(destination)
    assert np.array_equal(destination.get(), values_of())


def test_producers_of_indices_are_waited_for(device):
    """A foreign stream writes the numbers."""
    stream = driver.Stream(device)
    number = driver.Array(np.zeros(4, "i4"), stream=stream.handle, device=device)
    destination = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, fill=0)
    source = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, data=values_of())
    hamr.copy_blocks(destination, number, source, [1, 2, 3, 4])
    assert destination.get()[0].tolist() == values_of()[4].tolist(), "the last wins"


def test_a_stream_that_the_caller_names(device):
    """The arrays' users are on it: they find what was copied, and what they do is waited for."""
    stream = driver.Stream(device)
    array = driver.Array(np.zeros(N, "f4"), device=device)
    host = np.arange(N, dtype="f4")
    hamr.copy_blocks(array, range(N), host, range(N - 1, -1, -1), stream=stream.handle)
    copied = driver.Array(np.zeros(N, "f4"), device=device)
    with driver.on(device):
        driver.do("cuMemcpyAsync", copied.ptr, array.ptr, copied.nbytes, stream.handle)
    stream.synchronize()
    assert np.array_equal(driver.content(copied), host[::-1])


@pytest.mark.multigpu
def test_between_two_devices():
    one = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=0, data=values_of())
    two = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=1, fill=0)
    hamr.copy_blocks(two, range(BLOCKS), one, range(BLOCKS - 1, -1, -1))
    assert np.array_equal(two.get(), values_of()[::-1])
    there = hamr.Buffer(2, "i8", "cuda", device=1, data=np.array([0, 1]))
    hamr.copy_blocks(one, there, two, there)
    assert np.array_equal(one.get()[:2], values_of()[::-1][:2])


def test_modes(emulator):
    """What is not waited for is under way."""
    device, pinned = pool(), pool("cuda_host")
    emulator.finish()
    for transfer, over in (("async", False), ("sync_host", True), ("sync", True)):
        hamr.copy_blocks(pinned, [0, 5], device, [1, 3], transfer=transfer)
        assert (emulator.pending() == 0) is over, transfer
        emulator.finish()
    hamr.copy_blocks(device, [0, 5], pinned, [1, 3], transfer="sync_host")
    assert emulator.pending() > 0


def test_ordinary_memory_is_complete(emulator):
    device, out, array = pool(), np.zeros((BLOCKS, N), "f4"), driver.Array(values_of())
    hamr.copy_blocks(out, [3, 4], device, [1, 2], transfer="async")
    assert np.array_equal(out[3:5], values_of()[1:3])
    hamr.copy_blocks(array, [0], out, [3])
    assert emulator.pending() == 0
    assert np.array_equal(array.read()[0], values_of()[1])


def test_one_byte():
    device, out = hamr.Buffer(3, "u1", "cuda", data=np.array([1, 2, 3], "u1")), np.zeros(3, "u1")
    hamr.copy_blocks(out, [2], device, [0])
    hamr.copy_blocks(device, [1], out, [2])
    assert out.tolist() == [0, 0, 1]
    assert device.get().tolist() == [1, 1, 3]


def test_a_capture_is_not_ended(device):
    """What is copied is part of the graph."""
    with driver.on(device):
        captured = driver.get("cuStreamCreate", 0)
    stream = hamr.Stream(captured, device=device)
    one = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, stream=stream, fill=0)
    two = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, stream=stream, data=values_of())
    pinned = hamr.Buffer((BLOCKS, N), "f4", "cuda_host", fill=0)
    third = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, stream=stream, fill=0)
    to, of = (
        hamr.Buffer(3, "i8", "cuda", device=device, stream=stream, data=np.array(i))
        for i in ([1, 5, -7], [0, 2, 4])
    )
    used = one, two, pinned, third, to, of
    for b in used:
        b.synchronize()
    graph = ctypes.c_uint64()
    with driver.on(device):
        driver.do("cuStreamBeginCapture_v2", captured, 2)
        hamr.copy_blocks(one, [1, 5, 9], two, [0, 2, 4], transfer="async")
        hamr.copy_blocks(pinned, [1, 5, 9], two, [0, 2, 4], transfer="async")
        hamr.copy_blocks(third, to, two, of, transfer="async")
        driver.do("cuStreamEndCapture", captured, ctypes.byref(graph))
        if driver.emulator is None:  # which replays none
            made = driver.get("cuGraphInstantiateWithFlags", graph.value, 0)
            driver.do("cuGraphLaunch", made, captured)
            driver.do("cuStreamSynchronize", captured)
            driver.do("cuGraphExecDestroy", made)
            want = np.zeros((BLOCKS, N), "f4")
            want[[1, 5, 9]] = values_of()[[0, 2, 4]]
            assert np.array_equal(one.get(), want)
            assert np.array_equal(pinned.get(), want)
            want = np.zeros((BLOCKS, N), "f4")
            want[[1, 5, -7]] = values_of()[[0, 2, 4]]
            assert np.array_equal(third.get(), want)
        driver.do("cuGraphDestroy", graph.value)
    for b in used:
        b.close()
    del stream
    with driver.on(device):
        driver.do("cuStreamDestroy_v2", captured)


def test_a_capture_is_not_ended_by_indices_that_a_device_has_checked_before(device):
    """What was copied before is part of no graph: nobody asks about it, and nobody waits for it."""
    with driver.on(device):
        captured = driver.get("cuStreamCreate", 0)
    stream = hamr.Stream(captured, device=device)
    one = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, stream=stream, fill=0)
    two = hamr.Buffer((BLOCKS, N), "f4", "cuda", device=device, stream=stream, data=values_of())
    there = hamr.Buffer(1, "i8", "cuda", device=device, stream=stream, data=np.array([3]))
    stream.synchronize()
    for _ in range(2):
        hamr.copy_blocks(one, there, two, there, transfer="async")
    graph = ctypes.c_uint64()
    with driver.on(device):
        driver.do("cuStreamSynchronize", captured)
        driver.do("cuStreamBeginCapture_v2", captured, 0)
        hamr.copy_blocks(one, there, two, there, transfer="async")
        hamr.copy_blocks(one, [5], two, [6], transfer="async")
        driver.do("cuStreamEndCapture", captured, ctypes.byref(graph))
        driver.do("cuGraphDestroy", graph.value)
    for b in (one, two, there):
        b.close()
    del stream
    with driver.on(device):
        driver.do("cuStreamDestroy_v2", captured)


def lent():
    """The addresses of what the pools have lent."""
    gc.collect()
    hamr.trim()
    segments = hamr.memory_snapshot().segments
    return {at for s in segments for at, _, is_lent in s["blocks"] if is_lent}


def test_nothing_is_kept_of_copies_whose_indices_a_device_checked():
    before = lent()
    destination, source = pool(), pool("cuda", 1000)
    good = hamr.Buffer(1, "i4", "cuda", data=np.array([7]))
    for _ in range(3):
        hamr.copy_blocks(destination, good, source, good)
    del destination, source, good
    with driver.on(0):
        driver.do("cuCtxSynchronize")
    assert lent() <= before
