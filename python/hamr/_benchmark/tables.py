"""A record of ``hamr bench`` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .groups import group_lines, size_text


def lines_of(record: dict[str, Any]) -> list[str]:
    """All tables, with what is absent and what was left out."""
    facts = {k: v for k, v in record["machine"].items() if v and k not in ("gpus", "libraries")}
    facts.update(record["machine"].get("libraries", {}))
    gpus = record["machine"].get("gpus", [])
    lines = [", ".join([*gpus, *(f"{k} {v}" for k, v in facts.items())])]
    lines += [f"absent: {name}: {why}" for name, why in record["absent"].items()]
    lines += [*_of_host(record)]
    for group in record["groups"]:
        lines += ["", *group_lines(group)]
    for curve in record["curves"]:
        lines += ["", *curve_lines(curve)]
    for step in record.get("scaling", []):
        lines += ["", *_scaling_lines(step)]
    if record["targets"]:
        lines += ["", *target_lines(record["targets"])]
    lines += ["", *(f"skipped: {what}" for what in record["skipped"])]
    lines.append(f"in {record['seconds']} s")
    return lines


def _of_host(record: dict[str, Any]) -> Iterator[str]:
    if "operations" in record:
        yield ""
        yield "x floor: how many times what the row of its table with 1.00 takes"
        yield ""
        yield f"{'operation':44} {'ns':>9} {'x floor':>8}"
        for row in record["operations"]:
            yield f"{row['operation']:44} {row['ns']:9.0f} {row['ratio']:8.2f}"
    for group in record.get("dlpack", []):
        yield ""
        yield from group_lines(group)
    threads, cost = record.get("threads"), record.get("import")
    if threads:
        yield ""
        yield f"create and free, 1 thread  {threads['one_thread_ns']:9.0f} ns a pair"
        yield (
            f"create and free, 8 threads {threads['eight_threads_ns']:9.0f} ns a pair, "
            f"{threads['ratio']:.2f} x one thread"
        )
    if cost:
        ratio = cost.get("ratio_to_ctypes")  # older records have none
        beside = f", {ratio:.2f} x import ctypes" if ratio else ""
        yield (
            f"import hamr {cost['import_ms']:.1f} ms, {cost['import_MiB']:.1f} MiB{beside}; "
            f"first buffer {cost['first_buffer_ms']:.1f} ms, {cost['first_buffer_MiB']:.1f} MiB"
        )


def curve_lines(curve: dict[str, Any]) -> list[str]:
    """A curve in GB/s: a line for each size, a column for each way."""
    ways = curve["ways"]
    heads = ["limit" if way["role"] == "limit" else way["library"] for way in ways]
    widths = [max(10, len(head) + 2) for head in heads]
    lines = [f"{curve['path']}, GB/s"]
    lines.append(
        f"{'size':>9}"
        + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))
        + "   hamr of limit, driver"
    )
    for i, nbytes in enumerate(curve["nbytes"]):
        cells = [f"{_cell(way, i):>{width}}" for way, width in zip(ways, widths, strict=True)]
        ratios = [_ratio(ways[0], key, i) for key in ("of_limit", "of_driver")]
        times = f"   x {curve['counts'][i]:,}" if "counts" in curve else ""
        shares = f"{ratios[0]:>16}{ratios[1]:>8}{times}"
        lines.append(f"{size_text(nbytes):>9}" + "".join(cells) + shares)
    lines += [f"  {head}: {way['operation']}" for head, way in zip(heads, ways, strict=True)]
    for way in ways:
        for nbytes, error in way.get("errors", {}).items():
            lines.append(f"  {way['operation']}, {size_text(int(nbytes))}: {error}")
    return lines


def _cell(way: dict[str, Any], i: int) -> str:
    values = way.get("GBps", [])
    value = values[i] if i < len(values) else None
    return "-" if value is None else f"{value:.4g}"


def _ratio(way: dict[str, Any], key: str, i: int) -> str:
    values = way.get(key, [])
    value = values[i] if i < len(values) else None
    return "" if value is None else f"{value:.2f}"


def _scaling_lines(step: dict[str, Any]) -> Iterator[str]:
    cores = step["cores"]
    yield f"{size_text(step['nbytes'])} on {cores} core{'s' if cores > 1 else ''}, GB/s"
    for point in step["points"]:
        for row in point["rows"]:
            shown = row.get("error") or f"{row['GBps']:.4g}"
            yield f"  {point['path'] + ': ' + row['operation']:76} {shown}"


def target_lines(targets: list[dict[str, Any]]) -> list[str]:
    """Each target, its figure, and whether it is met."""
    words = {True: "met", False: "NOT MET", None: "not measured"}
    width = max(len(row["what"]) for row in targets)
    lines = [f"{'targets; the bus is a page-locked copy':{width}}  {'figure':>8}"]
    for row in targets:
        value = "" if row["value"] is None else f"{row['value']:.3g}"
        lines.append(f"{row['what']:{width}}  {value:>8}  {row['bound']:16} {words[row['met']]}")
    return lines
