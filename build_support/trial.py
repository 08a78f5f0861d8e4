"""Test with the trial backend, which stands for runtimes that hamr has not met yet.

python -m build_support.trial [--go]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from build_support import tags, toolchain
from build_support.go_tests import run_tests
from build_support.summary import Row, report

TAG = "trial"
SUITE = ["./backends/trial", "./backends/all"]
#: Every walk and every single fault, with the trial backend as one of the two runtimes.
MODEL = ["./gobuffer", "-run=^(TestModel|TestEachSingleFault).*$/^trial"]
#: Settings by which copies of the model's few bytes are staged.
STAGED = {"HAMR_COPY_CHUNK": "16", "HAMR_COPY_THREADS": "2", "HAMR_PINNED_LIMIT": "160"}
FOLDER = toolchain.ROOT / ".venvs" / TAG
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def timed(command: list[str]) -> str:
    """Run a command; return "passed …" or what went wrong."""
    started = time.monotonic()
    done = subprocess.run(command, cwd=toolchain.ROOT, check=False)
    if done.returncode != 0:
        return f"failed (status {done.returncode})"
    return f"passed in {time.monotonic() - started:.0f} s"


def go_part() -> list[Row]:
    """Run the conformance suite and the model."""
    return [
        ("trial backend: conformance", run_tests([f"-tags={TAG}", *SUITE])),
        ("trial backend: model", run_tests([f"-tags={TAG}", *MODEL])),
        ("trial backend: model, staged", run_tests([f"-tags={TAG}", *MODEL], STAGED)),
    ]


def install() -> Path:
    """Install a build with the trial backend; return its environment's Python."""
    venv = [sys.executable, "-m", "venv", "--without-pip", str(FOLDER)]
    subprocess.run(venv, check=True)
    python = FOLDER / "bin" / "python"
    command = [*PIP, "--python", str(python), "install"]
    subprocess.run([*command, "pytest", "hypothesis", "numpy"], check=True)
    build = [*command, "--no-deps", "--force-reinstall", str(toolchain.ROOT)]
    subprocess.run(build, check=True, env=os.environ | {tags.VARIABLE: TAG})
    return python


def python_part() -> list[Row]:
    """Run tests/trial, in C and Python that know of the backend by its rows of facts alone."""
    name = "trial backend: Python"
    try:
        python = install()
    except subprocess.CalledProcessError as error:
        return [(name, f"not set up: {error}")]
    rows = []
    for threads in ("0", "2"):
        os.environ |= {"HAMR_TEST_TRIAL": "1", "HAMR_TRIAL_THREADS": threads}
        command = [str(python), "-m", "pytest", "-q", "tests/trial"]
        rows.append((f"{name}, {threads} threads", timed(command)))
    return rows


def main() -> int:
    """Run all of it, or with --go what takes seconds."""
    rows = go_part()
    if "--go" not in sys.argv[1:]:
        rows = [("go vet", timed(["go", "vet", f"-tags={TAG}", "./..."])), *rows, *python_part()]
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
