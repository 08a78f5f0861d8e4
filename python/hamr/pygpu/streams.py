"""Devices, streams and events by the runtime API's names. Errors are statuses."""

from __future__ import annotations

import hamr._native as _native

from .._base.errors import BackendUnavailable
from .._base.library import core
from .._base.size import int_of
from .._base.stream import Event, Stream, as_stream
from .._base.waiting import wait_in_slices
from .pointers import EventPointer, StreamPointer
from .runtime import runtime
from .status import (
    INVALID_DEVICE,
    INVALID_HANDLE,
    INVALID_VALUE,
    NOT_READY,
    call,
    cudaError_t,
    failed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SUCCESS = cudaError_t(0)

_NON_BLOCKING = 1  # cudaStreamNonBlocking
_DISABLE_TIMING = 2  # cudaEventDisableTiming
_EVENT_FLAGS = 7  # with cudaEventBlockingSync, and cudaEventInterprocess


class cudaStream_t(Stream):  # noqa: N801
    """A new stream of the current device: ``cudaStream_t([flags])``.

    With flags 0, as by ``cudaStreamCreate``, it synchronizes with the default stream; with 1,
    cudaStreamNonBlocking, it does not. It is a ``hamr.Stream``, and accepted wherever one is. If
    none can be made, ``last_status()`` says so.
    """

    _name = "cudaStream_t"
    _instead = "make one where the pickle is read"

    __slots__ = ("_status",)

    def __init__(self, flags: int = 0) -> None:
        number = _flags(flags)
        self._backend, self._generation, self._owner = runtime(), _native.generation(), None
        self._device, self._value, self._sure = -1, 0, True
        if number & ~_NON_BLOCKING:
            self._status = failed(INVALID_VALUE)
            return
        with call() as c:
            device = core().CurrentDevice(self._backend)
            make = core().NewStream if number else core().NewLegacyStream
            self._value = make(self._backend, device)
            self._device = device
            self._life = self._share_life(True)
        self._status = c.status

    def _usable(self) -> int:
        if not self._value:  # 0 would be the default stream
            raise ValueError(f"stream is {self!r}, which could not be made: {self._status}")
        return super()._usable()

    def get(self) -> StreamPointer:
        """The stream's handle, a ``CUstream``, as a pointer that turns into an int."""
        return StreamPointer(self._value, False, self)

    def last_status(self) -> cudaError_t:
        """How making it came out."""
        return self._status

    def __repr__(self) -> str:
        return f"<cudaStream_t {self._value:#x}>"


class cudaEvent_t(Event):  # noqa: N801
    """A new event of the current device: ``cudaEvent_t([flags])``; ``cudaEventRecord`` records it.

    With flags 0 it records the time, for ``cudaEventElapsedTime``; with 2, cudaEventDisableTiming,
    it does not. If none can be made, ``last_status()`` says so. It is a ``hamr.Event``.
    """

    _name = "cudaEvent_t"
    _instead = "make one where the pickle is read"

    __slots__ = ("_recorded", "_status")

    def __init__(self, flags: int = 0) -> None:
        number = _flags(flags)
        self._backend, self._generation = runtime(), _native.generation()
        self._device, self._value, self._recorded = -1, 0, False
        self._timing = not number & _DISABLE_TIMING
        if number & ~_EVENT_FLAGS or (number & 4 and self._timing):
            self._status = failed(INVALID_VALUE)
            return
        with call() as c:
            device = core().CurrentDevice(self._backend)
            self._value = core().NewEvent(self._backend, device, self._timing)
            self._device = device
        self._status = c.status

    def get(self) -> EventPointer:
        """The event's handle, a ``CUevent``, as a pointer that turns into an int."""
        return EventPointer(self._value, False, self)

    def last_status(self) -> cudaError_t:
        """How making it came out."""
        return self._status

    def __repr__(self) -> str:
        return f"<cudaEvent_t {self._value:#x}>"


def _flags(flags: Any) -> int:
    if isinstance(flags, bool) or not hasattr(type(flags), "__index__"):
        raise TypeError(f"flags are {flags!r}: accepted is an int")
    return int(flags.__index__())


# Devices.


def cudaGetDeviceCount() -> tuple[int, cudaError_t]:  # noqa: N802
    """How many devices there are, and the status; 0 and 100, cudaErrorNoDevice, without any."""
    count = 0
    with call() as c:
        count = core().DeviceCount(runtime())
        if not count:
            raise BackendUnavailable(f"{runtime()} has no devices")
    return count, c.status


def cudaGetDevice() -> tuple[int, cudaError_t]:  # noqa: N802
    """The calling thread's current device, and the status; -1 where there is none."""
    device = -1
    with call() as c:
        device = core().CurrentDevice(runtime())
    return device, c.status


def cudaSetDevice(device: int) -> cudaError_t:  # noqa: N802
    """Make a device current for the calling thread. The status is 101 if it does not exist."""
    number = int_of("device", device)
    with call() as c:
        count = core().DeviceCount(runtime())
        if count and not 0 <= number < count:
            return failed(INVALID_DEVICE)
        core().Activate(runtime(), number)
    return c.status


def cudaDeviceSynchronize() -> cudaError_t:  # noqa: N802
    """Block until all work on the current device is over, other libraries' included."""
    with call() as c:
        core().SynchronizeDevice(runtime(), core().CurrentDevice(runtime()))
    return c.status


def cudaDeviceReset() -> cudaError_t:  # noqa: N802
    """Wait for the current device, release memory that is kept, and forget the last error.

    Unlike the runtime's function it leaves the context and all memory in use: arrays of this
    process, also other libraries', stay valid.
    """
    from .status import cudaGetLastError

    status = cudaDeviceSynchronize()
    if status == 0:
        with call() as c:
            core().Trim()
        status = c.status
    cudaGetLastError()
    return status


# Events and streams.


def cudaEventRecord(event: cudaEvent_t, stream: Any = None) -> cudaError_t:  # noqa: N802
    """Make an event stand for the work on a stream so far, by default the default stream."""
    _check(event)
    if not event._value:
        return failed(_gone(event))
    with call() as c:
        order = _order(stream)
        if order is None:
            return failed(_gone(stream))
        if 0 <= order._device != event._device:
            return failed(INVALID_HANDLE)
        named = event._named()
        core().Record(*named, order._usable())
        event._recorded = True
    return c.status


def cudaEventSynchronize(event: cudaEvent_t) -> cudaError_t:  # noqa: N802
    """Block until the work that an event stands for is over; signals are handled meanwhile."""
    _check(event)
    if not event._value:
        return failed(_gone(event))
    with call() as c:
        event.synchronize()
    return c.status


def cudaEventQuery(event: cudaEvent_t) -> cudaError_t:  # noqa: N802
    """0 if the work that an event stands for is over, else 600, cudaErrorNotReady."""
    _check(event)
    if not event._value:
        return failed(_gone(event))
    with call() as c:
        if not event.done:
            return failed(NOT_READY)
    return c.status


def cudaEventElapsedTime(  # noqa: N802
    start: cudaEvent_t, end: cudaEvent_t
) -> tuple[float, cudaError_t]:
    """The milliseconds between two events, and the status; 0.0 if they are not known.

    The status is 400, cudaErrorInvalidResourceHandle, for events that were not recorded, have no
    time or are of two devices, and 600, cudaErrorNotReady, before both are over.
    """
    for event in (start, end):
        _check(event)
        if not event._value:
            return 0.0, failed(_gone(event))
    if not (_recorded(start) and _recorded(end) and start._timing and end._timing):
        return 0.0, failed(INVALID_HANDLE)
    if (start._backend, start._device) != (end._backend, end._device):
        return 0.0, failed(INVALID_HANDLE)
    elapsed = 0.0
    with call() as c:
        if not (start.done and end.done):
            return 0.0, failed(NOT_READY)
        elapsed = start.elapsed_time(end)
    return elapsed, c.status


def cudaStreamSynchronize(stream: Any) -> cudaError_t:  # noqa: N802
    """Block until all work on a stream is over; signals are handled meanwhile."""
    with call() as c:
        order = _order(stream)
        if order is None:
            return failed(_gone(stream))
        wait_in_slices(order._wait)
    return c.status


def cudaStreamQuery(stream: Any) -> cudaError_t:  # noqa: N802
    """0 if all work on a stream is over, else 600, cudaErrorNotReady."""
    with call() as c:
        order = _order(stream)
        if order is None:
            return failed(_gone(stream))
        if not order.idle:
            return failed(NOT_READY)
    return c.status


def cudaStreamWaitEvent(  # noqa: N802
    stream: Any, event: cudaEvent_t, flags: int = 0
) -> cudaError_t:
    """Make later work on a stream wait for an event, without blocking the caller."""
    _check(event)
    if _flags(flags):
        return failed(INVALID_VALUE)
    if not event._value:
        return failed(_gone(event))
    with call() as c:
        order = _order(stream)
        if order is None:
            return failed(_gone(stream))
        order.wait(event)
    return c.status


def _order(stream: Any) -> Stream | None:
    """The stream that was given; None and 0 are the default stream. None if it was not made."""
    if isinstance(stream, cudaStream_t) and not stream._value:
        return None
    return as_stream(None if stream is None or stream == 0 else stream, -1, runtime())


def _check(event: Any) -> None:
    if not isinstance(event, Event):
        raise TypeError(f"event is {event!r}: accepted is a cudaEvent_t")


def _recorded(event: Event) -> bool:
    return event._recorded if isinstance(event, cudaEvent_t) else True


def _gone(event: Any) -> int:
    """The status of a call with an event or stream that could not be made."""
    made = event.last_status().as_int() if isinstance(event, (cudaEvent_t, cudaStream_t)) else 0
    return made if made and made != INVALID_VALUE else INVALID_HANDLE
