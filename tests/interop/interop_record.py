"""What became of each cell, gathered into few rows."""

from __future__ import annotations

from typing import Any

import hamr
from hamr._benchmark import host
from tests.interop.interop_matrix import DTYPES, LAYOUTS, Library, Rule, Way


class Cells:
    """The outcomes of a run."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, ...], dict[str, dict[str, tuple[str, ...]]]] = {}

    def add(
        self, library: Library, way: Way, dtype: str, layout: str, outcome: str, rule: Rule | None
    ) -> None:
        """Note a cell's outcome, and by which rule."""
        key = (library.name, library.version, way.direction, way.protocol, way.call)
        known = ("", "", "") if rule is None else (errors(rule), rule.by, rule.reason)
        self.rows.setdefault(key, {}).setdefault(dtype, {})[layout] = (outcome, *known)

    def result(self) -> dict[str, Any]:
        """Where and with what it was run, and a row for each way."""
        names = ("library", "version", "direction", "protocol", "call")
        rows = [
            {**dict(zip(names, key, strict=True)), "cells": gathered(found)}
            for key, found in self.rows.items()
        ]
        return {"machine": machine(), "dtypes": DTYPES, "layouts": tuple(LAYOUTS), "rows": rows}


def errors(rule: Rule) -> str:
    """The names of the errors that a rule allows."""
    kinds = rule.error if isinstance(rule.error, tuple) else (rule.error,)
    return " or ".join(kind.__name__ for kind in kinds)


def gathered(found: dict[str, dict[str, tuple[str, ...]]]) -> list[dict[str, Any]]:
    """Groups of cells with one outcome: each is every one of its types in every one of its layouts.

    Types that fare alike in all layouts are together.
    """
    alike: dict[tuple[Any, ...], list[str]] = {}
    for dtype, cells in found.items():
        alike.setdefault(tuple(cells.items()), []).append(dtype)
    groups = []
    for cells, dtypes in alike.items():
        layouts: dict[tuple[str, ...], list[str]] = {}
        for layout, outcome in cells:
            layouts.setdefault(outcome, []).append(layout)
        for (outcome, error, by, reason), names in layouts.items():
            details = {"error": error, "by": by, "reason": reason}
            groups.append(
                {
                    "outcome": outcome,
                    **{key: value for key, value in details.items() if value},
                    "dtypes": dtypes,
                    "layouts": names,
                }
            )
    return groups


def machine() -> dict[str, Any]:
    """Where the cells were run."""
    facts = host.machine()
    cuda = hamr.backends().get("cuda", {})
    gpus = [device["name"] for device in cuda.get("devices", [])]
    return {**facts, "gpus": gpus} if gpus else facts
