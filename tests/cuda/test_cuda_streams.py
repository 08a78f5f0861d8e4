"""Order between streams: hamr's, other libraries', of this thread and of others."""

import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.contents import on_host
from tests.support.processes import scaled

N = 1000


def foreign(stream, value=0.0):
    """A foreign library's array that its stream is still writing to."""
    array = driver.Array(np.zeros(N, "f4"), stream=stream.handle)
    driver.write_late(stream, array.ptr, N, value)
    return array


# Producers and consumers.


def test_a_producers_stream_is_waited_for_on_the_way_to_the_host():
    producer = driver.Stream()
    for _ in range(scaled(1000, 10)):
        value = driver.fresh_value()
        assert on_host(hamr.buffer(foreign(producer, value))).tolist() == [value] * N


def test_a_thousand_rounds_from_one_library_to_another():
    """Produced on one stream, converted by hamr on another, consumed on a third."""
    producer, middle = driver.Stream(), hamr.Stream(device=0)
    array = driver.Array(np.zeros(N, "f4"), stream=producer.handle)
    for _ in range(scaled(1000, 10)):
        value = driver.fresh_value()
        driver.write_late(producer, array.ptr, N, value)
        shared = hamr.buffer(array, stream=middle, sync="async")
        copied = shared.copy("cuda_async")
        assert driver.content(copied).tolist() == [value] * N
        # The producer goes on writing as soon as hamr's stream has read.
        middle.synchronize()


def test_what_hamr_has_pending_is_told_to_consumers():
    stream = hamr.Stream(device=0)
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=stream, transfer="async")
    other = hamr.Stream(device=0)
    for _ in range(scaled(1000, 10)):
        value = driver.fresh_value()
        buffer.fill(value)
        assert driver.content(buffer).tolist() == [value] * N
        value = driver.fresh_value()
        driver.write_late(int(other), buffer.ptr, N, value)
        buffer.set_stream(other)
        assert driver.content(buffer).tolist() == [value] * N
        buffer.set_stream(stream)


def test_consumers_are_told_of_no_stream_when_all_is_over(device_allocator):
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=1, stream=hamr.Stream(device=0))
    buffer.synchronize()
    assert buffer.__cuda_array_interface__["stream"] is None
    handle = buffer.get_cuda_accessible()
    assert not handle.is_temporary
    assert handle.__cuda_array_interface__["stream"] is None


def test_the_stream_that_consumers_are_told_of_covers_all():
    """A buffer whose stream changed has work on the old one and on the new one."""
    first, second = hamr.Stream(device=0), driver.Stream()
    half = N // 2
    for _ in range(scaled(100, 5)):
        buffer = hamr.Buffer(N, "f4", "cuda", fill=0, stream=first, transfer="async")
        buffer.synchronize()
        buffer[:half] = 1
        buffer.set_stream(second)
        driver.write_late(second, buffer.ptr + 4 * half, half, 2)
        assert driver.content(buffer).tolist() == [1] * half + [2] * half


@pytest.mark.races
def test_without_waiting_wrong_values_are_seen(emulator):
    """What the tests above look for can be seen: only the wait hides it."""
    producer = driver.Stream()
    array = foreign(producer, 7)
    hasty = hamr.buffer(array, stream=driver.Stream(), wait=False)
    assert on_host(hasty).tolist() == [0] * N
    patient = hamr.buffer(array, stream=driver.Stream())
    assert on_host(patient).tolist() == [7] * N


@pytest.mark.races
def test_an_own_stream_is_waited_for_without_being_told_of(emulator):
    producer = driver.Stream()
    array = driver.Array(np.zeros(N, "f4"))
    driver.write_late(producer, array.ptr, N, 3)
    assert on_host(hamr.buffer(array, stream=hamr.Stream(device=0))).tolist() == [0] * N
    assert on_host(hamr.buffer(array, stream=producer)).tolist() == [3] * N


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
def test_temporary_for_another_allocator_follows_the_source(allocator):
    """Every way from a busy buffer to another sees its last value."""
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", allocator, fill=0, stream=stream, transfer="async")
    for make in (
        lambda: buffer.copy("cuda_async"),
        lambda: buffer.astype("f8"),
        lambda: buffer[::-1].copy("cuda"),
        lambda: buffer.copy("cuda_host"),
        lambda: assigned(buffer),
        lambda: appended(buffer),
    ):
        value = driver.fresh_value()
        driver.write_late(stream, buffer.ptr, N, value)
        assert on_host(make()).tolist() == [value] * N


def assigned(source):
    target = hamr.Buffer(1, "f4", "cuda", stream=hamr.Stream(device=0))
    target.assign(source)
    return target


def appended(source):
    target = hamr.Buffer(0, "i4", "cuda_uva")
    target.append(source)
    return target


def test_a_target_is_written_after_what_its_stream_holds():
    stream = driver.Stream()
    target = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=stream, transfer="async")
    source = hamr.Buffer(N, "f4", "cuda_async", fill=5, stream=hamr.Stream(device=0))
    for _ in range(scaled(100, 5)):
        driver.write_late(stream, target.ptr, N, -1)
        target[...] = source
        assert driver.content(target).tolist() == [5] * N


def test_memory_is_not_freed_under_pending_work(cuda_allocator):
    """The emulator notices a use after free; a device would give wrong values."""
    stream = driver.Stream()
    for _ in range(scaled(100, 5)):
        buffer = hamr.Buffer(N, "f4", cuda_allocator, fill=1, stream=stream, transfer="async")
        copied = buffer.copy("cuda_async")
        buffer.resize(3 * N, 2)
        buffer.close()
        assert on_host(copied).tolist() == [1] * N
        del copied


def test_async_memory_used_on_another_stream():
    """Memory of a pool is there for other streams only once its own has come to it."""
    busy, other = driver.Stream(), hamr.Stream(device=0)
    scratch = driver.Array(np.zeros(N, "f4"))
    driver.write_late(busy, scratch.ptr, N, 1)
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=4, stream=busy, transfer="async")
    buffer.set_stream(other)
    buffer[: N // 2] = np.full(N // 2, 9, "f4")
    assert on_host(buffer).tolist() == [9] * (N // 2) + [4] * (N - N // 2)


# The per-thread default stream.


def in_thread(work):
    """What work() returns in another thread."""
    result = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join()
    assert result, "the thread failed"
    return result[0]


def test_the_per_thread_stream_of_a_producer_is_this_threads():
    array = driver.Array(np.zeros(N, "f4"), stream=driver.PER_THREAD)
    for _ in range(scaled(50, 5)):
        value = driver.fresh_value()
        driver.write_late(driver.PER_THREAD, array.ptr, N, value)
        shared = hamr.buffer(array, stream=hamr.Stream(device=0))
        assert in_thread(lambda: on_host(shared).tolist()) == [value] * N  # noqa: B023


def test_a_buffer_on_the_per_thread_stream_is_used_by_another_thread():
    scratch = driver.Array(np.zeros(N, "f4"))
    driver.write_late(driver.PER_THREAD, scratch.ptr, N, 6)
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=driver.PER_THREAD, transfer="async")
    assert int(buffer.stream) > driver.PER_THREAD
    buffer[...] = hamr.buffer(scratch, stream=driver.PER_THREAD)
    assert in_thread(lambda: driver.content(buffer).tolist()) == [6] * N
    in_thread(buffer.close)


def test_set_stream_and_constructors_resolve_it(device_allocator):
    buffer = hamr.Buffer(3, "f4", device_allocator, fill=1)
    buffer.set_stream(driver.PER_THREAD)
    assert int(buffer.stream) > driver.PER_THREAD
    typed = hamr.buffer_float(device_allocator, hamr.stream(driver.PER_THREAD), 3, 1.0)
    assert int(typed.stream) > driver.PER_THREAD
    assert int(hamr.Stream(driver.PER_THREAD)) > driver.PER_THREAD
    assert str(typed) == str(buffer) == "{1, 1, 1}"


# Other threads.


def test_threads_without_a_context_use_buffers(cuda_allocator):
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", cuda_allocator, fill=1, stream=stream, transfer="async")
    threads = []
    errors = []

    def work(i):
        try:
            with pytest.raises(ValueError, match="read-only"):
                hamr.buffer(bytes(4)).fill(1)
            assert on_host(buffer.copy("cuda_async")).tolist() == [1] * N
            mine = buffer.copy()
            mine.fill(i)
            mine.append(i)
            assert on_host(mine).tolist() == [i] * (N + 1)
            buffer.synchronize()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


# Streams and events.


def test_events_stand_for_the_work_so_far():
    stream, array = hamr.Stream(device=0), driver.Array(np.zeros(N, "f4"))
    driver.write_late(int(stream), array.ptr, N, 2)
    event = stream.record()
    assert not event.done
    event.synchronize()
    assert event.done
    assert array.read().tolist() == [2] * N
    assert stream.idle
    assert (event.device, stream.device) == (0, 0)


@pytest.mark.parametrize("wait", ["wait", "synchronize", "stream", "await event", "await stream"])
def test_every_way_of_waiting(wait):
    stream = hamr.Stream(device=0)
    buffer = hamr.Buffer(N, "f4", "cuda_uva", fill=0)
    buffer.synchronize()
    driver.write_late(int(stream), buffer.ptr, N, 8)
    event = stream.record()
    {
        "wait": event.wait,
        "synchronize": event.synchronize,
        "stream": stream.synchronize,
        "await event": lambda: asyncio.run(awaited(event)),
        "await stream": lambda: asyncio.run(awaited(stream)),
    }[wait]()
    raw = (driver.ctypes.c_float * N).from_address(buffer.ptr)
    assert list(raw) == [8] * N


async def awaited(x):
    await x


def test_streams_wait_for_events():
    first, second = hamr.Stream(device=0), hamr.Stream(device=0)
    array, result = driver.Array(np.zeros(N, "f4")), driver.Array(np.zeros(N, "f4"))
    driver.write_late(int(first), array.ptr, N, 4)
    second.wait(first.record())
    driver.write_late(int(second), result.ptr, N, 1, source=array.ptr, scale=10)
    second.synchronize()
    assert driver.content(Plain(result)).tolist() == [41] * N
    driver.write_late(int(first), array.ptr, N, 5)
    first.record().wait(second)
    driver.write_late(int(second), result.ptr, N, 1, source=array.ptr, scale=10)
    second.synchronize()
    assert driver.content(Plain(result)).tolist() == [51] * N


class Plain:
    """An array whose reader waits for nothing."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None}


def test_awaiting_a_buffer():
    async def main():
        stream = driver.Stream()
        buffer = hamr.Buffer(N, "f4", "cuda_uva", fill=0, stream=stream)
        buffer.synchronize()
        driver.write_late(stream, buffer.ptr, N, 9)
        steps = 0

        async def others():
            nonlocal steps
            while True:
                steps += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(others())
        await buffer.ready()
        beside.cancel()
        assert steps > 0
        assert list((driver.ctypes.c_float * N).from_address(buffer.ptr)) == [9] * N
        await buffer.ready()

    asyncio.run(main())


def test_own_streams_and_events_end_with_their_objects(emulator):
    hamr.Stream(device=0).record()
    gc.collect()
    streams, events = emulator.live("streams"), emulator.live("events")
    for _ in range(100):
        hamr.Stream(device=0).record().synchronize()
    assert emulator.live("streams") == streams
    assert emulator.live("events") == events


class ForeignStream:
    """A stream object as libraries have them, under one attribute."""

    def __init__(self, name, stream, extra=None):
        self.stream = stream
        value = stream.handle if extra is None else extra(stream.handle)
        if name == "__cuda_stream__":
            self.__cuda_stream__ = lambda: (0, value)
        else:
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("ptr", None), ("cuda_stream", None), ("handle", None), ("__cuda_stream__", None),
        ("handle", driver.ctypes.c_void_p),
    ],
    ids=["CuPy", "torch", "Numba", "protocol", "Numba's ctypes"],
)  # fmt: skip
def test_stream_objects_of_other_libraries(name, extra):
    stream = driver.Stream()
    given = ForeignStream(name, stream, extra)
    assert int(hamr.Stream(given)) == stream.handle
    for make in (
        lambda: hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=given),
        lambda: hamr.buffer(driver.Array(np.zeros(N, "f4")), stream=given),
        lambda: with_stream(given),
    ):
        buffer = make()
        assert int(buffer.stream) == stream.handle
        driver.write_late(stream, buffer.ptr, N, 5)
        assert on_host(buffer).tolist() == [5] * N


def with_stream(stream):
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0)
    buffer.set_stream(stream)
    buffer.synchronize()
    return buffer


def test_a_buffer_keeps_its_stream_alive():
    given = ForeignStream("ptr", driver.Stream())
    watch = weakref.ref(given)
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=given)
    del given
    gc.collect()
    assert watch() is not None
    copied = buffer.copy()
    part = buffer[:3]
    buffer.close()
    del buffer
    gc.collect()
    assert watch() is not None, "a copy and a view use the stream, too"
    assert str(part) == "{0, 0, 0}"
    del copied, part
    gc.collect()
    assert watch() is None
