"""Copies in processes of their own: the first one that a process makes, and on fewer cores."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .curves import rounded
from .driver import Driver
from .groups import MIB, Libraries, Settings, size_text

FIRST = "CUDA to new host memory, first call of a process"
FIRST_SIZES = 16 * MIB, 64 * MIB, 512 * MIB
REPEATS = 3
CORES = 1, 2, 4, 8, 16
SCALED = 512 * MIB
SECONDS = 120  # after which a process is ended

_FIRST = "import sys; from hamr._benchmark import processes; processes.child_first(*sys.argv[1:])"
#: The processor is chosen before hamr is imported: it counts the processors once.
_CORES = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
from hamr._benchmark import processes
processes.child_copies(*sys.argv[1:])
"""


def run_child(code: str, *arguments: object) -> Any:
    """What a new process prints, from JSON; a RuntimeError has its last words."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RuntimeError(words)
    return json.loads(done.stdout.splitlines()[-1])


class FirstCall:
    """How long the first copy of a process takes, by each library."""

    key = "points"

    def __init__(self, nbytes: int, operations: dict[str, str], repeats: int) -> None:
        self.nbytes, self.operations, self.repeats = nbytes, operations, repeats
        self.title = f"{FIRST}, {size_text(nbytes)}"

    def measure(self, synchronize: Callable[[], None], settings: Settings) -> dict[str, Any]:
        """A row for each library: the median over processes."""
        rows = [self._row(library, name) for library, name in self.operations.items()]
        head = {"path": FIRST, "direction": "down", "nbytes": self.nbytes}
        return {**head, "rows": rows}

    def _row(self, library: str, operation: str) -> dict[str, Any]:
        role = library if library in ("hamr", "driver") else "peer"
        row: dict[str, Any] = {"library": library, "operation": operation, "role": role}
        repeats = self.repeats if role != "peer" else 1
        try:
            runs = [run_child(_FIRST, library, self.nbytes) for _ in range(repeats)]
        except Exception as error:
            return {**row, "error": f"{type(error).__name__}: {error}"[:200]}
        seconds = statistics.median(runs)
        return {**row, "us": rounded(seconds * 1e6), "GBps": rounded(self.nbytes / seconds / 1e9)}

    def clear(self) -> None:
        """Nothing is held."""


def first_calls(lib: Libraries, driver: Driver) -> Iterator[FirstCall]:
    """To new host memory, in a process that has copied nothing before."""
    sizes = [n for n in FIRST_SIZES if n <= lib.settings.largest] or [lib.settings.largest]
    for nbytes in sizes:
        operations = {"hamr": "buf.get_host_accessible()", "driver": "cuMemcpyDtoH"}
        if nbytes == sizes[-1] and not lib.settings.quick:  # importing them takes seconds
            operations |= {"CuPy": "cp.asnumpy(x)"} if lib.cupy else {}
            operations |= {"PyTorch": "t.cpu()"} if lib.torch else {}
        yield FirstCall(nbytes, operations, 1 if lib.settings.quick else REPEATS)


def child_first(library: str, size: str) -> None:
    """Copy once, compare the bytes, and print the seconds."""
    import numpy as np

    copy = _first_copies()[library](int(size))
    start = time.perf_counter()
    result = copy()
    seconds = time.perf_counter() - start
    array = np.asarray(result)
    if array.nbytes != int(size) or not (array == 7).all():
        raise SystemExit(f"wrong bytes: {library}, {size} bytes")
    print(json.dumps(seconds))


def _first_copies() -> dict[str, Callable[[int], Callable[[], Any]]]:
    from importlib import import_module

    import numpy as np

    import hamr

    from .driver import Driver

    def with_hamr(n: int) -> Callable[[], Any]:
        buf = hamr.Buffer(n, "u1", "cuda", fill=7)
        buf.synchronize()
        return buf.get_host_accessible

    def with_driver(n: int) -> Callable[[], Any]:
        driver, buf = Driver(), hamr.Buffer(n, "u1", "cuda", fill=7)
        buf.synchronize()

        def copy() -> Any:
            out = np.empty(n, "u1")
            driver.call("cuMemcpyDtoH_v2", out.ctypes.data, buf.ptr, n)
            return out

        return copy

    def with_cupy(n: int) -> Callable[[], Any]:
        cp = import_module("cupy")
        x = cp.full(n, 7, "u1")
        cp.cuda.runtime.deviceSynchronize()
        return lambda: cp.asnumpy(x)

    def with_torch(n: int) -> Callable[[], Any]:
        torch = import_module("torch")
        t = torch.full((n,), 7, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        return lambda: t.cpu()

    return {"hamr": with_hamr, "driver": with_driver, "CuPy": with_cupy, "PyTorch": with_torch}


class OnCores:
    """The copies of one size in a process that has so many cores."""

    key = "scaling"

    def __init__(self, cores: int, nbytes: int, rounds: int) -> None:
        self.cores, self.nbytes, self.rounds = cores, nbytes, rounds
        self.title = f"{size_text(nbytes)} on {cores} core{'s' if cores > 1 else ''}"

    def measure(self, synchronize: Callable[[], None], settings: Settings) -> dict[str, Any]:
        """The points that the process measured."""
        return {
            "cores": self.cores,
            "nbytes": self.nbytes,
            "points": run_child(_CORES, self.cores, self.nbytes, self.rounds),
        }

    def clear(self) -> None:
        """Nothing is held."""


def on_cores(lib: Libraries, driver: Driver) -> Iterator[OnCores]:
    """Copies between the device and ordinary memory on 1, 2, 4 … of the cores that there are."""
    nbytes = min(SCALED, lib.settings.largest)
    for cores in CORES:
        if cores <= len(os.sched_getaffinity(0)):
            yield OnCores(cores, nbytes, lib.settings.rounds)


def child_copies(cores: str, size: str, rounds: str) -> None:
    """Print the points of the copies by hamr and the driver."""
    from . import copying
    from .driver import Driver

    driver = Driver()
    lib = Libraries(Settings(int(rounds), int(size), sizes=(int(size),)), load=False)
    points = []
    for paths in (copying.to_host, copying.to_cuda):
        for point in paths(lib, driver):
            points.append(point.measure(driver.synchronize, lib.settings))
            point.clear()
    print(json.dumps(points))
