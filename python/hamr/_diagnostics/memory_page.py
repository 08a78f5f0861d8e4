"""A snapshot as an HTML page: memory in use over time, by library, and in pools."""

from __future__ import annotations

import time
from html import escape

from .._base.held_memory import text_of
from .contents import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .contents import Allocation, Contents, MemoryEvent, Segment

_WIDTH, _HEIGHT = 960, 240
_MOST_STEPS = 2000  # of a line: more cannot be seen
_MOST_SEGMENTS = 200
_MOST_ROWS = 100
_COLOURS = {"hamr": "#3b6ea5", "cupy": "#5a9e4b", "torch": "#d2603a", "numba": "#8a63a8"}
_OTHER = "#777777"
_STYLE = """
body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:62em;color:#222;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}svg{display:block;background:#f6f6f6}
table{border-collapse:collapse}
td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}td.stack{text-align:left;font:12px monospace}
p.note{color:#555}text{font-size:12px}
"""


def page(snapshot: Contents) -> str:
    """The page. It loads nothing from other hosts."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(snapshot.time))
    parts = [
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>",
        "<meta http-equiv='Content-Security-Policy' "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Memory of process {snapshot.pid}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Memory of process {snapshot.pid}, {when}</h1>",
        "<h2>By library</h2>",
        _libraries(snapshot),
        "<h2>Over time</h2>",
        _timeline(snapshot),
        "<h2>Fragmentation</h2>",
        _fragmentation(snapshot),
        "<h2>Largest allocations</h2>",
        _largest(snapshot.allocations),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _colour(library: str) -> str:
    return _COLOURS.get(library, _OTHER)


def _libraries(snapshot: Contents) -> str:
    rows = []
    for library, places in sorted(snapshot.by_library().items()):
        for place, size in sorted(places.items()):
            rows.append((library, place, size, _colour(library)))
    for place, device in sorted(snapshot.devices.items()):
        rows.append(("kept for reuse", place, device["kept"], "#b9cde0"))
        rows += [
            (f"{name}'s own pool", place, size, _OTHER)
            for name, size in sorted(device["own_pools"].items())
        ]
        if device["others"] is not None:
            rows.append(("others", place, device["others"], "#cccccc"))
    if not rows:
        return "<p class='note'>No memory is in use.</p>"
    most = max(size for _, _, size, _ in rows) or 1
    lines = ["<table><tr><th>whose</th><th>where</th><th>bytes</th><th></th></tr>"]
    for name, place, size, colour in rows:
        width = 300 * size / most
        bar = f"<rect width='{width:.1f}' height='12' fill='{colour}'/>"
        lines.append(
            f"<tr><td>{escape(name)}</td><td>{escape(place)}</td><td>{text_of(size)}</td>"
            f"<td><svg width='300' height='12'>{bar}</svg></td></tr>"
        )
    return "\n".join([*lines, "</table>"])


def _series(events: list[MemoryEvent]) -> dict[str, dict[str, list[tuple[float, int]]]]:
    """The bytes in use at each time, relative to the first, by place and library."""
    found: dict[str, dict[str, list[tuple[float, int]]]] = {}
    for event in events:
        place = place_of(event["allocator"], event["device"])
        line = found.setdefault(place, {}).setdefault(event["library"], [])
        sign = -1 if event["action"] == "free" else 1
        now = line[-1][1] if line else 0
        line.append((event["time"] or 0.0, now + sign * event["size"]))
    return found


def _timeline(snapshot: Contents) -> str:
    if not snapshot.events:
        return "<p class='note'>Nothing was recorded: see hamr.record_memory.</p>"
    first = snapshot.events[0]["time"] or 0.0
    last = max(snapshot.events[-1]["time"] or 0.0, first + 1e-6)
    parts = []
    if snapshot.dropped:
        parts.append(f"<p class='note'>{snapshot.dropped} earlier events were dropped.</p>")
    for place, lines in sorted(_series(snapshot.events).items()):
        points = [size for line in lines.values() for _, size in line]
        low, high = min(0, *points), max(1, *points)
        parts.append(f"<h3>{escape(place)}</h3>")
        parts.append(
            f"<svg width='{_WIDTH}' height='{_HEIGHT + 20}' role='img' "
            f"aria-label='bytes in use on {escape(place)}'>"
        )
        for library, line in sorted(lines.items()):
            path = _path(line, first, last, low, high)
            parts.append(
                f"<path d='{path}' fill='none' stroke='{_colour(library)}' stroke-width='1.5'>"
                f"<title>{escape(library)}</title></path>"
            )
        parts.append(f"<text x='4' y='14'>{text_of(high)}</text>")
        parts.append(f"<text x='4' y='{_HEIGHT - 4}'>{text_of(low)}</text>")
        parts.append(
            f"<text x='{_WIDTH - 4}' y='{_HEIGHT + 14}' text-anchor='end'>"
            f"{last - first:.3f} s</text>"
        )
        for i, library in enumerate(sorted(lines)):
            parts.append(
                f"<text x='{120 + 80 * i}' y='14' fill='{_colour(library)}'>"
                f"{escape(library)}</text>"
            )
        parts.append("</svg>")
    parts.append(
        "<p class='note'>Bytes that came and went since the record began: what was in use before "
        "is not in the lines.</p>"
    )
    return "\n".join(parts)


def _path(line: list[tuple[float, int]], first: float, last: float, low: int, high: int) -> str:
    """A path of steps. Of steps that are too near each other it has the highest and the last."""
    step = max(1, -(-len(line) // _MOST_STEPS))
    shown = [(first, 0)]
    for i in range(0, len(line), step):
        some = line[i : i + step]
        shown.append(max(some, key=lambda point: point[1]))
        if some[-1] is not shown[-1]:
            shown.append(some[-1])
    shown.append((last, line[-1][1]))
    parts, before = [], None
    for when, size in shown:
        x = (when - first) / (last - first) * _WIDTH
        y = _HEIGHT - (size - low) / (high - low) * (_HEIGHT - 20)
        parts.append(f"M{x:.1f} {y:.1f}" if before is None else f"H{x:.1f}V{y:.1f}")
        before = size
    return "".join(parts)


def _fragmentation(snapshot: Contents) -> str:
    if not snapshot.segments:
        return "<p class='note'>No pool has memory from a driver that hamr divides.</p>"
    owners = {(a["device"], a["address"]): a["library"] for a in snapshot.allocations}
    places: dict[str, list[Segment]] = {}
    for segment in snapshot.segments:
        places.setdefault(place_of(segment["allocator"], segment["device"]), []).append(segment)
    parts = []
    for place, segments in sorted(places.items()):
        free = [b[1] for s in segments for b in s["blocks"] if not b[2]]
        total = sum(s["size"] for s in segments)
        largest = max(free, default=0)
        apart = 100 * (1 - largest / sum(free)) if sum(free) else 0.0
        parts.append(
            f"<h3>{escape(place)}</h3><p>{text_of(total)} in {len(segments)} segments, "
            f"{text_of(sum(free))} of it free in {len(free)} pieces, the largest "
            f"{text_of(largest)}: {apart:.0f} % of what is free is apart from it.</p>"
        )
        shown = sorted(segments, key=lambda s: -s["size"])[:_MOST_SEGMENTS]
        parts.append(f"<svg width='{_WIDTH}' height='{14 * len(shown)}'>")
        for row, segment in enumerate(shown):
            scale = _WIDTH / shown[0]["size"]
            for address, size, lent in segment["blocks"]:
                colour = (
                    _colour(owners.get((segment["device"], address), "")) if lent else "#ffffff"
                )
                x, width = (address - segment["address"]) * scale, size * scale
                parts.append(
                    f"<rect x='{x:.2f}' y='{14 * row}' width='{width:.2f}' height='12' "
                    f"fill='{colour}' stroke='#999' stroke-width='.4'/>"
                )
        parts.append("</svg>")
        if len(segments) > len(shown):
            parts.append(f"<p class='note'>The {len(shown)} largest of {len(segments)}.</p>")
    return "\n".join(parts)


def _largest(allocations: list[Allocation]) -> str:
    lines = [
        "<table><tr><th>library</th><th>where</th><th>allocator</th><th>bytes</th><th>thread</th>"
        "<th>allocated by</th></tr>"
    ]
    for a in sorted(allocations, key=lambda a: -a["size"])[:_MOST_ROWS]:
        stack = "<br>".join(
            escape(f"{f['filename']}:{f['line']} {f['name']}") for f in a["stack"][:8]
        )
        thread = a["thread_name"] or (str(a["thread"]) if a["thread"] else "")
        where = place_of(a["allocator"], a["device"])
        lines.append(
            f"<tr><td>{escape(a['library'])}</td><td>{escape(where)}</td><td>{escape(a['allocator'])}"
            f"</td><td>{text_of(a['size'])}</td><td>{escape(thread)}</td>"
            f"<td class='stack'>{stack}</td></tr>"
        )
    note = ""
    if len(allocations) > _MOST_ROWS:
        note = f"<p class='note'>The {_MOST_ROWS} largest of {len(allocations)}.</p>"
    return "\n".join([*lines, "</table>", note])
