"""How soon another process has an array of a GPU's memory: by the store, and by others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from . import bare_hand_over, bare_object, hand_over_ways, spilling
from .driver import Driver
from .groups import MIB, Libraries, Rows, size_text
from .hand_over_parts import by_handle, by_store

#: Microseconds from the sender's call to the receiver's array: of memory of a pool, of an object.
LIMITS = {MIB: 60.0, 64 * MIB: 250.0}
#: How many are handed over one right after the other, for which memory is made before.
TOGETHER = 16
_ROUNDS, _QUICK_ROUNDS = 30, 2
_TOGETHER_ROUNDS = 10
_PART_ROUNDS = 100
_SPILL_ROUNDS = 10
#: The least that a hand-over of a pool's memory takes.
BARE = "the driver and one message alone: cuMemPoolExportPointer, sendmsg, cuMemPoolImportPointer"
#: The least that a hand-over of an object of a store takes.
BARE_OBJECT = "the driver and five messages alone: cuMemSetAccess, a server asked twice, cuMemMap"


def hand_over(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """Memory of 1 MiB and 64 MiB, new each time, to a process that waits for it."""
    for nbytes in _sizes(lib):
        title = f"hand {size_text(nbytes)} of CUDA over to another process"
        yield Rows(title, "us", partial(_rows, lib, driver, nbytes, 1))
        yield Rows(
            f"{title}, and at once another", "us", partial(_rows, lib, driver, nbytes, TOGETHER)
        )
    yield from _bare(lib)
    yield from _in_parts(lib, driver)
    for nbytes in _sizes(lib)[-1:]:
        title = f"{size_text(nbytes)} of CUDA, for which a store has no room, to a file and back"
        rounds = _rounds(lib, _SPILL_ROUNDS)
        yield Rows(title, "us", partial(_tried, lib, spilling.rows, lib, nbytes, rounds))


def _bare(lib: Libraries) -> Iterator[Rows]:
    """What the driver and the kernel take by themselves, whoever calls them."""
    nbytes, rounds = min(MIB, lib.settings.largest), _rounds(lib, _PART_ROUNDS)
    title = f"the driver and one message alone, {size_text(nbytes)} of a pool"
    yield Rows(title, "us", partial(_tried, lib, bare_hand_over.rows, nbytes, rounds))
    for nbytes in _sizes(lib):
        title = f"the driver and five messages alone, an object of {size_text(nbytes)}"
        yield Rows(title, "us", partial(_tried, lib, bare_object.rows, nbytes, rounds))


def _sizes(lib: Libraries) -> list[int]:
    return [n for n in LIMITS if n <= lib.settings.largest] or [lib.settings.largest]


def _rounds(lib: Libraries, usual: int) -> int:
    return _QUICK_ROUNDS if lib.settings.quick else usual


def _in_parts(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """The steps of some of it, so that one sees where the time goes."""
    rounds = _rounds(lib, _PART_ROUNDS)
    for nbytes in _sizes(lib):
        size = size_text(nbytes)
        for allocator in ("cuda_async", "cuda"):
            title = f"the steps of a handle of {size} of {allocator}"
            yield Rows(title, "us", partial(_tried, lib, by_handle, nbytes, rounds, allocator))
        title = f"the steps of an object of {size} of the store"
        steps = partial(_tried, lib, by_store, nbytes, rounds, lambda: driver.synchronize())
        yield Rows(title, "us", steps)


def _tried(lib: Libraries, way: Callable[..., Any], *arguments: object) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = way(*arguments)
    except Exception as error:
        rows = [{"operation": "all steps", "error": f"{type(error).__name__}: {error}"[:200]}]
    finally:
        lib.trim()
    return rows


def _rows(lib: Libraries, driver: Driver, nbytes: int, together: int) -> list[dict[str, Any]]:
    rounds = _rounds(lib, _ROUNDS if together == 1 else _TOGETHER_ROUNDS)
    by_cupy = "cp.asarray(client.get(id))" if lib.cupy else "client.get(id)"
    store = partial(hand_over_ways.by_store, bool(lib.cupy))
    ways: list[tuple[str, Callable[..., list[float]]]] = [(f"hamr: seal, pipe, {by_cupy}", store)]
    opened = "cp.asarray(open_shared(socket))" if lib.cupy else "open_shared(socket)"
    pooled = f"hamr: share, send, {opened}, of cuda_async's pool"
    by_handle = hand_over_ways.by_handle
    ways.append((pooled, partial(by_handle, "cuda_async")))
    ways.append((f"hamr: share, send, {opened}, of cuda", partial(by_handle, "cuda")))
    if lib.cupy:
        way: Callable[..., list[float]] = partial(hand_over_ways.by_ipc, lib.cupy)
        ways.append(("CuPy: ipcGetMemHandle, pipe, ipcOpenMemHandle", way))
    if lib.torch:
        way = partial(hand_over_ways.by_queue, lib.torch)
        ways.append(("torch.multiprocessing: queue.put, queue.get", way))
    goal_of = {MIB: pooled, 64 * MIB: ways[0][0]}.get(nbytes)
    ways.append((BARE, hand_over_ways.by_the_driver))
    ways.append((BARE_OBJECT, hand_over_ways.by_the_driver_and_a_server))
    rows: list[dict[str, Any]] = []
    for name, way in ways:
        row: dict[str, Any] = {"operation": name}
        try:
            took = way(driver, nbytes, rounds + 1, together)[together:]  # the first sets things up
        except Exception as error:
            rows.append({**row, "error": f"{type(error).__name__}: {error}"[:200]})
            continue
        finally:
            lib.trim()
        row["value"] = round(statistics.median(took), 3)
        if name == goal_of:
            row |= {"limit": LIMITS[nbytes], "met": row["value"] <= LIMITS[nbytes]}
        elif rows and "value" in rows[0]:
            row["ratio"] = round(row["value"] / rows[0]["value"], 3)
        rows.append(row)
    return rows
