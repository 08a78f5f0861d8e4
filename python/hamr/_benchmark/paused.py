"""How fast memory is paused and resumed, beside copies of as many bytes by the driver alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .driver import Driver
from .groups import GIB, MIB, Libraries, Rows, size_text

#: Of the driver's copy of as many bytes to or from page-locked memory.
TARGET = 0.85
SIZES = 64 * MIB, 8 * GIB
_ROUNDS = 5
_NAME = "hamr bench"


def items(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """Each size, with its contents kept on the host, and with none kept."""
    for nbytes in sorted({min(size, 8 * lib.settings.largest) for size in SIZES}):
        size = size_text(nbytes)
        yield Rows(f"pause and resume {size}, kept", "GB/s", partial(_kept, lib, driver, nbytes))
        yield Rows(f"pause and resume {size}", "us", partial(_not_kept, lib, nbytes))


def _kept(lib: Libraries, driver: Driver, nbytes: int) -> list[dict[str, Any]]:
    import hamr

    memory = _memory(nbytes)
    host = hamr.Buffer(nbytes, "u1", "cuda_host")
    ways: dict[str, Callable[[], Any]] = {
        "driver: copy to page-locked memory": driver.waiting(
            driver.reader(host.ptr, memory.ptr, nbytes)
        ),
        "hamr: pause": lambda: hamr.pause(_NAME, keep="host"),
        "driver: copy from page-locked memory": driver.waiting(
            driver.writer(memory.ptr, host.ptr, nbytes)
        ),
        "hamr: resume": lambda: hamr.resume(_NAME),
    }
    turns = ["driver: copy to page-locked memory", "driver: copy from page-locked memory"]
    turns += ["hamr: pause", "hamr: resume"]
    took = _took(lib, ways, turns)
    rates = {name: nbytes / statistics.median(each) / 1e9 for name, each in took.items()}
    rows: list[dict[str, Any]] = []
    for name in ways:
        row: dict[str, Any] = {"operation": name, "value": round(rates[name], 3)}
        if name.startswith("hamr"):
            row["ratio"] = round(rates[name] / rates[rows[-1]["operation"]], 3)
            row |= {"target": TARGET, "met": row["ratio"] >= TARGET}
        rows.append(row)
    return rows


def _not_kept(lib: Libraries, nbytes: int) -> list[dict[str, Any]]:
    import hamr

    memory = _memory(nbytes)
    ways: dict[str, Callable[[], Any]] = {
        "hamr: pause, nothing is kept": lambda: hamr.pause(_NAME, keep="nothing"),
        "hamr: resume": lambda: hamr.resume(_NAME),
    }
    took = _took(lib, ways, list(ways))
    del memory
    return [
        {"operation": name, "value": round(statistics.median(each) * 1e6, 3)}
        for name, each in took.items()
    ]


def _memory(nbytes: int) -> Any:
    import hamr

    with hamr.pausable(_NAME):
        memory = hamr.Buffer(nbytes, "u1", "cuda_vmm", fill=1)
    memory.synchronize()
    return memory


def _took(
    lib: Libraries, ways: dict[str, Callable[[], Any]], turns: list[str]
) -> dict[str, list[float]]:
    """Seconds of each; the first turn, which gets page-locked memory, is not among them."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(1 + (1 if lib.settings.quick else _ROUNDS)):
        for name in turns:
            start = time.perf_counter()
            ways[name]()
            if n:
                took[name].append(time.perf_counter() - start)
    return took
