"""A snapshot as ``torch.cuda.memory._snapshot()`` gives it, for torch's viewer."""

from __future__ import annotations

from .contents import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .contents import Allocation, Contents

_ACTIONS = {"alloc": ("alloc",), "grow": ("alloc",), "free": ("free_requested", "free_completed")}
_SMALL = 1 << 20  # segments up to this size are small to torch


def to_torch(snapshot: Contents) -> dict[str, Any]:
    """All memory of devices and, as the last device, the host's.

    Each segment of a pool is a segment, and so is any other allocation.
    """
    numbers = _numbers(snapshot)
    known = {(a["device"], a["address"]): a for a in snapshot.allocations if a["address"]}
    segments, divided = [], set()
    for segment in snapshot.segments:
        number = numbers[_place(segment)]
        blocks = []
        for address, size, lent in segment["blocks"]:
            holder = known.get((segment["device"], address)) if lent else None
            divided.add((segment["device"], address))
            blocks.append(_block(address, size, lent, holder))
        segments.append(_segment(number, segment["address"], segment["size"], blocks))
    for (device, address), a in known.items():
        if (device, address) in divided or not a["size"]:
            continue
        block = _block(address, a["size"], True, a)
        segments.append(_segment(numbers[_place(a)], address, a["size"], [block]))
    traces: list[list[dict[str, Any]]] = [[] for _ in range(max(numbers.values(), default=-1) + 1)]
    grown: dict[tuple[Any, ...], int] = {}
    for event in snapshot.events:
        if not event["address"]:
            continue
        place = _place(event)
        key, address = (place, event["address"]), event["address"]
        if event["action"] == "grow":  # the viewer needs separate pieces
            address += grown.get(key, 0)
            grown[key] = grown.get(key, 0) + event["size"]
        for action in _ACTIONS[event["action"]]:
            traces[numbers[place]].append(
                {
                    "action": action,
                    "addr": address,
                    "size": event["size"],
                    "stream": event["stream"],
                    "time_us": int((event["time"] or 0) * 1e6),
                    "frames": _frames(event),
                }
            )
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {},
        "external_annotations": [],
    }


def _place(of: Any) -> tuple[str, int]:
    return place_of(of["allocator"], of["device"]), of["device"]


def _numbers(snapshot: Contents) -> dict[tuple[str, int], int]:
    """The number of each device for torch: CUDA's numbers first, then others, the host last."""
    places = {_place(x) for x in (*snapshot.segments, *snapshot.allocations, *snapshot.events)}
    numbers = {place: place[1] for place in places if place[0].startswith("cuda:")}
    for place in sorted(places - set(numbers), key=lambda p: (p[1] < 0, p)):
        numbers[place] = max(numbers.values(), default=-1) + 1
    return numbers


def _frames(of: Allocation | None) -> list[dict[str, Any]]:
    if of is None:
        return []
    frames: list[dict[str, Any]] = [{**frame} for frame in of["stack"]]
    # The viewer groups by frames: the outermost is the library.
    return [*frames, {"filename": of["library"], "name": of["allocator"], "line": 0}]


def _block(address: int, size: int, lent: bool, holder: Allocation | None) -> dict[str, Any]:
    return {
        "address": address,
        "size": size,
        "requested_size": min(holder["size"], size) if holder else (size if lent else 0),
        "state": "active_allocated" if lent else "inactive",
        "frames": _frames(holder),
    }


def _segment(number: int, address: int, size: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    active = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    return {
        "device": number,
        "address": address,
        "total_size": size,
        "allocated_size": active,
        "active_size": active,
        "requested_size": sum(b["requested_size"] for b in blocks),
        "stream": 0,
        "segment_type": "small" if size <= _SMALL else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
