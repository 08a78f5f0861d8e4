"""The table of docs/pygpu.md, from the recorded run of ``hamr bench``.

python -m build_support.pygpu_figures [--check]

The run is ``hamr bench --only pygpu --json docs/results/pygpu-h200.json``.
"""

from __future__ import annotations

import sys
from typing import Any

from build_support import scheduling_table
from build_support.figures import ROOT, rewrite

PAGE = ROOT / "docs" / "pygpu.md"
RUNS = {"one GPU": "pygpu-h200.json"}


def table(result: dict[str, Any]) -> str:
    """Return the run as Markdown: code as such, and the row that a group is compared with named."""
    groups = [
        {**group, "rows": [_shown(row, group["floor"]) for row in group["rows"]]}
        for group in result["groups"]
    ]
    return scheduling_table.table({**result, "groups": groups}, "the floor")


def _shown(row: dict[str, Any], floor: str | None) -> dict[str, Any]:
    name = row["operation"]
    is_code = any(bracket in name for bracket in "([") and ": " not in name
    shown = f"`{name}`" if is_code else name
    return {**row, "operation": f"{shown}, the floor" if name == floor else shown}


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the result."""
    return rewrite(PAGE, RUNS, table, "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
