"""Stream: the order in which a device does things."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Stream:
    """A device's stream by its handle, as an int, or anybody's stream object.

    ``Stream()`` is the default stream. Accepted objects are those with
    ``__cuda_stream__``, CuPy's (``ptr``), PyTorch's (``cuda_stream``) and Numba's
    (``handle``).
    """

    __slots__ = ("_owner", "_value")

    def __init__(self, stream: Any = None) -> None:
        self._value = stream_of(stream)
        self._owner = stream

    @classmethod
    def from_any(cls, stream: Any) -> Stream:
        """A Stream for a foreign stream object, which is kept alive."""
        return stream if isinstance(stream, Stream) else cls(stream)

    def __int__(self) -> int:
        return self._value

    __index__ = __int__

    @property
    def ptr(self) -> int:
        """The handle."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"hamr.Stream({self._value:#x})"


def stream_of(stream: Any) -> int:
    """The handle of a stream given as None, int or stream object."""
    if stream is None:
        return 0
    if isinstance(stream, Stream):
        return stream._value
    value = stream
    if not isinstance(stream, int):
        # Arrays have addresses and positions too, but they are no streams.
        value = None if hasattr(stream, "shape") else _handle(stream)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"stream is {stream!r}: accepted is None, an int or a stream object")
    if not 0 <= value < 2**64:
        raise ValueError(f"stream is {stream!r}: accepted are 0 ... 2**64-1")
    return value


def _handle(stream: Any) -> Any:
    method = getattr(stream, "__cuda_stream__", None)
    if method is not None:
        pair = method() if callable(method) else method
        return pair[1]
    for name in ("ptr", "cuda_stream", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return getattr(value, "value", value) or 0
    return None
