"""Other views of the same elements: parts of them, other shapes, other types."""

from __future__ import annotations

from _operator import index

import hamr._native as _native

from .._base.element import element_of, item_size, name_of
from .indexing import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    _Base = _native.Array
else:
    _Base = object


class Views(_Base):
    """What Buffer and Handle offer of the same memory, without a copy."""

    __slots__ = ()

    if TYPE_CHECKING:  # what the classes have

        def _part(
            self,
            source: _native.Array,
            offset: int,
            shape: tuple[int, ...],
            strides: tuple[int, ...],
            element: int = 0,
        ) -> Self: ...
        def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Self: ...

    def __getitem__(self, key: Any) -> Self:
        source = self._snapshot(_native.Array)
        return self._part(source, *select(source.shape, source.strides, key))

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> Self:  # noqa: N802
        """A view with the dimensions in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Self:
        """A view with the dimensions in another order, by default the reverse one.

        ``b.transpose(1, 0)`` or ``b.transpose((1, 0))``. An order that does not name each
        dimension once is a ValueError, a position beyond them an IndexError.
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

        One that is of another size is a ValueError.
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

        Where the types differ in size the last dimension changes its own: its elements must
        lie without gaps, and its bytes be a whole number of the new ones. A ValueError if not,
        and on a device where an element would not lie at a multiple of its size.
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


def shape_from(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of a shape that was given as several arguments, or as one tuple or list."""
    return tuple(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)


def _sequence(axes: Any) -> tuple[Any, ...]:
    return tuple(axes) if isinstance(axes, (tuple, list, range)) else (axes,)


def _axis(k: Any, ndim: int) -> int:
    try:
        number = index(k)
    except TypeError:
        raise TypeError(f"axis is {k!r}: accepted is an int") from None
    if not -ndim <= number < ndim:
        raise IndexError(f"axis is {number}: accepted are {-ndim} ... {ndim - 1}")
    return number % ndim
