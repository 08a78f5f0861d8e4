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
    to = shared("destinations", destinations, stream, wait)
    given = shared("sources", sources, stream, wait)
    if len(to) != len(given):
        raise ValueError(
            f"destinations has {len(to)} arrays and sources {len(given)}: "
            "accepted is one source for each destination"
        )
    _native.copy_many(to, given, None, None, -1 if transfer is None else transfer_of(transfer))


def shared(name: str, arrays: Any, stream: Any, wait: bool | None) -> list[_native.Array]:
    """For each of the arrays an array that the core can use."""
    if not isinstance(arrays, (list, tuple)) and (
        not isinstance(arrays, Sequence) or isinstance(arrays, (str, bytes, bytearray, memoryview))
    ):
        raise TypeError(
            f"{name} is {short(arrays)}, a {type(arrays).__name__}: "
            "accepted is a sequence of arrays, as a list"
        )
    plain = stream is None and wait is None and not (entered and blocks() is not None)
    known = _native.adopt_known
    shared: list[_native.Array] = []
    for i, array in enumerate(arrays):
        if isinstance(array, _native.Array):
            if array._closed:
                raise FreedBuffer(f"{name}[{i}] was closed")
        else:
            try:
                found = known(_native.Array, array, 0, _SYNC, None) if plain else None
                array = buffer(array, stream, _SYNC, wait=wait) if found is None else found
            except (TypeError, ValueError) as error:
                if type(error) not in (TypeError, ValueError):
                    raise
                raise type(error)(f"{name}[{i}] is {short(array)}: {error}") from None
        shared.append(array)
    return shared
