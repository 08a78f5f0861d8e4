"""``hamr tune``: measure each device, print the results, and write them to a file."""

from __future__ import annotations

import json
import os
import sys
from typing import NamedTuple

import hamr

from .choosing import (
    DRIVER,
    NEVER,
    QUICK_SIZES,
    SIZES,
    Choice,
    choose,
    combine,
    measure,
    thread_counts,
)
from .copies import DOWN, UP, Copies
from .files import KEY, check_writable, write_entries
from .settings import report_of, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .choosing import Times
    from .settings import Report

ROUNDS, QUICK_ROUNDS = 9, 3
CHOSEN = "HAMR_COPY_THREADS", "HAMR_COPY_CHUNK", "HAMR_PINNED_LIMIT"
_TITLES = {UP: "to the device", DOWN: "to the host"}


class Request(NamedTuple):
    """What the command line asks for."""

    as_json: bool = False
    dry_run: bool = False
    quick: bool = False


class Target(NamedTuple):
    """A device to measure."""

    backend: str
    device: int
    allocator: str
    report: Report

    def key(self) -> dict[str, str]:
        """The lines of a file that say which machine it is."""
        return {name: self.backend if name == "backend" else self.report[name][0] for name in KEY}


class Found(NamedTuple):
    """What was measured on a device, in each direction, and the choices."""

    target: Target
    times: dict[str, Times]
    choices: dict[str, Choice]


def targets() -> list[Target]:
    """Each device whose backend stages copies."""
    found = []
    for name, row in hamr.backends().items():
        for device in range(len(row["devices"])):
            report = report_of(name, device)
            if report is not None:
                found.append(Target(name, device, row["allocators"][0], report))
    return found


def main(request: Request, copies: Callable[[str, int, str, int], Any] = Copies) -> int:
    """Run it; the result is the exit status."""
    devices = targets()
    problem = problem_of(devices, request)
    if problem:
        print(f"hamr tune: {problem}", file=sys.stderr)
        return 1
    try:
        found = [tune(target, request.quick, copies) for target in first_ones(devices, request)]
    except (RuntimeError, MemoryError) as error:
        print(f"hamr tune: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: nothing is written", file=sys.stderr)
        return 130
    files = {} if request.dry_run else entries_by_file(found)
    written = []  # before anything is printed: the reader may be gone
    for path, entries in files.items():
        try:
            write_entries(path, entries)
        except OSError as error:
            why = error.strerror or error
            print(f"hamr tune: {path} cannot be written: {why}", file=sys.stderr)
        else:
            written.append(path)
    if request.as_json:
        facts = {"devices": [facts_of(f) for f in found], "written": written}
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(line for f in found for line in lines_of(f)))
        print("\n".join(f"written to {path}" for path in written) or "nothing is written")
    return 0 if len(written) == len(files) else 1


def problem_of(devices: list[Target], request: Request) -> str | None:
    """Why nothing can be measured or written; None if it can."""
    if not devices:
        return "no backend that is available here stages copies (hamr info says why)"
    for target in devices:
        if "cpu" not in target.report:
            state = target.report["tuning"][1]
            return f"nothing is known of {target.backend} device {target.device}: {state}"
        if "environment" in (target.report["from_up"][1], target.report["threads_up"][1]):
            names = " and ".join(name for name in CHOSEN if os.environ.get(name))
            return f"{names or 'the environment'} chooses already: unset it to measure"
        path, state = target.report["tuning"]
        if request.dry_run:
            continue
        if not path:
            return (
                f"there is no file to write ({state}): use --dry-run, or set HAMR_TUNING to a path"
            )
        try:
            check_writable(path)
        except OSError as error:
            return f"{path} cannot be written: {error.strerror or error}"
    return None


def first_ones(devices: list[Target], request: Request) -> list[Target]:
    """All devices; for a quick run one of each kind."""
    if not request.quick:
        return devices
    kinds: dict[tuple[str, ...], Target] = {}
    for target in devices:
        kinds.setdefault(tuple(target.key().values()), target)
    return list(kinds.values())


def tune(target: Target, quick: bool, copies: Callable[[str, int, str, int], Any]) -> Found:
    """Measure a device."""
    sizes = QUICK_SIZES if quick else SIZES
    counts = thread_counts(int(target.report["processors"][0]), quick)
    made = copies(target.backend, target.device, target.allocator, sizes[-1])
    try:
        made.prepare(counts[-1])
        rounds = QUICK_ROUNDS if quick else ROUNDS
        times = {d: measure(made.seconds, d, sizes, counts, rounds) for d in (UP, DOWN)}
    finally:
        made.close()
    return Found(target, times, {d: choose(rows) for d, rows in times.items()})


def entries_by_file(found: list[Found]) -> dict[str, list[dict[str, str]]]:
    """The entries of each file. Devices of a kind share an entry."""
    kinds: dict[tuple[str, ...], list[Found]] = {}
    for f in found:
        kinds.setdefault((f.target.report["tuning"][0], *f.target.key().values()), []).append(f)
    files: dict[str, list[dict[str, str]]] = {}
    for (path, *_), alike in kinds.items():
        entry = alike[0].target.key()
        for direction in (UP, DOWN):
            choice = combine([f.choices[direction] for f in alike])
            entry[f"{direction}_from"] = "never" if choice.start == NEVER else str(choice.start)
            entry[f"{direction}_threads"] = str(choice.threads)
        files.setdefault(path, []).append(entry)
    return files


def facts_of(found: Found) -> dict[str, Any]:
    """What was found of a device, for JSON: times in microseconds."""
    facts: dict[str, Any] = {**found.target.key(), "number": found.target.device}
    facts["processors"] = int(facts["processors"])
    for direction, times in found.times.items():
        choice = found.choices[direction]
        rows = [
            {
                "nbytes": nbytes,
                "driver_us": round(row[DRIVER] * 1e6, 2),
                "staged_us": {str(n): round(s * 1e6, 2) for n, s in row.items() if n != DRIVER},
            }
            for nbytes, row in times.items()
        ]
        start = None if choice.start == NEVER else choice.start
        facts[direction] = {"from": start, "threads": choice.threads, "rows": rows}
    return facts


def lines_of(found: Found) -> list[str]:
    """What was found of a device, as tables."""
    target = found.target
    key = target.key()
    lines = [
        f"{target.backend} device {target.device}: {key['device']}, driver {key['driver']}, "
        f"{key['cpu']}, {key['processors']} processors"
    ]
    for direction, times in found.times.items():
        counts = [n for n in next(iter(times.values())) if n != DRIVER]
        head = "".join(f"{n:>8}" for n in counts)
        lines += ["", f"{_TITLES[direction]}, GB/s: the driver, and staged by so many threads"]
        lines.append(f"{'size':>10}{'driver':>8}{head}")
        for nbytes, row in times.items():
            figures = "".join(f"{nbytes / row[n] / 1e9:8.1f}" for n in (DRIVER, *counts))
            lines.append(f"{size_text(nbytes):>10}{figures}")
        choice, report = found.choices[direction], target.report
        start = "never" if choice.start == NEVER else f"from {size_text(choice.start)} on"
        lines.append(
            f"staged {start}, by {choice.threads} beside the caller's thread "
            f"(until now: {_before(report, direction)})"
        )
    return [*lines, ""]


def _before(report: Report, direction: str) -> str:
    start, threads = report[f"from_{direction}"][0], report[f"threads_{direction}"][0]
    return f"{size_text(int(start)) if start.isdecimal() else start}, {threads}"
