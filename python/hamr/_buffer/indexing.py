"""Basic indexing: which elements a key selects, as an offset, shape and strides."""

from __future__ import annotations

from _operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def select(
    shape: tuple[int, ...], strides: tuple[int, ...], key: Any
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Offset in bytes, shape and strides of the elements that ``key`` selects.

    Accepted are integers, slices, ``...``, None and tuples of them, as in NumPy's
    basic indexing. Anything else is a TypeError, a position outside the array an
    IndexError.
    """
    if type(key) is int and shape:
        return _position(key, shape[0], 0) * strides[0], shape[1:], strides[1:]
    if type(key) is slice and shape:
        offset, count, stride = _run(key, shape[0], strides[0])
        return offset, (count, *shape[1:]), (stride, *strides[1:])
    keys = _expand(shape, key if isinstance(key, tuple) else (key,))
    offset, dim = 0, 0
    out_shape: list[int] = []
    out_strides: list[int] = []
    for k in keys:
        if k is None:
            out_shape.append(1)
            out_strides.append(0)
            continue
        n, stride = shape[dim], strides[dim]
        if isinstance(k, slice):
            by, count, stride = _run(k, n, stride)
            offset += by
            out_shape.append(count)
            out_strides.append(stride)
        else:
            offset += _position(k, n, dim) * stride
        dim += 1
    return offset, tuple(out_shape), tuple(out_strides)


def _run(key: slice, n: int, stride: int) -> tuple[int, int, int]:
    """Offset, count and stride of a slice of one dimension."""
    start, stop, step = key.indices(n)
    count = len(range(start, stop, step))
    # Of fewer than two elements the stride means nothing; multiplied, slices of
    # slices would make it too large for 64 bits.
    return start * stride if count else 0, count, step * stride if count > 1 else stride


def _expand(shape: tuple[int, ...], keys: tuple[Any, ...]) -> list[Any]:
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > len(shape):
        raise IndexError(f"{used} indices for {len(shape)} dimensions")
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index has at most one '...'")
    if not any(k is Ellipsis for k in keys):
        keys = (*keys, Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    return [*keys[:at], *[slice(None)] * (len(shape) - used), *keys[at + 1 :]]


def _position(k: Any, n: int, dim: int) -> int:
    if isinstance(k, bool):
        raise _refused(k)
    try:
        i = index(k)  # a plain int: a subclass may compare as it likes
    except TypeError:
        raise _refused(k) from None
    if not -n <= i < n:
        raise IndexError(f"index is {i}: accepted are {-n} ... {n - 1} for dimension {dim}")
    return i + n if i < 0 else i


def _refused(k: Any) -> TypeError:
    from .._protocols.fields import short

    message = f"index is {short(k)}: accepted are integers, slices, '...' and None"
    if hasattr(type(k), "__len__") and not isinstance(k, (str, bytes)):
        message += "; by a mask or a list of positions NumPy copies, numpy.asarray(b)[index]"
    return TypeError(message)
