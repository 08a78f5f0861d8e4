"""Timing operations side by side, with the array libraries that are there."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SLICE = 0.015  # seconds that a round spends on one operation


class Settings:
    """What is asked of a run: how often, up to which size, and how thoroughly."""

    def __init__(
        self,
        rounds: int = 9,
        largest: int = GIB,
        quick: bool = False,
        sizes: tuple[int, ...] | None = None,
    ) -> None:
        self.rounds, self.largest, self.quick = min(rounds, 3) if quick else rounds, largest, quick
        self._sizes = sizes

    def sizes(self) -> list[int]:
        """The sizes of copies in bytes: powers of 4 from 1 KiB, and 512 MiB, up to the largest."""
        if self._sizes is not None:
            return list(self._sizes)
        steps = [KIB << 2 * i for i in range(11)]
        return sorted(n for n in {*steps, 512 * MIB} if n <= self.largest)


def size_text(nbytes: int) -> str:
    """A size in words: 4 KiB, 1 GiB."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"


class Case:
    """An operation: how it is called, and what it must reach.

    ``target`` bounds the ratio to the floor, ``limit`` the value itself; both from
    above for times, from below for rates. A call does the operation ``times`` times. ``prepare`` is
    called before each one that is measured, which is then a single call.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], Any],
        *,
        floor: bool = False,
        target: float | None = None,
        limit: float | None = None,
        times: int = 1,
        prepare: Callable[[], Any] | None = None,
    ) -> None:
        self.name, self.run, self.times, self.prepare = name, run, times, prepare
        self.floor, self.target, self.limit = floor, target, limit
        self.calls = 1
        self.values: list[float] = []
        self.error: str | None = None


class Group:
    """Operations that do the same. The fastest of the floors is the floor."""

    key = "groups"

    def __init__(self, title: str, cases: list[Case], nbytes: int = 0, rounds: int = 9) -> None:
        self.title, self.cases, self.nbytes, self.rounds = title, cases, nbytes, rounds
        self.unit = "GB/s" if nbytes else "us"

    def measure(
        self, synchronize: Callable[[], None], settings: Settings | None = None
    ) -> dict[str, Any]:
        """Time all cases; one that fails is recorded with its error."""
        rounds = min(self.rounds, settings.rounds) if settings else self.rounds
        for case in self.cases:
            try:
                self._calibrate(case, synchronize)
            except Exception as error:
                case.error = f"{type(error).__name__}: {error}"[:200]
        working = [case for case in self.cases if case.error is None]
        gc.collect()
        gc.disable()
        try:
            for _ in range(rounds):
                for case in working:
                    case.values.append(self._time(case, synchronize))
        finally:
            gc.enable()
        return self._result(working)

    def _calibrate(self, case: Case, synchronize: Callable[[], None]) -> None:
        """Find how many calls make a slice: the first ones take longer than most."""
        if case.prepare is not None:
            case.prepare()
        case.run()
        if case.prepare is not None:
            return
        while True:
            synchronize()
            start = time.perf_counter()
            for _ in range(case.calls):
                case.run()
            synchronize()
            took = time.perf_counter() - start
            if took >= SLICE / 4 or case.calls >= 20_000:
                break
            case.calls *= 4
        case.calls = max(1, min(20_000, int(case.calls * SLICE / took)))

    def _time(self, case: Case, synchronize: Callable[[], None]) -> float:
        run, calls = case.run, range(case.calls)
        if case.prepare is not None:
            case.prepare()
        synchronize()
        start = time.perf_counter()
        for _ in calls:
            run()
        synchronize()
        seconds = (time.perf_counter() - start) / (case.calls * case.times)
        return self.nbytes / seconds / 1e9 if self.nbytes else seconds * 1e6

    def clear(self) -> None:
        """Let go of what the operations hold."""
        self.cases.clear()

    def _result(self, working: list[Case]) -> dict[str, Any]:
        best = max if self.nbytes else min
        floors = [case for case in working if case.floor]
        floor = best(floors, key=lambda c: statistics.median(c.values)) if floors else None
        rows = [self._row(case, floor) for case in self.cases]
        return {
            "group": self.title,
            "unit": self.unit,
            "floor": floor.name if floor else None,
            "rows": rows,
        }

    def _row(self, case: Case, floor: Case | None) -> dict[str, Any]:
        row: dict[str, Any] = {"operation": case.name}
        if case.error is not None:
            return {**row, "error": case.error}
        row["value"] = round(statistics.median(case.values), 3)
        if floor is not None:
            ratios = [v / f for v, f in zip(case.values, floor.values, strict=True)]
            row["ratio"] = round(statistics.median(ratios), 3)
        met = []
        for key, bound, value in (
            ("target", case.target, row.get("ratio")),
            ("limit", case.limit, row["value"]),
        ):
            if bound is not None and value is not None:
                row[key] = bound
                met.append(value >= bound if self.nbytes else value <= bound)
        if met:
            row["met"] = all(met)
        return row


def rows_of(values: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    """Rows of operations and their values; the ratio of each is to the first one."""
    rows: list[dict[str, Any]] = []
    for operation, value in values:
        row: dict[str, Any] = {"operation": operation, "value": round(value, 3)}
        if rows and rows[0]["value"]:
            row["ratio"] = round(row["value"] / rows[0]["value"], 3)
        rows.append(row)
    return rows


class Rows:
    """A group whose rows a function measures by itself, the first of them the floor.

    A row has ``operation`` and ``value``, or ``error``; ``ratio``, ``target`` and ``limit`` as a
    ``Case`` has them.
    """

    key = "groups"

    def __init__(self, title: str, unit: str, run: Callable[[], list[dict[str, Any]]]) -> None:
        self.title, self.unit, self.run = title, unit, run

    def measure(
        self, synchronize: Callable[[], None], settings: Settings | None = None
    ) -> dict[str, Any]:
        """The rows, as a group."""
        rows = self.run()
        floor = rows[0]["operation"] if rows else None
        return {"group": self.title, "unit": self.unit, "floor": floor, "rows": rows}

    def clear(self) -> None:
        """Nothing is held."""


def group_lines(group: dict[str, Any]) -> list[str]:
    """What Group.measure() returned, as lines of text."""
    lines = [f"{group['group']:56} {group['unit']:>10} {'x floor':>8}"]
    for row in group["rows"]:
        if "error" in row:
            lines.append(f"  {row['operation']:54} {row['error']}")
            continue
        ratio = f"{row['ratio']:8.2f}" if "ratio" in row else " " * 8
        verdict = {True: "  met", False: "  NOT MET", None: ""}[row.get("met")]
        bounds = [f"{k} {row[k]}" for k in ("target", "limit") if k in row]
        lines.append(
            f"  {row['operation']:54} {row['value']:10.3f} {ratio} {' '.join(bounds)}{verdict}"
        )
    return lines


class Libraries:
    """The array libraries that work here; None stands for one that does not."""

    def __init__(self, settings: Settings | None = None, *, load: bool = True) -> None:
        self.settings = settings or Settings()
        self.versions: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.cupy = self._load("cupy", lambda m: m.zeros(1)) if load else None
        self.torch = self._load("torch", lambda m: m.zeros(1, device="cuda")) if load else None
        self.numba = self._load("numba.cuda", lambda m: m.device_array(1)) if load else None
        self.core = self._load("cuda.core", lambda m: m.Device().set_current()) if load else None

    def _load(self, name: str, use: Callable[[Any], Any]) -> Any:
        from importlib import import_module

        try:
            module = import_module(name)
            use(module)
            top = import_module(name if name == "cuda.core" else name.partition(".")[0])
        except Exception as error:
            self.absent[name] = f"{type(error).__name__}: {error}"[:200]
            return None
        self.versions[name] = str(getattr(top, "__version__", "?"))
        return module

    def trim(self) -> None:
        """Give back what the libraries keep, so that the next group has room."""
        import hamr

        gc.collect()
        hamr.trim()
        if self.cupy:
            self.cupy.get_default_memory_pool().free_all_blocks()
        if self.torch:
            self.torch.cuda.empty_cache()
