"""The figures of docs/guides/blocks.md, from recorded runs.

python -m build_support.blocks_figures [--check]

The runs are ``hamr bench --only blocks --json docs/results/blocks-h200.json`` and
``python examples/paged_cache.py docs/results/paged-cache-h200.json``. The plots are drawn by
build_support/figures.py.
"""

from __future__ import annotations

import sys
from typing import Any

from build_support.figures import ROOT, rewrite, rows_of_groups
from hamr._benchmark.plots import plots_of

PAGE = ROOT / "docs" / "guides" / "blocks.md"
RUNS = {"figures": "blocks-h200.json", "paged cache": "paged-cache-h200.json"}


def table(result: dict[str, Any]) -> str:
    """Return a run as Markdown: the plots and what is no curve, or what the example measured."""
    if "groups" not in result:
        return _of_example(result)
    shown = [f"![{plot['title']}](../plots/{plot['name']}.svg)" for plot in plots_of(result)]
    return "\n\n".join([*shown, "\n".join(rows_of_groups(result["groups"]))])


def _of_example(result: dict[str, Any]) -> str:
    head = f"{result['gpu']}, products by {result['products by']}"
    lines = [f"{head}:", "", "| what was measured | |", "|---|--:|"]
    measured = {name: value for name, value in result.items() if isinstance(value, float)}
    return "\n".join([*lines, *(f"| {name} | {value:.1f} |" for name, value in measured.items())])


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the results."""
    return rewrite(PAGE, RUNS, table, "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
