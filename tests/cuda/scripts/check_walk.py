"""A walk at random over work on a few buffers: HAMR_CHECK tells of what the emulated driver does.

check_walk.py SEED WALKS STEPS. The emulated driver knows what each piece of work reads and writes;
hamr knows of kernels only where their memory begins. So it may tell of nothing else, and has to
tell of all where that is enough: what was told of last is the end of a walk.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Callable

import numpy as np

import hamr
from tests.cuda import driver

N = 256
SIZE = 4 * N
told: list[hamr.MemoryMisuse] = []
warnings.showwarning = lambda message, *more: told.append(message)  # type: ignore[assignment]
warnings.simplefilter("always", hamr.MemoryMisuse)


class Walk:
    """Some buffers, streams and events, and what was done with them."""

    def __init__(self, seed: int, steps: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.steps: list[str] = []
        self.own = hamr.Stream(device=0)
        allocators = self.random.choices(["cuda", "cuda_uva", "cuda_async", "cuda_vmm"], k=3)
        self.buffers = [
            hamr.Buffer(N, "f4", allocator, fill=0, stream=self.own, transfer="async")
            for allocator in allocators
        ]
        # A kernel's pointer to its begin may be to another part of it than what is written.
        self.larger = {b.ptr for b in self.buffers if b.allocator.name == "cuda_vmm"}
        self.adopted = hamr.buffer(driver.Array(np.zeros(N, "f4")))
        self.addresses = [b.ptr for b in (*self.buffers, self.adopted)]
        self.streams = [driver.Stream() for _ in range(3)]
        with driver.on(0):
            self.handles = [driver.get("cuStreamCreate", 0) for _ in range(2)]  # that block
            self.events = [driver.get("cuEventCreate", 2) for _ in range(3)]
            driver.do("cuCtxSynchronize")
        self.kernels: set[int] = set()  # where they write
        self.patience = self.random.choice([0.0, 0.9, 0.99, 1.0])
        for step in range(steps):
            if self.step(step):
                break
        self.end()

    def step(self, number: int) -> bool:
        """Do something; whether it was wrong."""
        ways: list[Callable[[], str]] = [
            *[self.fill, self.copy, self.kernel] * 3,
            *[self.record, self.wait] * 3,
            *[self.wait_for_a_stream, self.wait_for_an_event, self.poll, self.wait_for_all],
            *[self.hamrs_fill, self.hamrs_copy, self.new_stream],
        ]
        way = self.random.choice(ways)
        with driver.on(0):
            self.steps.append(f"{number}: {way()}")
        hamr.check_memory()
        ours = [misuse for misuse in told if misuse.kind == "unordered"]
        assert len(ours) == len(told), (self.steps, told)
        told.clear()
        theirs = [text for text in driver.emulator.violations() if driver.RACE in text]
        if ours and not theirs:
            raise AssertionError(f"a false report: {self.seed} {self.steps} {ours[0]}")
        if theirs and not ours and any(map(self.is_to_be_told, theirs)):
            raise AssertionError(f"nothing was told: {self.seed} {self.steps} {theirs}")
        return bool(theirs)

    def is_to_be_told(self, text: str) -> bool:
        """Whether one side is known to write where both begin."""
        numbers = re.findall(
            r"work on (\S+) and (\S+) is not in order with work on (\S+) and", text
        )
        target, source, earlier = (int(n, 16) for n in numbers[0])
        if "kernel" in self.steps[-1] and source == earlier == target + SIZE:
            return False  # it may be where the target ends
        known_to_write = target if "kernel" not in self.steps[-1] else -1
        if "kernel" in self.steps[-1] and earlier in self.larger:
            return False
        return (known_to_write == earlier and known_to_write not in self.kernels) or (
            source == earlier and source not in self.kernels
        )

    def end(self) -> None:
        driver.emulator.library.emulator_reset()
        with driver.on(0):
            driver.do("cuCtxSynchronize")
            for event in self.events:
                driver.do("cuEventDestroy_v2", event)
            for handle in self.handles:
                driver.do("cuStreamDestroy_v2", handle)
        # What is given back in the middle of a walk would wait for the device.
        self.buffers.clear()
        del self.adopted, self.own
        self.streams.clear()
        hamr.check_memory()
        driver.emulator.finish()
        assert not told, (self.seed, self.steps, told)

    def any_stream(self) -> int:
        handles = [s.handle for s in self.streams]
        return self.random.choice([*handles, *handles, *self.handles, driver.LEGACY, self.own.ptr])

    def stream_for_work(self, stream: int = 0) -> int:
        """A stream that, mostly, waits for all others."""
        stream = stream or self.any_stream()
        if self.random.random() < self.patience:
            event = driver.get("cuEventCreate", 2)
            others = *(s.handle for s in self.streams), *self.handles, driver.LEGACY, self.own.ptr
            for other in others:
                driver.do("cuEventRecord", event, other)
                driver.do("cuStreamWaitEvent", stream, event, 0)
            driver.do("cuEventDestroy_v2", event)
        return stream

    def fill(self) -> str:
        at, stream = self.random.choice(self.addresses), self.stream_for_work()
        driver.do("cuMemsetD8Async", at, 1, SIZE, stream)
        return f"fill {at:#x} on {stream:#x}"

    def copy(self) -> str:
        (to, source), stream = self.random.sample(self.addresses, 2), self.stream_for_work()
        driver.do("cuMemcpyDtoDAsync_v2", to, source, SIZE, stream)
        return f"copy {source:#x} to {to:#x} on {stream:#x}"

    def kernel(self) -> str:
        (to, source), stream = self.random.sample(self.addresses, 2), self.stream_for_work()
        source = self.random.choice([0, source])
        self.kernels.add(to)
        driver.write_late(stream, to, N, 1.0, source, device=0)
        return f"kernel {source:#x} to {to:#x} on {stream:#x}"

    def record(self) -> str:
        event, stream = self.random.choice(self.events), self.any_stream()
        driver.do("cuEventRecord", event, stream)
        return f"record {event:#x} on {stream:#x}"

    def wait(self) -> str:
        event, stream = self.random.choice(self.events), self.any_stream()
        driver.do("cuStreamWaitEvent", stream, event, 0)
        return f"{stream:#x} waits for {event:#x}"

    def wait_for_a_stream(self) -> str:
        stream = self.any_stream()
        driver.do("cuStreamSynchronize", stream)
        return f"wait for stream {stream:#x}"

    def wait_for_an_event(self) -> str:
        event = self.random.choice(self.events)
        driver.do("cuEventSynchronize", event)
        return f"wait for event {event:#x}"

    def poll(self) -> str:
        event = self.random.choice(self.events)
        codes = [driver.code("cuEventQuery", event) for _ in range(self.random.randint(1, 4))]
        return f"poll {event:#x}: {codes}"

    def wait_for_all(self) -> str:
        driver.do("cuCtxSynchronize")
        self.kernels.clear()
        return "wait for all"

    def hamrs_fill(self) -> str:
        buffer = self.random.choice(self.buffers)
        self.stream_for_work(self.own.ptr)
        buffer.fill(2)
        return f"{buffer.ptr:#x}.fill()"

    def hamrs_copy(self) -> str:
        to, source = self.random.sample(self.buffers, 2)
        self.stream_for_work(self.own.ptr)
        to[...] = source
        return f"{to.ptr:#x}[...] = {source.ptr:#x}"

    def new_stream(self) -> str:
        i = self.random.randrange(len(self.streams))
        self.streams[i] = driver.Stream()
        return f"new stream {self.streams[i].handle:#x}"


def main(seed: int, walks: int, steps: int) -> None:
    assert driver.emulator is not None
    hamr.Buffer(1, "u1", "cuda", fill=0)
    assert hamr.checked_backends() == {"cuda": ""}
    raced = 0
    for each in range(seed, seed + walks):
        raced += len(Walk(each, steps).steps) < steps
    print(walks, raced)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
