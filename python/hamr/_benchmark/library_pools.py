"""Memory that libraries take from hamr's pool, beside their own, in processes of their own."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from .driver import Driver
from .groups import MIB, Libraries, Rows, size_text
from .processes import run_child

SIZES = 512, MIB, 64 * MIB
TARGET = 1.3  # times its own pool's cost
ROUND = 0.02  # seconds for a way, a size and a stream
OWN_STREAM = ", a stream of its own"
#: By library: ways in brackets are measured in one process, by turns.
PROCESSES = {
    "cupy": (("own", "hamr"),),
    "torch": (("own", "region"), ("everywhere",)),
    "numba": (("own",), ("hamr",)),
}
NAMES = {
    ("cupy", "own"): "CuPy's own pool: cupy.cuda.alloc(n)",
    ("cupy", "hamr"): "use_in_cupy()",
    ("torch", "own"): "torch's own pool: torch.empty(n)",
    ("torch", "region"): "use_in_torch(), a region",
    ("torch", "everywhere"): "use_in_torch(everywhere=True)",
    ("numba", "own"): "Numba's own: numba.cuda.device_array(n)",
    ("numba", "hamr"): "use_in_numba()",
}

_CHILD = "import sys; from hamr._benchmark import library_pools as p; p.child(*sys.argv[1:])"

#: Microseconds of each round, by what is taken and the way.
_Found = dict[str, dict[str, list[float]]]


def items(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """A group for each library that is there, size and kind of stream."""
    rounds = max(3, lib.settings.rounds)
    sizes = [n for n in SIZES if n <= lib.settings.largest]
    for library, there in (("cupy", lib.cupy), ("torch", lib.torch), ("numba", lib.numba)):
        if there:
            lib.trim()
            measured = _Measured(library, sizes, rounds)
            for key in measured.what():
                yield Rows(f"take and give back {key}", "us", measured.rows_of(key))


class _Measured:
    """What the processes of a library say: each measures all sizes."""

    def __init__(self, library: str, sizes: list[int], rounds: int) -> None:
        self.library, self.sizes, self.rounds = library, sizes, rounds
        self.found: _Found = {}
        self.failed: dict[str, str] = {}

    def what(self) -> list[str]:
        """What each of them measures."""
        streams = [""] if self.library == "numba" else ["", OWN_STREAM]
        return [f"{size_text(n)}{stream}" for n in self.sizes for stream in streams]

    def _run(self) -> None:
        for ways in PROCESSES[self.library]:
            if not sys.stderr.isatty():  # where nothing else tells how far it is
                print(f"{self.library}: {', '.join(ways)}", file=sys.stderr, flush=True)
            arguments = self.library, ",".join(ways), json.dumps(self.sizes), self.rounds
            try:
                got: _Found = run_child(_CHILD, *arguments)
            except Exception as error:
                self.failed.update(dict.fromkeys(ways, f"{type(error).__name__}: {error}"[:200]))
                continue
            for key, by_way in got.items():
                self.found.setdefault(key, {}).update(by_way)

    def rows_of(self, key: str) -> Callable[[], list[dict[str, Any]]]:
        """The rows of a group, when they are asked for."""

        def rows() -> list[dict[str, Any]]:
            if not (self.found or self.failed):
                self._run()
            ways = [way for process in PROCESSES[self.library] for way in process]
            return [self._row(key, way) for way in ways]

        return rows

    def _row(self, key: str, way: str) -> dict[str, Any]:
        name = NAMES[self.library, way]
        if way in self.failed:
            return {"operation": name, "error": self.failed[way]}
        values, own = self.found[key][way], self.found[key].get("own")
        row: dict[str, Any] = {"operation": name, "value": round(statistics.median(values), 3)}
        if own:
            ratio = statistics.median(v / o for v, o in zip(values, own, strict=True))
            row["ratio"] = round(ratio, 3)
            if way != "own":
                row.update(target=TARGET, met=ratio <= TARGET)
        return row


def child(library: str, ways: str, sizes: str, rounds: str) -> None:
    """Print how many microseconds it takes to take memory and give it back, by turns."""
    made = {"cupy": _cupy, "torch": _torch, "numba": _numba}[library](ways.split(","))
    found: _Found = {}
    for n in json.loads(sizes):
        for stream, name in ((None, ""), (made.stream, OWN_STREAM)):
            if name and stream is None:
                continue
            of = found[f"{size_text(n)}{name}"] = {way: [] for way in made.ways}
            for _ in range(int(rounds)):
                for way, entered in made.ways.items():
                    with entered():
                        if stream is None:
                            of[way].append(_time(made.take, n, made.synchronize))
                            continue
                        with stream:
                            of[way].append(_time(made.take, n, made.synchronize))
    print(json.dumps(found), flush=True)


def _time(take: Callable[[int], Any], n: int, synchronize: Callable[[], None]) -> float:
    """Microseconds of a pair of calls."""
    take(n)
    calls, took = 1, 0.0
    while True:
        synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            take(n)
        took = time.perf_counter() - start
        if took >= ROUND / 2:
            return took / calls * 1e6
        calls *= 2


class _Made:
    """How a library takes memory: ``ways`` are what is entered around it."""

    def __init__(
        self,
        take: Callable[[int], Any],
        synchronize: Callable[[], None],
        ways: dict[str, Callable[[], AbstractContextManager[Any]]],
        stream: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.take, self.synchronize, self.ways, self.stream = take, synchronize, ways, stream


def _cupy(ways: list[str]) -> _Made:
    from contextlib import nullcontext

    from .. import allocators

    cupy: Any = import_module("cupy")
    cupy.zeros(1)
    return _Made(
        cupy.cuda.alloc,
        cupy.cuda.Device().synchronize,
        {"own": nullcontext, "hamr": allocators.use_in_cupy},
        cupy.cuda.Stream(non_blocking=True),
    )


def _torch(ways: list[str]) -> _Made:
    from contextlib import nullcontext

    from .. import allocators

    if "everywhere" in ways:
        allocators.use_in_torch(everywhere=True)
    torch: Any = import_module("torch")
    empty, kind = torch.empty, torch.uint8
    torch.zeros(1, device="cuda")

    def take(n: int) -> None:
        empty(n, dtype=kind, device="cuda")

    def region() -> AbstractContextManager[Any]:
        use: Any = allocators.use_in_torch()
        return use  # type: ignore[no-any-return]

    chosen: dict[str, Callable[[], AbstractContextManager[Any]]] = dict.fromkeys(ways, nullcontext)
    if "region" in ways:
        chosen["region"] = region
    return _Made(take, torch.cuda.synchronize, chosen, torch.cuda.stream(torch.cuda.Stream()))


def _numba(ways: list[str]) -> _Made:
    from contextlib import nullcontext

    from .. import allocators

    if "hamr" in ways:
        allocators.use_in_numba()
    cuda: Any = import_module("numba.cuda")

    def take(n: int) -> None:
        cuda.device_array(n, "u1")

    return _Made(take, cuda.synchronize, dict.fromkeys(ways, nullcontext))
