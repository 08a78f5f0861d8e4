"""Stream: the order in which a device does things."""

from __future__ import annotations

from _operator import index

from .. import _native
from .allocator import device_number, is_of_a_device
from .errors import before_fork
from .library import core
from .waiting import until, wait_in_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, NoReturn

    from .event import Event

#: Whose streams these are. Another backend's streams need their own way of
#: telling foreign objects apart, and this name in each Stream.
BACKEND = "cuda"

#: CUDA's handles that are no objects: its default, its legacy default, and the one
#: that means another stream on every thread.
_LEGACY, _PER_THREAD = 1, 2

_STREAM_NAMES = ("ptr", "cuda_stream", "handle")

#: What the core says of a handle that is no stream's, in place of its device.
_NO_STREAM = -2


class Stream:
    """A device's stream: work enqueued on it is done in its order.

    ``Stream()`` is the default stream, ``Stream(device=0)`` a new one on a device,
    which ends with the object. Anything else is shared: a handle as an int, or a
    stream object of CuPy (``ptr``), PyTorch (``cuda_stream``), Numba (``handle``) or
    any library with ``__cuda_stream__``; ``device`` then says where it is, if the
    object does not. CUDA's per-thread default stream, 2, becomes that of the
    calling thread.

    A new stream, and all that asks the device, raises BackendUnavailable where
    there is no CUDA driver; an object that is no stream is a TypeError. In a forked
    child the parent's streams raise ForkError.

    A number that is no stream's is a ValueError when it is first used, where that can
    be told: the driver is asked, unless no memory is mapped at such an address. It
    cannot be told of a stream that has been destroyed, or of the address of something
    else: what the driver then does is undefined. Stream objects are believed.

    Copies are the object itself, and end with it. A stream cannot be pickled.
    """

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
    _sure: bool  # it is a stream, on the device that it says

    def __init__(self, stream: Any = None, *, device: int | None = None) -> None:
        number = -1 if device is None else device_number(device)
        if stream is not None or device is None:
            self._share(stream, number, -1)
            return
        self._backend, self._generation, self._owner = BACKEND, _native.generation(), None
        self._device = core().CurrentDevice(BACKEND) if number < 0 else number
        self._value = core().NewStream(BACKEND, self._device)
        self._life = self._share_life(True)
        self._sure = True

    def _share(self, stream: Any, device: int, near: int) -> None:
        """Become the stream that was given; the per-thread one is meant on device ``near``."""
        self._backend, self._generation, self._owner = BACKEND, _native.generation(), stream
        self._value = _handle_of(stream)
        told = _device_of(stream)
        self._device = told if device < 0 else device
        self._sure = self._value <= _PER_THREAD or (
            stream._sure if isinstance(stream, Stream) else self._device == told >= 0
        )
        if self._value == _PER_THREAD:
            if near >= 0:
                self._device = near
            self._device = self._place()
            self._value = core().ResolveStream(BACKEND, self._device, _PER_THREAD)
        if self._value > _PER_THREAD:
            self._life = self._share_life(False)

    def _share_life(self, made: bool) -> _native.StreamLife:
        """What all who use the handle hold; hamr's memory forgets the handle at its end."""
        owner = None if isinstance(self._owner, (int, Stream)) else self._owner
        return _native.stream_life(self._value, self._device, self._backend, made, owner)

    @classmethod
    def from_any(cls, stream: Any) -> Stream:
        """A Stream for a foreign stream object, which is kept alive."""
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

    def record(self) -> Event:
        """An Event that stands for the work on the stream so far."""
        from .event import Event

        return Event(self)

    def wait(self, event: Any) -> None:
        """Make later work on the stream wait for an event, without blocking the caller.

        Accepted are hamr's events and objects with a CUDA event's handle: CuPy's
        (``ptr``), PyTorch's (``cuda_event``) and Numba's (``handle``). An event that
        was never recorded is not waited for.
        """
        from .event import handle_of

        handle = handle_of(event)
        if handle:
            named = self._named()
            core().StreamWaitEvent(*named, handle)

    def synchronize(self) -> None:
        """Block until all work on the stream is over; signals are handled meanwhile."""
        named = self._named()
        wait_in_slices(core().WaitStream, *named)

    def __await__(self) -> Generator[Any, None, None]:
        self._named()  # errors come here, not in the event loop's first step
        return until(lambda: self.idle).__await__()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of CUDA's stream protocol, and the handle."""
        return 0, self._usable()

    def __int__(self) -> int:
        return self._value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"hamr.Stream({self._value:#x})"

    def __copy__(self) -> Stream:
        return self

    def __deepcopy__(self, memo: object) -> Stream:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a hamr.Stream is a driver object of this process and cannot be pickled: "
            "make one where the pickle is read, by hamr.Stream(device=...)"
        )

    def _usable(self) -> int:
        """The handle, unless a fork made it meaningless."""
        if self._value > _PER_THREAD and self._generation != _native.generation():
            raise before_fork("stream")
        return self._value

    def _checked(self) -> Stream:
        """The stream, unless the driver knows better: once, since it then stays one."""
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

    def _fitting(self, device: int) -> Stream:
        """The stream, unless it is another device's than the memory it is to be used with.

        Memory of no device (-1) takes any, and the default streams are each device's.
        """
        if 0 <= self._device != device >= 0 and self._value > _PER_THREAD:
            raise ValueError(
                f"stream is {self._given()} of device {self._device}: "
                f"accepted for memory of device {device} are streams of that device"
            )
        return self

    def _given(self) -> str:
        """How to name the stream to who gave it."""
        if self._owner is None or isinstance(self._owner, Stream):
            return repr(self)
        return f"{self._owner!r} ({self._value:#x})"

    def _named(self) -> tuple[str, int, int]:
        """What the façade takes for the stream."""
        self._checked()
        return self._backend, self._device, self._value

    def _place(self) -> int:
        """The device that the stream is on, the current one if need be."""
        if self._device >= 0:
            return self._device
        return core().CurrentDevice(self._backend)


def as_stream(stream: Any, device: int = -1) -> Stream:
    """What a user gave as stream, as a Stream; one that cannot be is refused.

    ``device`` is where the memory is that it is given for, and where the per-thread
    default stream is meant to be; -1 where that is not known, or the host.
    """
    if isinstance(stream, Stream):
        return stream._checked()._fitting(device)
    made = Stream.__new__(Stream)
    made._share(stream, -1, device)
    made._checked()._fitting(device)
    if made._device < 0:
        made._device = device
    return made


def stream_for_memory(
    stream: Any, allocator: int, device: int, pointer: int | None = None
) -> Stream:
    """The stream given for memory of an allocator: new memory, or that at an address.

    ``device`` is its device's number; -1 is the current one, or where the address is.
    """
    on_a_device = is_of_a_device(allocator)
    order = as_stream(stream, device if on_a_device or is_per_thread(stream) else -1)
    if on_a_device and device < 0 <= order._device:
        from .cuda_devices import current_device, device_of

        order._fitting(current_device() if pointer is None else device_of(pointer))
    return order


def stream_for_object(stream: Any, obj: Any) -> Stream:
    """The stream given with an object that is to be shared."""
    if not is_per_thread(stream):
        return as_stream(stream)
    from .cuda_devices import device_of

    return as_stream(stream, device_of(obj))


def is_stream(value: Any) -> bool:
    """Whether an object looks like a stream."""
    # Arrays and events have addresses and handles, too.
    if isinstance(value, int) or hasattr(value, "shape") or "Event" in type(value).__name__:
        return False
    return any(hasattr(value, name) for name in ("__cuda_stream__", *_STREAM_NAMES))


def is_per_thread(stream: Any) -> bool:
    """Whether it depends on thread and device which stream is meant."""
    return not isinstance(stream, Stream) and _handle_of(stream) == _PER_THREAD


def foreign_handle(obj: Any, names: tuple[str, ...]) -> int | None:
    """The handle that an object has under one of the names; None if it has none."""
    for name in names:
        value = getattr(obj, name, None)
        if value is None:
            continue
        if hasattr(value, "value"):  # ctypes
            value = value.value or 0
        number = _plain_int(value)
        if number is not None:
            return number
    return None


def _handle_of(stream: Any) -> int:
    if stream is None:
        return 0
    if isinstance(stream, Stream):
        return stream._usable()
    value = None
    if isinstance(stream, int):
        value = _plain_int(stream)
    elif is_stream(stream):
        protocol = getattr(stream, "__cuda_stream__", None)
        if protocol is None:
            value = foreign_handle(stream, _STREAM_NAMES)
        else:
            value = _handle_by_protocol(stream, protocol)
    if value is None:
        raise TypeError(f"stream is {stream!r}: accepted is None, an int or a stream object")
    if not 0 <= value < 2**64:
        raise ValueError(f"stream is {stream!r}: accepted are 0 ... 2**64-1")
    return value


def _handle_by_protocol(stream: Any, protocol: Any) -> int:
    pair = protocol() if callable(protocol) else protocol
    numbers = [_plain_int(x) for x in pair] if isinstance(pair, (tuple, list)) else []
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        raise TypeError(
            f"stream is {stream!r} with __cuda_stream__ {pair!r}: accepted is (version, handle)"
        )
    if numbers[0] != 0:
        raise ValueError(
            f"stream is {stream!r} with __cuda_stream__ {pair!r}: accepted is version 0"
        )
    return numbers[1]


def _device_of(stream: Any) -> int:
    """The device that a stream object says it is on; -1 if it does not say."""
    if stream is None or isinstance(stream, int):
        return -1
    if isinstance(stream, Stream):
        return stream._device
    device = getattr(stream, "device", None)
    for holder in (stream, device):
        for name in ("device_id", "device_index", "index"):
            number = _plain_int(getattr(holder, name, None))
            if number is not None and number >= 0:
                return number
    return -1


def _plain_int(value: Any) -> int | None:
    """The int that a handle stands for; cuda-python's handles are no indices, but have an int."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return index(value)
    except TypeError:
        pass
    if isinstance(value, (str, bytes, float)) or not hasattr(type(value), "__int__"):
        return None
    return int(value)
