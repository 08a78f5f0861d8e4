"""What the plots of a record show: plain lists of numbers, without a library that draws.

A plot is a dict: ``name`` of its files, ``title``, and ``panels``. A panel has a ``title`` and
``lines`` (``label``, ``style``, ``x``, ``y``) with ``across``, "bytes" or "cores", and GB/s
upwards; or it has ``bars`` (``label``, ``style``, ``value``) in ``unit``.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from . import blocks
from .copying import FROM_PINNED, INTO_CUDA, ON_DEVICE, TO_ARRAY, TO_CUDA, TO_NEW, TO_PINNED
from .host_copying import EXISTING, NEW
from .processes import FIRST

#: Plots of curves: name, title, and the paths of their panels.
CURVES = (
    (
        "copies",
        "Copies between a GPU and ordinary host memory",
        (TO_NEW, TO_ARRAY, TO_CUDA, INTO_CUDA),
    ),
    (
        "pinned",
        "Copies of page-locked memory, and within a GPU",
        (TO_PINNED, FROM_PINNED, ON_DEVICE),
    ),
    (
        "blocks",
        "Scattered blocks between a GPU and the host",
        (blocks.TO_PINNED, blocks.FROM_PINNED, blocks.TO_ARRAY, blocks.FROM_ARRAY),
    ),
    (
        "blocks-device",
        "Scattered blocks between GPUs",
        (blocks.WITHIN, blocks.ACROSS),
    ),
    ("host-copies", "Copies on the host", (NEW, EXISTING)),
)
SCALED = TO_NEW, TO_ARRAY, TO_CUDA, INTO_CUDA

#: Panels of the plot of hand-overs: title, and the group.
SHARING = (
    ("hamr's GPU memory in another library", "hamr's memory in other libraries"),
    ("another library's GPU memory in hamr", "other libraries' memory in hamr"),
)

#: By which words an operation is whose. The first that fits counts.
WHOSE = (
    ("hamr", r".*\b(hamr|buf|host_buf)\b"),
    ("CuPy", r"CuPy|cp\.|cupy"),
    ("PyTorch", r"torch"),
    ("Numba", r"numba"),
    ("cuda.core", r"cuda\.core"),
    ("NumPy", r"np\.|numpy"),
    ("driver", r"cu[A-Z]|driver"),
)


def plots_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """All plots that a record has figures for."""
    curves = {curve["path"]: curve for curve in record.get("curves", [])}
    plots = []
    for name, title, paths in CURVES:
        panels = [_curve_panel(curves[path], curves) for path in paths if path in curves]
        panels = [panel for panel in panels if panel["lines"]]
        if panels:
            plots.append({"name": name, "title": _titled(title, record), "panels": panels})
    plots += [*_allocation(record), *_sharing(record), *_scaling(record)]
    return plots


def digest_of(plot: dict[str, Any]) -> str:
    """What a plot's files carry, so that it can be told whether they are of these figures."""
    return hashlib.sha256(json.dumps(plot, sort_keys=True).encode()).hexdigest()[:16]


def whose(operation: str) -> str:
    """The library that an operation is of; "other" if none is known."""
    return next((name for name, words in WHOSE if re.match(words, operation)), "other")


def _titled(title: str, record: dict[str, Any]) -> str:
    machine = record.get("machine", {})
    where = (machine.get("gpus") or [machine.get("cpu")])[0]
    return f"{title} ({where})" if where else title


def _curve_panel(curve: dict[str, Any], curves: dict[str, dict[str, Any]]) -> dict[str, Any]:
    lines = [line for way in curve["ways"] if (line := _line(curve, way)) is not None]
    if curve["path"] == TO_NEW and FIRST in curves:
        first = curves[FIRST]
        ours = (_line(first, way) for way in first["ways"] if way["role"] == "hamr")
        lines += [{**line, "label": "hamr, first call", "style": "first"} for line in ours if line]
    return {"title": curve["path"], "across": "bytes", "lines": lines}


def _line(curve: dict[str, Any], way: dict[str, Any]) -> dict[str, Any] | None:
    pairs = zip(curve["nbytes"], way.get("GBps", ()), strict=False)
    found = [(n, value) for n, value in pairs if value is not None]
    if not found:
        return None
    style = {"limit": "limit", "driver": "driver"}.get(way["role"], way["library"])
    label = {"limit": "limit: page-locked", "driver": "driver"}.get(way["role"], way["library"])
    if "counts" in curve:
        label = {"limit": "one copy", "driver": "driver: loop"}.get(way["role"], way["library"])
    elif curve["path"] == ON_DEVICE:
        label = {"limit": "limit: driver", "hamr": f"hamr: {way['operation']}"}.get(
            way["role"], label
        )
    elif style == "driver" and way["library"] == "C":
        label = "C's memmove"
    return {"label": label, "style": style, "x": [n for n, _ in found], "y": [y for _, y in found]}


def _allocation(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A panel for each size; all groups of the size are in it."""
    panels: dict[str, list[dict[str, Any]]] = {}
    for group in record.get("groups", []):
        match = re.fullmatch(
            r"take and give back (\d+ \w+), (?!memory of the host).*", group["group"]
        )
        if match:
            panels.setdefault(match[1], []).extend(_bars(group))
    if not panels:
        return []
    title = _titled("Taking memory and giving it back", record)
    shown: list[dict[str, Any]] = [
        {"title": size, "unit": "µs", "bars": sorted(bars, key=_value_of)}
        for size, bars in panels.items()
    ]
    return [{"name": "allocation", "title": title, "panels": shown}]


def _sharing(record: dict[str, Any]) -> list[dict[str, Any]]:
    groups = {group["group"]: group for group in record.get("groups", [])}
    panels = [
        {"title": title, "unit": "µs", "bars": _bars(groups[name])}
        for title, name in SHARING
        if name in groups and _bars(groups[name])
    ]
    title = _titled("Sharing without a copy", record)
    return [{"name": "sharing", "title": title, "panels": panels}] if panels else []


def _bars(group: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"label": row["operation"], "style": whose(row["operation"]), "value": row["value"]}
        for row in group["rows"]
        if "value" in row
    ]


def _value_of(bar: dict[str, Any]) -> float:
    return float(bar["value"])


def _scaling(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A panel for each path, the number of cores across."""
    steps = record.get("scaling", [])
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for step in steps:
        for point in step["points"]:
            for row in (row for row in point["rows"] if "GBps" in row):
                curve: dict[str, Any] = {"path": point["path"], "nbytes": [step["cores"]]}
                line = _line(curve, {**row, "GBps": [row["GBps"]]})
                if line is None:
                    continue
                lines = found.setdefault(point["path"], {})
                kept: dict[str, Any] = lines.setdefault(line["label"], {**line, "x": [], "y": []})
                kept["x"] += line["x"]
                kept["y"] += line["y"]
    panels = [
        {"title": path, "across": "cores", "lines": list(found[path].values())}
        for path in SCALED
        if path in found
    ]
    title = _titled("Large copies, by the cores that the process may use", record)
    return [{"name": "scaling", "title": title, "panels": panels}] if panels else []
