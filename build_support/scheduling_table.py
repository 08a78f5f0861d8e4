"""The tables of docs/scheduling.md, from the recorded runs of ``hamr bench``.

python -m build_support.scheduling_table [--check]

A run is ``hamr bench --only scheduling pipeline --json docs/results/hetero-h200.json``, or
hetero-h200-x2.json on a machine with two GPUs.
"""

from __future__ import annotations

import sys
from typing import Any

from build_support.figures import RESULTS, ROOT, with_runs

PAGE = ROOT / "docs" / "scheduling.md"
RUNS = {"one GPU": "hetero-h200.json", "two GPUs": "hetero-h200-x2.json"}


def table(result: dict[str, Any]) -> str:
    """Return a run as Markdown."""
    machine = result["machine"]
    libraries = ", ".join(f"{name} {of}" for name, of in machine["libraries"].items())
    lines = [
        f"{' and '.join(machine['gpus'])}, driver {machine['driver']}, {machine['cores']} cores, "
        f"Python {machine['python']}, {libraries}; {machine['date']}, commit {machine['commit']}.",
        "",
        "| | µs | of the first | goal |",
        "|---|---|---|---|",
    ]
    for group in result["groups"]:
        lines.append(f"| **{group['group']}** | | | |")
        lines += [_line(row) for row in group["rows"]]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"| {row['operation']} | {row['error']} | | |"
    ratio = f"{row['ratio']:.3f}" if "ratio" in row else ""
    goal = ""
    if "met" in row:
        bound = f"{row['limit']} µs" if "limit" in row else f"{row['target']:.3f} of the first"
        goal = f"≤ {bound}, {'met' if row['met'] else 'not met'}"
    value = f"{row['value']:.3f}" if row["value"] < 10 else f"{row['value']:,.0f}"
    return f"| {row['operation']} | {value} | {ratio} | {goal} |"


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the results."""
    text = PAGE.read_text()
    paths = {mark: RESULTS / name for mark, name in RUNS.items()}
    made = with_runs(text, paths, table, PAGE.name)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
        return 0
    if made != text:
        print(f"{PAGE} is not what the runs in {RESULTS} say", file=sys.stderr)
    return int(made != text)


if __name__ == "__main__":
    sys.exit(main())
