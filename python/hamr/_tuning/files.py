"""The file that the core reads: a ``[tuning]`` for each machine, lines of a name, = and a value."""

from __future__ import annotations

import os

from .._base import written_files

#: The lines that say which machine it is.
KEY = "cpu", "processors", "backend", "device", "driver"

_HEAD = "# Written by hamr tune: which copies to and from a device are staged. See HAMR_TUNING.\n"


def entries_of(text: str) -> list[dict[str, str]]:
    """The machines of a file; none if the core would refuse the file."""
    entries: list[dict[str, str]] = []
    for line in map(str.strip, text.splitlines()):
        name, equals, value = line.partition("=")
        if line == "[tuning]":
            entries.append({})
        elif equals and entries:
            entries[-1][name.strip()] = value.strip()
        elif line and not line.startswith("#"):
            return []
    return entries


def text_of(entries: list[dict[str, str]]) -> str:
    """The file of some machines."""
    blocks = ["".join(f"{name} = {value}\n" for name, value in e.items()) for e in entries]
    return _HEAD + "".join(f"\n[tuning]\n{block}" for block in blocks)


def key_of(entry: dict[str, str]) -> tuple[str | None, ...]:
    """Which machine it is."""
    return tuple(entry.get(name) for name in KEY)


def write_entries(path: str, entries: list[dict[str, str]]) -> None:
    """Write machines to a file. Other machines in it stay.

    A reader finds the old file or the new one, complete. OSError if it cannot be written; the
    old file then stays.
    """
    path = os.path.realpath(path)
    known = {key_of(e) for e in entries}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            others = [e for e in entries_of(file.read()) if key_of(e) not in known]
    except FileNotFoundError:
        others = []
    written_files.replace_file(path, text_of([*entries, *others]).encode())


def check_writable(path: str) -> None:
    """Raise the OSError that write_entries would; the folder is made."""
    path = os.path.realpath(path)
    if os.path.lexists(path) and not os.path.isfile(path):
        raise IsADirectoryError(f"{path} is no file")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    written_files.check_writable(path)
