"""Work on the default stream is covered: whoever takes a buffer waits for it, by each protocol.

A foreign kernel on the default stream writes a buffer that was given no stream; then
another library takes the buffer on a stream of its own.
"""

from __future__ import annotations

import asyncio
import ctypes

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.dlpack_consumer import Consumed
from tests.support.processes import scaled

N = 256
# A kernel that writes late takes milliseconds of a device; tests/gpu has shorter ones.
ROUNDS = scaled(1000 if driver.EMULATED else 50, 20)


class Consumer:
    """A library that reads on a stream of its own, after what the protocol tells it to wait for."""

    def __init__(self, device: int) -> None:
        self.device, self.stream = device, driver.Stream(device)
        self.seen = driver.Array(np.zeros(N, "f4"), device=device)

    def by_interface(self, shared: object) -> list[float]:
        fields = shared.__cuda_array_interface__
        if fields["stream"] is not None:
            with driver.on(self.device):
                event = driver.get("cuEventCreate", 2)
                driver.do("cuEventRecord", event, fields["stream"])
                driver.do("cuStreamWaitEvent", self.stream.handle, event, 0)
                driver.do("cuEventDestroy_v2", event)
        return self.read(fields["data"][0])

    def by_dlpack(self, shared: object) -> list[float]:
        taken = Consumed(shared, self.stream.handle)
        seen = self.read(taken.address)
        taken.end()
        return seen

    def by_handle(self, shared: hamr.Buffer) -> list[float]:
        return self.by_interface(shared.get_cuda_accessible(self.device))

    def read(self, address: int) -> list[float]:
        driver.write_late(self.stream, self.seen.ptr, N, 0, source=address)
        self.stream.synchronize()
        return np.unique(self.seen.read()).tolist()


WAYS = ["by_interface", "by_dlpack", "by_handle"]


@pytest.mark.parametrize("way", WAYS)
def test_no_consumer_reads_an_old_value(device, device_allocator, way):
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=0, device=device)
    consumer = Consumer(device)
    take = getattr(consumer, way)
    with driver.on(device):
        for value in range(1, ROUNDS + 1):
            driver.write_late(driver.LEGACY, buffer.ptr, N, value, device=device)
            assert take(buffer) == [value]


@pytest.mark.parametrize("way", WAYS)
def test_no_consumer_reads_an_old_value_of_adopted_memory(device, way):
    array = driver.Array(np.zeros(N, "f4"), device=device)
    buffer, consumer = hamr.buffer(array), Consumer(device)
    take = getattr(consumer, way)
    with driver.on(device):
        for value in range(1, 21):
            driver.write_late(driver.LEGACY, array.ptr, N, value, device=device)
            assert take(buffer) == [value]


@pytest.mark.parametrize("way", WAYS)
def test_the_thread_need_not_be_in_the_devices_context(device, way):
    """Where C cannot ask the driver itself, the core does."""
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0, device=device)
    consumer = Consumer(device)
    before = driver.current_context()
    driver.set_current(0)
    try:
        driver.write_late(driver.LEGACY, buffer.ptr, N, 5, device=device)
        assert getattr(consumer, way)(buffer) == [5]
    finally:
        driver.set_current(before)


def test_an_idle_buffer_names_no_stream(device, device_allocator):
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=0, device=device)
    buffer.synchronize()
    with driver.on(device):
        assert buffer.__cuda_array_interface__["stream"] is None


def test_await_ready_does_not_block_the_loop(device):
    """It asks until the default stream has nothing to do, instead of waiting for that."""
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0, device=device)
    buffer.synchronize()
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main():
        other = asyncio.ensure_future(others())
        driver.write_late(driver.LEGACY, buffer.ptr, N, 3, device=device)
        await buffer.ready()
        other.cancel()

    asyncio.run(main())
    assert turns > 1, "it waited in one piece"
    assert np.unique(driver.read(buffer.ptr, N, "f4", device)).tolist() == [3]


@pytest.mark.multigpu
def test_managed_memory_is_ready_for_another_devices_consumer():
    buffer = hamr.Buffer(N, "f4", "cuda_uva", fill=0, device=0)
    consumer = Consumer(1)
    for value in range(1, 101):
        driver.write_late(driver.LEGACY, buffer.ptr, N, value, device=0)
        with driver.on(1):
            assert consumer.by_interface(buffer.get_cuda_accessible(1)) == [value]
            assert consumer.by_interface(buffer) == [value]


def test_a_capture_on_a_blocking_stream_is_not_ended(device):
    """The default stream cannot be asked then; the driver ends the capture if it is."""
    buffer = hamr.Buffer(N, "f4", "cuda", fill=0, device=device)
    buffer.synchronize()
    with driver.on(device):
        stream = driver.get("cuStreamCreate", 0)
        driver.do("cuStreamBeginCapture_v2", stream, 0)
        assert buffer.__cuda_array_interface__["stream"] is None
        Consumed(buffer, stream).end()
        driver.set_current(0)
        assert buffer.__cuda_array_interface__["stream"] is None
        driver.set_current(driver.context(device))
        graph = ctypes.c_uint64()
        driver.do("cuStreamEndCapture", stream, ctypes.byref(graph))
        driver.do("cuGraphDestroy", graph.value)
        driver.do("cuStreamDestroy_v2", stream)
