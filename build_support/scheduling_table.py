"""The tables of docs/scheduling.md, from the recorded runs of ``hamr bench``.

python -m build_support.scheduling_table [--check]

A run is ``hamr bench --only scheduling pipeline --json docs/results/hetero-h200.json``, or
hetero-h200-x2.json on a machine with two GPUs.
"""

from __future__ import annotations

import sys
from typing import Any

from build_support.figures import ROOT, rewrite

PAGE = ROOT / "docs" / "scheduling.md"
RUNS = {"one GPU": "hetero-h200.json", "two GPUs": "hetero-h200-x2.json"}


def table(result: dict[str, Any], against: str = "the first") -> str:
    """Return a run as Markdown; against says what a group's rows are compared with."""
    machine = result["machine"]
    libraries = ", ".join(f"{name} {of}" for name, of in machine["libraries"].items())
    lines = [
        f"{' and '.join(machine['gpus'])}, driver {machine['driver']}, {machine['cores']} cores, "
        f"Python {machine['python']}, {libraries}; {machine['date']}, commit {machine['commit']}.",
        "",
        f"| | µs | of {against} | goal |",
        "|---|---|---|---|",
    ]
    for group in result["groups"]:
        lines.append(f"| **{group['group']}** | | | |")
        lines += [_line(row, against) for row in group["rows"]]
    return "\n".join(lines)


def _line(row: dict[str, Any], against: str) -> str:
    if "error" in row:
        return f"| {row['operation']} | {row['error']} | | |"
    ratio = f"{row['ratio']:.3f}" if "ratio" in row else ""
    goal = ""
    if "met" in row:
        bound = f"{row['limit']} µs" if "limit" in row else f"{row['target']:.3f} of {against}"
        goal = f"≤ {bound}, {'met' if row['met'] else 'not met'}"
    value = f"{row['value']:.3f}" if row["value"] < 10 else f"{row['value']:,.0f}"
    return f"| {row['operation']} | {value} | {ratio} | {goal} |"


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the results."""
    return rewrite(PAGE, RUNS, table, "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
