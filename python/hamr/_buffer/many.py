"""copy_many: copies many arrays by one call."""

from __future__ import annotations

from collections.abc import Sequence

import hamr._native as _native

from .._base.allocator import Transfer, transfer_of
from .._base.errors import FreedBuffer
from .._base.stream import blocks, entered
from .._protocols.fields import short
from .buffers import buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._base.allocator import TransferName

#: Foreign memory waits for work on it when it ends. With this mode all of it waits once.
_SYNC = Transfer.sync


def copy_many(
    destinations: Sequence[Any],
    sources: Sequence[Any],
    *,
    stream: Any = None,
    transfer: Transfer | int | TransferName | None = None,
    wait: bool | None = None,
) -> None:
    """Do ``d[...] = s`` for each of the destinations and the source at the same position.

    Both are sequences, such as lists, of buffers and of whatever ``hamr.buffer`` shares: arrays of
    any type, shape, strides and memory. Elements are converted, and shapes broadcast. The result
    is that of a loop, also if arrays have bytes in common. But many small arrays between the host
    and a device, or within a device, take few steps instead of one each, and the call waits once.

    ``transfer`` says which movements are waited for. By default each destination's own mode does;
    arrays that are no buffers are complete when the call returns. For these arrays ``stream`` and
    ``wait`` are as in ``hamr.buffer``.

    All arguments are checked first: if one is wrong, nothing is copied. The TypeError or
    ValueError names the position in the sequence. A read-only destination is a ValueError. After a
    DeviceError or OutOfMemory the elements of all destinations are unspecified.
    """
    copy_all(
        ("destinations", "sources"),
        listed("destinations", destinations),
        listed("sources", sources),
        (None, None),
        transfer,
        stream,
        wait,
    )


def listed(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence as a list that nobody else has."""
    if isinstance(arrays, (list, tuple)) or (
        isinstance(arrays, Sequence) and not isinstance(arrays, (str, bytes, bytearray, memoryview))
    ):
        return list(arrays)
    raise TypeError(
        f"{name} is {short(arrays)}, a {type(arrays).__name__}: "
        "accepted is a sequence of arrays, as a list"
    )


def copy_all(
    names: tuple[str, str],
    to: list[Any],
    given: list[Any],
    indices: tuple[_native.Array | None, _native.Array | None],
    transfer: Transfer | int | TransferName | None,
    stream: Any,
    wait: bool | None = None,
) -> None:
    """Copy arrays, or the blocks that indices name. The names are those of the two lists."""
    if len(to) != len(given):
        raise ValueError(
            f"{names[0]} has {len(to)} arrays and {names[1]} {len(given)}: "
            "accepted is one source for each destination"
        )
    mode = -1 if transfer is None else transfer_of(transfer)

    def share(name: str, i: int, array: Any) -> _native.Array:
        return shared(f"{name}[{i}]", array, stream, wait)

    _native.copy_many(to, given, *indices, mode, names, share, _plain(stream, wait))


def shared(name: str, array: Any, stream: Any, wait: bool | None = None) -> _native.Array:
    """An array that the core can use."""
    if isinstance(array, _native.Array):
        if array._closed:
            raise FreedBuffer(f"{name} was closed")
        return array
    try:
        if _plain(stream, wait):
            found = _native.adopt_known(_native.Array, array, 0, _SYNC, None)
            if found is not None:
                return found
        return buffer(array, stream, _SYNC, wait=wait)
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"{name} is {short(array)}: {error}") from None


def _plain(stream: Any, wait: bool | None) -> bool:
    """Whether arrays are shared on the default stream, and nothing is said about waiting."""
    return stream is None and wait is None and not (entered and blocks() is not None)
