"""Write the figures of docs/results into docs/figures.md, and the chief ones into README.md.

python build_support/figures.py [--check]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "figures.md"

#: What README says of costs: what one does, and the operation that was measured.
HOST_COSTS = (
    ("share a NumPy array: `hamr.buffer(array)`", "hamr.buffer(ndarray)"),
    ("a buffer in NumPy, without a copy: `np.asarray(b)`", "numpy.asarray(buf)"),
    (
        'take 1 KiB, fill it, give it back: `hamr.Buffer(256, "float32", fill=1)`',
        "create, fill, free 1 KiB (Buffer)",
    ),
    ('the same by NumPy: `np.full(256, 1, "float32")`', "numpy.full(256, 1.0)"),
    ("a view: `b[2:5]`", "buf[2:5]"),
)
CUDA_COSTS = (
    (
        "a GPU buffer in CuPy, without a copy: `cp.asarray(b)`",
        "hamr's memory in other libraries",
        "cp.asarray(buf)",
    ),
    (
        "copy 1 KiB from the GPU to NumPy: `np.asarray(b.get_host_accessible())`",
        "1 KiB from CUDA to NumPy",
        "np.asarray(buf.get_host_accessible())",
    ),
    (
        "copy 1 KiB from NumPy to the GPU: `b[...] = array`",
        "1 KiB from NumPy to CUDA",
        "buf[...] = array",
    ),
    (
        "take and give back 1 KiB of memory `cuda`",
        "take and give back 1 KiB, device memory",
        "hamr.Buffer(n, 'u1', cuda)",
    ),
    (
        "take and give back 1 KiB of memory `cuda_async`",
        "take and give back 1 KiB, from a pool",
        "hamr.Buffer(n, 'u1', cuda_async)",
    ),
    (
        "copy 64 MiB from the GPU into existing ordinary memory: `b.get(array)`",
        "device to host, pageable, 64 MiB",
        "hamr: buf.get(array)",
    ),
    (
        "the same into new memory: `b.get_host_accessible()`",
        "device to fresh host memory, 64 MiB",
        "hamr: buf.get_host_accessible()",
    ),
    (
        "the same into existing memory `cuda_host`",
        "device to host, pinned, 64 MiB",
        "hamr: buf.get(array)",
    ),
)

#: Groups of the CUDA figures that the page shows; docs/results has them all.
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


def costs_table(host: dict[str, Any], cuda: dict[str, Any]) -> str:
    """Return what README says of costs as Markdown."""
    gpu = cuda["machine"]["gpus"][0]
    lines = ["| on the host | |", "|---|--:|"]
    times = {row["operation"]: row["ns"] for row in host["operations"]}
    lines += [f"| {what} | {_shown(times[name] / 1000)} µs |" for what, name in HOST_COSTS]
    lines += [f"| **on a GPU ({gpu})** | |"]
    groups = {group["group"]: group for group in cuda["groups"]}
    for what, group, name in CUDA_COSTS:
        rows = {row["operation"]: row["value"] for row in groups[group]["rows"] if "value" in row}
        unit = groups[group]["unit"].replace("us", "µs")
        lines.append(f"| {what} | {_shown(rows[name])} {unit} |")
    return "\n".join(lines)


def _shown(value: float) -> str:
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:.{digits}f}"


def replaced(text: str, mark: str, table: Callable[[], str], page: str = "README.md") -> str:
    """Return a text with another table between the two marks, or as it is if it has no place."""
    start, end = f"<!-- {mark}:", f"<!-- end of {mark} -->"
    pattern = re.compile(f"({re.escape(start)}[^\n]*\n).*?({re.escape(end)})", re.DOTALL)
    text, found = pattern.subn(lambda m: f"{m[1]}{table()}\n{m[2]}", text)
    if found != 1:
        raise SystemExit(f"{page} has {found} places for {mark}, not one")
    return text


def pages() -> dict[Path, str]:
    """Return the text of each page that shows figures, with those of the results there are."""
    readme, page = README.read_text(), PAGE.read_text()
    host, one, two = _read("host.json"), _read("h200.json"), _read("h200-x2.json")
    if host is not None:
        page = replaced(page, "figures", lambda: host_table(host), PAGE.name)
    cuda = one if one is not None else two
    if cuda is not None:
        other = two if cuda is one else None
        page = replaced(page, "cuda figures", lambda: cuda_table(cuda, other), PAGE.name)
    if host is not None and cuda is not None:
        readme = replaced(readme, "costs", lambda: costs_table(host, cuda))
    return {README: readme, PAGE: page}


def main() -> int:
    """Rewrite the pages; with --check only say whether they are as the results are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = {path: text for path, text in pages().items() if path.read_text() != text}
    for path, text in stale.items():
        if check:
            print(f"{path} is not what {RESULTS} says: {__file__}", file=sys.stderr)
        else:
            path.write_text(text)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
