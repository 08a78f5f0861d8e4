"""Facts about the machine, and about hamr's own memory."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, allocator_from, backend_of
from .._base.library import core
from .pool_limits import pools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NotRequired, TypedDict

    from .pool_limits import Pool

    class Counters(TypedDict):
        """The figures of the memory of a space or an allocator."""

        live: int
        current: int
        peak: int
        made: int
        adopted: int
        kept: int
        reused: int

    class Statistics(TypedDict):
        """What ``stats`` returns."""

        spaces: dict[str, Counters]
        allocators: dict[str, Counters]
        references: int
        pools: dict[str, Pool]

    class BackendFacts(TypedDict):
        """What ``backends`` returns for each backend."""

        available: bool
        reason: NotRequired[str]
        tried: NotRequired[list[str]]
        allocators: list[str]
        devices: list[dict[str, str]]

    class DeviceFacts(TypedDict):
        """What ``devices`` returns for each device, as far as its runtime knows it."""

        backend: str
        device: int
        name: NotRequired[str]
        uuid: NotRequired[str]
        compute_capability: NotRequired[str]
        memory: NotRequired[str]
        multiprocessors: NotRequired[str]
        pci_bus_id: NotRequired[str]
        driver: NotRequired[str]
        platform: NotRequired[str]  # the vendor's OpenCL or SYCL that has the device
        kind: NotRequired[str]  # gpu, accelerator, cpu or other
        runtime: NotRequired[str]  # what SYCL works by: level_zero, opencl, cuda or hip
        version: NotRequired[str]
        shared_memory: NotRequired[str]  # usm, fine, coarse or none
        copy_blocks: NotRequired[str]  # how it crosses CUDA's and HIP's bus
        lacks: NotRequired[str]  # the allocators that the device does not have


_COUNTED = ("live", "current", "peak", "made", "adopted", "kept", "reused")


def backends() -> dict[str, BackendFacts]:
    """For each backend's name: whether it is available, or why not, its allocators and devices."""
    found: dict[str, BackendFacts] = {}
    for name, reason, tried, allocators, available, count in _native.backends():
        row: Any = {"available": available}
        if reason:
            row["reason"] = reason
        if tried:
            row["tried"] = list(tried)
        row["allocators"] = list(allocators)
        row["devices"] = [_native.describe(name, i, False) for i in range(count)]
        found[name] = row
    return found


def devices() -> list[DeviceFacts]:
    """Every device of every available backend."""
    found: list[Any] = [
        {"backend": name, "device": i, **facts}
        for name, row in backends().items()
        for i, facts in enumerate(row["devices"])
    ]
    return found


def stats() -> Statistics:
    """Counters of hamr's memory.

    ``spaces``: for each space the number of live allocations, the bytes in them
    now, the most there ever were, the allocations made, the foreign arrays in use, the
    bytes in temporaries that ``b.cached()`` keeps, and how often one of these was
    handed out again. ``allocators``: the same for each allocator. ``references``: how many
    allocations Python holds. Spaces and allocators that were never used are absent. Memory of C
    programs in the process, by ``hamr.h``, counts like Python's own.

    ``pools``: the figures of each pool, ``pinned``, ``host`` (ordinary memory) and those of
    devices, such as ``cuda:0``: the limit, the bytes in use, the most bytes that were ever taken
    from the system at once (for ``host``: that were kept), the bytes kept, the largest contiguous
    part of them, and how often the pool had the memory that was asked for, and how often not.
    """
    spaces: dict[str, Any] = {}
    rows: dict[str, Any] = {
        allocator_from(number).name: dict(zip(_COUNTED, counts, strict=True))
        for number, *counts in _native.statistics()
    }
    waiting = {allocator_from(number).name: count for number, count in _native.waiting()}
    for allocator, count in waiting.items():  # adopted memory that the core has not seen yet
        row = rows.setdefault(allocator, dict.fromkeys(_COUNTED, 0))
        row["adopted"] += count
    for name, row in rows.items():
        total = spaces.setdefault(backend_of(Allocator[name]), dict.fromkeys(row, 0))
        for key, value in row.items():
            total[key] += value
    return {
        "spaces": spaces,
        "allocators": rows,
        "references": core().LiveReferences() + sum(waiting.values()),
        "pools": pools(),
    }


def reset_peaks() -> None:
    """Set every peak to the present number of bytes."""
    core().ResetPeaks()


def trim() -> None:
    """Release everything that is kept: temporaries of ``b.cached()``, and postponed releases.

    Memory that is kept for reuse returns to the system, and so do streams and events of
    ``hamr.hetero``.
    """
    _native.give_events()
    core().Trim()
