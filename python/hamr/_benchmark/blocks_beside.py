"""What a call that copies blocks costs until it returns, and what it does to products beside it."""

from __future__ import annotations

import ctypes
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .blocks import Bed, Side, limit_of, of_driver, of_hamr, on_device, on_host
from .children import Child, answer, told
from .driver import Driver
from .groups import KIB, Libraries, Rows, size_text
from .run_ahead import long_work
from .scattered import BLOCKS, BlockWay, Pool, Scattered, batch_of

SIZE = 16 * KIB
BUSY = 3_000_000  # nanoseconds of work on the stream before a call: a call that waits shows
CALLS = 5  # a turn
BY_ARRAYS, BY_LISTS = 40, 200  # us until a call returns, at most

SIDE, PRODUCTS = 8192, 16
TURNS = 3
SLOWER = 10  # %, at most, by copies with the default
IN_FLIGHT = 4  # calls, beside the products

#: The environment variable that says how many blocks of threads copy, and what is tried.
GRID = "HAMR_COPY_GRID"
GRIDS = "4", "8", "32", "64"
ONE_COPY = "one page-locked copy after another"
BATCH = "the driver's cuMemcpyBatchAsync"
TITLE = f"bf16 products of {SIDE}³ beside blocks of {size_text(SIZE)}"


def items(lib: Libraries, driver: Driver) -> Iterator[Any]:
    """What a call costs, all paths, and products beside copies."""
    bed = Bed(lib, driver)
    yield from enqueued(bed)
    yield from on_device(bed)
    del bed
    lib.trim()
    yield from on_host(lib, driver)
    lib.trim()
    yield from beside(lib)


def enqueued(bed: Bed) -> Iterator[Rows]:
    """Until a call returns, and until the blocks are there, to page-locked memory and back."""
    count, size = next((pair for pair in bed.sizes if pair[1] == SIZE), bed.sizes[-1])
    blocks = f"{count:,} blocks of {size_text(size)}"
    for down, title in ((True, "to page-locked memory"), (False, "from page-locked memory")):
        for wait, until in ((False, "enqueued"), (True, "there")):
            measure = partial(_calls, bed, count, size, down, wait)
            yield Rows(f"{blocks} {title}, until {until}", "us", measure)


def _calls(bed: Bed, count: int, size: int, down: bool, wait: bool) -> list[dict[str, Any]]:
    """A row for each way, the driver's loop first."""
    import numpy as np

    import hamr

    driver, ours = bed.driver, hamr.Stream(int(bed.stream.value or 0))
    words = 2 * count * size // 4
    memory = hamr.Buffer(words, "i4", "cuda", fill=1, stream=ours)
    pinned = hamr.Buffer(words, "i4", "cuda_host", fill=1, stream=ours)
    driver.synchronize()
    device = Side(Pool(memory, driver), device=0)
    host = Side(Pool(np.asarray(pinned)), pinned)
    ends = (host, device) if down else (device, host)
    scattered = Scattered(count, size, bed.master)
    ways = [*of_driver(bed, scattered, *ends), *of_hamr(scattered, *ends)]
    if wait:
        ways.append(limit_of(bed, scattered, *ends))
    begin = long_work(driver, bed.stream, BUSY) if not wait else _nothing
    for way in ways:
        try:
            way.check(scattered, scattered.array.nbytes, driver.synchronize)
        except Exception as error:
            way.error = f"{type(error).__name__}: {error}"[:200]
    working = [way for way in ways if way.error is None]
    for _ in range(bed.lib.settings.rounds):
        for way in working:
            way.seconds.append(_call(way, begin, driver.synchronize, wait))
    limits = {} if wait else {"hamr": BY_ARRAYS, "hamr: lists": BY_LISTS}
    return [_row(way, ways[0], limits) for way in ways]


def _call(
    way: BlockWay, begin: Callable[[], None], synchronize: Callable[[], None], wait: bool
) -> float:
    """The mean seconds of a call."""
    seconds = 0.0
    for _ in range(CALLS):
        synchronize()
        begin()
        start = time.perf_counter()
        way.run()
        if wait:
            synchronize()
        seconds += time.perf_counter() - start
    synchronize()
    return seconds / CALLS


def _row(way: BlockWay, first: BlockWay, limits: dict[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"operation": f"{way.library.partition(':')[0]}: {way.operation}"}
    if way.error is not None:
        return {**row, "error": way.error}
    row["value"] = round(statistics.median(way.seconds) * 1e6, 3)
    if first.error is None:
        ratios = [mine / least for mine, least in zip(way.seconds, first.seconds, strict=True)]
        row["ratio"] = round(statistics.median(ratios), 3)
    if way.library in limits:
        row["limit"] = limits[way.library]
        row["met"] = row["value"] <= row["limit"]
    return row


def _nothing() -> None:
    """No work."""


def beside(lib: Libraries) -> Iterator[Rows]:
    """How much slower products are beside copies, and at what rate these go on.

    Whoever reads the setting does so once, so each one is measured in a process of its own;
    the processes take turns.
    """
    if not lib.torch:
        reason = lib.absent.get("torch", "not loaded")
        row = {"operation": "hamr.copy_blocks", "error": f"this needs torch: {reason}"}
        yield Rows(f"{TITLE}, slower by", "%", lambda: [row])
        return
    taken: list[dict[str, list[_Found]]] = []

    def measure() -> list[dict[str, Any]]:
        taken.append(_in_turns(lib))
        rows = [_beside_row(name, found, "slower") for name, found in taken[0].items()]
        for row in rows:
            if " default, " in row["operation"] and "value" in row:
                row["limit"], row["met"] = SLOWER, row["value"] <= SLOWER
        return rows

    def rates() -> list[dict[str, Any]]:
        return [_beside_row(name, found, "GBps") for name, found in taken[0].items()]

    yield Rows(f"{TITLE}, slower by", "%", measure)
    yield Rows(f"{TITLE}, the blocks", "GB/s", rates)


_Found = dict[str, Any]


def _beside_row(operation: str, found: list[_Found], figure: str) -> dict[str, Any]:
    """The median of the turns, or the first error."""
    errors = [one["error"] for one in found if "error" in one]
    if errors:
        return {"operation": operation, "error": errors[0]}
    value = statistics.median(one[figure] for one in found)
    return {"operation": operation, "value": round(value, 3)}


def _in_turns(lib: Libraries) -> dict[str, list[_Found]]:
    """For each way of copying and each direction, what was found in each turn."""
    settings: dict[str, dict[str, str]] = {"default": {}}
    grids = () if lib.settings.quick else GRIDS
    settings.update({f"{GRID}={n}": {GRID: n} for n in grids})
    children = {
        name: Child.of("blocks_beside.child", sockets=(), **more) for name, more in settings.items()
    }
    found: dict[str, list[_Found]] = {}
    try:
        for child in children.values():
            child.line()
        for _ in range(TURNS):
            for direction in ("down", "up"):
                for name, child in children.items():
                    wanted = {f"hamr.copy_blocks, {name}": "blocks"}
                    if name == "default":
                        wanted = {ONE_COPY: "one", BATCH: "batch", **wanted}
                    for operation, way in wanted.items():
                        child.tell(f"{way} {direction}")
                        got = json.loads(child.line())
                        found.setdefault(f"{operation}, {direction}", []).append(got)
    finally:
        for child in children.values():
            child.end()
    return found


def child() -> None:
    """Answer for each line, which has a way and a direction, how products fare beside copies."""
    copies = Copies()
    answer("ready")
    for line in told():
        way, direction = line.split()
        try:
            found: _Found = copies.measure(way, direction == "down")
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        answer(json.dumps(found))


class Copies:
    """Copies on one stream, products on another."""

    def __init__(self) -> None:
        from importlib import import_module

        import numpy as np

        import hamr

        self._torch = torch = import_module("torch")
        self._products, self._copies = torch.cuda.Stream(), torch.cuda.Stream()
        self._factors = [
            torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(3)
        ]
        self._ours = hamr.Stream(self._copies.cuda_stream)
        shape = 2 * BLOCKS, SIZE // 4
        self._device = hamr.Buffer(shape, "i4", "cuda", fill=1, stream=self._ours)
        self._pinned = hamr.Buffer(shape, "i4", "cuda_host", fill=1, stream=self._ours)
        chance = np.random.default_rng(1)
        indices = [chance.permutation(2 * BLOCKS)[:BLOCKS] for _ in range(2)]
        self._to, self._of = (hamr.array(i, device="cuda") for i in indices)
        self._indices = [i.tolist() for i in indices]
        self._batches: dict[bool, Callable[[], None]] = {}
        self._there = torch.ones(BLOCKS * SIZE, dtype=torch.uint8, device="cuda")
        self._here = torch.ones(BLOCKS * SIZE, dtype=torch.uint8, pin_memory=True)
        torch.cuda.synchronize()
        for _ in range(3):
            self._multiply()

    def measure(self, way: str, down: bool) -> dict[str, float]:
        """How much slower the products were, and at what rate blocks were copied meanwhile."""
        ways = {"one": self._one, "batch": self._batch, "blocks": self._blocks}
        copy, wait = partial(ways[way], down), self._torch.cuda.synchronize
        copy()
        self._multiply()  # so that those that are timed find the processors as busy as each other
        start, stop = self._multiply()
        wait()
        alone = start.elapsed_time(stop)
        start, stop = self._multiply()
        done: list[Any] = []
        while not stop.query():
            if len(done) >= IN_FLIGHT:
                done[-IN_FLIGHT].synchronize()
            copy()
            done.append(self._event(self._copies))
        wait()
        took = start.elapsed_time(stop)
        meanwhile = [at for event in done if (at := start.elapsed_time(event)) <= took]
        if len(meanwhile) < 2:
            raise RuntimeError("no two copies ended while the products went on")
        seconds = (meanwhile[-1] - meanwhile[0]) / 1e3
        rate = (len(meanwhile) - 1) * BLOCKS * SIZE / seconds / 1e9
        return {"slower": (took / alone - 1) * 100, "GBps": rate}

    def _event(self, stream: Any) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record(stream)
        return event

    def _multiply(self) -> tuple[Any, Any]:
        """Enqueue the products; the events before and behind them."""
        a, b, c = self._factors
        with self._torch.cuda.stream(self._products):
            start = self._event(self._products)
            for _ in range(PRODUCTS):
                self._torch.mm(a, b, out=c)
            return start, self._event(self._products)

    def _one(self, down: bool) -> None:
        to, of = (self._here, self._there) if down else (self._there, self._here)
        with self._torch.cuda.stream(self._copies):
            to.copy_(of, non_blocking=True)

    def _batch(self, down: bool) -> None:
        if down not in self._batches:
            ends = self._pinned.ptr, self._device.ptr
            to, of = ends if down else ends[::-1]
            pairs = [(to + i * SIZE, of + j * SIZE) for i, j in zip(*self._indices, strict=True)]
            stream = ctypes.c_void_p(self._copies.cuda_stream)
            self._batches[down] = batch_of(Driver(), pairs, SIZE, stream)
        self._batches[down]()

    def _blocks(self, down: bool) -> None:
        import hamr

        to, of = (self._pinned, self._device) if down else (self._device, self._pinned)
        hamr.copy_blocks(to, self._to, of, self._of, stream=self._ours, transfer="async")
