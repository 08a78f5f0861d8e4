"""``hamr bench``: what operations cost, beside the least they could.

Each round times the floor and every operation one after the other; the ratio to
the floor is taken within the round, and the median over the rounds is reported.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from typing import Any

from .driver import Driver
from .groups import Libraries, Settings

FLOOR = "numpy.asarray(minimal object)"
COUNT = 256  # float32 elements: 1 KiB


def operations() -> dict[str, Callable[[], Any]]:
    """What is timed, floor first."""
    import numpy as np

    import hamr

    from .._base.library import load

    array = np.ones(COUNT, "float32")

    class Minimal:
        __array_interface__ = array.__array_interface__

    minimal, malloc = Minimal(), hamr.Allocator.malloc
    own = hamr.Buffer(COUNT, "float32", malloc, fill=1.0)
    shared = hamr.buffer(array)
    target = np.empty(COUNT, "float32")
    raw = load()
    return {
        FLOOR: lambda: np.asarray(minimal),
        "numpy.asarray(buf.get_host_accessible())": lambda: np.asarray(own.get_host_accessible()),
        "numpy.asarray(buf)": lambda: np.asarray(own),
        "hamr.buffer(ndarray)": lambda: hamr.buffer(array),
        "hamr.buffer(minimal object)": lambda: hamr.buffer(minimal),
        "create, fill, free 1 KiB (buffer_float)": lambda: hamr.buffer_float(malloc, COUNT, 1.0),
        "create, fill, free 1 KiB (Buffer)": lambda: hamr.Buffer(
            COUNT, "float32", malloc, fill=1.0
        ),
        "numpy.full(256, 1.0)": lambda: np.full(COUNT, 1.0, "float32"),
        "get_host_accessible()": own.get_host_accessible,
        "buf.__array_interface__": lambda: own.__array_interface__,
        "ndarray.__array_interface__": lambda: array.__array_interface__,
        "buf[2:5]": lambda: own[2:5],
        "buf.fill(2.0)": lambda: own.fill(2.0),
        "buf[...] = ndarray": lambda: own.__setitem__(..., array),
        "buf.copy()": own.copy,
        "buf.astype('float64')": lambda: own.astype("float64"),
        "buf.get(out)": lambda: shared.get(target),
        "bare gopy call, no argument": raw.Table,
        "bare gopy call, one argument": lambda: raw.FreeFunction(1),
    }


def measure(rounds: int = 9, calls: int = 20_000) -> list[dict[str, Any]]:
    """A row for each operation: nanoseconds and the ratio to the floor."""
    functions = operations()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for f in functions.values():
        f()
    for _ in range(rounds):
        for name, f in functions.items():
            times[name].append(timeit.timeit(f, number=calls) / calls * 1e9)
    return [
        {
            "operation": name,
            "ns": round(statistics.median(values), 1),
            "ratio": round(
                statistics.median(v / f for v, f in zip(values, times[FLOOR], strict=True)), 3
            ),
        }
        for name, values in times.items()
    ]


def measure_dlpack(rounds: int = 9) -> list[dict[str, Any]]:
    """Handing over by DLPack: groups of operations, each with a floor of its own."""
    from .dlpack import host_groups

    measured = []
    for group in host_groups():
        group.rounds = rounds
        measured.append(group.measure(lambda: None))
    return measured


def measure_threads(rounds: int = 5, pairs: int = 40_000) -> dict[str, Any]:
    """Creating and freeing on one and on eight threads: nanoseconds a pair."""
    import hamr

    def work(n: int) -> None:
        for _ in range(n):
            hamr.buffer_float(hamr.Allocator.malloc, COUNT, 1.0)

    def run(count: int) -> float:
        threads = [threading.Thread(target=work, args=(pairs // count,)) for _ in range(count)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return (time.perf_counter() - start) / pairs * 1e9

    one, eight = zip(*((run(1), run(8)) for _ in range(rounds)), strict=True)
    return {
        "one_thread_ns": round(statistics.median(one), 1),
        "eight_threads_ns": round(statistics.median(eight), 1),
        "ratio": round(statistics.median(e / o for o, e in zip(one, eight, strict=True)), 3),
    }


_IMPORT = """
import resource, sys, time
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
before, start = resident(), time.perf_counter()
import hamr
imported, after = time.perf_counter(), resident()
hamr.Buffer(1, "float32")
used, end = time.perf_counter(), resident()
print((imported - start) * 1e3, (after - before) / 2**20)
print((used - imported) * 1e3, (end - after) / 2**20)
"""
_CTYPES = """
import time
start = time.perf_counter()
import ctypes
print((time.perf_counter() - start) * 1e3)
"""


def measure_import(rounds: int = 9) -> dict[str, float]:
    """What import and first use take, each in a fresh interpreter, beside `import ctypes`."""
    names = ("import_ms", "import_MiB", "first_buffer_ms", "first_buffer_MiB", "ctypes_ms")
    runs = [[*_printed(_IMPORT), *_printed(_CTYPES)] for _ in range(rounds)]
    cost = {
        name: round(statistics.median(column), 2)
        for name, column in zip(names, zip(*runs, strict=True), strict=True)
    }
    return cost | {"ratio_to_ctypes": round(statistics.median(r[0] / r[-1] for r in runs), 3)}


def _printed(code: str) -> list[float]:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(x) for x in done.stdout.split()]


def machine() -> dict[str, Any]:
    """Where and with what the figures were measured."""
    import numpy as np

    import hamr

    from .._base.library import core

    model = platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "date": time.strftime("%Y-%m-%d"),
        "hamr": hamr.__version__,
        "commit": _commit(),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "go": core().GoVersion(),
    }


def _commit() -> str | None:
    """HAMR_COMMIT, for machines that have the wheel alone, else what git says."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        found = ""
    return os.environ.get("HAMR_COMMIT") or found.strip() or None


class Whole:
    """Something that is measured at once, and has a key of the record to itself."""

    def __init__(self, key: str, title: str, run: Callable[[int], Any]) -> None:
        self.key, self.title, self.run = key, title, run

    def measure(self, synchronize: Callable[[], None], settings: Settings) -> Any:
        """What was measured, as JSON has it."""
        return self.run(settings.rounds)

    def clear(self) -> None:
        """Nothing is held."""


def items(lib: Libraries, driver: Driver | None) -> Iterator[Whole]:
    """All of this file."""
    yield Whole("operations", "operations on the host", measure)
    yield Whole("dlpack", "handing over by DLPack on the host", measure_dlpack)
    yield Whole("threads", "creating and freeing on threads", lambda n: measure_threads(min(n, 5)))
    yield Whole("import", "import and first use", measure_import)
