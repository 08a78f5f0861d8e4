"""Test the Go code, with the race detector where one can be had, else with checkptr.

python -m build_support.go_tests
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from build_support import toolchain
from build_support.summary import Row, report

RACE_PROBE = """package main

import "C"

func main() {}
"""

# One goroutine after another, or counts alone: the race detector would find nothing that the same
# steps elsewhere do not show it, and makes them two to ten times slower. Each is run once, without.
ONE_AFTER_ANOTHER = {
    "./backends/cuda": ["TestEveryCallFails", "TestPausesByTheModel/[1-7]"],
    "./gobuffer": [
        "TestEachSingleFaultInScenarios",
        "TestEveryFailureLeavesTheBufferAsItWas",
        "TestWriteBroadcasts",
        "TestBlocksAreCopiedAsPlainValues",
        "TestResettingPeaksLosesNoAllocation/many",
    ],
    "./store": ["TestTheBookAlone/[1-9]"],
    "./store/internal/server": ["TestAPacketFullOfRequests"],
}


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


def watch(lines: Iterable[str]) -> Counter[str]:
    """Print what matters of go test's events; return how many tests were skipped, by reason."""
    written: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    skipped: Counter[str] = Counter()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            print(line, end="")
            continue
        test, text = event.get("Test"), event.get("Output", "")
        if test is None:
            print("" if text == "PASS\n" else text, end="", flush=True)
            continue
        output = written[event["Package"], test]
        output.append(text)
        if event["Action"] == "fail":
            print(*output, sep="", end="", flush=True)
        if event["Action"] == "skip":
            said = re.findall(r"^ +\w+\.go:\d+: (.*)", "".join(output), re.MULTILINE)
            skipped[said[-1] if said else "no reason"] += 1
        if event["Action"] in ("pass", "fail", "skip"):
            del written[event["Package"], test]
    return skipped


def run_tests(arguments: list[str], settings: dict[str, str] | None = None) -> str:
    """Run go test; return "passed …" or what went wrong, and what was skipped and why.

    ``settings`` are added to the environment.
    """
    started = time.monotonic()
    command = ["go", "test", "-json", *arguments]
    with subprocess.Popen(
        command,
        cwd=toolchain.ROOT,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        env=os.environ | (settings or {}),
    ) as process:
        assert process.stdout is not None
        skipped = watch(process.stdout)
    status, seconds = process.returncode, time.monotonic() - started
    outcome = "passed" if status == 0 else f"failed (status {status})"
    reasons = (f"\n    {n} skipped: {reason}" for reason, n in skipped.most_common())
    return f"{outcome} in {seconds:.0f} s{''.join(reasons)}"


def main() -> int:
    """Run vet and the tests."""
    rows: list[Row] = []
    reason = no_race_detector()
    # The race detector brings checkptr, which looks at conversions of pointers, with it.
    checks = ["-gcflags=all=-d=checkptr"] if reason else ["-race"]
    alone = "|".join(test for tests in ONE_AFTER_ANOTHER.values() for test in tests)
    rows.append((" ".join(["go test", *checks]), run_tests([*checks, "-skip", alone, "./..."])))
    rows.append(("go test, one after another", run_tests(["-run", alone, *ONE_AFTER_ANOTHER])))
    if reason:
        rows.append(("race detector", f"left out: {reason}"))
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
