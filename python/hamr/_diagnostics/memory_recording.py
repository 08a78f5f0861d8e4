"""Recording the use of memory in a part of a program: ``record_memory`` and ``track``."""

from __future__ import annotations

import os
import threading

import hamr._native as _native

from .._base.library import core
from .._base.place import device_and_backend, device_of_spelling
from .._base.written_files import check_writable
from .pool_limits import LIBRARIES
from .snapshots import MemorySnapshot, ending_of, memory_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from .._base.place import Device

_ANY_DEVICE = -2  # for the core


class record_memory:  # noqa: N801 -- users write it as a function
    """Record the use of memory inside a ``with`` block, and write the record at the end.

    ``path`` ends in ``.html``, ``.pickle`` or ``.json``, see ``MemorySnapshot.write``; with None
    nothing is written. After the end ``snapshot`` has the events: the newest ``most`` of them.
    ``stacks=False`` leaves out the Python stacks, which cost most. All threads are recorded.
    RuntimeError if memory is being recorded already; OSError if the file cannot be written, at the
    beginning if possible. A forked child records nothing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        stacks: bool = True,
        most: int = 1_000_000,
    ) -> None:
        if not isinstance(most, int) or isinstance(most, bool):
            raise TypeError(f"most is {most!r}: accepted is an int")
        if most < 1:
            raise ValueError(f"most is {most!r}: accepted is a count of 1 or more")
        if path is not None:
            ending_of(path)
        self.path = path
        self.snapshot: MemorySnapshot | None = None
        self._stacks, self._most = bool(stacks), most
        self._pid = 0

    def __enter__(self) -> Self:
        global _recording
        with _lock:
            if _recording is not None and _recording._pid == os.getpid():
                raise RuntimeError("memory is being recorded already: accepted is one at a time")
            self._pid, _recording = os.getpid(), self
        try:
            self._begin()
        except BaseException:
            _recording = None
            raise
        return self

    def _begin(self) -> None:
        if self.path is not None:
            check_writable(os.fspath(self.path))
        function = _native.record_stacks(True) if self._stacks else 0
        try:
            core().StartRecording(self._most, function)
        except BaseException:
            if self._stacks:
                _native.record_stacks(False)
            raise
        self.snapshot = None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._pid != os.getpid():
            return  # a forked child has no record
        try:
            self._end()
        except Exception as failed:
            if error is None:
                raise
            error.add_note(f"and the record of memory was lost: {failed}")

    def _end(self) -> None:
        global _recording
        try:
            self.snapshot = memory_snapshot()
        finally:
            core().StopRecording()
            if self._stacks:
                _native.record_stacks(False)
            _recording = None
        if self.path is not None:
            self.snapshot.write(self.path)


_lock = threading.Lock()
_recording: record_memory | None = None


def _after_fork_in_child() -> None:
    global _recording, _lock
    _lock = threading.Lock()
    recording, _recording = _recording, None
    if recording is not None and recording._stacks:
        _native.record_stacks(False)


class track:  # noqa: N801 -- users write it as a function
    """Count the memory that all threads allocate inside a ``with`` block.

    ``allocated`` is how many bytes were allocated, ``allocations`` how often; ``freed`` is how many
    bytes were released, whenever they were allocated; ``peak`` is the largest increase of the bytes
    in use since the beginning. They may be read inside the block, too. ``device`` is a device or
    "cpu", ``library`` is "hamr", "cupy", "torch" or "numba"; without them all memory counts. Blocks
    may be nested, and overlap. RuntimeError if it is entered again before its end; ForkError in a
    child that was forked inside.
    """

    def __init__(self, device: Device | None = None, library: str | None = None) -> None:
        if library is not None and library not in LIBRARIES:
            kind = ValueError if isinstance(library, str) else TypeError
            raise kind(f"library is {library!r}: accepted are {', '.join(LIBRARIES)}")
        self._library = library or ""
        self._backend, self._device = _place(device)
        self._number = self._pid = 0
        self._counts = (0, 0, 0, 0)

    def __enter__(self) -> Self:
        with _lock:
            if self._number and self._pid == os.getpid():
                raise RuntimeError("this region is entered already: accepted is a track() for each")
            self._counts = (0, 0, 0, 0)
            self._number = core().Track(self._library, self._backend, self._device)
            self._pid = os.getpid()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._pid == os.getpid() and self._number:
            self._counts = self._read(True)
        self._number = 0

    def _read(self, last: bool) -> tuple[int, int, int, int]:
        [(allocated, allocations, freed, peak)] = _native.read_tracker(self._number, last)
        return allocated, allocations, freed, peak

    def _now(self) -> tuple[int, int, int, int]:
        if not self._number:
            return self._counts
        if self._pid != os.getpid():
            from .._base.errors import ForkError

            raise ForkError("this region was entered before fork(): the child counts nothing in it")
        return self._read(False)

    @property
    def allocated(self) -> int:
        """Bytes that were allocated."""
        return self._now()[0]

    @property
    def allocations(self) -> int:
        """How often memory was allocated or grew."""
        return self._now()[1]

    @property
    def freed(self) -> int:
        """Bytes that were released, whenever they were allocated."""
        return self._now()[2]

    @property
    def peak(self) -> int:
        """The largest increase of the bytes in use since the beginning."""
        return self._now()[3]

    def __repr__(self) -> str:
        allocated, _, freed, peak = self._counts if not self._number else self._now()
        return f"<hamr.track: allocated {allocated}, freed {freed}, peak {peak} bytes>"


def _place(device: Any) -> tuple[str, int]:
    """Backend and device for the core."""
    if device is None:
        return "", _ANY_DEVICE
    if not (isinstance(device, str) and ":" in device and not device.startswith(("cuda", "gpu"))):
        host, number = device_of_spelling(device)
        if host:
            return "", -1
        if number >= 0:
            return "cuda", number
    number, backend = device_and_backend(device)
    return backend, core().CurrentDevice(backend) if number < 0 else number


os.register_at_fork(after_in_child=_after_fork_in_child)
