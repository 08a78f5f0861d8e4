"""Other libraries' streams and events: how to recognize them, and where their handles are."""

from __future__ import annotations

from _operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STREAM_NAMES = ("ptr", "cuda_stream", "handle")
#: PyOpenCL's name of a handle. Objects other than queues have it as well.
_OPENCL_NAME = "int_ptr"
#: dpctl's name of the method that returns the address of its reference to a queue.
_SYCL_NAME = "addressof_ref"
_EVENT_NAMES = ("ptr", "cuda_event", "handle")


def is_stream(value: Any) -> bool:
    """Whether an object looks like a stream."""
    # Arrays and events have addresses and handles, too.
    if isinstance(value, int) or hasattr(value, "shape") or "Event" in type(value).__name__:
        return False
    if any(hasattr(value, name) for name in ("__cuda_stream__", *_STREAM_NAMES)):
        return True
    return _is_opencl_queue(value) or _is_sycl_queue(value)


def _is_opencl_queue(value: Any) -> bool:
    return "Queue" in type(value).__name__ and hasattr(value, _OPENCL_NAME)


def _is_sycl_queue(value: Any) -> bool:
    return "Queue" in type(value).__name__ and callable(getattr(value, _SYCL_NAME, None))


def backend_of_stream(stream: Any) -> str | None:
    """The runtime that another library's stream object belongs to; None if it is not known."""
    if _is_sycl_queue(stream):
        return "sycl"
    return "opencl" if _is_opencl_queue(stream) else None


def handle_of_stream(stream: Any) -> int:
    """The handle of a stream that was given as an int or as another library's object."""
    value = None
    if isinstance(stream, int):
        value = _plain_int(stream)
    elif is_stream(stream):
        protocol = getattr(stream, "__cuda_stream__", None)
        if _is_sycl_queue(stream):
            value = _plain_int(getattr(stream, _SYCL_NAME)())
        elif protocol is None:
            value = _under(stream, (*_STREAM_NAMES, _OPENCL_NAME))
        else:
            value = _handle_by_protocol(stream, protocol)
    if value is None:
        hint = f"; an element type is dtype={stream!r}" if isinstance(stream, str) else ""
        raise TypeError(f"stream is {stream!r}: accepted is None, an int or a stream object{hint}")
    if not 0 <= value < 2**64:
        raise ValueError(f"stream is {stream!r}: accepted are 0 ... 2**64-1")
    return value


def device_of_stream(stream: Any) -> int:
    """The device that a stream object says it is on; -1 if it does not say."""
    device = getattr(stream, "device", None)
    for holder in (stream, device):
        for name in ("device_id", "device_index", "index"):
            number = _plain_int(getattr(holder, name, None))
            if number is not None and number >= 0:
                return number
    return -1


def handle_of_event(event: Any) -> int:
    """The handle of another library's event; 0 if the event was never recorded."""
    handle = None
    # Arrays and streams have addresses and handles, too.
    if not hasattr(event, "shape") and "Stream" not in type(event).__name__:
        handle = _under(event, _EVENT_NAMES)
    if handle is None:
        raise TypeError(f"event is {event!r}: accepted is an event object")
    if not 0 <= handle < 2**64:
        raise ValueError(f"event is {event!r}: accepted are handles 0 ... 2**64-1")
    return handle


def _under(obj: Any, names: tuple[str, ...]) -> int | None:
    """The handle that an object has by one of the names; None if it has none."""
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


def _plain_int(value: Any) -> int | None:
    """The int of a handle. cuda-python's handles have ``__int__`` and no ``__index__``."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return index(value)
    except TypeError:
        pass
    if isinstance(value, (str, bytes, float)) or not hasattr(type(value), "__int__"):
        return None
    return int(value)
