"""What changes or reads a buffer's contents, wherever they lie."""

from __future__ import annotations

from _operator import index

import hamr._native as _native

from .._base.allocator import Allocator, allocator_of, device_number
from .._base.element import dtype_of, element_of, has_format, held_large, item_from_bytes
from .indexing import select
from .operands import operand, scalar_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self, TypeVar, overload

    import numpy

    from .._base.stream import Stream

    _Base = _native.Array
    _T = TypeVar("_T")
else:
    _Base = object

    def overload(function):  # typing's takes 3 ms to import
        """Nothing: what follows replaces it."""


#: Elements that str() shows before it shortens, as NumPy's printing threshold.
SHOWN = 1000

_NUMBERS = (bool, int, float, complex)


class Contents(_Base):
    """The content operations of Buffer.

    Values, arrays and buffers are accepted alike, of any element type, in any
    memory; they are converted to the buffer's type. An operation that fails leaves
    the buffer as it was.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # what Buffer has

        @property
        def source_protocol(self) -> str | None: ...
        @property
        def _orders(self) -> tuple[Stream, ...]: ...
        def _finalized(self, made: Self) -> Self: ...
        def _part(
            self,
            source: _native.Array,
            offset: int,
            shape: tuple[int, ...],
            strides: tuple[int, ...],
        ) -> Self: ...
        @staticmethod
        def _sharing(obj: Any) -> Contents: ...

    def reserve(self, n: int, value: Any = None) -> None:
        """Make room for ``n`` elements; room newly taken holds ``value``, if given."""
        _native.reserve(self, _count("n", n), self._single(value))

    def resize(self, n: int | tuple[int, ...], value: Any = None) -> None:
        """Hold ``n`` elements, or those of a shape. New ones hold ``value``, if given.

        The elements in front stay, in C order.
        """
        shape = n if isinstance(n, (tuple, list)) else (n,)
        _native.resize(self, tuple(_count("n", d) for d in shape), self._single(value))

    def append(self, x: Any) -> None:
        """Add a value, or the elements of an array, behind the last element."""
        _native.append(self, self._value(x))

    def assign(self, x: Any) -> None:
        """Become the contents and shape of ``x``. Type, allocator and stream stay."""
        _native.assign(self, self._value(x))

    def set(self, x: Any, at: int = 0, start: int = 0, n: int | None = None) -> None:
        """Write ``n`` elements of ``x`` from ``start`` on to the elements from ``at`` on.

        Positions count in C order; ``n`` is by default all that ``x`` has.
        """
        source = self._value(x)
        start = _count("start", start)
        if n is None:
            n = max(source._count - start, 0)
        _native.set_elements(self, _count("at", at), source, start, _count("n", n))

    def fill(self, value: Any) -> None:
        """Set every element to ``value``."""
        single = self._single(value)
        if single is None:
            raise TypeError("value is None: accepted is a number")
        _native.fill(self, single)

    @overload
    def get(self, out: None = None) -> numpy.ndarray[Any, numpy.dtype[Any]]: ...
    @overload
    def get(  # noqa: F811
        self, out: _T, at: int = 0, start: int = 0, n: int | None = None
    ) -> _T: ...
    def get(  # noqa: F811
        self, out: Any = None, at: int = 0, start: int = 0, n: int | None = None
    ) -> Any:
        """Copy the elements into ``out``, an array the host reaches, and return it.

        Without ``out`` a new NumPy array is made. ``n`` elements from ``start`` on
        go to ``out`` from ``at`` on; by default all of them, and then ``out`` must
        have the buffer's shape or its number of elements.
        """
        whole = at == 0 and start == 0 and n is None
        if whole and out is not None and not self._host and _native.read_into(self, out):
            return out
        if out is None:
            if not whole:
                raise TypeError("at, start and n go with out: slice the buffer to get part of it")
            import numpy

            named = dtype_of(self._element)
            if not isinstance(named, numpy.dtype) or named.isbuiltin == 2:  # bfloat16, float8
                return numpy.array(self.get_host_accessible())
            out = numpy.empty(self.shape, named)
        target = self._sharing(out)
        if target.readonly:
            raise ValueError("out is read-only: accepted is a writable array")
        if whole and target.shape == self.shape:
            target[...] = self
        else:
            if whole and target._count != self._count:
                raise ValueError(f"out has {target._count} elements: accepted are {self._count}")
            target.set(self, at, start, self._count - start if n is None else n)
        return out

    def copy(
        self,
        allocator: Allocator | int | str = Allocator.same,
        device: int | None = None,
        dtype: Any = None,
    ) -> Self:
        """A new buffer with the same elements in C order, in other memory or of another type."""
        element = self._element if dtype is None else element_of(dtype)
        place = allocator_of(allocator), device_number(device)
        return self._finalized(_native.copy(type(self), self, *place, element))

    def astype(self, dtype: Any) -> Self:
        """A new buffer with the elements converted, by the rules of NumPy's astype."""
        if dtype is None:
            raise TypeError("dtype is None: accepted is an element type such as 'float32'")
        return self.copy(dtype=dtype)

    def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Self:
        """The elements, in C order, in another shape: ``b.reshape(2, 3)`` or ``b.reshape((2, 3))``.

        One size may be -1 and stands for what the others leave. As in NumPy, the result
        is a view of the same memory where strides reach the elements in that shape, and
        else a copy by the same allocator, on the same device. ``copy=False`` makes the
        latter a ValueError, ``copy=True`` always copies. Another number of elements is a
        ValueError.
        """
        if copy is not None and not isinstance(copy, bool):
            raise TypeError(f"copy is {copy!r}: accepted are True, False and None")
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        dimensions = tuple(_count("shape", d) for d in sizes)
        copying = 0 if copy is None else 1 + copy
        made, view = _native.reshape(type(self), self, dimensions, copying)
        self._finalized(made)
        if view:
            made._source = self.source_protocol
        return made

    def move(self, allocator: Allocator | int | str, device: int | None = None) -> None:
        """Take the contents to other memory; nothing happens if they are there."""
        number = allocator_of(allocator)
        if number != Allocator.same or device is not None:
            number = self._allocator if number == Allocator.same else number
            _native.move(self, number, device_number(device))

    def swap(self, other: Contents) -> None:
        """Exchange everything with another buffer."""
        if not isinstance(other, Contents):
            raise TypeError(f"other is {other!r}: accepted is a hamr.Buffer")
        self._swap(other)

    def __getitem__(self, key: Any) -> Self:
        source = self._snapshot(_native.Array)
        return self._part(source, *select(source.shape, source.strides, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self if key is Ellipsis else self[key]
        number = scalar_for(value, target)
        if number is not None:
            _native.fill(target, number)
        else:
            _native.write_elements(target, operand(value, target))

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def item(self) -> Any:
        """The single element as a Python number."""
        if self._count != 1:
            raise ValueError(f"the buffer has {self._count} elements: item() is for one")
        host = self.copy(Allocator.malloc)
        if not has_format(host._element):  # nothing of Python's reads bfloat16 and float8
            host = host.astype("float64")
        return item_from_bytes(host._element, _native.bytes_of(host._pin()))

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        # Not ValueError, which bytes(buffer) would raise instead of copying the elements.
        value = None if self.ndim else self.item()
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("only a buffer of one integer, without dimensions, is an index")
        return value

    def __bool__(self) -> bool:
        if self._count == 1:
            return bool(self.item())
        raise ValueError(
            f"the truth of a buffer of {self._count} elements is ambiguous: use len() or .size()"
        )

    def __str__(self) -> str:
        return "<closed>" if self._closed else self._text(SHOWN)

    def print(self) -> None:
        """Print where the buffer is, and its elements."""
        source = self._pin()
        print(
            f"{{allocator={Allocator(source._allocator).name}, owner={source.device}, "
            f"size={source._count}, capacity={source._capacity}, data={source.ptr:#x}}} "
            f"{self._text(0)}"
        )

    def _text(self, limit: int) -> str:
        return _native.text(self, limit)

    def _value(self, x: Any) -> _native.Array:
        """What the core can read; a Python number becomes an element, if that can hold it."""
        if type(x) not in _NUMBERS:
            return operand(x, self)
        try:
            return _native.create(
                _native.Array, self._element, Allocator.malloc, -1, 0, 1, (), x
            )._pin()
        except ValueError:
            held = held_large(x, self._element)
            if held is None:
                raise
        return self._value(held)

    def _single(self, value: Any) -> _native.Array | None:
        return None if value is None else operand(value, self)


def _count(name: str, value: Any) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: accepted is an int") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {value!r}: accepted are counts that fit in 63 bits")
    return number
