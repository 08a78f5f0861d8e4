"""``hamr bench``: measure the chosen parts, print tables, and write a record and plots."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import time
from typing import Any, NamedTuple

from .curves import merged
from .driver import Driver, driver_facts
from .groups import GIB, KIB, MIB, Libraries, Settings, size_text
from .judging import verdicts
from .progress import Bar
from .registry import PARTS, Part, chosen
from .tables import lines_of

LIMIT = 240.0  # seconds after which nothing is begun
FORMAT = 2  # of the record
QUICK_LARGEST = 64 * MIB
PLOTS_NEED = "drawing needs matplotlib: pip install 'matplotlib>=3.8', which is hamr's extra plot"


class Request(NamedTuple):
    """What the command line asks for. ``json`` is a file, or "-" for the standard output."""

    only: list[str] | None = None
    json: str | None = None
    plot: str | None = None
    rounds: int = 9
    largest: int | None = None
    quick: bool = False
    scaling: bool = False


def problem_of(request: Request) -> str | None:
    """Why a request cannot be done, found before minutes are spent on it."""
    try:
        parts = chosen(request.only, request.scaling)
    except ValueError as error:
        return f"--only: {error}"
    if importlib.util.find_spec("numpy") is None:
        return "measuring needs NumPy: pip install numpy, which is hamr's extra numpy"
    if request.plot is not None:
        if importlib.util.find_spec("matplotlib") is None:
            return f"--plot: {PLOTS_NEED}"
        problem = _no_folder(request.plot)
        if problem is not None:
            return f"--plot {request.plot}: {problem}"
    if request.only is not None and all(part.needs == "cuda" for part in parts):
        reason = no_cuda()
        if reason is not None:
            return f"no CUDA, and nothing else was asked for: {reason}"
    return None


def _no_folder(path: str) -> str | None:
    """Why files cannot be put into a folder, which may have to be made; None if they can."""
    there = os.path.abspath(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        return f"{there} is no folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written to"


def no_cuda() -> str | None:
    """Why there is no CUDA; None if there is."""
    import hamr

    cuda = hamr.backends().get("cuda")
    if cuda is None:
        return "hamr has no cuda backend"
    if cuda["available"] and cuda["devices"]:
        return None
    return str(cuda.get("reason") or "no device")


def main(request: Request) -> int:
    """Measure; the tables go to the standard output, or JSON does."""
    record = measured(request)
    done, problems = [], []  # before anything is printed: who reads that may have left
    if request.json not in (None, "-"):
        try:
            with open(request.json, "w", encoding="utf-8") as file:
                file.write(text_of(record))
            done.append(f"written to {request.json}")
        except OSError as error:
            problems.append(f"{request.json} cannot be written: {error.strerror or error}")
    if request.plot is not None:
        from .plotting import draw

        try:
            done += [f"drawn: {path}" for path in draw(record, request.plot)]
        except Exception as error:
            problems.append(f"--plot {request.plot}: {type(error).__name__}: {error}")
    for problem in problems:
        print(f"hamr bench: {problem}", file=sys.stderr)
    if request.json == "-":
        sys.stdout.write(text_of(record))
        print(*done, sep="\n", end="\n" * bool(done), file=sys.stderr)
    else:
        print("\n".join([*lines_of(record), *done]))
    return 1 if problems else 0


def measured(request: Request) -> dict[str, Any]:
    """The record of a run."""
    from .host import machine

    started = time.perf_counter()
    parts, reason = chosen(request.only, request.scaling), no_cuda()
    driver: Driver | None = None
    if reason is None:
        try:
            driver = Driver()
        except (OSError, RuntimeError, AttributeError) as error:
            reason = f"the driver cannot be called: {error}"
    settings = settings_of(request, driver is not None)
    lib = Libraries(settings, load=driver is not None and any(p.needs == "cuda" for p in parts))
    record: dict[str, Any] = {
        "format": FORMAT,
        "machine": {**machine(), **(driver_facts(driver) if driver else {})},
        "absent": lib.absent if driver else {"cuda": reason},
        "largest": settings.largest,
        "groups": [],
        "points": [],
        "skipped": [p.name for p in parts if p.needs == "cuda"] if driver is None else [],
    }
    if lib.versions:
        record["machine"]["libraries"] = lib.versions
    possible = [part for part in parts if driver is not None or part.needs == "host"]
    bar = Bar([part.seconds for part in possible])
    limit = started + LIMIT + (120 if any(p.name == "scaling" for p in possible) else 0)
    try:
        for number, part in enumerate(possible):
            bar.part(number)
            _measure_part(part, lib, driver, record, bar, limit)
            lib.trim()
    finally:
        bar.end()
    record["curves"] = merged(record.pop("points"))
    record["targets"] = verdicts(record)
    record["seconds"] = round(time.perf_counter() - started, 1)
    return record


def _measure_part(
    part: Part,
    lib: Libraries,
    driver: Driver | None,
    record: dict[str, Any],
    bar: Bar,
    limit: float,
) -> None:
    synchronize = driver.synchronize if driver is not None else lambda: None
    try:
        for item in part.items(lib, driver):
            if time.perf_counter() > limit:
                record["skipped"].append(f"{part.name}, from {item.title} on: no time was left")
                break
            bar.show(item.title)
            try:
                result = item.measure(synchronize, lib.settings)
            except Exception as error:
                record["skipped"].append(f"{item.title}: {type(error).__name__}: {error}"[:300])
                continue
            finally:
                item.clear()
            if item.key in ("groups", "points", "scaling"):
                record.setdefault(item.key, []).append(result)
            else:
                record[item.key] = result
    except Exception as error:  # so that what was measured is not lost
        record["skipped"].append(f"{part.name}: {type(error).__name__}: {error}"[:300])


def settings_of(request: Request, with_cuda: bool) -> Settings:
    """What a run does, with the largest copy that the memory has ample room for."""
    largest = request.largest
    if largest is None:
        room = [GIB, _memory_available() // 8]
        if with_cuda:
            import hamr

            room.append(hamr.memory_info(0)[0] // 16)  # each library has arrays of its own
        if request.quick:
            room.append(QUICK_LARGEST)
        largest = max(KIB, min(room))
    return Settings(request.rounds, largest, request.quick)


def _memory_available() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * KIB
    return GIB


def size_of(text: str) -> int:
    """Bytes, from 65536, 64KiB or "1 GiB"; a ValueError says what is accepted."""
    match = re.fullmatch(r"(\d+) ?(?:(B|KiB|MiB|GiB))?", text)
    units = {None: 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
    nbytes = int(match[1]) * units[match[2]] if match else 0
    if nbytes < KIB:
        raise ValueError(f"{text!r} is no size: accepted are 1KiB, 64MiB, 1GiB and the like")
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if nbytes > most:
        raise ValueError(f"{text!r} is too large: accepted is up to this machine's {most} bytes")
    return nbytes


def list_of_parts() -> list[str]:
    """A line for each part."""
    head = f"{'part':18}{'needs':7}what it measures"
    rows = [
        f"{part.name:18}{part.needs:7}{part.what}{'' if part.usual else ' (only if it is named)'}"
        for part in PARTS
    ]
    return [head, *rows, f"copies are of 1 KiB to {size_text(GIB)}, see --largest"]


def text_of(record: dict[str, Any]) -> str:
    """A record as JSON, with a line for each list of numbers."""
    text = json.dumps(record, indent=1, ensure_ascii=False)

    def on_one_line(match: re.Match[str]) -> str:
        return "[" + ", ".join(match[1].replace("\n", " ").replace(",", " ").split()) + "]"

    return re.sub(r"\[((?:\s+(?:-?[\d.e+-]+|null),?)+\s+)\]", on_one_line, text) + "\n"
