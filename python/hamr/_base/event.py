"""Events, points in the order in which a device does things."""

from __future__ import annotations

import hamr._native as _native

from .driver_object import DriverObject
from .errors import before_fork
from .library import core
from .stream import as_stream
from .waiting import until, wait_in_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any


class Event(DriverObject):
    """The work on a stream so far: ``Event(stream)`` is ``stream.record()``.

    Without a stream it is the default stream's. With ``timing=True`` it keeps the time, for
    ``start.elapsed_time(end)``, which costs the device more. BackendUnavailable where there is
    no CUDA driver; in a forked child the parent's events raise ForkError.

    Copies are the object itself, and end with it. An event cannot be pickled.
    """

    _name = "hamr.Event"
    _instead = "synchronize() waits for it here"

    __slots__ = ("__weakref__", "_backend", "_device", "_generation", "_timing", "_value")

    def __init__(self, stream: Any = None, *, timing: bool = False) -> None:
        self._value = 0
        self._timing = bool(timing)
        source = as_stream(stream)
        self._generation = _native.generation()
        # Later calls may come from a thread whose current device is another one.
        self._backend, self._device = source._backend, source._place()
        record = core().RecordTimedEvent if self._timing else core().RecordEvent
        self._value = record(self._backend, self._device, source._value)

    def __del__(self, destroy: Any = _native.destroy_event) -> None:
        if getattr(self, "_value", 0):  # a call with wrong arguments makes none
            destroy(self._generation, self._backend, self._device, self._value)

    @property
    def ptr(self) -> int:
        """The handle."""
        return self._value

    @property
    def device(self) -> int:
        """The device that the event is on."""
        return self._device

    @property
    def done(self) -> bool:
        """Whether the work that the event stands for is over."""
        named = self._named()
        return core().EventDone(*named)

    def elapsed_time(self, later: Event) -> float:
        """How much later the device reached another event, in milliseconds.

        Less than zero if that was earlier; to about 0.5 µs. Both were made with ``timing=True``
        on one device, else it is a ValueError, and are done, else a RuntimeError.
        """
        from .timing import milliseconds

        if not isinstance(later, Event):
            raise TypeError(f"later is {later!r}: accepted is a hamr.Event")
        return milliseconds(self, later)

    def wait(self, stream: Any = None) -> None:
        """Make later work on a stream wait for the event; without a stream, block the caller.

        Hence the default stream is given as ``hamr.Stream()``.
        """
        if stream is None:
            self.synchronize()
        else:
            as_stream(stream).wait(self)

    def synchronize(self) -> None:
        """Block until the work is over; signals are handled meanwhile."""
        wait_in_slices(self._wait)

    def __await__(self) -> Generator[Any, None, None]:
        self._named()
        return until(lambda: self.done).__await__()

    def _wait(self, milliseconds: int) -> bool:
        return core().WaitEvent(*self._named(), milliseconds)

    def __repr__(self) -> str:
        return f"<hamr.Event {self._value:#x} on {self._backend} device {self._device}>"

    def _named(self) -> tuple[str, int, int]:
        """What the façade takes for the event."""
        if self._generation != _native.generation():
            raise before_fork("event")
        return self._backend, self._device, self._value


Event.__module__ = "hamr"  # where users find it
