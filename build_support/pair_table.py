"""Record how elements get from each allocator to each space and allocator, and write docs/pairs.md.

python -m build_support.pair_table [--record RESULT] [--check]

HAMR_TEST_CUDA and HAMR_TEST_HIP choose the runtimes of a record, as they do for the tests.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

from .figures import with_runs

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "pairs.md"
RESULTS = ROOT / "docs" / "results"

#: The runs, by the mark of their place in the page.
RUNS = {"emulated pairs": "pairs-emulator.json", "device pairs": "pairs-h200.json"}

#: So many float32 that page-locked memory is worth taking on the way, and that no short way of C's,
#: which says nothing, is taken.
COUNT = 100_000


class Trace(logging.Handler):
    """What hamr says that it does, while a block runs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.logger = logging.getLogger("hamr.pairs")
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self.lines.append(record.getMessage())

    def __enter__(self) -> Trace:
        import hamr

        self.logger.addHandler(self)
        hamr.set_verbose(1, self.logger)
        return self

    def __exit__(self, *exception: object) -> None:
        import hamr

        hamr.set_verbose(0, self.logger)
        self.logger.removeHandler(self)


def way_of(lines: list[str]) -> str:
    """Return how elements were moved, in a word or two, by what hamr said of it."""
    text = "\n".join(lines)
    staged = re.search(r"between \S+ and \S+ are \d+ pieces of \d+ bytes of (\w+)", text)
    if staged:
        return f"staged, {staged[1]}"
    if re.search(r"copy \d+ elements .* on the host", text):
        return "by the host"
    if re.search(r"(copy|convert) \d+ (bytes|elements) ", text):
        return "direct"
    raise ValueError(f"nothing is said of how elements were moved: {text!r}")


def access(buffer: Any, space: str) -> str:
    """Return how code in a space gets at a buffer's elements."""
    with Trace() as trace:
        handle = getattr(buffer, f"get_{space}_accessible")()
        temporary = handle.is_temporary
        del handle
    if temporary:
        return way_of(trace.lines)
    mapped = any(" mapped at " in line for line in trace.lines)
    return "mapped" if mapped else "in place"


def copy(buffer: Any, allocator: str) -> str:
    """Return how a buffer's elements get to memory of an allocator."""
    with Trace() as trace:
        buffer.copy(allocator)
    return way_of(trace.lines)


def runtimes() -> dict[str, str]:
    """Return what serves each space here, or why nothing does."""
    from tests.support import emulation, space_rows

    found = {}
    for space in space_rows.NAMES:
        reason = space_rows.absent(space)
        if reason or space == "host":
            found[space] = reason.partition(": ")[2] if reason else "this machine's memory"
            continue
        device = space_rows.found()[space]["devices"][0]
        said = [device.get("platform"), device.get("driver"), device["name"]]
        if space == "cuda" and emulation.CHOSEN == "emulator":
            said = ["the emulated driver of the tests"]
        elif space == "hip" and emulation.HIP:
            said = ["the tests' stand-in for AMD's runtime, over the emulated driver"]
        found[space] = ", ".join(str(each) for each in said if each)
    return found


def record() -> dict[str, Any]:
    """Return the run on this machine: a cell for each allocator and space, and two allocators."""
    from tests.support import emulation, space_rows

    emulation.choose()
    import hamr
    from hamr._benchmark import host

    spaces = [space for space in space_rows.NAMES if not space_rows.absent(space)]
    names = [name for space in spaces for name in space_rows.allocators(space)]
    reached: dict[str, dict[str, str]] = {}
    copied: dict[str, dict[str, str]] = {}
    for name in names:
        buffer = hamr.Buffer(COUNT, "float32", name, fill=1)
        reached[name] = {space: access(buffer, space) for space in spaces}
        copied[name] = {to: copy(buffer, to) for to in names}
    return {
        "machine": host.machine(),
        "runtimes": runtimes(),
        "access": reached,
        "copies": copied,
    }


def _matrix(rows: dict[str, dict[str, str]], corner: str) -> list[str]:
    columns = list(next(iter(rows.values())))
    lines = [f"| {corner} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, cells in rows.items():
        lines.append(f"| `{name}` | {' | '.join(cells[each] for each in columns)} |")
    return lines


def table(result: dict[str, Any]) -> str:
    """Return a run as Markdown."""
    machine = result["machine"]
    lines = [
        f"{machine['cpu']}, Python {machine['python']}, {machine['date']}, "
        f"commit {machine['commit']}. The runtimes:",
        "",
        *(f"- {space}: {said}" for space, said in result["runtimes"].items()),
        "",
        "Code in a space, and the elements of an allocator's memory:",
        "",
        *_matrix(result["access"], "memory"),
        "",
        "Copies, from the rows' memory to the columns':",
        "",
        *_matrix(result["copies"], "from"),
    ]
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page's text with the tables of the recorded runs."""
    return with_runs(text, {mark: RESULTS / name for mark, name in RUNS.items()}, table, PAGE.name)


def main() -> int:
    """Rewrite the page, after a run if one is to be recorded; --check only compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--record", type=Path, help="run it here, and write that there")
    options = parser.parse_args()
    if options.record is not None:
        options.record.write_text(json.dumps(record(), indent=1) + "\n")
    text = PAGE.read_text()
    made = page(text)
    if options.check:
        if made != text:
            print(f"{PAGE} is not what the runs in {RESULTS} say", file=sys.stderr)
        return int(made != text)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
