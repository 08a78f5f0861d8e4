"""The detector of what is done with freed memory: HAMR_CHECK and ``check_memory``."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import warnings

import hamr._native as _native

from .._base.allocator import Allocator
from .._base.library import core
from .._base.size import size_of
from .snapshots import stacks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .contents import Frame

SETTING = "HAMR_CHECK"
KEPT = "HAMR_CHECK_BYTES"
_USUAL = "256MiB"
_INTERVAL = 0.25  # seconds between looks for what was found
_MOST_FRAMES = 12  # of a stack, in words

_raises = False
_checked = 0  # the process whose memory is


class MemoryMisuse(RuntimeWarning):
    """Memory was used after it had been given back, and before anybody was given it again.

    ``kind`` is "written", or "freed" where a library freed it a second time. ``library`` had it:
    "hamr", "cupy", "torch" or "numba", and "any" where a library freed what none has; ``allocator``
    by name, ``device`` (-1 is the host), ``address`` and ``size`` in bytes. ``offset`` is that of
    the first byte that was written, ``written`` how many were at least, ``value`` what the first
    one is. ``allocated``, ``freed`` and, of a second release, ``freed_again`` have ``thread``,
    ``time`` (seconds since 1970) and ``stack``, the innermost frame first, or None where that is
    not known. ``stream`` is the one that the release was ordered on.
    """

    kind: str
    library: str
    allocator: str
    device: int
    address: int
    size: int
    stream: int
    offset: int
    written: int
    value: int
    allocated: dict[str, object]
    freed: dict[str, object]
    freed_again: dict[str, object] | None


def check_memory() -> list[MemoryMisuse]:
    """Look whether memory that was given back was used, and return what was found.

    For processes that HAMR_CHECK=1 was set for, before hamr was imported, else RuntimeError. What
    is given back is then filled with a pattern, in the order of its stream, and kept, up to
    HAMR_CHECK_BYTES (256MiB); it is looked at when there is more, or no other memory, by this
    call, and at exit. A library that frees memory of hamr's a second time is found, too. Each
    misuse is told once: as a warning, a MemoryMisuse, soon after it was found if nobody calls
    this. With HAMR_CHECK=raise this call raises the first one, which has the others as its notes.
    """
    if _checked != os.getpid():
        raise RuntimeError(f"memory is not checked here: set {SETTING}=1 before hamr is imported")
    found = _read(core().CheckMemory())
    if found and _raises:
        for other in found[1:]:
            found[0].add_note(str(other))
        raise found[0]
    _warn(found)
    return found


def start_if_asked() -> None:
    """Begin where HAMR_CHECK says so; what is wrong is told on standard error."""
    global _raises, _checked
    said = os.environ.get(SETTING, "")
    if said in ("", "0"):
        return
    if said not in ("1", "raise"):
        print(f"hamr: {SETTING} is {said!r}: accepted are 0, 1 and raise", file=sys.stderr)
        return
    try:
        most = size_of(KEPT, os.environ.get(KEPT) or _USUAL)
        core().StartChecking(most, _native.record_stacks(True))
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"hamr: {SETTING}={said}: {error}", file=sys.stderr)
        return
    _raises, _checked = said == "raise", os.getpid()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_INTERVAL) and _checked == os.getpid():
            _warn(_read(core().FoundMisuse()))

    def finish() -> None:
        global _checked
        ended.set()
        if _checked == os.getpid():
            _checked = 0
            _warn(_read(core().StopChecking()))

    threading.Thread(target=watch, name="hamr check", daemon=True).start()
    atexit.register(finish)


def _warn(found: list[MemoryMisuse]) -> None:
    frame = sys._getframe()
    for _ in range(2):
        frame = frame.f_back or frame
    for each in found:
        try:
            # With a registry of its own: each is another one, though their lines look alike.
            warnings.warn_explicit(
                each, None, frame.f_code.co_filename, frame.f_lineno, registry={}
            )
        except MemoryMisuse:  # an error, by the program's filters: nobody calls who could be told
            print(f"hamr: {each}", file=sys.stderr)


def _read(text: str) -> list[MemoryMisuse]:
    rows = [line.split() for line in text.splitlines()]
    if not rows:
        return []
    stacks = stacks_of({int(row[n]) for row in rows[:-1] for n in (11, 14, 17)} - {0})
    found = [_misuse(row, stacks) for row in rows[:-1]]
    more = int(rows[-1][0])
    if more and found:
        found[-1].add_note(f"and {more} more")
    return found


def _misuse(row: list[str], stacks: dict[int, list[Frame]]) -> MemoryMisuse:
    library = row[0]
    allocator, device, address, size, stream, offset, written, value = map(int, row[1:9])
    allocated = _moment(row[9:12], stacks)
    freed = _moment(row[12:15], stacks)
    again = _moment(row[15:18], stacks)
    name = Allocator(allocator).name
    kind = "freed" if again["time"] else "written"
    where = f"{address:#x} on {'the host' if device < 0 else f'device {device}'}"
    back = f"after {library} had given them back to {name}"
    if kind == "written":
        text = (
            f"{written} of {size} bytes at {where} were written {back}: "
            f"the first is byte {offset}, which is {value:#04x}"
        )
    elif size:
        text = f"{size} bytes at {where} were freed {back}"
    else:
        text = f"{address:#x} was freed by a library, though none has memory of {name} there"
    lines = [text]
    if size:
        lines.append(f"allocated {_told(allocated)}")
        order = f", in the order of stream {stream:#x}" if stream else ""
        lines.append(f"freed {_told(freed)}{order}")
    if kind == "freed":
        lines.append(f"freed {'again ' if size else ''}{_told(again)}")
    misuse = MemoryMisuse("\n".join(lines))
    misuse.kind, misuse.library, misuse.allocator, misuse.device = kind, library, name, device
    misuse.address, misuse.size, misuse.stream = address, size, stream
    misuse.offset, misuse.written, misuse.value = offset, written, value
    misuse.allocated, misuse.freed = allocated, freed
    misuse.freed_again = again if kind == "freed" else None
    return misuse


def _moment(row: list[str], stacks: dict[int, list[Frame]]) -> dict[str, object]:
    thread, at, stack = map(int, row)
    return {
        "thread": thread or None,
        "time": at / 1e9 if at else None,
        "stack": stacks.get(stack),
    }


def _told(moment: dict[str, object]) -> str:
    if moment["thread"] is None:
        return "nobody knows when"
    at = time.strftime("%H:%M:%S", time.localtime(float(str(moment["time"]))))
    text = f"at {at} by thread {moment['thread']}"
    frames = moment["stack"]
    if not isinstance(frames, list) or not frames:
        return text + ", not by a call of Python's"
    for frame in frames[:_MOST_FRAMES]:
        text += f'\n  File "{frame["filename"]}", line {frame["line"]}, in {frame["name"]}'
    return text


def _after_fork_in_child() -> None:
    if _checked:
        _native.record_stacks(False)


os.register_at_fork(after_in_child=_after_fork_in_child)
