"""The contents of a snapshot of memory."""

from __future__ import annotations

import os
import time

from .._base.allocator import Allocator, backend_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from .._base.held_memory import Held

    class Frame(TypedDict):
        """A line of Python code in the stack of an allocation."""

        filename: str
        name: str
        line: int

    class Allocation(TypedDict):
        """Memory that is in use. None stands for what was not recorded."""

        library: str
        allocator: str
        device: int
        address: int
        size: int
        stream: int
        thread: int | None
        thread_name: str | None
        time: float | None
        stack: list[Frame]

    class MemoryEvent(Allocation):
        """Something that was done with memory: "alloc", "free" or "grow"."""

        action: str

    class Segment(TypedDict):
        """Memory that a pool has from a driver; each block is (address, bytes, whether lent)."""

        allocator: str
        device: int
        address: int
        size: int
        blocks: list[tuple[int, int, bool]]


def place_of(allocator: str, device: int) -> str:
    """A device's name, such as "cuda:0", or "host"."""
    return "host" if device < 0 else f"{backend_of(Allocator[allocator])}:{device}"


class Contents:
    """The contents of a ``MemorySnapshot``, described there."""

    def __init__(
        self,
        allocations: list[Allocation],
        events: list[MemoryEvent],
        segments: list[Segment],
        devices: dict[str, Held],
        dropped: int,
    ) -> None:
        self.allocations = allocations
        self.events = events
        self.segments = segments
        self.devices = devices
        self.dropped = dropped
        self.time = time.time()
        self.pid = os.getpid()

    def by_library(self) -> dict[str, dict[str, int]]:
        """The bytes in use, by library and then by device, such as "cuda:0", or "host"."""
        found: dict[str, dict[str, int]] = {}
        for a in self.allocations:
            place = place_of(a["allocator"], a["device"])
            sizes = found.setdefault(a["library"], {})
            sizes[place] = sizes.get(place, 0) + a["size"]
        return found

    def plain(self) -> dict[str, Any]:
        """All of it as dicts and lists, for JSON."""
        names = ("allocations", "events", "segments", "devices", "dropped", "time", "pid")
        return {name: getattr(self, name) for name in names}
