"""Run the steps of `make test` one after the other, and end with a line for each of their parts.

python -m build_support.summary STEP..., each a target of the Makefile, or several as ONE+OTHER that
run at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

#: What was run, and "passed …", "left out: …" with the reason, or what went wrong.
Row = tuple[str, str]

#: Names the file where the steps leave their rows for the run as a whole.
VARIABLE = "HAMR_TEST_SUMMARY"
#: Names a folder of this run, where one step leaves the wheel that it builds for later ones.
WHEELS = "HAMR_TEST_WHEELS"


def failed(rows: Iterable[Row]) -> bool:
    """Return whether something went wrong."""
    return any(not outcome.startswith(("passed", "left out")) for _, outcome in rows)


def show(rows: list[Row]) -> None:
    """Print the rows, and how many parts were left out."""
    print("\n=== Summary")
    for name, outcome in rows:
        print(f"{name}: {outcome}")
    left_out = sum(outcome.startswith("left out") for _, outcome in rows)
    if left_out:
        print(f"{left_out} left out: this machine has not what they need")
    sys.stdout.flush()


def report(rows: list[Row]) -> int:
    """Hand rows to the run as a whole, or print them; return the exit status that they mean."""
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        show(rows)
    return int(failed(rows))


def run_step(step: str, *, alone: bool = True) -> list[Row]:
    """Make a target; return a row for it and those it reported.

    What it prints comes at once, or if it is not alone when it has ended.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        started = time.monotonic()
        done = subprocess.run(
            ["make", step],
            env={**os.environ, VARIABLE: str(path)},
            text=True,
            stdout=None if alone else subprocess.PIPE,
            stderr=None if alone else subprocess.STDOUT,
            check=False,
        )
        seconds = time.monotonic() - started
        print(done.stdout or "", end="", flush=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    outcome = "passed" if done.returncode == 0 else f"failed (status {done.returncode})"
    rows = [tuple(json.loads(line)) for line in lines]
    return [(f"make {step}", f"{outcome} in {seconds:.0f} s"), *((f"  {n}", o) for n, o in rows)]


def run_steps(steps: str) -> list[Row]:
    """Run a step, or several at the same time; return their rows in the order of the steps."""
    together = steps.split("+")
    with ThreadPoolExecutor(len(together)) as pool:
        each = pool.map(partial(run_step, alone=len(together) == 1), together)
        return [row for rows in each for row in rows]


def main() -> int:
    """Run all steps, whether one failed or not, so that one run shows all that fails."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[WHEELS] = folder
        return report([row for steps in sys.argv[1:] for row in run_steps(steps)])


if __name__ == "__main__":
    sys.exit(main())
