"""Write the figures of docs/results into docs/figures.md, and draw them into docs/plots.

python build_support/figures.py [--check | --redraw]

No GPU is needed, but hamr, and matplotlib where a plot is to be drawn anew. The plots carry a
digest of what they show.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
PAGE, PLOTS = ROOT / "docs" / "figures.md", ROOT / "docs" / "plots"

#: What the page says of costs: what one does, and the operation that was measured.
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
)
#: Of the curves: what one does, the path, and the bytes.
CURVE_COSTS = (
    (
        "copy 64 MiB from the GPU into existing ordinary memory: `b.get(array)`",
        "CUDA to an existing NumPy array",
        64 << 20,
    ),
    (
        "the same into new memory: `b.get_host_accessible()`",
        "CUDA to new host memory",
        64 << 20,
    ),
    ("the same into existing memory `cuda_host`", "CUDA to page-locked memory", 64 << 20),
)

#: The groups of records from before there were curves, as paths.
OLD_GROUPS = (
    ("device to fresh host memory, ", "CUDA to new host memory", "down"),
    ("device to host, pageable, ", "CUDA to an existing NumPy array", "down"),
    ("host to device, pageable, ", "NumPy to an existing CUDA buffer", "up"),
    ("device to host, pinned, ", "CUDA to page-locked memory", "down"),
    ("host to device, pinned, ", "page-locked memory to CUDA", "up"),
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
    "take and give back 64 MiB, device memory",
    "take and give back 64 MiB, from a pool",
    "take and give back 1 KiB from threads",
    "work of ",
    "a turn of a library's loop on its own stream",
    "float32 to float64, 256 MiB",
    "transposed copy of float32, 256 MiB",
    "take and give back 1 KiB, device memory",
    "device to device, 512 MiB, with peer access",
    "2,048 blocks of 16 KiB",
    "bf16 products of 8192³ beside blocks",
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
    groups = result.get("dlpack", []) + result.get("groups", [])
    if groups:
        lines += ["", *rows_of_groups(groups)]
    lines += _curve_tables(result, host=True)
    ratio = result["threads"]["ratio"]
    lines += ["", f"Creating and freeing on 8 threads costs {ratio:.2f} times one thread, a pair."]
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
    lines += _rows_of([g for g in groups if g["group"].startswith(SHOWN)])
    lines += _curve_tables(result, host=False)
    if result.get("targets"):
        lines += ["", "What hamr is to reach; the bus is what page-locked memory is copied at:", ""]
        lines += _target_table(result["targets"])
    return "\n".join(lines)


def _curve_tables(result: dict[str, Any], host: bool) -> list[str]:
    """Return the curves of the host, or of a GPU: a record of a GPU may have both."""
    curves = [c for c in result.get("curves", []) if (c["direction"] == "host") is host]
    return [
        line
        for curve in curves
        for line in ("", f"{curve['path']}, GB/s:", "", *_curve_table(curve))
    ]


def _curve_table(curve: dict[str, Any]) -> list[str]:
    """Return a line for each size, a column for each way, and hamr's share of the limit."""
    ways = curve["ways"]
    names = ["limit" if way["role"] == "limit" else way["library"] for way in ways]
    limited = any("of_limit" in way for way in ways[:1])
    counts = curve.get("counts")
    heads = ["size", *names, *(["hamr, of the limit"] if limited else [])]
    heads[:1] = ["blocks", "size"] if counts else ["size"]
    lines = [f"| {' | '.join(heads)} |", "|--:" * len(heads) + "|"]
    for i, nbytes in enumerate(curve["nbytes"]):
        cells = [_figure(way, "GBps", i) for way in ways]
        cells += [_figure(ways[0], "of_limit", i)] if limited else []
        cells[:0] = [f"{counts[i]:,}", _size(nbytes)] if counts else [_size(nbytes)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _figure(way: dict[str, Any], key: str, i: int) -> str:
    values = way.get(key, [])
    value = values[i] if i < len(values) else None
    if value is None:
        return ""
    return (
        f"{value:.2f}" if key == "of_limit" else f"{value:.3g}" if value < 100 else f"{value:.0f}"
    )


def _size(nbytes: int) -> str:
    units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")]
    return next(f"{nbytes >> by} {name}" for by, name in units if nbytes >> by)


def _target_table(targets: list[dict[str, Any]]) -> list[str]:
    words = {True: "met", False: "**not met**", None: "not measured"}
    lines = ["| target | | wanted | |", "|---|--:|---|---|"]
    for row in targets:
        value = "" if row["value"] is None else f"{row['value']:.3g}"
        lines.append(f"| {row['what']} | {value} | {row['bound']} | {words[row['met']]} |")
    return lines


def with_curves(result: dict[str, Any]) -> dict[str, Any]:
    """Return a record as it is, or one from before there were curves with what it has of them."""
    if "curves" in result:
        return result
    curves = [c for old in OLD_GROUPS if (c := _old_curve(result["groups"], *old)) is not None]
    return {**result, "curves": curves}


def _old_curve(
    groups: list[dict[str, Any]], start: str, path: str, direction: str
) -> dict[str, Any] | None:
    found = [g for g in groups if re.fullmatch(re.escape(start) + r"\d+ MiB", g["group"])]
    sizes = [int(group["group"].split()[-2]) << 20 for group in found]
    ways: dict[str, dict[str, Any]] = {}
    for i, group in enumerate(found):
        for row in (row for row in group["rows"] if "value" in row):
            library, _, operation = row["operation"].partition(": ")
            role = {"hamr": "hamr", "driver": "limit" if "pinned" in start else "driver"}
            library = {"torch": "PyTorch"}.get(library, library)
            way = ways.setdefault(
                library,
                {
                    "library": library,
                    "operation": operation or library,
                    "role": role.get(library, "peer"),
                    "GBps": [None] * len(found),
                },
            )
            way["GBps"][i] = row["value"]
    ordered = sorted(ways.values(), key=lambda way: way["role"] != "hamr")
    curve = {"path": path, "direction": direction, "nbytes": sizes, "ways": ordered}
    return curve if found else None


def rows_of_groups(groups: list[dict[str, Any]]) -> list[str]:
    """Return groups as one table."""
    return [*_heading(), *_rows_of(groups)]


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
    """Return what the page says of costs as Markdown."""
    gpu = cuda["machine"]["gpus"][0]
    cost = host["import"]
    lines = [
        "| on the host | |",
        "|---|--:|",
        f"| `import hamr` | {cost['import_ms']:.1f} ms, {cost['import_MiB']:.1f} MiB |",
        f"| the first buffer of a process | {cost['first_buffer_ms']:.1f} ms, "
        f"{cost['first_buffer_MiB']:.1f} MiB |",
    ]
    times = {row["operation"]: row["ns"] for row in host["operations"]}
    lines += [f"| {what} | {_shown(times[name] / 1000)} µs |" for what, name in HOST_COSTS]
    lines += [f"| **on a GPU ({gpu})** | |"]
    groups = {group["group"]: group for group in cuda["groups"]}
    for what, group, name in CUDA_COSTS:
        rows = {row["operation"]: row["value"] for row in groups[group]["rows"] if "value" in row}
        unit = groups[group]["unit"].replace("us", "µs")
        lines.append(f"| {what} | {_shown(rows[name])} {unit} |")
    curves = {curve["path"]: curve for curve in cuda["curves"]}
    for what, path, nbytes in CURVE_COSTS:
        curve = curves.get(path)
        if curve is not None and nbytes in curve["nbytes"]:
            value = curve["ways"][0]["GBps"][curve["nbytes"].index(nbytes)]
            lines.append(f"| {what} | {_shown(value)} GB/s |")
    return "\n".join(lines)


def plots_table(plots: list[dict[str, Any]]) -> str:
    """Return the plots as Markdown shows them."""
    return "\n\n".join(f"![{plot['title']}](plots/{plot['name']}.svg)" for plot in plots)


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


def with_runs(
    text: str, runs: dict[str, Path], table: Callable[[dict[str, Any]], str], page: str
) -> str:
    """A page's text with the table of each recorded run between the marks that name it."""
    for mark, path in runs.items():
        made = table(json.loads(path.read_text())) if path.exists() else "No run is recorded."
        text = replaced(text, mark, partial(str, made), page)
    return text


def rewrite(
    page: Path, runs: dict[str, str], table: Callable[[dict[str, Any]], str], check: bool
) -> int:
    """Put the tables of the runs into a page, or with check only say whether they are there."""
    text = page.read_text()
    made = with_runs(text, {mark: RESULTS / name for mark, name in runs.items()}, table, page.name)
    if not check:
        page.write_text(made)
        return 0
    if made != text:
        print(f"{page} is not what the runs in {RESULTS} say", file=sys.stderr)
    return int(made != text)


def records() -> tuple[dict[str, Any] | None, ...]:
    """Return the records of the host, of a GPU, and of two GPUs if that is another."""
    host, one, two = _read("host.json"), _read("h200.json"), _read("h200-x2.json")
    cuda = one if one is not None else two
    scaled, blocks = _read("h200-scaling.json"), _read("blocks-h200.json")
    if cuda is not None:
        cuda = with_curves(cuda)
        cuda.update({"scaling": scaled["scaling"]} if scaled else {})
        for key in ("curves", "groups", "targets") if blocks else ():
            cuda[key] = [*cuda.get(key, []), *(blocks or {})[key]]
    return host, cuda, two if cuda is not None and one is not None else None


def plots_for(record: dict[str, Any], host: bool) -> list[dict[str, Any]]:
    """Return the plots that the page shows of a record of the host, or of a GPU."""
    from hamr._benchmark.plots import plots_of

    return [plot for plot in plots_of(record) if plot["name"].startswith("host-") is host]


def page_of(
    host: dict[str, Any] | None, cuda: dict[str, Any] | None, two: dict[str, Any] | None
) -> str:
    """Return the text of the page, with the figures of the records there are."""
    page = PAGE.read_text()
    if host is not None:
        page = replaced(page, "figures", lambda: host_table(host), PAGE.name)
        page = replaced(page, "host plots", lambda: plots_table(plots_for(host, True)), PAGE.name)
    if cuda is not None:
        page = replaced(page, "cuda figures", lambda: cuda_table(cuda, two), PAGE.name)
        page = replaced(page, "cuda plots", lambda: plots_table(plots_for(cuda, False)), PAGE.name)
    if host is not None and cuda is not None:
        page = replaced(page, "costs", lambda: costs_table(host, cuda), PAGE.name)
    return page


def main() -> int:
    """Rewrite the page and the plots; with --check only say whether they are as the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--redraw", action="store_true", help="draw the plots that are right, too")
    given = parser.parse_args()
    check = given.check
    from hamr._benchmark.plotting import draw_plot, is_drawn

    found = records()
    kinds = zip(found[:2], (True, False), strict=True)
    plots = [plot for record, host in kinds if record for plot in plots_for(record, host)]
    stale = [plot for plot in plots if given.redraw or not is_drawn(plot, PLOTS)]
    page = page_of(*found)
    if check:
        wrong = [PLOTS / f"{plot['name']}.svg" for plot in stale]
        wrong += [PAGE] if PAGE.read_text() != page else []
        for path in wrong:
            print(f"{path} is not what {RESULTS} says: {__file__}", file=sys.stderr)
        return int(bool(wrong))
    for plot in stale:
        draw_plot(plot, PLOTS)
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
