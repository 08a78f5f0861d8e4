"""Whether a record's figures are what hamr is to reach. L is the bus: a page-locked copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import blocks
from .copying import INTO_CUDA, TO_ARRAY, TO_CUDA, TO_NEW
from .groups import KIB, MIB, size_text
from .processes import FIRST

#: Of L, at so many MiB.
OF_LIMIT = (
    (TO_NEW, {512: 0.90}),
    (FIRST, {512: 0.50}),
    (TO_CUDA, {512: 0.88, 64: 0.65, 16: 0.45}),
    (INTO_CUDA, {512: 0.88, 64: 0.65, 16: 0.45}),
    (TO_ARRAY, {512: 0.88, 64: 0.80, 16: 0.65}),
)
#: Of L, or of one copy between devices, for scattered blocks of so many KiB and more.
OF_ONE_COPY = (
    (blocks.TO_PINNED, {4: 0.85, 16: 0.90}),
    (blocks.FROM_PINNED, {4: 0.85, 16: 0.90}),
    (blocks.TO_ARRAY, {16: 0.50, 64: 0.75}),
    (blocks.FROM_ARRAY, {16: 0.50, 64: 0.75}),
    (blocks.WITHIN, {4: 0.85}),
    (blocks.ACROSS, {64: 0.85}),
)
ORDINARY = TO_NEW, TO_ARRAY, TO_CUDA, INTO_CUDA
AHEAD = MIB, 4 * MIB
OF_DRIVER, OF_DRIVER_FROM = 0.95, 4 * KIB
LIMIT_AT = 512 * MIB
LATE_US, LATE_SHARE = 20, 0.02
WAITS = "and the wait for it"
SMALL = "1 KiB from"


def verdicts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each target: what, the figure, what it is to be, and whether that is met.

    ``met`` is None where the record has no figure for it.
    """
    curves = {curve["path"]: curve for curve in record.get("curves", [])}
    rows = []
    if any(path in curves for path, _ in OF_LIMIT):
        rows += [row for path, bounds in OF_LIMIT for row in _of_limit(curves, path, bounds)]
        rows += [_ahead(curves, path, n) for path in ORDINARY for n in AHEAD]
        rows += [_of_driver(curves, path) for path in ORDINARY]
    rows += [row for path, bounds in OF_ONE_COPY for row in _of_one_copy(curves, path, bounds)]
    for group in record.get("groups", []):
        rows += _of_group(group)
    return rows


def limit_of(curves: dict[str, dict[str, Any]], direction: str) -> tuple[float, int] | None:
    """L of a direction in GB/s, and the size at which it was measured: 512 MiB or the next."""
    for curve in curves.values():
        if curve["direction"] != direction:
            continue
        for way in curve["ways"]:
            found = _figures(curve, way, "GBps") if way["role"] == "limit" else {}
            if found:
                size = max((n for n in found if n <= LIMIT_AT), default=min(found))
                return found[size], size
    return None


def _figures(curve: dict[str, Any], way: dict[str, Any], key: str) -> dict[int, float]:
    """A way's figures by the size; what was not measured is not there."""
    pairs = zip(curve["nbytes"], way.get(key, ()), strict=False)
    return {n: value for n, value in pairs if value is not None}


def _way_of_hamr(curve: dict[str, Any] | None, key: str) -> dict[int, float]:
    if curve is None:
        return {}
    ways = [way for way in curve["ways"] if way["role"] == "hamr"]
    return _figures(curve, ways[0], key) if ways else {}


def _verdict(what: str, bound: str, value: float | None, met: bool | None) -> dict[str, Any]:
    shown = None if value is None else round(value, 3)
    return {"what": what, "bound": bound, "value": shown, "met": met}


def _of_limit(
    curves: dict[str, dict[str, Any]], path: str, bounds: dict[int, float]
) -> Iterator[dict[str, Any]]:
    limit = limit_of(curves, "up" if path in (TO_CUDA, INTO_CUDA) else "down")
    figures = _way_of_hamr(curves.get(path), "GBps")
    for mib, bound in bounds.items():
        value = figures.get(mib * MIB)
        ratio = value / limit[0] if value is not None and limit else None
        met = None if ratio is None else ratio >= bound
        yield _verdict(f"{path}, {mib} MiB, of the bus", f"≥ {bound:.2f}", ratio, met)


def _of_one_copy(
    curves: dict[str, dict[str, Any]], path: str, bounds: dict[int, float]
) -> Iterator[dict[str, Any]]:
    """A row for each size that was measured, whose bound is that of the next smaller one."""
    for nbytes, ratio in _way_of_hamr(curves.get(path), "of_limit").items():
        bound = max((b for kib, b in bounds.items() if kib * KIB <= nbytes), default=None)
        if bound is not None:
            what = f"{path}, {size_text(nbytes)}, of one copy"
            yield _verdict(what, f"≥ {bound:.2f}", ratio, ratio >= bound)


def _ahead(curves: dict[str, dict[str, Any]], path: str, nbytes: int) -> dict[str, Any]:
    """Of the fastest of the others, the driver's own copy among them."""
    what = f"{path}, {size_text(nbytes)}, of the fastest other"
    curve = curves.get(path)
    ours = _way_of_hamr(curve, "GBps").get(nbytes)
    others = [
        figures[nbytes]
        for way in (curve["ways"] if curve else ())
        if way["role"] in ("peer", "driver")
        and nbytes in (figures := _figures(curve or {}, way, "GBps"))
    ]
    ratio = ours / max(others) if ours is not None and others else None
    return _verdict(what, "> 1", ratio, None if ratio is None else ratio > 1)


def _of_driver(curves: dict[str, dict[str, Any]], path: str) -> dict[str, Any]:
    """Of the driver's own copy, at the size where that is least."""
    figures = _way_of_hamr(curves.get(path), "of_driver")
    figures = {n: value for n, value in figures.items() if n >= OF_DRIVER_FROM}
    if not figures:
        return _verdict(f"{path}, of the driver's copy", f"≥ {OF_DRIVER:.2f}", None, None)
    worst = min(figures, key=lambda n: figures[n])
    sizes = f"{size_text(min(figures))} to {size_text(max(figures))}"
    what = f"{path}, {sizes}, of the driver's copy, least at {size_text(worst)}"
    return _verdict(what, f"≥ {OF_DRIVER:.2f}", figures[worst], figures[worst] >= OF_DRIVER)


def _of_group(group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The targets that a group's rows have themselves; waits and 1 KiB have more."""
    rows = [row for row in group["rows"] if "value" in row]
    rate = group["unit"] == "GB/s"
    sign = "≥" if rate else "≤"
    for row in rows:
        what = f"{group['group']}: {row['operation']}"
        if "target" in row and "ratio" in row:
            met = row["ratio"] >= row["target"] if rate else row["ratio"] <= row["target"]
            yield _verdict(what, f"{sign} {row['target']} x floor", row["ratio"], met)
        if "limit" in row:
            met = row["value"] >= row["limit"] if rate else row["value"] <= row["limit"]
            yield _verdict(what, f"{sign} {row['limit']} {group['unit']}", row["value"], met)
    if group["group"].endswith(WAITS):
        yield from _late(group, rows)
    if group["group"].startswith(SMALL):
        ours = [row for row in rows if "target" in row]
        others = [row for row in rows if _is_peer(row)]
        for row in ours if others else ():
            ratio = min(other["value"] for other in others) / row["value"]
            what = f"{group['group']}: {row['operation']}, ahead of the fastest library"
            yield _verdict(what, "> 1", ratio, ratio > 1)


def _is_peer(row: dict[str, Any]) -> bool:
    name = row["operation"]
    return not name.startswith("driver") and "buf" not in name


def _late(group: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """How much longer than a loop that does nothing but ask; its own time is the work's."""
    floor = next((row["value"] for row in rows if row["operation"] == group["floor"]), None)
    for row in rows:
        if floor is not None and row["operation"].startswith("hamr"):
            bound = max(LATE_US, LATE_SHARE * floor)
            late = row["value"] - floor
            what = f"{group['group']}: {row['operation']}, late"
            yield _verdict(what, f"≤ {bound:.0f} us", late, late <= bound)
