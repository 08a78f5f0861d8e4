"""Operations that change or read a buffer's contents, in any memory."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator
from .._base.element import held_large, number_as
from .._base.place import copy_place
from .reading import Reading, count
from .views import select, shape_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from .._base.allocator import AllocatorName
    from .._base.place import Device

#: Elements that str() shows before it shortens, as NumPy's printing threshold.
SHOWN = 1000

_NUMBERS = (bool, int, float, complex)


class Contents(Reading):
    """The content operations of Buffer.

    Values, arrays and buffers are accepted alike, of any element type, in any
    memory; they are converted to the buffer's type. An operation that fails leaves
    the buffer as it was.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # what Buffer has

        @property
        def source_protocol(self) -> str | None: ...
        def _finalized(self, made: Self) -> Self: ...
        @staticmethod
        def _sharing(obj: Any) -> Contents: ...
        def copy(
            self,
            allocator: Allocator | int | AllocatorName = Allocator.same,
            device: Device | None = None,
            dtype: Any = None,
        ) -> Self: ...
        def astype(self, dtype: Any) -> Self: ...

    def reserve(self, n: int, value: Any = None) -> None:
        """Make room for ``n`` elements. New room holds ``value``, if that is given."""
        _native.reserve(self, count("n", n), self._single(value))

    def resize(self, n: int | tuple[int, ...], value: Any = None) -> None:
        """Change the number of elements, or the shape. New elements are ``value``, if given.

        The first elements, in C order, stay. Without ``value`` new elements are not initialised;
        NumPy's ``resize`` writes zeros.
        """
        shape = n if isinstance(n, (tuple, list)) else (n,)
        sizes = tuple(count("n", d, "an int or a tuple of int") for d in shape)
        _native.resize(self, sizes, self._single(value))

    def append(self, x: Any) -> None:
        """Add a value, or the elements of an array, behind the last element."""
        _native.append(self, self._value(x))

    def assign(self, x: Any) -> None:
        """Take the contents and shape of ``x``. Type, allocator and stream stay."""
        _native.assign(self, self._value(x))

    def set(self, x: Any, at: int = 0, start: int = 0, n: int | None = None) -> None:
        """Write ``n`` elements of ``x``, from ``start`` on, to the elements from ``at`` on.

        Positions count in C order. By default ``n`` is all that ``x`` has from ``start`` on.
        """
        source = self._value(x)
        start = count("start", start)
        if n is None:
            n = max(source._count - start, 0)
        try:
            _native.set_elements(self, count("at", at), source, start, count("n", n))
        except ValueError as error:
            raise _of_a_value(self, error)  # noqa: B904

    def fill(self, value: Any) -> None:
        """Set every element to ``value``."""
        try:
            if _native.fill_number(self, value):
                return
            single = self._single(value)
            if single is None:
                raise TypeError("value is None: accepted is a number")
            _native.fill(self, single)
        except ValueError as error:
            raise _of_a_value(self, error)  # noqa: B904

    def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Self:
        """The elements, in C order, in another shape: ``b.reshape(2, 3)`` or ``b.reshape((2, 3))``.

        One size may be -1: it is then computed from the others. As in NumPy, the result is a view
        of the same memory if strides can describe it, else a copy by the same allocator on the same
        device. ``copy=False`` makes such a copy a ValueError, ``copy=True`` always copies. Another
        number of elements is a ValueError.
        """
        if copy is not None and not isinstance(copy, bool):
            raise TypeError(f"copy is {copy!r}: accepted are True, False and None")
        dimensions = tuple(count("shape", d) for d in shape_from(shape))
        copying = 0 if copy is None else 1 + copy
        made, view = _native.reshape(type(self), self, dimensions, copying)
        self._finalized(made)
        if view:
            made._source = self.source_protocol
        return made

    def move(
        self, allocator: Allocator | int | AllocatorName, device: Device | None = None
    ) -> None:
        """Move the contents to other memory. Nothing happens if they are there already.

        ``device`` without another allocator moves them there, as in ``copy``.
        """
        number, place = copy_place(allocator, device, self._allocator)
        if number != Allocator.same:
            _native.move(self, number, place)

    def swap(self, other: Contents) -> None:
        """Exchange everything with another buffer."""
        if not isinstance(other, Contents):
            raise TypeError(f"other is {other!r}: accepted is a hamr.Buffer")
        self._swap(other)

    def __setitem__(self, key: Any, value: Any) -> None:
        target: _native.Array = self
        if key is not Ellipsis:  # a subclass may override indexing and views
            source = self._snapshot(_native.Array)
            target = _native.view(_native.Array, source, *select(source.shape, source.strides, key))
        try:
            if _native.write_plain(target, value):
                return
            from .operands import operand, scalar_for

            number = scalar_for(value, target)
            if number is not None:
                _native.fill(target, number)
            else:
                _native.write_elements(target, operand(value, target))
        except ValueError as error:
            raise _of_a_value(self, error)  # noqa: B904

    def __delitem__(self, key: Any) -> None:
        raise TypeError(
            "the elements of a buffer cannot be deleted: write those behind over them, "
            "as by b.set(b[k + 1:].copy(), at=k), and b.resize(n - 1)"
        )

    def __str__(self) -> str:
        if self._closed:
            return "<closed>"
        source = self._pin()  # others may resize it meanwhile
        return _text(source, SHOWN) if source.ndim else _text(source, SHOWN)[1:-1]

    def print(self) -> None:
        """Print where the buffer is, and its elements."""
        source = self._pin()
        print(
            f"{{allocator={Allocator(source._allocator).name}, owner={source.device}, "
            f"size={source._count}, capacity={source._capacity}, data={source.ptr:#x}}} "
            f"{_text(source, 0)}"
        )

    def _value(self, x: Any) -> _native.Array:
        """An array that the core can read. A Python number becomes one element."""
        if type(x) not in _NUMBERS:
            from .operands import operand

            return operand(x, self, "x")
        try:
            return number_as(x, self._element)._pin()
        except ValueError:
            held = held_large(x, self._element)
            if held is None:
                raise
        return self._value(held)

    def _single(self, value: Any) -> _native.Array | None:
        if value is None:
            return None
        from .operands import operand

        return operand(value, self)


def _of_a_value(array: _native.Array, error: ValueError) -> ValueError:
    """The error; for the value of an element, another one that says what to write."""
    if array._closed or array.ndim or not (array.readonly and array._own_copy):
        return error
    return ValueError(
        "this is the value of an element, as b[i] gives it, and not to be written to: "
        "write b[i] = x, or take the view b[i, ...]"
    )


def _text(array: _native.Array, limit: int) -> str:
    if array.ndim < 2:
        return _native.text(array, limit)
    from .text import nested

    return nested(array, limit)
