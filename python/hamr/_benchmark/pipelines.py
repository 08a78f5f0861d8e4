"""Many events through a chain of modules: hamr.hetero.Pipeline, and the same written by hand.

A chain is six modules, CPU, GPU, GPU, GPU, GPU to CPU, CPU: elements are made, copied to the
device, go through three kernels that each last a random time, are copied back and are checked.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np

from .driver import Driver
from .groups import Libraries, Rows

COUNT = 4096
EVENTS, QUICK_EVENTS = 1000, 40
IN_FLIGHT = 8
ROUNDS = 3
KERNELS = 3
SHORTEST, LONGEST = 200_000, 2_000_000  # nanoseconds

OF_HAND_WRITTEN, OF_NAIVE, OF_TWO = 0.95, 3.0, 1.9  # of throughput, at least

_SOURCE = r"""
extern "C" __global__ void delayed(float *to, const float *from, int n, float add,
                                   unsigned long long nanoseconds) {
    unsigned long long begun, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - begun < nanoseconds);
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = 2 * from[i] + add;
}
"""


class ByCuPy:
    """What a chain's modules call, by CuPy: streams, float32 arrays, a kernel and copies."""

    name = "cupy"

    def __init__(self, cupy: Any) -> None:
        from importlib import import_module

        self._cupy, self._cuda = cupy, cupy.cuda
        self._kernel = cupy.RawKernel(_SOURCE, "delayed")
        self._copy = cupy.cuda.runtime.memcpyAsync
        self._empty_pinned = import_module("cupyx").empty_pinned
        self._count = np.int32(COUNT)

    def on(self, device: int) -> Any:
        """The device is the thread's current one."""
        return self._cuda.Device(device)

    def stream(self, device: int) -> Any:
        """A new stream."""
        with self._cuda.Device(device):
            return self._cuda.Stream(non_blocking=True)

    def external(self, handle: int, device: int) -> Any:
        """Somebody's stream."""
        return self._cuda.ExternalStream(handle, device)

    def pinned(self) -> Any:
        """A new page-locked array."""
        return self._empty_pinned(COUNT, "f4")

    def array(self, device: int) -> Any:
        """A new array of a device."""
        with self._cuda.Device(device):
            return self._cupy.zeros(COUNT, "f4")

    def upload(self, stream: Any, to: Any, source: Any) -> None:
        """Enqueue a copy from the host."""
        self._copy(to.data.ptr, source.ctypes.data, source.nbytes, 1, stream.ptr)

    def download(self, stream: Any, to: Any, source: Any) -> None:
        """Enqueue a copy to the host."""
        self._copy(to.ctypes.data, source.data.ptr, to.nbytes, 2, stream.ptr)

    def launch(self, stream: Any, to: Any, source: Any, add: int, nanoseconds: int) -> None:
        """Enqueue a kernel."""
        with stream:
            arguments = (to, source, self._count, np.float32(add), np.uint64(nanoseconds))
            self._kernel((1,), (256,), arguments)

    def wait(self, stream: Any) -> None:
        """Block until all on the stream is over."""
        stream.synchronize()


class Work:
    """How long each event's kernels last, and what is made and expected of it."""

    def __init__(self, events: int, seed: int = 1) -> None:
        chance = random.Random(seed)
        self.events = range(events)
        self.lengths = [
            [chance.randrange(SHORTEST, LONGEST) for _ in range(KERNELS)] for _ in self.events
        ]

    def make(self, event: int) -> Any:
        """The elements that an event begins with."""
        return np.full(COUNT, event % 997, "f4")

    def check(self, event: int, total: float) -> bool:
        """Whether their sum is right at the end; every number is one that a float32 holds."""
        value = event % 997
        for add in range(KERNELS):
            value = 2 * value + add
        return total == value * COUNT


class Lane:
    """What one event after the other uses on a device, as written by hand."""

    def __init__(self, kit: ByCuPy, device: int) -> None:
        self.kit, self.device, self.stream = kit, device, kit.stream(device)
        self.before, self.after = kit.pinned(), kit.pinned()
        self.arrays = [kit.array(device) for _ in range(KERNELS + 1)]

    def enqueue(self, work: Work, event: int, after_each: Callable[[], object]) -> None:
        """All of an event but its last module."""
        kit, stream, arrays = self.kit, self.stream, self.arrays
        self.before[:] = work.make(event)
        with kit.on(self.device):
            kit.upload(stream, arrays[0], self.before)
            for k, nanoseconds in enumerate(work.lengths[event]):
                kit.launch(stream, arrays[k + 1], arrays[k], k, nanoseconds)
                after_each()
            kit.download(stream, self.after, arrays[-1])

    def end(self, work: Work, event: int) -> bool:
        """Wait for it, and check it."""
        self.kit.wait(self.stream)
        return work.check(event, float(self.after.sum(dtype="f8")))


def naive(kit: ByCuPy, work: Work, devices: int) -> int:
    """One event after the other, waiting for each module; how many were right."""
    lane = Lane(kit, 0)
    right = 0
    for event in work.events:
        lane.enqueue(work, event, lambda: kit.wait(lane.stream))
        right += lane.end(work, event)
    return right


def in_turns(kit: ByCuPy, work: Work, devices: int) -> int:
    """One thread and as many streams as events in flight, which are used in turns."""
    lanes = [Lane(kit, i % devices) for i in range(IN_FLIGHT * devices)]
    busy: deque[tuple[Lane, int]] = deque()
    right = 0
    for event in work.events:
        if len(busy) == len(lanes):
            lane, old = busy.popleft()
            right += lane.end(work, old)
        else:
            lane = lanes[len(busy)]
        lane.enqueue(work, event, _nothing)
        busy.append((lane, event))
    return right + sum(lane.end(work, old) for lane, old in busy)


def on_threads(kit: ByCuPy, work: Work, devices: int) -> int:
    """A thread and a stream for each event in flight; a thread waits for its stream."""
    count = IN_FLIGHT * devices
    lanes: SimpleQueue[Lane] = SimpleQueue()
    for i in range(count):
        lanes.put(Lane(kit, i % devices))

    def one(event: int) -> bool:
        lane = lanes.get()
        lane.enqueue(work, event, _nothing)
        right = lane.end(work, event)
        lanes.put(lane)
        return right

    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(one, work.events))


def _nothing() -> None:
    """Go on."""


def modules_of(kit: ByCuPy, work: Work) -> list[Any]:
    """The chain as modules."""
    from hamr.hetero import Producer, module

    class OnDevice(Producer):
        """A module with an array for the run, and CuPy's name for its stream."""

        kind = "device"

        def begin(self, place: str) -> None:
            self.device = int(place.partition(":")[2])
            self.array = kit.array(self.device)
            self.streams: dict[int, Any] = {}

        def stream(self, ctx: Any) -> Any:
            handle = ctx.stream.ptr
            if handle not in self.streams:
                self.streams[handle] = kit.external(handle, self.device)
            return self.streams[handle]

    class First(OnDevice):
        """The way up, and the first kernel."""

        name, inputs = "kernel0", ("make",)

        def begin(self, place: str) -> None:
            super().begin(place)
            self.before, self.up = kit.pinned(), kit.array(self.device)

        def produce(self, event: Any, ctx: Any) -> Any:
            stream = self.stream(ctx)
            self.before[:] = event["make"]
            kit.upload(stream, self.up, self.before)
            kit.launch(stream, self.array, self.up, 0, work.lengths[event.item][0])
            return self.array

    class Kernel(OnDevice):
        def __init__(self, number: int, source: str) -> None:
            self.number, self.name, self.inputs = number, f"kernel{number}", (source,)
            self.source = source

        def produce(self, event: Any, ctx: Any) -> Any:
            length = work.lengths[event.item][self.number]
            kit.launch(self.stream(ctx), self.array, event[self.source], self.number, length)
            return self.array

    class Download(OnDevice):
        kind, name = "external", "download"

        def __init__(self, source: str) -> None:
            self.inputs, self.source = (source,), source

        def begin(self, place: str) -> None:
            super().begin(place)
            self.after = kit.pinned()

        def acquire(self, event: Any, ctx: Any) -> None:
            kit.download(self.stream(ctx), self.after, event[self.source])

        def produce(self, event: Any, ctx: Any) -> float:
            return float(self.after.sum(dtype="f8"))

    @module()
    def make(event: Any) -> Any:
        return work.make(event.item)

    @module()
    def check(download: float, event: Any) -> bool:
        return work.check(event.item, download)

    kernels = [Kernel(k, f"kernel{k - 1}") for k in range(1, KERNELS)]
    return [make, First(), *kernels, Download(f"kernel{KERNELS - 1}"), check]


def pipeline(kit: ByCuPy, work: Work, devices: int, told: dict[str, Any] | None = None) -> int:
    """The chain by hamr.hetero; ``told`` gets what each module took, in microseconds a call."""
    from hamr import hetero

    among = [f"cuda:{n}" for n in range(devices)]
    chosen = hetero.DeviceChooser(among=among)
    chain = hetero.Pipeline(modules_of(kit, work), streams=IN_FLIGHT * devices, chooser=chosen)
    results = chain.run(work.events, ordered=False, raise_errors=True)
    for name, row in chain.report.modules.items():
        times = row.time, row.device_stall, row.worker_stall
        if told is not None:
            told[name] = [round(t / max(row.calls, 1) * 1e6, 1) for t in times]
    return sum(result["check"] for result in results)


HAND_WRITTEN = {"a thread and a stream each": on_threads, "one thread, streams in turns": in_turns}
OURS, NAIVE = "hamr: hetero.Pipeline", "naive, a wait after each module"


def chains(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """Groups of microseconds for an event."""
    if lib.cupy is None:
        raise RuntimeError(f"the chain's kernels are CuPy's: {lib.absent.get('cupy', 'no CuPy')}")
    kit = ByCuPy(lib.cupy)
    events = QUICK_EVENTS if lib.settings.quick else EVENTS
    yield from groups_of(kit, events, min(ROUNDS, lib.settings.rounds), driver.count)


def groups_of(kit: ByCuPy, events: int, rounds: int, devices: int) -> Iterator[Rows]:
    """One device beside those written by hand, beside the naive way, and two devices."""
    work = Work(events)
    told: dict[str, Any] = {}
    by_hand = {f"{kit.name}: {name}": run for name, run in HAND_WRITTEN.items()}
    ways = {**by_hand, OURS: pipeline, f"{kit.name}: {NAIVE}": naive}
    head = f"{events} events of 6 modules, {IN_FLIGHT} in flight"
    took: dict[str, list[float]] = {}

    def beside_hand_written() -> list[dict[str, Any]]:
        pipeline(kit, Work(QUICK_EVENTS), 1)  # the kernel is compiled
        took.update(_measured(kit, work, ways, 1, rounds))
        pipeline(kit, work, 1, told)
        order = sorted(by_hand, key=lambda name: statistics.median(took[name]))
        rows = [_row(name, took, order[0]) for name in [*order, OURS]]
        rows[-1] |= _bound(rows[-1], 1 / OF_HAND_WRITTEN) | {"modules": told}
        return rows

    def beside_naive() -> list[dict[str, Any]]:
        floor = f"{kit.name}: {NAIVE}"
        rows = [_row(name, took, floor) for name in (floor, OURS)]
        rows[-1] |= _bound(rows[-1], 1 / OF_NAIVE)
        return rows

    def on_two() -> list[dict[str, Any]]:
        name = f"{kit.name}: {next(iter(HAND_WRITTEN))}"
        one = {OURS: pipeline, name: on_threads}
        alone = _measured(kit, work, one, 1, rounds)
        both = {f"{k}, two devices": v for k, v in _measured(kit, work, one, 2, rounds).items()}
        rows = [_row(k, alone | both, OURS) for k in [*alone, *both]]
        ours = next(row for row in rows if row["operation"] == f"{OURS}, two devices")
        ours |= _bound(ours, 1 / OF_TWO)
        return rows

    yield Rows(f"{head}, beside those written by hand", "us", beside_hand_written)
    yield Rows(f"{head}, beside the naive way", "us", beside_naive)
    if devices > 1:
        yield Rows(f"{head} on each of two devices", "us", on_two)


def _measured(
    kit: ByCuPy, work: Work, ways: dict[str, Any], devices: int, rounds: int
) -> dict[str, list[float]]:
    """Microseconds for an event by each way in turns; a RuntimeError if a checksum is wrong."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            begun = time.perf_counter()
            right = run(kit, work, devices)
            took[name].append((time.perf_counter() - begun) / len(work.events) * 1e6)
            if right != len(work.events):
                raise RuntimeError(f"{name}: {right} of {len(work.events)} sums are right")
    return took


def _row(name: str, took: dict[str, list[float]], floor: str) -> dict[str, Any]:
    ratios = [ours / theirs for ours, theirs in zip(took[name], took[floor], strict=True)]
    value, ratio = statistics.median(took[name]), statistics.median(ratios)
    return {"operation": name, "value": round(value, 1), "ratio": round(ratio, 4)}


def _bound(row: dict[str, Any], target: float) -> dict[str, Any]:
    return {"target": round(target, 4), "met": row["ratio"] <= target}
