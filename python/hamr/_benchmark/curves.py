"""Copies of one size, by every library in turns, each checked before it is timed."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from .groups import KIB, MIB, Settings, size_text

SLICE = 0.004  # seconds that a round spends on one way of copying
BUDGET, QUICK_BUDGET = 0.8, 0.15  # seconds after which a size has no further round
LEAST = 3  # rounds, however long they take
WARM, WARM_SECONDS = 4, 0.1  # copies before them: what is kept for reuse is there then

#: Larger copies are checked in so many parts of so many bytes, smaller ones whole.
WHOLE, PARTS, PART = 64 * MIB, 64, 64 * KIB


class Pattern:
    """Bytes to copy, which are others at each check: what an older copy left is wrong."""

    def __init__(self, nbytes: int) -> None:
        import numpy as np

        # A prime number of bytes, then again: a piece in the wrong place does not fit there.
        block = np.random.default_rng(7).integers(0, 256, min(nbytes, 1_000_003), dtype="u1")
        self.array = np.resize(block, nbytes)
        self.address = self.array.ctypes.data

    def windows(self, nbytes: int) -> list[tuple[int, int]]:
        """The parts of a copy of so many bytes that are checked."""
        if nbytes <= WHOLE:
            return [(0, nbytes)]
        last = nbytes - PART
        return [(start := last * i // (PARTS - 1), start + PART) for i in range(PARTS)]

    def refresh(self, nbytes: int) -> None:
        """Make each checked byte another."""
        for start, stop in self.windows(nbytes):
            self.array[start:stop] += 1


class Way:
    """A way of copying.

    ``give`` brings bytes start ... stop of the pattern to where the copy begins, ``take``
    gets them from where it ends, which may be what ``run`` returned. ``role`` is "hamr",
    "peer", "driver" (its own copy of ordinary memory) or "limit" (of page-locked memory).
    """

    def __init__(
        self,
        library: str,
        operation: str,
        run: Callable[[], Any],
        *,
        give: Callable[[int, int], None] | None = None,
        take: Callable[[Any, int, int], Any],
        role: str = "peer",
    ) -> None:
        self.library, self.operation, self.run, self.role = library, operation, run, role
        self.give, self.take = give, take
        self.calls = 1
        self.seconds: list[float] = []
        self.error: str | None = None

    def check(self, pattern: Pattern, nbytes: int, synchronize: Callable[[], None]) -> None:
        """Copy, and compare the bytes; a RuntimeError says where they are wrong."""
        pattern.refresh(nbytes)
        windows = pattern.windows(nbytes)
        for start, stop in windows if self.give else ():
            assert self.give is not None
            self.give(start, stop)
        result = self.run()
        synchronize()
        for start, stop in windows:
            wrong = (self.take(result, start, stop) != pattern.array[start:stop]).nonzero()[0]
            if len(wrong):
                raise RuntimeError(f"wrong bytes: {len(wrong)} from {start + int(wrong[0])} on")

    def time(self, synchronize: Callable[[], None]) -> float:
        """Seconds that one copy takes."""
        run, calls = self.run, range(self.calls)
        synchronize()
        start = time.perf_counter()
        for _ in calls:
            run()
        synchronize()
        return (time.perf_counter() - start) / self.calls

    def calibrate(self, synchronize: Callable[[], None]) -> None:
        """Find how many calls make a slice."""
        while (took := self.time(synchronize) * self.calls) < SLICE / 4 and self.calls < 10_000:
            self.calls *= 4
        self.calls = max(1, min(10_000, int(self.calls * SLICE / took)))

    def warm(self, synchronize: Callable[[], None]) -> None:
        """Copy some times, or as often as the time allows."""
        start = time.perf_counter()
        for _ in range(WARM):
            if time.perf_counter() - start > WARM_SECONDS:
                break
            self.run()
            synchronize()


class Point:
    """All ways of one path at one size. ``direction`` says whose limit bounds it.

    ``nbytes`` is the size of one of ``count`` pieces that a call copies.
    """

    key = "points"

    def __init__(
        self,
        path: str,
        direction: str,
        pattern: Pattern,
        nbytes: int,
        ways: Sequence[Way],
        count: int = 1,
    ) -> None:
        self.path, self.direction, self.nbytes, self.count = path, direction, nbytes, count
        self.pattern, self.ways = pattern, list(ways)
        self.title = f"{path}, {size_text(nbytes)}"

    def measure(self, synchronize: Callable[[], None], settings: Settings) -> dict[str, Any]:
        """A row for each way; one that fails or copies wrongly has its error and no figure."""
        for way in self.ways:
            try:
                way.check(self.pattern, self.nbytes, synchronize)
                way.warm(synchronize)  # first: what is made once must not count for each call
                way.calibrate(synchronize)
            except Exception as error:
                way.error = f"{type(error).__name__}: {error}"[:200]
        working = [way for way in self.ways if way.error is None]
        self._time(working, synchronize, settings)
        total = self.nbytes * self.count
        return {
            "path": self.path,
            "direction": self.direction,
            "nbytes": self.nbytes,
            **({"count": self.count} if self.count > 1 else {}),
            "rows": [row_of(way, working, total) for way in self.ways],
        }

    def _time(
        self, working: list[Way], synchronize: Callable[[], None], settings: Settings
    ) -> None:
        budget = QUICK_BUDGET if settings.quick else BUDGET
        gc.collect()
        gc.disable()
        try:
            start, rounds = time.perf_counter(), 0
            while rounds < settings.rounds and working:
                if rounds >= LEAST and time.perf_counter() - start > budget:
                    break
                first = rounds % len(working)  # so that none always comes behind the same one
                for way in working[first:] + working[:first]:
                    way.seconds.append(way.time(synchronize))
                rounds += 1
        finally:
            gc.enable()

    def clear(self) -> None:
        """Let go of the memory that the ways hold."""
        self.ways.clear()


def row_of(way: Way, working: list[Way], nbytes: int) -> dict[str, Any]:
    """Medians over the rounds; ratios are taken within a round."""
    row: dict[str, Any] = {"library": way.library, "operation": way.operation, "role": way.role}
    if way.error is not None:
        return {**row, "error": way.error}
    seconds = statistics.median(way.seconds)
    row.update(us=rounded(seconds * 1e6), GBps=rounded(nbytes / seconds / 1e9))
    for role in ("limit", "driver"):
        other = next((w for w in working if w.role == role), None)
        if other is not None:
            ratios = [o / w for w, o in zip(way.seconds, other.seconds, strict=True)]
            row[f"of_{role}"] = round(statistics.median(ratios), 4)
    return row


def rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


FIGURES = "us", "GBps", "of_limit", "of_driver"


def merged(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Curves from points: for each path the sizes, and for each way a figure for each of them.

    ``counts``, where a call copies several pieces of a size, has their number for each of these.

    Where a way has no figure there is None; ``errors`` has the reason, by the size.
    """
    curves: dict[str, dict[str, Any]] = {}
    for point in sorted(points, key=lambda p: int(p["nbytes"])):
        path = point["path"]
        curve = curves.setdefault(
            path, {"path": path, "direction": point["direction"], "nbytes": [], "ways": {}}
        )
        before = len(curve["nbytes"])
        curve["nbytes"].append(point["nbytes"])
        if "count" in point:
            curve.setdefault("counts", []).append(point["count"])
        for row in point["rows"]:
            head = {k: row[k] for k in ("library", "operation", "role")}
            way = curve["ways"].setdefault(row["operation"], head)
            if "error" in row:
                way.setdefault("errors", {})[str(point["nbytes"])] = row["error"]
            for figure in (f for f in FIGURES if f in row):
                way.setdefault(figure, [None] * before).append(row[figure])
        for way in curve["ways"].values():
            for figure in (f for f in FIGURES if f in way):
                way[figure] += [None] * (before + 1 - len(way[figure]))
    order = list(dict.fromkeys(point["path"] for point in points))
    return [{**curves[path], "ways": list(curves[path]["ways"].values())} for path in order]
