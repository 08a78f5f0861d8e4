"""The settings of copies between a device and ordinary host memory, and their sources."""

from __future__ import annotations

import os

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    #: The value of each setting, and where it comes from.
    Report = dict[str, tuple[str, str]]

_TITLES = {
    "from_up": "staged to the device: from",
    "from_down": "to the host: from",
    "threads_up": "threads beside the caller's, to the device",
    "threads_down": "to the host",
    "threads_fresh": "to new memory",
    "chunk": "pieces",
    "pinned_limit": "page-locked memory at most",
    "pinned_held": "held now",
}
_BYTES = {"from_up", "from_down", "chunk", "pinned_limit", "pinned_held"}
_CGROUPS = "/sys/fs/cgroup"


def report_of(backend: str, device: int) -> Report | None:
    """The settings of a device, or None if its backend stages nothing."""
    try:
        rows = _native.staging_report(backend, device)
    except (RuntimeError, ValueError):
        return None
    return {name: (value, source) for name, value, source in rows}


def plain_report(report: Report) -> dict[str, Any]:
    """A report for JSON: the value of each setting, as a number if it is one, and its source."""
    return {
        name: {"value": int(value) if value.isdecimal() else value, "source": source or None}
        for name, (value, source) in report.items()
    }


def staging_lines(reports: list[dict[str, Any]]) -> list[str]:
    """The reports of plain_report as text. Devices with the same report share a line."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for number, report in enumerate(reports):
        kinds.setdefault(tuple(_lines(report)), []).append(str(number))
    return [
        line
        for lines, numbers in kinds.items()
        for line in (
            f"copies between device {', '.join(numbers)} and ordinary host memory:",
            *(f"  {line}" for line in lines),
        )
    ]


def _lines(report: dict[str, Any]) -> list[str]:
    parts = []
    for name, title in _TITLES.items():
        value, source = report[name]["value"], report[name]["source"]
        if name in _BYTES and isinstance(value, int):
            value = size_text(value)
        if value == "never":
            title = title.removesuffix(" from")
        parts.append(f"{title} {value}" + (f" ({source})" if source else ""))
    file, state = report["tuning"]["value"], report["tuning"]["source"]
    used = state in ("in force", "measuring")
    told = f"tuning {file}: {state}" if used else f"no tuning: {state}"
    return [", ".join(parts[:2]), ", ".join(parts[2:5]), ", ".join(parts[5:]), told]


def size_text(nbytes: int) -> str:
    """A number of bytes in the largest unit that leaves no fraction."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} bytes"


def processors() -> dict[str, Any]:
    """The processors: of the machine, of the process, and of its cgroup's time (None: all)."""
    return {
        "machine": os.cpu_count() or 1,
        "affinity": len(os.sched_getaffinity(0)),
        "cgroup": cgroup_limit(),
    }


def cgroup_limit(own: str = "/proc/self/cgroup", root: str = _CGROUPS) -> float | None:
    """The least limit of the process's cgroup and those above it."""
    limits = [x for path in _cgroup_files(own, root) if (x := _limit_of(path)) is not None]
    return min(limits, default=None)


def _cgroup_files(own: str, root: str) -> Iterable[str]:
    for line in (_read(own) or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        old = "cpu" in controllers.split(",")
        if controllers and not old:
            continue
        base = os.path.join(root, controllers) if old else root
        if old and not os.path.isdir(base):
            base = os.path.join(root, "cpu")
        parts = [part for part in path.split("/") if part]
        for count in range(len(parts), -1, -1):
            folder = os.path.join(base, *parts[:count])
            yield os.path.join(folder, "cpu.cfs_quota_us" if old else "cpu.max")


def _limit_of(path: str) -> float | None:
    text = _read(path)
    if path.endswith("_quota_us"):
        text = f"{text} {_read(path.replace('_quota_', '_period_'))}"
    try:
        quota, period = map(int, (text or "").split())
    except ValueError:  # "max", or there is no such file
        return None
    return quota / period if quota > 0 and period > 0 else None


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None
