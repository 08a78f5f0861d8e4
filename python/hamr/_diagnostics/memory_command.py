"""``hamr memory``: the memory of running processes."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError

from .memory_server import ask, served
from .snapshots import MemorySnapshot, ending_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def _process(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ArgumentTypeError(f"{text!r} is no process: accepted is its number")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``hamr memory``."""
    parser.add_argument(
        "process",
        type=_process,
        nargs="?",
        help="a process that opted in; without it all of the user's are listed",
    )
    parser.add_argument(
        "--write", metavar="FILE", help="write its snapshot to FILE.html, .pickle or .json"
    )


def run(given: argparse.Namespace) -> int:
    """Print what was asked for. Returns the exit status."""
    if given.write is not None:
        try:
            ending_of(given.write)
        except ValueError as error:
            print(f"hamr memory: {error}", file=sys.stderr)
            return 2
        if given.process is None:
            print("hamr memory: --write needs the number of a process", file=sys.stderr)
            return 2
    try:
        processes = served() if given.process is None else [given.process]
        if not processes:
            print("no process can be asked: set HAMR_MEMORY=1, or call hamr.serve_memory()")
            return 0
        failed = [process for process in processes if not _tell(process, given.write)]
    except PermissionError as error:
        print(f"hamr memory: {error}", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _tell(process: int, path: str | None) -> bool:
    try:
        found = ask(process)
        command = " ".join(map(str, found.get("command", ())))
        snapshot = of_plain(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"hamr memory: process {process}: {_why(error)}", file=sys.stderr)
        return False
    failed = None
    if path is not None:
        try:
            snapshot.write(path)
        except OSError as error:
            failed = error
            print(f"hamr memory: process {process}: {error}", file=sys.stderr)
    print(f"process {process} {command}".rstrip())
    print("\n".join(f"  {line}" for line in snapshot.summary().splitlines()))
    return failed is None


def _why(error: Exception) -> str:
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)) and not error.filename:
        return "cannot be asked: it has not opted in by HAMR_MEMORY=1 or hamr.serve_memory()"
    return str(error)


def of_plain(found: dict[str, Any]) -> MemorySnapshot:
    """The snapshot that ``MemorySnapshot.plain`` described."""
    snapshot: MemorySnapshot = MemorySnapshot.__new__(MemorySnapshot)
    for name in ("allocations", "events", "segments", "devices", "dropped", "time", "pid"):
        setattr(snapshot, name, found[name])
    return snapshot
