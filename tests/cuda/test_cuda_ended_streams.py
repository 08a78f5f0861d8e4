"""Streams that libraries name by their numbers, and end while hamr has memory of them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.support.dlpack_consumer import Consumed
from tests.support.processes import scaled

COUNT = 1000
#: Whose release is not ordered on a stream of the driver's.
ALLOCATORS = ["cuda", "cuda_host", "cuda_uva", "cuda_vmm"]
#: How often a stream ends in a test.
ENDS = 100


def made(stream: driver.Stream, allocator: str, value: float = 1) -> hamr.Buffer:
    return hamr.Buffer(
        COUNT, "f4", allocator, fill=value, stream=stream.handle, device=0, transfer="async"
    )


def brought(buffer: hamr.Buffer) -> object:
    return buffer.copy("cuda")


def viewed(buffer: hamr.Buffer) -> object:
    return buffer[10:]


def read(buffer: hamr.Buffer) -> object:
    return buffer.get()


def nothing(buffer: hamr.Buffer) -> object:
    return None


def holds(buffer: hamr.Buffer, value: float) -> bool:
    return np.unique(np.asarray(buffer.get_host_accessible())).tolist() == [value]


@pytest.mark.parametrize("use", [nothing, brought, viewed, read], ids=lambda f: f.__name__)
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_memory_outlives_its_stream(allocator, use):
    for number in range(scaled(ENDS, 4)):
        stream = driver.Stream()
        buffer = made(stream, allocator)
        other = use(buffer)
        if number % 2:
            stream.synchronize()
        del stream
        del buffer, other
        others = [hamr.Buffer(COUNT, "f4", allocator, fill=5) for _ in range(2)]
        assert all(holds(each, 5) for each in others)


@pytest.mark.parametrize("allocator", ["cuda", "cuda_host"])
def test_memory_outlives_a_stream_that_another_buffer_used_it_on(allocator):
    for _ in range(scaled(ENDS, 4)):
        stream = driver.Stream()
        source = hamr.Buffer(COUNT, "f4", allocator, fill=3)
        target = made(stream, "cuda")
        target[...] = source
        stream.synchronize()
        del stream, target, source
        assert holds(hamr.Buffer(COUNT, "f4", allocator, fill=5), 5)


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_a_consumer_outlives_the_stream_that_it_named(allocator):
    for _ in range(scaled(ENDS, 4)):
        stream = driver.Stream()
        buffer = hamr.Buffer(COUNT, "f4", allocator, fill=1)
        buffer.synchronize()
        consumed = Consumed(buffer, stream.handle)
        driver.write_late(stream, buffer.ptr, COUNT, 9)
        del stream, buffer
        consumed.end()
        others = [hamr.Buffer(COUNT, "f4", allocator, fill=5) for _ in range(2)]
        with driver.on(0):
            driver.do("cuCtxSynchronize")
        assert all(holds(each, 5) for each in others)


def test_streams_end_while_another_thread_trims(token):
    """An allocator gives back what is of a stream whose last name another thread drops."""
    allocator = hetero.CachingAllocator(device=0)
    stop, failed = threading.Event(), []

    def trim() -> None:
        try:
            while not stop.is_set():
                allocator.trim()
                hamr.trim()
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=trim)
    thread.start()
    try:
        for _ in range(scaled(20 * ENDS, 100)):
            stream = hamr.Stream(device=0)
            buffer = allocator.allocate(COUNT, "f4", stream=stream)
            buffer.close()
            del buffer, stream
    finally:
        stop.set()
        thread.join()
    assert not failed


@pytest.mark.parametrize("allocator", [*ALLOCATORS, "cuda_async"])
def test_a_view_is_dropped_after_the_end_of_its_stream(allocator):
    """Others have the memory still: they wait for the device, as nobody can ask the stream."""
    base = hamr.Buffer(COUNT, "f4", allocator, fill=0)
    base.synchronize()
    stream = driver.Stream()
    view = base[10:]
    view.set_stream(stream.handle)
    stream.synchronize()
    del stream
    del view
    assert (base.get() == 0).all()


@pytest.mark.parametrize("allocator", [*ALLOCATORS, "cuda_async"])
def test_a_buffer_is_dropped_after_the_end_of_its_stream_while_a_view_is_there(allocator):
    stream = driver.Stream()
    base = made(stream, allocator, 0)
    view = base[10:]
    view.set_stream(None)
    stream.synchronize()
    del stream
    del base
    assert (view.get() == 0).all()


@pytest.mark.multigpu
@pytest.mark.parametrize("whole", [True, False])
def test_a_stream_ends_after_its_buffer_has_moved_away(whole):
    """Whoever has the memory still names no stream: it is another device's there."""
    stream = driver.Stream(1)
    base = hamr.Buffer(
        COUNT, "f4", "cuda_uva", fill=3, stream=stream.handle, device=1, transfer="async"
    )
    part = base if whole else base[10:]
    handle = part.get_cuda_accessible(0)
    part.move("cuda_uva", device=0)
    del stream
    assert handle.__cuda_array_interface__["stream"] != 0
    assert holds(handle, 3)
    assert holds(part, 3)


@pytest.mark.multigpu
def test_a_stream_ends_before_its_buffer_while_another_devices_handle_is_there():
    stream = driver.Stream(1)
    base = hamr.Buffer(
        COUNT, "f4", "cuda_uva", fill=3, stream=stream.handle, device=1, transfer="async"
    )
    handle = base.get_cuda_accessible(0)
    base.fill(4)
    del stream, base
    assert handle.__cuda_array_interface__["stream"] != 0
    assert holds(handle, 4)
