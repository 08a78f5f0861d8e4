"""The tables of docs/interoperability.md are those of the recorded runs."""

import json
import subprocess
import sys

from tests.support.paths import ROOT

RESULTS = sorted((ROOT / "docs" / "results").glob("interop-*.json"))

SHOW = """
import json, sys
from build_support.interop_table import table
print(table(json.load(sys.stdin)))
"""

RUN = {
    "machine": {"cpu": "C", "python": "3.12", "date": "today", "commit": "abc"},
    "dtypes": ["bool", "int8", "complex64", "complex128"],
    "layouts": ["C", "F"],
    "rows": [
        {
            "library": "L",
            "version": "1",
            "direction": "to",
            "protocol": "p",
            "call": "f(b)",
            "cells": [
                {"outcome": "shared", "dtypes": ["int8"], "layouts": ["C"]},
                {
                    "outcome": "refused",
                    "error": "TypeError",
                    "by": "hamr",
                    "reason": "there are none",
                    "dtypes": ["complex64", "complex128"],
                    "layouts": ["C", "F"],
                },
                {"outcome": "failed", "dtypes": ["bool"], "layouts": ["C", "F"]},
            ],
        }
    ],
}


def shown(run, seed):
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        input=json.dumps(run),
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
        env={"PYTHONHASHSEED": str(seed), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def test_the_page_is_what_the_runs_say():
    command = [sys.executable, "-m", "build_support.interop_table", "--check"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_is_shown_with_what_was_refused_and_what_failed():
    text = shown(RUN, 0)
    assert "7 cells: 1 shared, 4 refused, 2 failed." in text
    assert (
        "| L | to | `p` | `f(b)` | 1; int8; C "
        "| 4 refused (TypeError by hamr); complex: there are none<br>2 failed; bool |"
    ) in text


def test_the_committed_runs_are_whole():
    assert RESULTS
    for path in RESULTS:
        run = json.loads(path.read_text())
        assert run["machine"]["commit"]
        whole = len(run["dtypes"]) * len(run["layouts"])
        for row in run["rows"]:
            cells = [
                (dtype, layout)
                for group in row["cells"]
                for dtype in group["dtypes"]
                for layout in group["layouts"]
            ]
            assert len(cells) == len(set(cells)) == whole, (path.name, row["call"])
            assert all(group["outcome"] != "failed" for group in row["cells"])
        assert shown(run, 1) == shown(run, 2)
