"""Write the figures of docs/results into README.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"

#: Groups of the CUDA figures that README shows; docs/results has them all.
SHOWN = (
    "reaching a buffer",
    "hamr's memory in other libraries",
    "other libraries' memory in hamr",
    "hamr's memory in CuPy, by DLPack",
    "CuPy's memory in hamr, by DLPack",
    "hamr's memory in PyTorch, by DLPack",
    "PyTorch's memory in hamr, by DLPack",
    "1 KiB from CUDA to NumPy",
    "1 KiB from NumPy to CUDA",
    "take and give back 1 KiB, from a pool",
    "float32 to float64, 256 MiB",
    "transposed copy of float32, 256 MiB",
    "host to device, pageable, 64 MiB",
    "device to host, pageable, 64 MiB",
    "device to device, 512 MiB, with peer access",
)


def host_table(result: dict[str, Any]) -> str:
    """Return the figures of the host as Markdown."""
    machine = result["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, {machine['date']}, commit {machine['commit']}:",
        "",
        "| operation | ns | x floor |",
        "|---|--:|--:|",
    ]
    for row in result["operations"]:
        lines.append(f"| `{row['operation']}` | {row['ns']:.0f} | {row['ratio']:.2f} |")
    groups = result.get("dlpack", [])
    if groups:
        lines += ["", *_heading(), *_rows_of(groups)]
    threads, cost = result["threads"], result["import"]
    lines += [
        "",
        f"Creating and freeing on 8 threads costs {threads['ratio']:.2f} times one thread, a pair. "
        f"`import hamr` takes {cost['import_ms']:.1f} ms and {cost['import_MiB']:.1f} MiB, the "
        f"first buffer {cost['first_buffer_ms']:.1f} ms and {cost['first_buffer_MiB']:.1f} MiB.",
    ]
    return "\n".join(lines)


def cuda_table(result: dict[str, Any], two: dict[str, Any] | None) -> str:
    """Return the figures of the GPU as Markdown, with those of two GPUs where there are any."""
    machine = result["machine"]
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    lines = [
        f"{machine['gpus'][0]}, driver {machine['driver']}, CUDA {machine['cuda']}, "
        f"Python {machine['python']}, {libraries}, {machine['date']}, commit {machine['commit']}:",
        "",
        *_heading(),
    ]
    groups = list(result["groups"])
    if two is not None:
        groups += [g for g in two["groups"] if g["group"].startswith("device to device")]
    return "\n".join(lines + _rows_of([g for g in groups if g["group"] in SHOWN]))


def _heading() -> list[str]:
    return ["| operation | | x floor | target |", "|---|--:|--:|--:|"]


def _rows_of(groups: list[dict[str, Any]]) -> list[str]:
    lines = []
    for group in groups:
        rows = [_row(row, group["unit"]) for row in group["rows"] if "value" in row]
        if rows:
            lines += [f"| **{group['group']}** | {group['unit']} | | |", *rows]
    return lines


def _row(row: dict[str, Any], unit: str) -> str:
    sign = "≥" if unit == "GB/s" else "≤"
    bounds = []
    if "target" in row:
        bounds.append(f"{sign} {row['target']} x")
    if "limit" in row:
        bounds.append(f"{sign} {row['limit']} {unit}")
    if row.get("met") is False:
        bounds.append("not met")
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
    value = row["value"]
    shown = f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return f"| `{row['operation']}` | {shown} | {ratio} | {', '.join(bounds)} |"


def _read(name: str) -> dict[str, Any] | None:
    path = RESULTS / name
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def replaced(text: str, mark: str, table: Callable[[], str], page: str = "README.md") -> str:
    """Return a text with another table between the two marks, or as it is if it has no place."""
    start, end = f"<!-- {mark}:", f"<!-- end of {mark} -->"
    pattern = re.compile(f"({re.escape(start)}[^\n]*\n).*?({re.escape(end)})", re.DOTALL)
    text, found = pattern.subn(lambda m: f"{m[1]}{table()}\n{m[2]}", text)
    if found != 1:
        raise SystemExit(f"{page} has {found} places for {mark}, not one")
    return text


def main() -> None:
    """Replace what stands between the marks, for every result there is."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    host, one, two = _read("host.json"), _read("h200.json"), _read("h200-x2.json")
    if host is not None:
        text = replaced(text, "figures", lambda: host_table(host))
    cuda = one if one is not None else two
    if cuda is not None:
        other = two if cuda is one else None
        text = replaced(text, "cuda figures", lambda: cuda_table(cuda, other))
    readme.write_text(text)


if __name__ == "__main__":
    main()
