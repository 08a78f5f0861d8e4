"""Write the recorded runs of the interoperability matrix into docs/interoperability.md.

python -m build_support.interop_table [--check]

A run is recorded by HAMR_INTEROP_RECORD=PATH python -m pytest tests/interop.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .figures import with_runs

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "interoperability.md"
RESULTS = ROOT / "docs" / "results"

#: The runs, by the mark of their place in the page.
RUNS = {"host cells": "interop-host.json", "device cells": "interop-h200.json"}

FAMILIES = {
    "int8 … int64": ("int8", "int16", "int32", "int64"),
    "uint8 … uint64": ("uint8", "uint16", "uint32", "uint64"),
    "float16 … float64": ("float16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
    "bfloat16, float8": ("bfloat16", "float8_e4m3fn", "float8_e5m2"),
}

#: Outcomes in words; the others are written as they are.
WORDS = {"shared": "shared", "no such type": "the library has no such type"}


def table(result: dict[str, Any]) -> str:
    """Return a run as Markdown: a row for each library, direction, protocol and call."""
    machine = result["machine"]
    where = [*dict.fromkeys(machine.get("gpus", [])), machine["cpu"]]
    counts: dict[str, int] = {}
    for row in result["rows"]:
        for group in row["cells"]:
            counts[group["outcome"]] = counts.get(group["outcome"], 0) + _count(group)
    versions = dict.fromkeys(
        f"{row['library']} {row['version']}" for row in result["rows"] if "." not in row["library"]
    )
    lines = [
        f"{', '.join(where)}, Python {machine['python']}, {machine['date']}, "
        f"commit {machine['commit']}; {', '.join(versions)}.",
        "",
        f"{sum(counts.values())} cells: {', '.join(f'{n} {what}' for what, n in counts.items())}.",
        "",
        "| library | | protocol | call | shared | otherwise |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        shared: list[str] = []
        others: list[str] = []
        for group in _merged(row["cells"]):
            plain = group["outcome"] == "shared" and "reason" not in group
            (shared if plain else others).append(_group(group, result))
        lines.append(
            f"| {row['library']} | {row['direction']} | `{row['protocol']}` | `{row['call']}` "
            f"| {'<br>'.join(shared)} | {'<br>'.join(others)} |"
        )
    return "\n".join(lines)


def _merged(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Groups of one outcome and reason together, where that is still all types times layouts."""
    found: list[dict[str, Any]] = []
    for group in groups:
        for other in found:
            if _why(other) == _why(group) and (
                other["layouts"] == group["layouts"] or other["dtypes"] == group["dtypes"]
            ):
                other["dtypes"] = [*dict.fromkeys([*other["dtypes"], *group["dtypes"]])]
                other["layouts"] = [*dict.fromkeys([*other["layouts"], *group["layouts"]])]
                break
        else:
            found.append(dict(group))
    return found


def _why(group: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(group.get(key) for key in ("outcome", "error", "by", "reason"))


def _count(group: dict[str, Any]) -> int:
    return len(group["dtypes"]) * len(group["layouts"])


def _group(group: dict[str, Any], result: dict[str, Any]) -> str:
    """Return "11 refused (TypeError by hamr); bool: Arrow packs bool into bits"."""
    what = WORDS.get(group["outcome"], group["outcome"])
    if "error" in group:
        what += f" ({group['error']} by {group['by']})"
    if what == "shared" and "reason" not in group:
        what = ""
    which = [
        _names(group["dtypes"], result["dtypes"], FAMILIES),
        _names(group["layouts"], result["layouts"], {}),
    ]
    words = " ".join(filter(None, [str(_count(group)), what]))
    text = "; ".join(filter(None, [words, *which]))
    return f"{text}: {group['reason']}" if group.get("reason") else text


def _names(found: list[str], known: list[str], families: dict[str, tuple[str, ...]]) -> str:
    """Return names, or those that are missing if they are few; "" for all."""
    missing = [name for name in known if name not in found]
    if not missing:
        return ""
    few = _gathered(missing, families)
    many = _gathered([name for name in known if name in found], families)
    return f"all but {', '.join(few)}" if len(few) < len(many) else ", ".join(many)


def _gathered(names: list[str], families: dict[str, tuple[str, ...]]) -> list[str]:
    found = []
    for name in names:
        family = next((key for key, members in families.items() if name in members), None)
        if family is not None and all(member in names for member in families[family]):
            name = family
        if name not in found:
            found.append(name)
    return found


def page(text: str) -> str:
    """Return the page's text with the tables of the recorded runs."""
    return with_runs(text, {mark: RESULTS / name for mark, name in RUNS.items()}, table, PAGE.name)


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the runs are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    text = PAGE.read_text()
    made = page(text)
    if options.check:
        if made != text:
            print(f"{PAGE} is not what the runs in {RESULTS} say: make interop", file=sys.stderr)
        return int(made != text)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
