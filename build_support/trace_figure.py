"""Draw a pipeline's trace for docs/scheduling.md.

python -m build_support.trace_figure [--record | --check]

The record is a trace as hamr.hetero.Pipeline writes it. --record makes it anew, on this machine's
processors; --check says whether the picture is that of the record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "docs" / "results" / "trace-host.json"
PICTURE = ROOT / "docs" / "pictures" / "trace.svg"

WIDTH, LEFT, ROW, TOP = 860, 120, 30, 34
#: One for each event in turn: dark enough for white letters.
COLOURS = ("#0f766e", "#1d4ed8", "#b45309", "#7e22ce", "#be123c", "#4d7c0f", "#0e7490", "#44403c")


def record(path: Path) -> None:
    """Run eight events of three modules on two threads, four in flight, and write their trace."""
    import numpy as np

    from hamr import hetero

    def read(event: hetero.Event) -> Any:
        time.sleep(0.004)
        return np.full(200_000, event.item, "float32")

    def spectrum(read: Any) -> Any:
        return np.fft.rfft(read).real

    def peak(spectrum: Any) -> float:
        return float(np.sort(spectrum)[-1])

    modules = [hetero.module()(function) for function in (read, spectrum, peak)]
    chooser = hetero.DeviceChooser(enabled=False)
    pipeline = hetero.Pipeline(modules, streams=4, workers=2, chooser=chooser, trace=str(path))
    pipeline.run(range(8))


def drawn(trace: dict[str, Any]) -> str:
    """Return the picture of a trace: a row for each thread and each event in flight."""
    events = trace["traceEvents"]
    titles = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    rows = sorted({(e["pid"], e["tid"]) for e in spans})
    first = min(e["ts"] for e in spans)
    whole = max(e["ts"] + e["dur"] for e in spans) - first
    scale = (WIDTH - LEFT - 20) / whole
    height = TOP + ROW * len(rows) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        "<title>What a pipeline did when</title>",
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="10"'
        ' fill="#f8fafc" stroke="#94a3b8"/>',
    ]
    for number, row in enumerate(rows):
        middle = TOP + ROW * number + ROW / 2
        parts.append(f'<text x="12" y="{middle + 4:.1f}" fill="#0f172a">{titles[row]}</text>')
    for span in spans:
        x = LEFT + (span["ts"] - first) * scale
        wide = max(span["dur"] * scale, 1)
        y = TOP + ROW * rows.index((span["pid"], span["tid"])) + 4
        event = span["args"]["event"]
        name, colour = escape(span["name"]), COLOURS[event % len(COLOURS)]
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 8}" rx="3"'
            f' fill="{colour}" stroke="#f8fafc"><title>{name}, event {event}: '
            f"{span['dur'] / 1000:.2f} ms</title></rect>"
        )
        if wide > 7 * len(span["name"]):
            text = f'<text x="{x + 4:.1f}" y="{y + 15}" fill="#ffffff">{name}</text>'
            parts.append(text)
    parts.append(
        f'<text x="{LEFT}" y="{height - 12}" fill="#334155">0</text><text x="{WIDTH - 20}"'
        f' y="{height - 12}" fill="#334155" text-anchor="end">{whole / 1000:.1f} ms</text>'
    )
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Record if that is asked for; draw, or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.record:
        record(RESULT)
    picture = drawn(json.loads(RESULT.read_text(encoding="utf-8")))
    if options.check and picture != PICTURE.read_text(encoding="utf-8"):
        print(f"{PICTURE.name} is not what {RESULT.name} says", file=sys.stderr)
        return 1
    if not options.check:
        PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
