"""The tables of docs/sharing.md, from the recorded runs of ``hamr bench``.

python -m build_support.sharing_table [--check]

The runs are ``hamr bench --only store-cuda --json docs/results/store-h100.json``, and one on an
H200.
"""

from __future__ import annotations

import sys

from build_support import scheduling_table
from build_support.figures import ROOT, rewrite

PAGE = ROOT / "docs" / "sharing.md"
RUNS = {"an H100": "store-h100.json", "an H200": "store-h200.json"}


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the result."""
    return rewrite(PAGE, RUNS, scheduling_table.table, "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
