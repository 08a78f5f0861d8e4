"""Two wheels side by side: ``python -m build_support.compare OLD NEW [--cuda] [--json FILE]``.

Each wheel is installed into a folder of its own and served by a process of its own. Every
round times one operation in one process and then in the other, in turns, so that both see the
machine in the same state, on the same core, since cores differ. The ratio new / old is taken
within the round, and the median over the rounds is reported. What is timed is what
``hamr bench`` times, in the rows that both have.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

LIMIT = 1.05  # of new / old; above it a row is marked

#: Reads lines of JSON, [name, calls], and answers each with the seconds that the calls took.
WORKER = """
import gc, json, sys, time
from hamr._benchmark import host

kinds = sys.argv[1:]
rows = {"host: " + name: run for name, run in host.operations().items()}
synchronize = lambda: None
if "cuda" in kinds:
    from hamr._benchmark import cuda, dlpack
    from hamr._benchmark.driver import Driver
    from hamr._benchmark.groups import Libraries
    driver, libraries = Driver(), Libraries()
    synchronize, keep = driver.synchronize, []
    parts = (cuda.hand_over, cuda.dlpack, cuda.small_moves, cuda.allocation)
    for group in (g for part in parts for g in part(libraries, driver)):
        keep.append(group)
        for case in group.cases:
            rows[group.title + ": " + case.name] = case.run
else:
    from hamr._benchmark.dlpack import host_groups
    for group in host_groups():
        for case in group.cases:
            rows[group.title + ": " + case.name] = case.run
for name in list(rows):
    try:
        rows[name]()
    except Exception as error:
        print(f"left out: {name}: {error}", file=sys.stderr)
        del rows[name]
print(json.dumps(list(rows)), flush=True)
gc.disable()
for line in sys.stdin:
    name, calls = json.loads(line)
    run, repeat = rows[name], range(calls)
    synchronize()
    start = time.perf_counter()
    for _ in repeat:
        run()
    synchronize()
    print(time.perf_counter() - start, flush=True)
"""


class Worker:
    """A process that has one of the wheels."""

    def __init__(self, wheel: Path, folder: Path, kinds: list[str]) -> None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, *kinds],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})
        self.names: list[str] = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker ended with status {self.process.wait()}")
        return line

    def seconds(self, name: str, calls: int) -> float:
        """How long the calls of one operation took."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, calls]) + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(old: Worker, new: Worker, rounds: int, share: float) -> list[dict[str, Any]]:
    """A row for each operation that both have: microseconds, and new / old."""
    rows = []
    for name in (n for n in new.names if n in set(old.names)):
        calls = _calls(old, name, share)
        for worker in (old, new):
            worker.seconds(name, calls)
        before: list[float] = []
        after: list[float] = []
        for round_number in range(rounds):
            turns = [(old, before), (new, after)]
            for worker, values in turns if round_number % 2 else reversed(turns):
                values.append(worker.seconds(name, calls) / calls * 1e6)
        ratios = sorted(n / o for o, n in zip(before, after, strict=True))
        rows.append(
            {
                "operation": name,
                "old_us": round(statistics.median(before), 4),
                "new_us": round(statistics.median(after), 4),
                "ratio": round(statistics.median(ratios), 3),
                "quartiles": [round(ratios[rounds // 4], 3), round(ratios[-1 - rounds // 4], 3)],
            }
        )
    return rows


def _calls(worker: Worker, name: str, share: float) -> int:
    calls = 4
    while (took := worker.seconds(name, calls)) < share / 4 and calls < 50_000:
        calls *= 4
    return max(1, min(50_000, int(calls * share / took)))


def main() -> int:
    """Print the rows, the slowest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--cuda", action="store_true", help="the operations on a GPU, too")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice", type=float, default=0.01, help="seconds of one timing")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds = ["cuda"] if given.cuda else []
        old = Worker(given.old, Path(folder) / "old", kinds)
        new = Worker(given.new, Path(folder) / "new", kinds)
        rows = compare(old, new, given.rounds, given.slice)
        old.end()
        new.end()
    for row in sorted(rows, key=lambda row: -row["ratio"]):
        slower = "  SLOWER" if row["ratio"] > LIMIT else ""
        low, high = row["quartiles"]
        print(
            f"{row['operation']:88.88} {row['old_us']:10.3f} {row['new_us']:10.3f} "
            f"{row['ratio']:6.3f} ({low:.3f} ... {high:.3f}){slower}"
        )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
