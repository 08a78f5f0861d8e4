"""Streams, the order in which a device does things, and events, points in that order."""

from __future__ import annotations

import hamr._native as _native

from .driver_object import DriverObject
from .errors import before_fork
from .foreign_handles import backend_of_stream, device_of_stream, handle_of_event, handle_of_stream
from .library import core
from .waiting import until, wait_in_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, Self

    from .place import Device

#: The backend of a stream if none is named, and of the streams that host memory is used on.
BACKEND = "cuda"

#: CUDA's handles that are no objects: the legacy default stream, and the one that means
#: another stream on every thread. 0 is the default stream.
_LEGACY, PER_THREAD = 1, 2

#: The runtimes that have such handles.
_WITH_PER_THREAD = (BACKEND, "hip")

#: What the core returns as the device of a handle that is no stream.
_NO_STREAM = -2

#: Not empty once there was a block in this process. It is the cheapest test, and made first.
entered = _native.blocks_entered


def blocks() -> Any:
    """The ``with stream:`` blocks that the caller is in; None if there are none."""
    if not entered:
        return None
    from .stream_blocks import current

    return current.get()


class Stream(DriverObject):
    """A device's stream: work enqueued on it is done in order.

    ``Stream()`` is the default stream. ``Stream(device=0)`` is a new one on a device, which ends
    with the object. Anything else is shared: a handle as an int, or a stream object of CuPy
    (``ptr``), PyTorch (``cuda_stream``), Numba (``handle``) or any library with
    ``__cuda_stream__``. If the object does not say where it is, ``device`` does: "hip:0" also says
    that the stream is HIP's. ``Stream(device="opencl:0")`` is a new queue of OpenCL. A
    ``CommandQueue`` of PyOpenCL becomes a stream of its device if it is in the context of one of
    hamr's devices. The same holds for "sycl:0" and dpctl's ``SyclQueue``; ``sycl_queue`` makes
    one of a stream. The per-thread default stream of CUDA and HIP, 2, becomes that of the calling
    thread.

    In a ``with stream:`` block, buffers that are made without ``stream=`` use the stream, if their
    memory is the host's or on its device. Buffers made before keep their stream, and so do views
    and copies. A block belongs to the thread, or task of asyncio, that began it, and to tasks made
    inside. The end of a block waits for nothing.

    A new stream, and everything that asks the device, raises BackendUnavailable without a CUDA
    driver. An object that is no stream is a TypeError. In a forked child the parent's streams
    raise ForkError.

    A number that is no stream is a ValueError when it is first used, if hamr can find out: it asks
    the driver, unless no memory is mapped at that address. It cannot find out for a stream that
    has been destroyed, or for the address of something else: what the driver then does is
    undefined. Stream objects are trusted.

    A copy is the same object. A stream cannot be pickled.
    """

    _name = "hamr.Stream"
    _instead = "make one where the pickle is read, by hamr.Stream(device=...)"

    __slots__ = (
        "__weakref__",
        "_backend",
        "_device",
        "_generation",
        "_life",
        "_owner",
        "_sure",
        "_value",
    )

    _device: int
    _value: int
    _sure: bool  # it is known to be a stream on that device

    def __init__(self, stream: Any = None, *, device: Device | None = None) -> None:
        backend, number = None, -1
        if device is not None:
            from .place import device_and_backend

            number, backend = device_and_backend(device)
        if stream is not None or backend is None:
            self._share(stream, number, -1, backend)
            return
        self._backend, self._generation, self._owner = backend, _native.generation(), None
        self._device = core().CurrentDevice(backend) if number < 0 else number
        self._value = core().NewStream(backend, self._device)
        self._life = self._share_life(True)
        self._sure = True

    def _share(self, stream: Any, device: int, near: int, backend: str | None = None) -> None:
        """Become the stream that was given. The per-thread stream is that of device ``near``."""
        self._generation, self._owner = _native.generation(), stream
        told_by = stream._backend if isinstance(stream, Stream) else backend_of_stream(stream)
        self._backend = told_by or backend or BACKEND
        self._value = handle_of(stream)
        told = _device_of(stream)
        self._device = told if device < 0 else device
        self._sure = self._value <= PER_THREAD or (
            stream._sure if isinstance(stream, Stream) else self._device == told >= 0
        )
        if self._value == PER_THREAD and self._backend in _WITH_PER_THREAD:
            if near >= 0:
                self._device = near
            self._device = self._place()
            self._value = core().ResolveStream(self._backend, self._device, PER_THREAD)
        if self._value > PER_THREAD:
            self._life = self._share_life(False)

    def _share_life(self, made: bool) -> _native.StreamLife:
        """An object that all users of the handle hold. At its end memory forgets the handle."""
        owner = None if isinstance(self._owner, (int, Stream)) else self._owner
        return _native.stream_life(self._value, self._device, self._backend, made, owner)

    @classmethod
    def from_any(cls, stream: Any) -> Stream:
        """A Stream for another library's stream object, which it keeps alive."""
        return stream if isinstance(stream, Stream) else cls(stream)

    @property
    def ptr(self) -> int:
        """The handle; 0 is the default stream."""
        return self._value

    @property
    def device(self) -> int:
        """The device that the stream is on; -1 is the calling thread's current one."""
        return self._device

    @property
    def idle(self) -> bool:
        """Whether all work on the stream is over."""
        named = self._named()
        return core().StreamIdle(*named)

    done = idle

    def record(self, *, timing: bool = False) -> Event:
        """An Event that stands for the work on the stream so far.

        With ``timing`` it records the time, for ``Event.elapsed_time``.
        """
        return Event(self, timing=timing)

    def wait(self, event: Any) -> None:
        """Make later work on the stream wait for an event, without blocking the caller.

        Accepted are hamr's events and objects with a CUDA event's handle: CuPy's
        (``ptr``), PyTorch's (``cuda_event``) and Numba's (``handle``). An event that
        was never recorded is not waited for. An event of another runtime blocks the caller.
        """
        if isinstance(event, Event) and event._backend != self._backend:
            event.synchronize()
            return
        handle = event._named()[2] if isinstance(event, Event) else handle_of_event(event)
        if handle:
            named = self._named()
            core().StreamWaitEvent(*named, handle)

    def synchronize(self) -> None:
        """Block until all work on the stream is over; signals are handled meanwhile."""
        self._named()
        wait_in_slices(self._wait)

    def __enter__(self) -> Self:
        from .stream_blocks import current

        current.set((self._checked(), current.get()))
        if not entered:
            entered.append(True)
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        from .stream_blocks import current, without

        try:
            current.set(without(current.get(), self))
        except RuntimeError:
            # A coroutine that is never resumed may be closed anywhere, as by the collector.
            if kind is not GeneratorExit:
                raise

    def __await__(self) -> Generator[Any, None, None]:
        self._named()  # raise errors here, not in the event loop's first step
        return until(lambda: self.idle).__await__()

    def _wait(self, milliseconds: int) -> bool:
        named = self._named()  # each time: a signal's handler may have forked
        return core().WaitStream(*named, milliseconds)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of CUDA's stream protocol, and the handle."""
        if self._backend != BACKEND:
            raise TypeError(f"{self!r} is a stream of {self._backend}, and not of CUDA")
        return 0, self._usable()

    @property
    def sycl_queue(self) -> Any:
        """The queue as a ``dpctl.SyclQueue``; AttributeError for streams of other runtimes.

        BackendUnavailable without dpctl.
        """
        if self._backend != "sycl":
            raise AttributeError(f"{self!r} is a stream of {self._backend}, and no queue of SYCL's")
        from .sycl_queues import queue_at

        handle = self._usable() or core().ResolveStream("sycl", self._place(), 0)
        return queue_at(handle)

    def __int__(self) -> int:
        return self._value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"hamr.Stream({self._value:#x})"

    def _usable(self) -> int:
        """The handle, unless a fork made it meaningless."""
        if self._value > PER_THREAD and self._generation != _native.generation():
            raise before_fork("stream")
        return self._value

    def _checked(self) -> Stream:
        """The stream, after the driver has confirmed it once."""
        self._usable()
        if self._sure:
            return self
        found = self._life.made_on
        if found is None:
            found = core().StreamDevice(self._backend, self._value)
        if found == _NO_STREAM:
            raise ValueError(
                f"stream is {self._given()}: accepted is the handle of a stream that exists"
            )
        if found >= 0:
            if self._device not in (-1, found):
                raise ValueError(
                    f"stream is {self._given()} of device {found}, and device is {self._device}: "
                    "accepted is the stream's own device"
                )
            self._device, self._sure = found, True
        return self

    def _fitting(self, device: int, backend: str = BACKEND) -> Stream:
        """The stream, if it can be used with memory of a device; else a ValueError.

        Memory of no device (-1) takes any stream of its backend. Every device has the default
        streams.
        """
        if self._backend != backend and self._value:
            raise ValueError(
                f"stream is {self._given()} of {self._backend}: accepted here are streams of "
                f"{backend}, made by hamr.Stream(device={backend + ':0'!r})"
            )
        if 0 <= self._device != device >= 0 and self._value > PER_THREAD:
            raise ValueError(
                f"stream is {self._given()} of device {self._device}: "
                f"accepted for memory of device {device} are streams of that device"
            )
        return self

    def _given(self) -> str:
        """The stream as its user gave it, for messages."""
        if self._owner is None or isinstance(self._owner, Stream):
            return repr(self)
        return f"{self._owner!r} ({self._value:#x})"

    def _named(self) -> tuple[str, int, int]:
        """The arguments that stand for the stream in calls of the façade."""
        self._checked()
        return self._backend, self._device, self._value

    def _place(self) -> int:
        """The device that the stream is on; the current one if it is on none."""
        if self._device >= 0:
            return self._device
        return core().CurrentDevice(self._backend)


class Event(DriverObject):
    """The work on a stream so far: ``Event(stream)`` is ``stream.record()``.

    Without a stream it is the default stream's. With ``timing=True`` it records the time, for
    ``start.elapsed_time(end)``, which costs the device more. BackendUnavailable without a CUDA
    driver; in a forked child the parent's events raise ForkError.

    A copy is the same object. An event cannot be pickled.
    """

    _name = "hamr.Event"
    _instead = "synchronize() waits for it here"

    __slots__ = ("__weakref__", "_backend", "_device", "_generation", "_timing", "_value")

    def __init__(self, stream: Any = None, *, timing: bool = False) -> None:
        self._value = 0
        self._timing = bool(timing)
        source = stream._checked() if isinstance(stream, Stream) else as_stream(stream)
        self._generation = _native.generation()
        # A later call may come from a thread with another current device.
        self._backend, self._device = source._backend, source._place()
        record = core().RecordTimedEvent if self._timing else core().RecordEvent
        self._value = record(self._backend, self._device, source._value)

    def __del__(self, destroy: Any = _native.destroy_event) -> None:
        if getattr(self, "_value", 0):  # absent after a call with wrong arguments
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
        """How much later the device reached another event, in milliseconds, to about 0.5 µs.

        It is less than zero if the other event was earlier. ValueError unless both were made with
        ``timing=True`` on one device; RuntimeError unless both are done.
        """
        from .timing import milliseconds

        if not isinstance(later, Event):
            raise TypeError(f"later is {later!r}: accepted is a hamr.Event")
        return milliseconds(self, later)

    def wait(self, stream: Any = None) -> None:
        """Make later work on a stream wait for the event; without a stream, block the caller.

        The default stream is given as ``hamr.Stream()``.
        """
        if stream is None:
            self.synchronize()
        else:
            given = stream if isinstance(stream, Stream) else as_stream(stream, -1, self._backend)
            given.wait(self)

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
        """The arguments that stand for the event in calls of the façade."""
        if self._generation != _native.generation():
            raise before_fork("event")
        return self._backend, self._device, self._value


def as_stream(stream: Any, device: int = -1, backend: str = BACKEND) -> Stream:
    """A stream that a user gave, as a Stream; a wrong one is an error.

    ``device`` is the device of the memory that the stream is given for, and of the per-thread
    default stream; -1 is the host, or a device that is not known. ``backend`` is the memory's: a
    number is a stream of it, and streams of other backends are a ValueError.
    """
    if isinstance(stream, Stream):
        if stream._value or stream._backend == backend:
            return stream._checked()._fitting(device, backend)
        stream = None  # each runtime has a default stream of its own
    made = Stream.__new__(Stream)
    made._share(stream, -1, device, backend)
    made._checked()._fitting(device, backend)
    if made._device < 0:
        made._device = device
    return made


def handle_of(stream: Any) -> int:
    if stream is None:
        return 0
    if isinstance(stream, Stream):
        return stream._usable()
    return handle_of_stream(stream)


def _device_of(stream: Any) -> int:
    """The device that a stream object says it is on; -1 if it does not say."""
    if stream is None or isinstance(stream, int):
        return -1
    if isinstance(stream, Stream):
        return stream._device
    return device_of_stream(stream)


Stream.__module__ = Event.__module__ = "hamr"  # where users find them
