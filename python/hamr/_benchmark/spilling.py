"""What it costs a store to write a GPU's object to a file for lack of room, and bring it back."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .children import serving
from .groups import MIB, Libraries
from .share import FILL

BACK = "hamr: client.get(id), which is spilled, and another goes"
#: The same bytes by a library that does nothing else.
PEER = "CuPy: cp.asnumpy, tofile, fromfile, cp.asarray"


def rows(lib: Libraries, nbytes: int, rounds: int) -> list[dict[str, Any]]:
    """Medians in microseconds, with a server of another process that has room for one object."""
    with tempfile.TemporaryDirectory() as folder:
        ours = _ours(nbytes, rounds, os.path.join(folder, "spilled"))
        ways = {name: statistics.median(took) for name, took in ours.items()}
        if lib.cupy:
            ways[PEER] = statistics.median(_peer(lib.cupy, nbytes, rounds, folder))
    floor = ways.get(PEER)
    found: list[dict[str, Any]] = []
    for name, value in ways.items():
        row: dict[str, Any] = {"operation": name, "value": round(value * 1e6, 3)}
        if floor and name == BACK:
            row["ratio"] = round(value / floor, 3)
        found.append(row)
    return found


def _ours(nbytes: int, rounds: int, folder: str) -> dict[str, list[float]]:
    from hamr.store import connect

    there: list[float] = []
    back: list[float] = []
    limit = -(-nbytes // (2 * MIB)) * 2 * MIB
    spill = "--limit", f"host={MIB},gpu={limit}", "--spill", folder, "--spill-devices"
    with serving(MIB, 0, *spill) as path, connect(path) as client:
        ids = []
        for _ in range(2):
            builder = client.create(nbytes, "u1", device=0)
            builder.buffer.fill(FILL)
            ids.append(builder.seal())
            del builder
        for n in range(rounds + 1):
            for id in ids:
                back.append(_got(lambda id=id: client.get(id)))  # type: ignore[misc]
                there.append(_got(lambda id=id: client.get(id)))  # type: ignore[misc]
            if n == 0:  # the first ones make a context
                back.clear()
                there.clear()
        spills = client.statistics()["spills"]
    if spills < 2 * rounds:
        raise RuntimeError(f"{spills} objects were spilled, of {2 * rounds}")
    return {
        BACK: back,
        "hamr: client.get(id), which is on the device": there,
    }


def _got(get: Callable[[], Any]) -> float:
    start = time.perf_counter()
    found = get()
    took = time.perf_counter() - start
    if not (found.get() == FILL).all():
        raise RuntimeError("wrong bytes")
    del found
    time.sleep(0.01)  # the lease has ended
    return took


def _peer(cupy: Any, nbytes: int, rounds: int, folder: str) -> list[float]:
    import numpy as np

    took = []
    going, coming = os.path.join(folder, "going"), os.path.join(folder, "coming")
    array = cupy.full(nbytes, FILL, "u1")
    cupy.asnumpy(array).tofile(coming)
    for _ in range(rounds + 1):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        cupy.asnumpy(array).tofile(going)
        array = cupy.asarray(np.fromfile(coming, "u1"))
        cupy.cuda.Device().synchronize()
        took.append(time.perf_counter() - start)
        going, coming = coming, going
    return took[1:]
