"""Which memory is in use, and whose it is: ``memory_snapshot``."""

from __future__ import annotations

import json
import os
import pickle
import threading

import hamr._native as _native

from .._base.allocator import Allocator, backend_of
from .._base.held_memory import held, text_of
from .._base.written_files import replace_file
from .contents import Contents, place_of
from .memory_page import page
from .torch_format import to_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .._base.held_memory import Held
    from .contents import Allocation, Frame, Segment

_ACTIONS = ("alloc", "free", "grow")
FORMATS = (".json", ".pickle", ".html")


class MemorySnapshot(Contents):
    """What ``memory_snapshot`` returns. All sizes are bytes.

    ``allocations``: memory in use, each with ``library``, ``allocator``, ``device`` (-1 is the
    host), ``address``, ``size`` and ``stream``. Allocations from while memory was recorded also
    have ``thread`` (the system's number), ``thread_name`` and ``time`` (seconds since 1970), else
    None, and ``stack``, the innermost frame first. ``events``: what was recorded, the oldest first;
    ``dropped``: how many earlier events were dropped. ``segments``: how pools have divided their
    memory. ``devices``: by name, such as "cuda:0", what is ``used`` of the ``total``, by
    ``libraries``, ``kept`` for reuse by hamr, in ``own_pools`` of other libraries, and by
    ``others``. ``time`` and ``pid``.
    """

    def to_torch(self) -> dict[str, Any]:
        """The snapshot in the format of ``torch.cuda.memory._snapshot()``."""
        return to_torch(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file: for ``.html`` a page to look at, else what torch's viewer reads.

        https://pytorch.org/memory_viz opens a ``.pickle``; ``.json`` has the same as text. The file
        is written completely, or the old file stays. ValueError for other names, OSError if it
        cannot be written.
        """
        ending = ending_of(path)
        name = os.fspath(path)
        if ending == ".html":
            content = page(self).encode()
        elif ending == ".json":
            content = json.dumps(self.to_torch()).encode()
        else:
            content = pickle.dumps(self.to_torch(), protocol=4)
        try:
            replace_file(name, content)
        except OSError as error:
            told = f"{error.strerror}: nothing was written"
            raise type(error)(error.errno, told, name) from error

    def summary(self) -> str:
        """A summary as text."""
        lines = []
        for library, places in sorted(self.by_library().items()):
            for place, size in sorted(places.items()):
                count = sum(
                    a["library"] == library and place_of(a["allocator"], a["device"]) == place
                    for a in self.allocations
                )
                lines.append(f"{library:8} {place:10} {text_of(size):>12} in {count} allocations")
        for name, device in sorted(self.devices.items()):
            if device["used"] is None or device["total"] is None or device["others"] is None:
                continue
            lines.append(
                f"{name}: {text_of(device['used'])} of {text_of(device['total'])} used; hamr "
                f"keeps {text_of(device['kept'])} for reuse, others have "
                f"{text_of(device['others'])}"
            )
        return "\n".join(lines) or "no memory in use"

    def __repr__(self) -> str:
        total = sum(a["size"] for a in self.allocations)
        count = len(self.allocations)
        return f"<hamr.MemorySnapshot of {count} allocations, {text_of(total)}>"


def ending_of(name: Any) -> str:
    """The ending of a file's name, which is its format."""
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if not isinstance(name, str):
        raise TypeError(f"path is {name!r}: accepted is a str or an os.PathLike of one")
    ending = os.path.splitext(name)[1].lower()
    if ending not in FORMATS:
        raise ValueError(f"path is {name!r}: accepted are names that end in {', '.join(FORMATS)}")
    return ending


def memory_snapshot() -> MemorySnapshot:
    """The memory that is in use now, and its owners: see ``MemorySnapshot``.

    It lists memory that was taken through hamr. Other libraries' own memory is in the figures of
    ``devices``. Threads, times and stacks are known for memory that was allocated inside
    ``record_memory``.
    """
    rows: dict[str, list[list[Any]]] = {kind: [] for kind in "aedsb"}
    pieces: list[list[tuple[int, int, bool]]] = []  # of each segment
    for kind, *row in _native.memory_snapshot():
        if kind == "b":
            pieces[-1].append((row[0], row[1], row[2]))
        else:
            rows[kind].append(row)
            if kind == "s":
                pieces.append([])
    stacks = stacks_of({row[-1] for row in (*rows["a"], *rows["e"])} - {0})
    threads = {t.native_id: t.name for t in threading.enumerate()}
    allocations = [_allocation(row, stacks, threads) for row in rows["a"]]
    events: list[Any] = [
        {"action": _ACTIONS[action], **_allocation(row, stacks, threads)}
        for action, *row in rows["e"]
    ]
    segments: list[Segment] = []
    for row, blocks in zip(rows["s"], pieces, strict=True):
        allocator, device, address, size = row
        name = Allocator(allocator).name
        segments.append(
            {
                "allocator": name,
                "device": device,
                "address": address,
                "size": size,
                "blocks": blocks,
            }
        )
    [[dropped]] = rows["d"]
    devices = _devices(allocations, segments)
    return MemorySnapshot(allocations, events, segments, devices, dropped)


def _devices(allocations: list[Allocation], segments: list[Segment]) -> dict[str, Held]:
    """The devices whose memory is in use or kept. Other devices are not asked, nor started."""
    used: Iterable[Any] = (*allocations, *segments)
    places = {(backend_of(Allocator[a["allocator"]]), a["device"]) for a in used}
    return {f"{b}:{d}": held(b, d) for b, d in sorted(places) if d >= 0}


def stacks_of(wanted: set[int]) -> dict[int, list[Frame]]:
    """The stacks of some numbers."""
    stacks: dict[int, list[Frame]] = {}
    for parts, number in _native.recorded_stacks().items() if wanted else ():
        if number in wanted:
            stacks[number] = [
                {"filename": code.co_filename, "name": code.co_qualname, "line": line or 0}
                for code, line in zip(parts[::2], parts[1::2], strict=True)
            ]
    return stacks


def _allocation(
    row: list[Any], stacks: dict[int, list[Frame]], threads: dict[int | None, str]
) -> Allocation:
    library, allocator, device, address, size, stream, thread, at, stack = row
    return {
        "library": library,
        "allocator": Allocator(allocator).name,
        "device": device,
        "address": address,
        "size": size,
        "stream": stream,
        "thread": thread or None,
        "thread_name": threads.get(thread),
        "time": at / 1e9 if at else None,
        "stack": stacks.get(stack, []),
    }
