"""What hamr knows of the machine and of its own memory."""

from __future__ import annotations

from .. import _native
from .._base.allocator import allocator_from
from .._base.library import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_COUNTED = ("live", "current", "peak", "made", "adopted")


def backends() -> dict[str, dict[str, Any]]:
    """Each backend's name, whether it is available or why not, allocators and devices."""
    rows = _decoded("Backends")
    for row in rows:
        row["devices"] = [dict(facts) for facts in row["devices"]]
    return {row.pop("name"): row for row in rows}


def devices() -> list[dict[str, Any]]:
    """Every device of every available backend."""
    return [
        {"backend": name, "device": i, **facts}
        for name, row in backends().items()
        for i, facts in enumerate(row["devices"])
    ]


def stats() -> dict[str, Any]:
    """Counters of hamr's memory.

    ``spaces``: for each space the number of live allocations, the bytes in them
    now, the most there ever were, the allocations made and the foreign arrays in
    use. ``allocators``: the same for each allocator. ``references``: how many
    allocations Python holds. Spaces and allocators never used are absent.
    """
    allocators: dict[str, dict[str, int]] = {}
    spaces: dict[str, dict[str, int]] = {}
    rows = _decoded("Statistics")
    waiting = {allocator_from(number).name: count for number, count in _native.waiting()}
    for allocator in waiting:  # adopted, and the core has not had to do with it yet
        if all(row["allocator"] != allocator for row in rows):
            row = {"allocator": allocator, "space": allocator.split("_")[0]}
            rows.append(row | dict.fromkeys(_COUNTED, 0))
    for row in rows:
        name, space = row.pop("allocator"), row.pop("space")
        row["adopted"] += waiting.get(name, 0)
        allocators[name] = row
        total = spaces.setdefault(space, dict.fromkeys(row, 0))
        for key, value in row.items():
            total[key] += value
    return {
        "spaces": spaces,
        "allocators": allocators,
        "references": call("LiveReferences") + sum(waiting.values()),
    }


def reset_peaks() -> None:
    """Make every peak the present number of bytes."""
    call("ResetPeaks")


def trim() -> None:
    """Give memory back that could not be released yet, and to the system what is kept for reuse."""
    call("Trim")


def _decoded(name: str) -> Any:
    # Imported late: json is half of what importing hamr would take.
    import json

    return json.loads(call(name))
