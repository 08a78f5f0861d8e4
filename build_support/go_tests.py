"""Vet and test the Go code, with the race detector where one can be had.

python -m build_support.go_tests
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from build_support import toolchain
from build_support.summary import Row, report

RACE_PROBE = """package main

import "C"

func main() {}
"""


def no_race_detector() -> str:
    """Return why the race detector cannot be had, or "": a program is linked with it and run."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.go").write_text(RACE_PROBE)
        command = ["go", "run", "-race", "main.go"]
        done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    if done.returncode == 0:
        return ""
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return f"go run -race fails on {platform.machine()}: {last}"


def timed(command: list[str]) -> str:
    """Run a command; return "passed …" or what went wrong."""
    started = time.monotonic()
    done = subprocess.run(command, cwd=toolchain.ROOT, check=False)
    if done.returncode != 0:
        return f"failed (status {done.returncode})"
    return f"passed in {time.monotonic() - started:.0f} s"


def main() -> int:
    """Run vet and the tests."""
    rows: list[Row] = [("go vet", timed(["go", "vet", "./..."]))]
    reason = no_race_detector()
    race = [] if reason else ["-race"]
    rows.append((" ".join(["go test", *race]), timed(["go", "test", *race, "./..."])))
    if reason:
        rows.append(("race detector", f"left out: {reason}"))
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
