"""Event: a point in a stream's order that others can wait for."""

from __future__ import annotations

from .. import _native
from .errors import before_fork
from .library import core
from .stream import as_stream, foreign_handle
from .waiting import until, wait_in_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, NoReturn

_EVENT_NAMES = ("ptr", "cuda_event", "handle")


class Event:
    """The work on a stream so far: ``Event(stream)`` is ``stream.record()``.

    Without a stream it is the default stream's. BackendUnavailable where there is
    no CUDA driver; in a forked child the parent's events raise ForkError.

    Copies are the object itself, and end with it. An event cannot be pickled.
    """

    __slots__ = ("__weakref__", "_backend", "_device", "_generation", "_value")

    def __init__(self, stream: Any = None) -> None:
        self._value = 0
        source = as_stream(stream)
        self._generation = _native.generation()
        # Later calls may come from a thread whose current device is another one.
        self._backend, self._device = source._backend, source._place()
        self._value = core().RecordEvent(self._backend, self._device, source._value)

    def __del__(self, destroy: Any = _native.destroy_event) -> None:
        if self._value:
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
        named = self._named()
        wait_in_slices(core().WaitEvent, *named)

    def __await__(self) -> Generator[Any, None, None]:
        self._named()
        return until(lambda: self.done).__await__()

    def __repr__(self) -> str:
        return f"<hamr.Event {self._value:#x} on {self._backend} device {self._device}>"

    def __copy__(self) -> Event:
        return self

    def __deepcopy__(self, memo: object) -> Event:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a hamr.Event is a driver object of this process and cannot be pickled: "
            "synchronize() waits for it here"
        )

    def _named(self) -> tuple[str, int, int]:
        """What the façade takes for the event."""
        if self._generation != _native.generation():
            raise before_fork("event")
        return self._backend, self._device, self._value


def handle_of(event: Any) -> int:
    """The handle of an event object; 0 is one that was never recorded."""
    if isinstance(event, Event):
        return event._named()[2]
    handle = None
    # Arrays and streams have addresses and handles, too.
    if not hasattr(event, "shape") and "Stream" not in type(event).__name__:
        handle = foreign_handle(event, _EVENT_NAMES)
    if handle is None:
        raise TypeError(f"event is {event!r}: accepted is an event object")
    if not 0 <= handle < 2**64:
        raise ValueError(f"event is {event!r}: accepted are handles 0 ... 2**64-1")
    return handle
