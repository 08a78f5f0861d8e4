"""Memory that libraries take from hamr's pool, beside their own, in processes of their own."""

from __future__ import annotations

import json
import statistics
import time
from importlib import import_module

from .groups import KIB, MIB, Rows, size_text
from .processes import run_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from .driver import Driver
    from .groups import Libraries

SIZES = 512, 64 * KIB, MIB, 64 * MIB
TARGET = 1.3  # times its own pool's cost
SLICE = 0.2  # seconds for a size and a stream
OWN = "own pool"
#: By library: how memory is taken, what that is called, and whether the target is for it.
WAYS: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "cupy": (
        ("own", f"CuPy: its {OWN}, cupy.cuda.alloc(n)", False),
        ("hamr", "use_in_cupy()", True),
    ),
    "torch": (
        ("own", f"torch: its {OWN}, torch.empty(n)", False),
        ("region", "use_in_torch(), a region", True),
        ("everywhere", "use_in_torch(everywhere=True)", True),
    ),
    "numba": (
        ("own", "Numba: cuMemAlloc, device_array(n)", False),
        ("hamr", "use_in_numba()", True),
    ),
}

_CHILD = "import sys; from hamr._benchmark import library_pools as p; p.child(*sys.argv[1:])"


def items(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """A group for each library that is there, size and kind of stream."""
    rounds = 1 if lib.settings.quick else 3
    sizes = [n for n in SIZES if n <= lib.settings.largest]
    for library, there in (("cupy", lib.cupy), ("torch", lib.torch), ("numba", lib.numba)):
        if there:
            lib.trim()
            measured = _Measured(library, sizes, rounds)
            for key in measured.what():
                yield Rows(f"take and give back {key}", "us", measured.rows_of(key))


class _Measured:
    """What the processes of a library say: they measure all sizes at once, in turns."""

    def __init__(self, library: str, sizes: list[int], rounds: int) -> None:
        self.library, self.sizes, self.rounds = library, sizes, rounds
        self.found: dict[str, list[dict[str, float]]] = {}
        self.failed: dict[str, str] = {}

    def what(self) -> list[str]:
        """What each of them measures."""
        streams = [""] if self.library == "numba" else ["", ", a stream of its own"]
        return [f"{size_text(n)}{stream}" for n in self.sizes for stream in streams]

    def _run(self) -> None:
        if self.found or self.failed:
            return
        for _ in range(self.rounds):
            for way, _, _ in WAYS[self.library]:
                try:
                    got = run_child(_CHILD, self.library, way, json.dumps(self.sizes))
                    self.found.setdefault(way, []).append(got)
                except Exception as error:
                    self.failed[way] = f"{type(error).__name__}: {error}"[:200]

    def rows_of(self, key: str) -> Callable[[], list[dict[str, Any]]]:
        """The rows of a group, when they are asked for."""

        def rows() -> list[dict[str, Any]]:
            self._run()
            return [self._row(key, *way) for way in WAYS[self.library]]

        return rows

    def _row(self, key: str, way: str, name: str, judged: bool) -> dict[str, Any]:
        if way in self.failed:
            return {"operation": name, "error": self.failed[way]}
        values = [each[key] for each in self.found[way]]
        row: dict[str, Any] = {"operation": name, "value": round(statistics.median(values), 3)}
        own = [each[key] for each in self.found.get("own", [])]
        if judged and len(own) == len(values):
            ratio = statistics.median(v / o for v, o in zip(values, own, strict=True))
            row.update(ratio=round(ratio, 3), target=TARGET, met=ratio <= TARGET)
        return row


def child(library: str, way: str, sizes: str) -> None:
    """Print the microseconds that taking memory and giving it back takes, by size and stream."""
    take, own_stream, synchronize = {"cupy": _cupy, "torch": _torch, "numba": _numba}[library](way)
    found = {}
    for n in json.loads(sizes):
        found[size_text(n)] = _time(take, n, synchronize)
        if own_stream is not None:
            with own_stream:
                found[f"{size_text(n)}, a stream of its own"] = _time(take, n, synchronize)
    print(json.dumps(found), flush=True)


def _time(take: Callable[[int], Any], n: int, synchronize: Callable[[], None]) -> float:
    """Microseconds of a pair: the least disturbed of several."""
    calls, best = 1, float("inf")
    for _ in range(3):
        take(n)
    begin = time.perf_counter()
    while time.perf_counter() - begin < SLICE:
        synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            take(n)
        took = time.perf_counter() - start
        if took < SLICE / 20:
            calls *= 2
        else:
            best = min(best, took / calls)
    return best * 1e6


_Taken = tuple["Callable[[int], Any]", "AbstractContextManager[Any] | None", "Callable[[], None]"]


def _cupy(way: str) -> _Taken:
    cupy: Any = import_module("cupy")
    from .. import allocators

    cupy.zeros(1)
    if way == "hamr":
        allocators.use_in_cupy()
    return cupy.cuda.alloc, cupy.cuda.Stream(non_blocking=True), cupy.cuda.Device().synchronize


def _torch(way: str) -> _Taken:
    torch: Any = import_module("torch")
    from .. import allocators

    if way == "everywhere":
        allocators.use_in_torch(everywhere=True)
    torch.zeros(1, device="cuda")
    if way == "region":
        allocators.use_in_torch()
    empty, kind = torch.empty, torch.uint8

    def take(n: int) -> None:
        empty(n, dtype=kind, device="cuda")

    return take, torch.cuda.stream(torch.cuda.Stream()), torch.cuda.synchronize


def _numba(way: str) -> _Taken:
    from .. import allocators

    if way == "hamr":
        allocators.use_in_numba()
    cuda: Any = import_module("numba.cuda")

    def take(n: int) -> None:
        cuda.device_array(n, "u1")

    take(1)
    return take, None, cuda.synchronize
