"""copy_blocks: copies many equally large parts of arrays by one call."""

from __future__ import annotations

import hamr._native as _native

from .._protocols.fields import short
from .buffers import buffer
from .many import copy_all, listed, shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._base.allocator import Transfer, TransferName

_INDICES = "accepted is a list of integers, or an array of them of one dimension"


def copy_blocks(
    destination: Any,
    destination_index: Any,
    source: Any,
    source_index: Any,
    *,
    stream: Any = None,
    transfer: Transfer | int | TransferName | None = None,
) -> None:
    """Do ``destination[destination_index[k]] = source[source_index[k]]`` for all k.

    A block is what one index of the first dimension names: a page of a cache, a row of a table.
    Source and destination are buffers, or whatever ``hamr.buffer`` shares: arrays of any type,
    strides and memory. Or they are lists of as many arrays, which share the indices: one for
    each layer, for example. Elements are converted. Blocks have one shape at both ends, or those
    of the source are broadcast. Many small blocks take a few steps instead of one each.

    The indices are lists of integers, or integer arrays of one dimension in any memory. Indices
    below zero count from the end. Where a block of a destination is named twice, the last one
    wins. All blocks of an array are read before its destination is written, as NumPy does with
    ``destination[destination_index] = source[source_index]``. The arrays of lists follow one
    another.

    ``transfer`` says which movements are waited for. By default each destination's own mode does;
    arrays that are no buffers are complete when the call returns. For these arrays ``stream`` is
    as in ``hamr.buffer``.

    An index out of range is an IndexError that names it, and nothing is copied. Indices that a
    device has may be checked there, by work that is enqueued: then the error comes from the next
    wait for a destination, or from the thread's next ``copy_blocks``. Copies that are captured into
    a graph copy nothing for such indices, without an error. After a DeviceError or OutOfMemory the
    elements of all destinations are unspecified.
    """
    several = isinstance(destination, (list, tuple))
    if several != isinstance(source, (list, tuple)):
        raise TypeError(
            f"destination is {short(destination)} and source {short(source)}: "
            "accepted are two arrays, or two lists of arrays"
        )
    if several:
        to, given = listed("destination", destination), listed("source", source)
    else:
        to = [shared("destination", destination, stream)]
        given = [shared("source", source, stream)]
    indices = (
        _index("destination_index", destination_index, stream),
        _index("source_index", source_index, stream),
    )
    copy_all(("destination", "source"), to, given, indices, transfer, stream)


def _index(name: str, index: Any, stream: Any) -> _native.Array:
    """Indices as an array that the core can use."""
    if not isinstance(index, (list, tuple, range)):
        if not isinstance(index, _native.Array) and isinstance(index, (str, bytes, bytearray)):
            raise TypeError(f"{name} is {short(index)}: {_INDICES}")
        return shared(name, index, stream)
    plain = _native.integers(tuple(index) if isinstance(index, range) else index)
    if plain:
        return buffer(memoryview(plain).cast("q"))
    from array import array
    from operator import index as int_of

    if bool in set(map(type, index)):
        raise TypeError(f"{name} has booleans: {_INDICES}")
    try:
        numbers = array("q", index)
    except TypeError:
        raise TypeError(f"{name} is {short(index)}: {_INDICES}") from None
    except OverflowError:
        numbered = enumerate(map(int_of, index))
        at, i = next((k, i) for k, i in numbered if not -(2**63) <= i < 2**63)
        raise IndexError(f"{name}[{at}] is {i}: accepted is the number of a block") from None
    return buffer(numbers)
