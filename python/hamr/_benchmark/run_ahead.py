"""How far a library's loop over what hamr gives out runs ahead of the device.

The library works on a stream of its own, which holds long work first. So whoever waits for the
device in the loop takes as long as that work; else a turn of the loop takes what it costs to
enqueue it.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from .driver import Driver
from .groups import KIB, MIB, Libraries, Rows, size_text
from .waiting import spinner

TURNS = 100
_NO_TIMING = 2
_NOT_SUPPORTED = "CUDA_ERROR_NOT_SUPPORTED"
LONG = 100_000_000  # nanoseconds that the device is busy before a loop's own work


def ahead(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """Enqueue-only time of a turn, beside the library's own array."""
    for nbytes in (64 * KIB, MIB):
        if nbytes > max(lib.settings.largest, 64 * KIB):
            continue
        title = f"a turn of a library's loop on its own stream, until enqueued, {size_text(nbytes)}"
        yield Rows(title, "us", lambda nbytes=nbytes: rows(lib, driver, nbytes))  # type: ignore[misc]


def rows(lib: Libraries, driver: Driver, nbytes: int) -> list[dict[str, Any]]:
    """A row for each loop: first those that do without hamr."""
    stream = driver.stream()
    begin = long_work(driver, stream)
    ways = [*_of_driver(driver, stream, nbytes)]
    if lib.cupy:
        ways += _of_cupy(lib.cupy, stream, nbytes)
    taken: dict[str, list[float]] = {name: [] for name, *_ in ways}
    for _ in range(lib.settings.rounds):
        for name, _, turn in ways:
            taken[name].append(_enqueue(driver, begin, turn))
    found = []
    for name, floor, _ in ways:
        row: dict[str, Any] = {"operation": name, "value": round(statistics.median(taken[name]), 3)}
        ratios = [mine / least for mine, least in zip(taken[name], taken[floor], strict=True)]
        row["ratio"] = round(statistics.median(ratios), 3)
        found.append(row)
    driver.synchronize()
    return found


def long_work(
    driver: Driver, stream: ctypes.c_void_p, nanoseconds: int = LONG
) -> Callable[[], None]:
    """What enqueues long work, of drivers that run kernels."""
    begin = spinner(driver, stream, nanoseconds)
    try:
        begin()
    except RuntimeError as error:
        if _NOT_SUPPORTED not in str(error):
            raise
        return lambda: None
    return begin


def _enqueue(driver: Driver, begin: Callable[[], None], turn: Callable[[], object]) -> float:
    """Microseconds of a turn: the end of the device's work is waited for, but not measured."""
    turn()
    driver.synchronize()
    begin()
    start = time.perf_counter()
    for _ in range(TURNS):
        turn()
    seconds = time.perf_counter() - start
    driver.synchronize()
    return seconds / TURNS * 1e6


_Ways = list[tuple[str, str, "Callable[[], object]"]]


def _of_driver(driver: Driver, stream: ctypes.c_void_p, nbytes: int) -> _Ways:
    """The driver as the library: its own memory, and what hamr gives of a buffer."""
    import numpy as np

    import hamr

    fill, count = driver.library.cuMemsetD32Async, nbytes // 4
    values = np.ones(count, "f4")
    there = hamr.Buffer(count, "f4", "cuda", data=values)
    pinned = hamr.Buffer(count, "f4", "cuda_host", data=values)
    there.synchronize()
    address = there.ptr
    own = "driver: cuMemsetD32Async of its own memory"
    event, library = ctypes.c_void_p(), driver.library
    record, wait = library.cuEventRecord, library.cuStreamWaitEvent
    driver.call("cuEventCreate", ctypes.byref(event), _NO_TIMING)

    def of(buffer: hamr.Buffer) -> Callable[[], object]:
        def turn() -> None:
            h = buffer.get_cuda_accessible()
            named = h.__cuda_array_interface__["stream"]
            if named is not None:
                record(event, ctypes.c_void_p(named))
                wait(stream, event, 0)
            fill(h.ptr, 1, count, stream)

        return turn

    return [
        (own, own, lambda: fill(address, 1, count, stream)),
        ("driver: of h = b.get_cuda_accessible(), in place", own, of(there)),
        ("driver: of h = b.get_cuda_accessible(), a temporary", own, of(pinned)),
    ]


def _of_cupy(cp: Any, stream: ctypes.c_void_p, nbytes: int) -> _Ways:
    """CuPy on the stream: its own arrays, and what hamr gives of a buffer."""
    import numpy as np

    import hamr

    count = nbytes // 4
    external = getattr(cp.cuda.Stream, "from_external", None)  # CuPy 14 takes the stream protocol
    theirs = (
        external(hamr.Stream(stream.value)) if external else cp.cuda.ExternalStream(stream.value)
    )
    values = np.ones(count, "f4")
    there = hamr.Buffer(count, "f4", "cuda", data=values)
    pinned = hamr.Buffer(count, "f4", "cuda_host", data=values)
    there.synchronize()
    locked = np.asarray(pinned.get_host_accessible())
    x, out = cp.ones(count, "f4"), cp.empty(count, "f4")
    in_place, uploaded = "CuPy: cp.add of its own array", "CuPy: cp.add of a new array, uploaded"

    def own() -> None:
        with theirs:
            cp.add(x, 1, out=out)

    def own_uploaded() -> None:
        with theirs:
            new = cp.empty(count, "f4")
            new.set(locked, theirs)
            cp.add(new, 1, out=out)

    def of(buffer: hamr.Buffer) -> Callable[[], object]:
        def turn() -> None:
            with theirs:
                h = buffer.get_cuda_accessible()
                cp.add(cp.asarray(h), 1, out=out)

        return turn

    return [
        (in_place, in_place, own),
        ("CuPy: of h = b.get_cuda_accessible(), in place", in_place, of(there)),
        (uploaded, uploaded, own_uploaded),
        ("CuPy: of h = b.get_cuda_accessible(), a temporary", uploaded, of(pinned)),
    ]
