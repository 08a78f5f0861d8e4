"""A consumer's stream runs after what is pending on the elements, and nobody waits for it."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.dlpack_consumer import Consumed

N = 1000


def busy_with(stream: int, buffer: hamr.Buffer, value: float) -> None:
    driver.write_late(stream, buffer.ptr, N, value, device=buffer.device)


def late_by_a_kernel(buffer: hamr.Buffer, value: float) -> None:
    """Another library's, on the stream that the buffer was given."""
    stream = driver.Stream(buffer.device)
    buffer.set_stream(stream)
    busy_with(stream.handle, buffer, value)


def late_by_hamr(buffer: hamr.Buffer, value: float) -> None:
    stream = hamr.Stream(device=buffer.device)
    # From a pool, whose memory is given back without a wait.
    other = hamr.Buffer(N, "f4", "cuda_async", fill=0, device=buffer.device, stream=stream)
    other.synchronize()
    buffer.set_stream(stream, "async")
    busy_with(int(stream), other, value)
    buffer[...] = other


def late_on_the_default_stream(buffer: hamr.Buffer, value: float) -> None:
    """Another library's, on the stream that a buffer without one has."""
    busy_with(driver.LEGACY, buffer, value)


LATE = [late_by_a_kernel, late_by_hamr]


def consumer_stream(kind: str, buffer: hamr.Buffer) -> tuple[int | None, int]:
    """What is announced, and the stream that the consumer enqueues on."""
    if kind == "a handle":
        handle = _kept(driver.Stream(buffer.device)).handle
        return handle, handle
    stream = {"none": None, "the default": driver.LEGACY, "the thread's": driver.PER_THREAD}[kind]
    return stream, stream or driver.LEGACY


_streams: list[driver.Stream] = []


def _kept(stream: driver.Stream) -> driver.Stream:
    _streams.append(stream)
    return stream


@pytest.fixture(autouse=True)
def _end_streams():
    yield
    _streams.clear()


class Reader:
    """A kernel on a consumer's stream. Made first, since its making waits for the device."""

    def __init__(self, device: int = 0) -> None:
        self.device, self.seen = device, driver.Array(np.zeros(N, "f4"), device=device)

    def read(self, stream: int, address: int) -> list[float]:
        """What it reads from memory, with no other wait than for itself."""
        driver.write_late(stream, self.seen.ptr, N, 0, source=address, device=self.device)
        with driver.on(self.device):
            driver.do("cuStreamSynchronize", stream)
        return self.seen.read().tolist()


@pytest.mark.parametrize("kind", ["none", "the default", "the thread's", "a handle"])
@pytest.mark.parametrize("late", [*LATE, late_on_the_default_stream], ids=lambda f: f.__name__)
def test_a_consumer_reads_no_old_value(device, device_allocator, late, kind):
    if device_allocator == hamr.Allocator.cuda_uva and kind == "none":
        # Who reads managed memory without a stream may be the host.
        kind = "the default"
    buffer, reader = hamr.Buffer(N, "f4", device_allocator, fill=1, device=device), Reader(device)
    buffer.synchronize()
    value = driver.fresh_value()
    late(buffer, value)
    announced, stream = consumer_stream(kind, buffer)
    with driver.on(device):
        consumed = Consumed(buffer, announced)
    assert reader.read(stream, consumed.address) == [value] * N
    consumed.end()


@pytest.mark.parametrize("late", [*LATE, late_on_the_default_stream], ids=lambda f: f.__name__)
def test_without_an_order_nothing_waits(emulator, late):
    buffer = hamr.Buffer(N, "f4", "cuda", fill=1)
    buffer.synchronize()
    late(buffer, driver.fresh_value())
    pending = emulator.pending()
    made = emulator.count_calls(Consumed(buffer, -1).end)
    assert emulator.pending() == pending
    assert "cuStreamWaitEvent" not in made


@pytest.mark.parametrize("kind", ["the default", "the thread's", "a handle"])
@pytest.mark.parametrize("late", LATE, ids=lambda f: f.__name__)
def test_no_call_blocks(emulator, late, kind):
    buffer = hamr.Buffer(N, "f4", "cuda", fill=1)
    buffer.synchronize()
    late(buffer, driver.fresh_value())
    announced, _ = consumer_stream(kind, buffer)
    made = emulator.count_calls(lambda: Consumed(buffer, announced).end())
    assert not {name for name in made if name.endswith("Synchronize")}
    assert made["cuStreamWaitEvent"] == 1


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
def test_the_buffers_own_stream_needs_no_event(emulator, allocator):
    stream, taken = driver.Stream(), []
    buffer, reader = hamr.Buffer(N, "f4", allocator, fill=1, stream=stream), Reader()
    busy_with(stream.handle, buffer, 2)
    made = emulator.count_calls(lambda: taken.append(Consumed(buffer, stream.handle)))
    assert "cuEventRecord" not in made
    # Memory that goes back to a pool keeps an event of what the consumer may have done.
    made = emulator.count_calls(taken.pop().end)
    pooled = allocator != "cuda_uva"
    assert made.get("cuEventRecord", 0) <= pooled
    assert reader.read(stream.handle, buffer.ptr) == [2] * N


@pytest.mark.parametrize("call", ["cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery"])
def test_a_failure_loses_nothing(emulator, call):
    buffer, reader = hamr.Buffer(N, "f4", "cuda_async", fill=1), Reader()
    buffer.synchronize()
    value = driver.fresh_value()
    late_by_a_kernel(buffer, value)
    announced, stream = consumer_stream("a handle", buffer)
    references = hamr.stats()["references"]
    emulator.fail(call, 1, driver.ILLEGAL_ADDRESS)
    with pytest.raises((hamr.DeviceError, BufferError), match=call):
        Consumed(buffer, announced)
    emulator.stop_failing()
    assert hamr.stats()["references"] == references
    consumed = Consumed(buffer, announced)
    assert reader.read(stream, consumed.address) == [value] * N
    consumed.end()
