"""How buffers print: in braces, with each of several rows on its own line; and their repr."""

from __future__ import annotations

from itertools import product

import hamr._native as _native

from .._base.allocator import allocator_from, is_of_a_device
from .._base.element import name_of
from .reading import array_of
from .views import select

#: Rows that are shown at either end of a long dimension, as in NumPy.
EDGE = 3

#: With more lines than this, rows are not separated any more.
MOST_LINES = 1000


def shown(array: _native.Array, limit: int) -> str:
    """What ``repr`` shows: the elements, or a description if showing them would have to wait."""
    source = array._snapshot(_native.Array)  # others may resize it meanwhile
    kind, place = name_of(source._element), allocator_from(source._allocator).name
    if not is_of_a_device(source._allocator):
        try:
            if _native.settled(source):
                whole = 0 < source._count <= limit
                shape = "" if whole or source.shape == (0,) else f"shape={source.shape}, "
                return f"hamr.Buffer({_values(source, limit)}, {shape}{kind}, {place})"
        except RuntimeError:  # a device's error, which is raised where somebody waits
            pass
    return (
        f"<hamr.Buffer {source.shape} {kind} {place} owner {source.device} at {source._place:#x}>"
    )


def _values(array: _native.Array, limit: int) -> str:
    try:
        import numpy

        elements = array_of(array, None, None)
    except (ImportError, TypeError):  # without ml_dtypes NumPy does not have all types
        written = nested(array, limit) if array.ndim > 1 else _native.text(array, limit)
        return written.replace("{", "[").replace("}", "]") if array.ndim else written[1:-1]
    return str(numpy.array2string(elements, separator=", ", prefix="hamr.Buffer("))


def nested(array: _native.Array, limit: int) -> str:
    """The elements of two or more dimensions, shortened beyond ``limit`` elements; 0 is no limit.

    A row is written as upstream HAMR writes a buffer, but without its line feeds.
    """
    if array._count == 0:
        return _native.text(array, limit)  # the other lengths may be huge
    short = 0 < limit < array._count
    chosen = [
        [*range(EDGE), *range(n - EDGE, n)] if short and n > 2 * EDGE else list(range(n))
        for n in array.shape
    ]
    lines = 1
    for positions in chosen[:-1]:
        lines *= len(positions)
    if short and lines > MOST_LINES:
        return _native.text(array, limit)
    if short:
        rows = iter([_row(array, index) for index in product(*chosen[:-1])])
        return _braces(rows, [len(c) for c in chosen[:-1]], array.shape, 0)
    words = _native.text(array, 0)[1:-1].replace("\n", "").split(", ")
    width = array.shape[-1]
    dense = iter("{" + ", ".join(words[i : i + width]) + "}" for i in range(0, len(words), width))
    return _braces(dense, list(array.shape[:-1]), array.shape, 0)


def _row(array: _native.Array, index: tuple[int, ...]) -> str:
    row = _native.view(_native.Array, array, *select(array.shape, array.strides, index))
    # Of more than six elements the first and last three.
    return _native.text(row, 2 * EDGE).replace("\n", "")


def _braces(rows: object, counts: list[int], shape: tuple[int, ...], depth: int) -> str:
    if depth == len(counts):
        return next(rows)  # type: ignore[call-overload, no-any-return]
    parts = [_braces(rows, counts, shape, depth + 1) for _ in range(counts[depth])]
    if counts[depth] < shape[depth]:
        parts.insert(EDGE, "...")
    feeds = "\n" * (len(counts) - depth)
    return "{" + f",{feeds}{' ' * (depth + 1)}".join(parts) + "}"
