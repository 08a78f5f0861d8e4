"""The detector of misused memory: HAMR_CHECK and ``check_memory``."""

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
from .._base.nvidia_packages import libraries_of_packages
from .._base.size import size_of
from .snapshots import stacks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .contents import Frame

SETTING = "HAMR_CHECK"
KEPT = "HAMR_CHECK_BYTES"
_CUPTI_FILES = "HAMR_CUPTI_FILES"
_USUAL = "256MiB"
_INTERVAL = 250  # milliseconds between two looks for misuses
_MOST_FRAMES = 12  # of a stack that is shown in a message

_raises = False
_checked = 0  # the process whose memory is checked
#: Held by a thread that has taken misuses, until it has reported them.
_telling = threading.RLock()


class MemoryMisuse(RuntimeWarning):
    """Memory was used after its release, or by work that is not ordered with other work.

    ``kind`` is the misuse: "written", to freed memory; "freed", a second time, by a library;
    "used", if work with the address of freed memory was enqueued; "unordered", if two pieces of
    work on the same bytes were enqueued, at least one of them writes, and nothing orders them.
    ``library`` had the memory: "hamr", "cupy", "torch" or "numba", or "any" if a library freed
    memory that none has. ``allocator`` is a name, ``device`` a number (-1 is the host);
    ``address`` and ``size`` are in bytes. ``offset`` is that of the first byte that was written or
    used, ``written`` the least number of written bytes, and ``value`` the first of them.
    ``allocated``, ``freed`` and, for a second release, ``freed_again`` have ``thread``, ``time``
    (seconds since 1970) and ``stack``, the innermost frame first; None stands for what is not
    known. ``stream`` is the stream of the release. ``used`` and ``earlier`` describe work: they
    have the same, and ``name``, ``stream`` and ``access``: "reads", "writes" or "may write".
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
    used: dict[str, object] | None
    earlier: dict[str, object] | None


def check_memory() -> list[MemoryMisuse]:
    """Check whether memory was misused, and return the misuses.

    It needs HAMR_CHECK=1 from before hamr was imported; else it is a RuntimeError. With that
    setting released memory is filled with a pattern, in the order of its stream, and kept, up to
    HAMR_CHECK_BYTES (256MiB). It is checked when more is kept, when memory runs out, by this call,
    and at exit. A second release of hamr's memory by a library is found as well. With CUPTI, work
    of all libraries on memory that hamr has, or had, is checked when it is enqueued: see
    ``checked_backends``. Each misuse is reported once: as a warning, a MemoryMisuse, soon after it
    was found, unless this call returns it. With HAMR_CHECK=raise this call raises the first misuse,
    with the others as its notes.
    """
    if _checked != os.getpid():
        raise RuntimeError(f"memory is not checked here: set {SETTING}=1 before hamr is imported")
    found = _read(_native.check_memory())
    with _telling:
        pass  # another thread may still report earlier misuses: wait until it has
    if found and _raises:
        for other in found[1:]:
            found[0].add_note(str(other))
        raise found[0]
    _warn(found)
    return found


def checked_backends() -> dict[str, str]:
    """Whether work on a backend's memory is checked: by its name "", or the reason why it is not.

    It has the backends whose memory was used in this process, and whose runtimes can report work at
    all: "cuda", by CUPTI. RuntimeError as for ``check_memory``.
    """
    if _checked != os.getpid():
        raise RuntimeError(f"memory is not checked here: set {SETTING}=1 before hamr is imported")
    return dict(_native.observed_by_checking())


def start_if_asked() -> None:
    """Begin if HAMR_CHECK says so. Errors go to standard error."""
    global _raises, _checked
    said = os.environ.get(SETTING, "")
    if said in ("", "0"):
        return
    if said not in ("1", "raise"):
        print(f"hamr: {SETTING} is {said!r}: accepted are 0, 1 and raise", file=sys.stderr)
        return
    try:
        most = size_of(KEPT, os.environ.get(KEPT) or _USUAL)
        core().Configure(_CUPTI_FILES, ":".join(libraries_of_packages("libcupti.so.")))
        core().StartChecking(most, _native.record_stacks(True))
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"hamr: {SETTING}={said}: {error}", file=sys.stderr)
        return
    _raises, _checked = said == "raise", os.getpid()
    watching = threading.Thread(target=_watch, name="hamr check", daemon=True)

    def finish() -> None:
        global _checked
        if _checked == os.getpid():
            _checked = 0
            found = _native.stop_checking()
            watching.join(1)
            _warn(_read(found))

    watching.start()
    atexit.register(finish)


def _watch() -> None:
    """Warn of misuses, and read the stacks of threads that wait for that in the core."""
    while _checked == os.getpid():
        asked = _native.asked_for_stack(_INTERVAL)
        for number, thread in asked:
            core().AnswerStack(number, _stack_of(thread))
        if not asked and _checked == os.getpid():
            with _telling:
                try:
                    found = _native.found_misuse()
                except ValueError:  # the check has ended meanwhile
                    return
                _warn(_read(found))


def _stack_of(native: int) -> int:
    """The number of the stack of a thread with a system's number; 0 if it is not Python's."""
    for thread in threading.enumerate():
        if thread.native_id == native and thread.ident is not None:
            frame = sys._current_frames().get(thread.ident)
            return _native.stack_of(frame) if frame else 0
    return 0


def _warn(found: list[MemoryMisuse]) -> None:
    frame = sys._getframe()
    for _ in range(2):
        frame = frame.f_back or frame
    for each in found:
        try:
            # With a registry of its own, since Python would show only one of several on a line.
            warnings.warn_explicit(
                each, None, frame.f_code.co_filename, frame.f_lineno, registry={}
            )
        except MemoryMisuse:  # an error by the program's filters: no caller could catch it
            print(f"hamr: {each}", file=sys.stderr)


def _read(told: list[tuple[Any, ...]]) -> list[MemoryMisuse]:
    *rows, (more,) = told
    stacks = stacks_of({row[n] for row in rows for n in _STACKS} - {0})
    found = [_misuse(row, stacks) for row in rows]
    if more and found:
        found[-1].add_note(f"and {more} more")
    return found


#: The columns of a row with numbers of stacks: of the allocation, the releases, and work.
_STACKS = 11, 14, 17, 20, 25
_ACCESS = "may write", "reads", "writes"


def _misuse(row: tuple[Any, ...], stacks: dict[int, list[Frame]]) -> MemoryMisuse:
    library, allocator, device, address, size, stream, offset, written, value = row[:9]
    allocated, freed, again = (_moment(row[n : n + 3], stacks) for n in (9, 12, 15))
    used, earlier = (
        _work(row[n : n + 5], name, stacks) for n, name in zip((18, 23), row[28:], strict=True)
    )
    name = Allocator(allocator).name
    where = f"{address:#x} on {'the host' if device < 0 else f'device {device}'}"
    back = f"after {library} had given them back to {name}"
    kind, lines = "written", []
    if used and earlier:
        kind = "unordered"
        lines = [
            f"{_did(used)} byte {offset} of {size} of {name} at {where}, and is not in order with "
            f"{earlier['name']} on stream {earlier['stream']:#x}, which {earlier['access']} there",
            f"enqueued {_told(used)}",
            f"{earlier['name']} enqueued {_told(earlier)}",
        ]
    elif used:
        kind = "used"
        lines = [
            f"{_did(used)} byte {offset} of {size} at {where}, {back}",
            f"enqueued {_told(used)}",
        ]
    elif again["time"] and size:
        kind, lines = "freed", [f"{size} bytes at {where} were freed {back}"]
    elif again["time"]:
        text = f"{address:#x} was freed by a library, though none has memory of {name} there"
        kind, lines = "freed", [text]
    else:
        text = f"{written} of {size} bytes at {where} were written {back}"
        lines = [f"{text}: the first is byte {offset}, which is {value:#04x}"]
    if size:
        lines.append(f"allocated {_told(allocated)}")
    if size and kind != "unordered":
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
    misuse.used, misuse.earlier = used, earlier
    return misuse


def _did(work: dict[str, object]) -> str:
    return f"{work['name']} on stream {work['stream']:#x} {work['access']}"


def _work(
    row: tuple[Any, ...], name: str, stacks: dict[int, list[Frame]]
) -> dict[str, object] | None:
    if not name:
        return None
    access = _ACCESS[row[4]]
    return {**_moment(row, stacks), "name": name, "stream": row[3], "access": access}


def _moment(row: tuple[Any, ...], stacks: dict[int, list[Frame]]) -> dict[str, object]:
    thread, at, stack = row[:3]
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
        return text if "name" in moment else text + ", not by a call of Python's"
    for frame in frames[:_MOST_FRAMES]:
        text += f'\n  File "{frame["filename"]}", line {frame["line"]}, in {frame["name"]}'
    return text


def _after_fork_in_child() -> None:
    if _checked:
        _native.record_stacks(False)


os.register_at_fork(after_in_child=_after_fork_in_child)
