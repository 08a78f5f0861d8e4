"""Memory of a pool goes to others only when consumers' streams are done with it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.dlpack_consumer import WITHOUT_LOCK, Consumed
from tests.support.processes import run_code

N = 1000
#: Whose freed memory hamr or the driver hands out again in the order of streams.
POOLED = ["cuda_async", "cuda"]


class Consumer:
    """Whose stream a test's consumer is on, and how it announces that."""

    def __init__(self, own: hamr.Stream, kind: str, device: int = 0) -> None:
        self.kind, self.device = kind, device
        self._made = driver.Stream(device) if kind in ("a handle", "unknown") else None
        self.stream = {
            "the default": driver.LEGACY,
            "none": driver.LEGACY,
            "the thread's": driver.PER_THREAD,
            "the buffer's": int(own),
        }.get(kind) or self._made.handle
        self.announced = {"none": None, "unknown": -1}.get(kind, self.stream)

    def write_late(self, address: int, value: float) -> None:
        driver.write_late(self.stream, address, N, value, device=self.device)

    def end(self) -> None:
        """Destroy the stream, as its library may at any time."""
        self._made = None


ANYWHERE = ("a handle", "unknown", "the thread's")
#: Of which each consumer has another stream, and does not wait for the one before.
UNSEEN = ("a handle", "unknown")
KINDS = ("the default", "none", "the buffer's", *ANYWHERE)


def pool_buffer(
    stream: hamr.Stream, value: float, device: int = 0, allocator: str = "cuda_async"
) -> hamr.Buffer:
    return hamr.Buffer(N, "f4", allocator, fill=value, stream=stream, device=device)


def everything_is_over(device: int = 0) -> None:
    with driver.on(device):
        driver.do("cuCtxSynchronize")


def assert_holds(buffer: hamr.Buffer, value: float) -> None:
    everything_is_over(buffer.device)
    assert np.asarray(buffer.get_host_accessible()).tolist() == [value] * N


def late(consumer: Consumer, buffer: hamr.Buffer) -> Consumed:
    """A consumer that has the buffer's memory, and a write to it that is still to come."""
    consumed = Consumed(buffer, consumer.announced)
    assert consumed.address == buffer.ptr
    consumer.write_late(consumed.address, 9)
    return consumed


@pytest.mark.parametrize("allocator", POOLED)
@pytest.mark.parametrize("last", ["the buffer", "the consumer"])
@pytest.mark.parametrize("kind", KINDS)
def test_others_get_the_memory_after_the_consumer(kind, last, allocator):
    own = hamr.Stream(device=0)
    for _ in range(3):
        buffer, consumer = pool_buffer(own, 1, allocator=allocator), Consumer(own, kind)
        buffer.synchronize()
        consumed = late(consumer, buffer)
        if last == "the buffer":
            consumer.end()
            consumed.end()
            del buffer
        else:
            del buffer
            consumed.end()
            consumer.end()
        others = [pool_buffer(own, 5, allocator=allocator) for _ in range(3)]
        for other in others:
            assert_holds(other, 5)


@pytest.mark.parametrize("allocator", POOLED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_deleter_called_without_pythons_lock(kind, allocator):
    own = hamr.Stream(device=0)
    buffer, consumer = pool_buffer(own, 1, allocator=allocator), Consumer(own, kind)
    buffer.synchronize()
    consumed = late(consumer, buffer)
    consumer.end()
    thread = threading.Thread(target=consumed.end, args=(WITHOUT_LOCK,))
    thread.start()
    thread.join()
    buffer.close()
    hamr.stats()  # what ended on other threads is let go at the next call
    assert_holds(pool_buffer(own, 5, allocator=allocator), 5)


@pytest.mark.races  # the consumers do not wait for each other
@pytest.mark.parametrize("allocator", POOLED)
def test_every_consumer_is_waited_for(allocator):
    own = hamr.Stream(device=0)
    buffer = pool_buffer(own, 1, allocator=allocator)
    buffer.synchronize()
    consumers = [Consumer(own, kind) for kind in KINDS]
    taken = [Consumed(buffer, c.announced) for c in consumers]
    for consumer in consumers:
        consumer.write_late(buffer.ptr, 9)
    buffer.close()
    for consumer, consumed in zip(consumers, taken, strict=True):
        consumed.end()
        consumer.end()
    assert_holds(pool_buffer(own, 5, allocator=allocator), 5)


def waits_for_the_device(emulator, kind, allocator="cuda_async") -> int:
    own = hamr.Stream(device=0)
    buffer = hamr.Buffer(N, "f4", allocator, fill=1, stream=own)
    buffer.synchronize()
    before = emulator.calls("cuCtxSynchronize")
    for _ in range(5):
        consumer = Consumer(own, kind)
        late(consumer, buffer).end()
        consumer.end()
    assert emulator.calls("cuCtxSynchronize") == before
    buffer.close()
    return emulator.calls("cuCtxSynchronize") - before


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.races if k in UNSEEN else ()) for k in KINDS],
)
def test_nobody_waits_at_a_release(emulator, kind):
    assert waits_for_the_device(emulator, kind) == 0


@pytest.mark.races
@pytest.mark.parametrize("allocator", ["cuda_uva"] if driver.POOLED else ["cuda", "cuda_uva"])
def test_other_memory_is_freed_as_ever(emulator, allocator):
    """The driver itself waits for the device."""
    assert waits_for_the_device(emulator, "a handle", allocator) == 0


def test_memory_of_others_is_given_back_without_a_wait(emulator):
    array = driver.Array(np.ones(N, "f4"), kind="cuda_async")
    shared = hamr.buffer(array)
    before = emulator.calls("cuCtxSynchronize")
    Consumed(shared, driver.PER_THREAD).end()
    del shared
    assert emulator.calls("cuCtxSynchronize") == before


@pytest.mark.multigpu
@pytest.mark.parametrize("allocator", POOLED)
def test_the_buffers_device_is_waited_for(allocator):
    own = hamr.Stream(device=1)
    buffer = pool_buffer(own, 1, device=1, allocator=allocator)
    consumer = Consumer(own, "a handle", device=1)
    buffer.synchronize()
    consumed = late(consumer, buffer)
    consumer.end()
    consumed.end()
    with driver.on(0):
        buffer.close()
    assert_holds(pool_buffer(own, 5, device=1, allocator=allocator), 5)


# Where the device cannot be waited for, as while a stream is captured into a graph.

CAPTURE_UNSUPPORTED = 900


@pytest.mark.freed_again
def test_memory_is_kept_while_the_device_cannot_be_waited_for(emulator):
    hamr.trim()  # what is trimmed below is this test's
    own = hamr.Stream(device=0)
    buffer, consumer = pool_buffer(own, 1), Consumer(own, "a handle")
    buffer.synchronize()
    live = emulator.live("memory")
    consumed = late(consumer, buffer)
    consumer.end()
    consumed.end()
    buffer.close()
    emulator.fail("cuCtxSynchronize", 0, CAPTURE_UNSUPPORTED)
    with pytest.raises(hamr.DeviceError):
        hamr.trim()
    emulator.stop_failing()
    assert emulator.live("memory") == live
    other = pool_buffer(own, 5)
    hamr.trim()
    everything_is_over()
    assert emulator.live("memory") == live  # other's, in place of buffer's
    assert_holds(other, 5)


_WAITING = """
import ctypes, threading, time
import hamr
from tests.cuda import driver
from tests.support.dlpack_consumer import Consumed

own = hamr.Stream(device=0)
buffer = hamr.Buffer(1000, "f4", "cuda_async", fill=1, stream=own)
buffer.synchronize()
stream = driver.Stream()
consumed = Consumed(buffer, stream.handle)
libc, semaphore = ctypes.CDLL(None), ctypes.create_string_buffer(64)
libc.sem_init(semaphore, 0, 0)
waits = ctypes.cast(libc.sem_wait, ctypes.c_void_p)
closing = threading.Event()

def let_the_device_go_on():
    closing.wait()
    time.sleep(0.1)
    libc.sem_post(semaphore)

thread = threading.Thread(target=let_the_device_go_on)
thread.start()
with driver.on(0):
    driver.do("cuLaunchHostFunc", stream.handle, waits, ctypes.cast(semaphore, ctypes.c_void_p))
consumed.end()
closing.set()
buffer.close()
thread.join()
print("closed")
"""


def test_the_wait_leaves_pythons_lock_to_others():
    """With the lock, it would never end: what the device waits for needs it."""
    assert run_code(_WAITING).strip() == "closed"
