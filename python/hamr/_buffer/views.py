"""Views of the same elements: parts, other shapes, other types."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Transfer
from .._base.element import element_of, item_size, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Self, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

    _Base = _native.Array
else:
    _Base = object


class Views(_Base):
    """The views that Buffer and Handle have: the same memory, without a copy."""

    __slots__ = ()

    if TYPE_CHECKING:  # what the classes have

        def _finalized(self, made: Any) -> Self: ...
        def _part(
            self,
            source: _native.Array,
            offset: int,
            shape: tuple[int, ...],
            strides: tuple[int, ...],
            element: int = 0,
        ) -> Self: ...
        def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Self: ...

    #: The class of elements and copies, if that is not the class itself.
    _buffer: ClassVar[Any] = None

    def __getitem__(self, key: Any) -> Self:
        kind = self._buffer or type(self)
        value = None if type(key) is slice else _native.element(kind, self, key)
        if value is None:
            source = self._snapshot(_native.Array)
            where = select(source.shape, source.strides, key)
            if where[1] or not names_element(source.ndim, key):
                return self._part(source, *where)
            keys = key if isinstance(key, tuple) else (key,)
            value = _native.element(kind, source, tuple(_native.index(k) for k in keys))
        return self._finalized(value)

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> Self:  # noqa: N802
        """A view with the dimensions in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """A view with the dimensions in another order, by default the reverse one.

        ``b.transpose(1, 0)`` or ``b.transpose((1, 0))``. ValueError if the order does not name each
        dimension once, IndexError for a dimension that does not exist.
        """
        source = self._snapshot(_native.Array)
        given = axes[0] if len(axes) == 1 and not hasattr(type(axes[0]), "__index__") else axes
        order = tuple(range(source.ndim))[::-1]
        if given is not None and axes:
            order = tuple(_axis(k, source.ndim) for k in _sequence(given))
            if sorted(order) != list(range(source.ndim)):
                raise ValueError(
                    f"axes are {given!r}: accepted is each of 0 ... {source.ndim - 1} once"
                )
        shape, strides = source.shape, source.strides
        return self._part(
            source, 0, tuple(shape[k] for k in order), tuple(strides[k] for k in order)
        )

    def ravel(self) -> Self:
        """The elements, in C order, in one dimension: ``reshape(-1)``."""
        return self.reshape(self._count)

    def squeeze(self, axis: Any = None) -> Self:
        """A view without the dimensions of size 1, or without those of ``axis``, an int or tuple.

        ValueError if a dimension of ``axis`` has another size.
        """
        source = self._snapshot(_native.Array)
        shape, strides = source.shape, source.strides
        if axis is None:
            left_out = {k for k, n in enumerate(shape) if n == 1}
        else:
            axes = [_axis(k, source.ndim) for k in _sequence(axis)]
            left_out = set(axes)
            if len(left_out) < len(axes):
                raise ValueError(f"axis is {axis!r}: accepted is each dimension once")
            for k in left_out:
                if shape[k] != 1:
                    raise ValueError(
                        f"axis is {axis!r}: accepted are dimensions of size 1, of shape {shape}"
                    )
        kept = [k for k in range(source.ndim) if k not in left_out]
        return self._part(source, 0, tuple(shape[k] for k in kept), tuple(strides[k] for k in kept))

    def view(self, dtype: Any = None) -> Self:
        """A view of the same bytes as elements of another type.

        If the types differ in size, the last dimension changes its size. Its elements must lie
        without gaps, and its bytes must be a multiple of the new element's size. ValueError if not,
        and on a device if an element would not lie at a multiple of its size.
        """
        source = self._snapshot(_native.Array)
        element = source._element if dtype is None else element_of(dtype)
        shape, strides = list(source.shape), list(source.strides)
        old, new = source.itemsize, item_size(element)
        if old != new:
            what = f"dtype is {name_of(element)!r}: views of {name_of(source._element)!r} elements"
            if not shape:
                raise ValueError(f"{what} without dimensions are of {old} bytes, as these are")
            size = shape[-1] * old
            if strides[-1] != old and shape[-1] > 1 and source._count:
                raise ValueError(f"{what} of another size need a last dimension without gaps")
            if size % new:
                raise ValueError(
                    f"{what} need a last dimension of a multiple of {new} bytes, not {size}"
                )
            shape[-1], strides[-1] = size // new, new
        if not source._host and any(k % new for k in (source.ptr, *strides)):
            raise ValueError(
                f"dtype is {name_of(element)!r}: elements on a device must lie at multiples "
                f"of {new} bytes, not at {source.ptr:#x} with strides {tuple(strides)}"
            )
        return self._part(source, 0, tuple(shape), tuple(strides), element)


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """The bytes from element zero to the first byte of all elements, and to the end of the last.

    Both are 0 without elements.
    """
    if not all(shape):
        return 0, 0
    spans = [step * (n - 1) for n, step in zip(shape, strides, strict=True)]
    return sum(s for s in spans if s < 0), sum(s for s in spans if s > 0) + itemsize


def adopted(
    kind: type[_A],
    element: int,
    allocator: int,
    device: int,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    readonly: bool = False,
    owner: object = None,
    take: bool = False,
) -> _A:
    """An array over memory at an address that no stream is known to use."""
    place = allocator, device, 0, Transfer.sync_host, pointer
    return _native.adopt_pointer(kind, element, *place, shape, strides, readonly, owner, take)


def shape_from(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of a shape that was given as several arguments, or as one tuple or list."""
    return tuple(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)


def _sequence(axes: Any) -> tuple[Any, ...]:
    return tuple(axes) if isinstance(axes, (tuple, list, range)) else (axes,)


def _axis(k: Any, ndim: int) -> int:
    try:
        number = _native.index(k)
    except TypeError:
        raise TypeError(f"axis is {k!r}: accepted is an int") from None
    if not -ndim <= number < ndim:
        raise IndexError(f"axis is {number}: accepted are {-ndim} ... {ndim - 1}")
    return number % ndim


def select(
    shape: tuple[int, ...], strides: tuple[int, ...], key: Any
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Offset in bytes, shape and strides of the elements that ``key`` selects.

    Accepted are integers, slices, ``...``, None and tuples of them, as in NumPy's
    basic indexing. TypeError for anything else, IndexError for a position outside the
    array.
    """
    if type(key) is int and shape and -shape[0] <= key < shape[0]:
        return key % shape[0] * strides[0], shape[1:], strides[1:]
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


def names_element(ndim: int, key: Any) -> bool:
    """Whether a key that ``select`` accepted is an integer for each dimension."""
    keys = key if isinstance(key, tuple) else (key,)
    return len(keys) == ndim and not any(
        k is None or k is Ellipsis or isinstance(k, slice) for k in keys
    )


def _run(key: slice, n: int, stride: int) -> tuple[int, int, int]:
    """Offset, count and stride of a slice of one dimension."""
    start, stop, step = key.indices(n)
    count = len(range(start, stop, step))
    # The stride of fewer than two elements has no meaning. If it were multiplied, slices of
    # slices would make it too large for 64 bits.
    return start * stride if count else 0, count, step * stride if count > 1 else stride


def _expand(shape: tuple[int, ...], keys: tuple[Any, ...]) -> list[Any]:
    used, ellipses, at = 0, 0, len(keys)
    for i, k in enumerate(keys):
        if k is Ellipsis:
            ellipses, at = ellipses + 1, i
        elif k is not None:
            used += 1
    if used > len(shape):
        raise IndexError(f"{used} indices for {len(shape)} dimensions")
    if ellipses > 1:
        raise IndexError("an index has at most one '...'")
    return [*keys[:at], *[slice(None)] * (len(shape) - used), *keys[at + 1 :]]


def _position(k: Any, n: int, dim: int) -> int:
    if isinstance(k, bool):
        raise _refused(k)
    try:
        i = _native.index(k)  # a plain int: a subclass may compare as it likes
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
