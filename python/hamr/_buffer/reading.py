"""What reads elements, wherever they lie: of a buffer, or of a handle."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator
from .._base.element import element_of, item_of, numpy_dtype
from .._base.place import copy_place
from .operators import Operators
from .views import Views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    import numpy

    from .._base.allocator import AllocatorName
    from .._base.place import Device

    _T = TypeVar("_T")
else:

    def overload(function):  # typing's takes 3 ms to import
        """Nothing: what follows replaces it."""


class Reading(Views, Operators):
    """What Buffer and Handle have in common: reading operations, in any memory."""

    __slots__ = ()

    if TYPE_CHECKING:  # what the classes have

        def _new(self, allocator: int, device: int, element: int) -> Any: ...
        @staticmethod
        def _sharing(obj: Any) -> Any: ...

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

            named = numpy_dtype(self._element)
            if named.isbuiltin == 2:  # bfloat16, float8
                return numpy.array(self.get_host_accessible())
            out = numpy.empty(self.shape, named)
        try:
            target = self._sharing(out)
        except TypeError as error:
            raise TypeError(
                f"out is a {type(out).__name__}: accepted is an array ({error})"
            ) from None
        if target.readonly:
            raise ValueError("out is read-only: accepted is a writable array")
        if whole and target.shape == self.shape:
            target[...] = self
        else:
            if whole and target._count != self._count:
                raise ValueError(f"out has {target._count} elements: accepted are {self._count}")
            start = count("start", start)
            if not 0 <= start <= self._count:
                raise IndexError(f"start is {start}: accepted are 0 ... {self._count}")
            target.set(self, at, start, self._count - start if n is None else n)
        return out

    def copy(
        self,
        allocator: Allocator | int | AllocatorName = Allocator.same,
        device: Device | None = None,
        dtype: Any = None,
    ) -> Any:
        """A new buffer with the same elements in C order, in other memory or of another type.

        ``device`` alone takes them there: -1 or "cpu" to the host's memory, 0, "cuda:0" and the
        like to a device's. An allocator whose memory is not there is a ValueError.
        """
        element = self._element if dtype is None else element_of(dtype)
        return self._new(*copy_place(allocator, device, self._allocator), element)

    def astype(self, dtype: Any) -> Any:
        """A new buffer with the elements converted, by the rules of NumPy's astype."""
        if dtype is None:
            raise TypeError("dtype is None: accepted is an element type such as 'float32'")
        return self.copy(dtype=dtype)

    def item(self) -> Any:
        """The single element as a Python number."""
        source = self._snapshot(_native.Array)  # others may resize it meanwhile
        if source._count != 1:
            raise ValueError(f"the buffer has {source._count} elements: item() is for one")
        return item_of(source)

    @property
    def __jax_array__(self) -> Callable[[], Any]:
        """What ``jax.numpy.asarray`` calls for an array that shares the memory by DLPack.

        Read-only memory has none, since JAX asks for the DLPack that cannot say so, nor have
        elements with gaps: JAX takes them by ``__cuda_array_interface__`` or copies them.
        """
        if self.readonly or not (self.is_contiguous or self.T.is_contiguous):
            raise AttributeError("__jax_array__: this memory is read-only, or elements have gaps")
        from importlib import import_module

        return lambda: import_module("jax.dlpack").from_dlpack(self)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        # Not ValueError, which bytes(buffer) would raise instead of copying the elements.
        source = self._snapshot(_native.Array)
        value = None if source.ndim else item_of(source)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("only a buffer of one integer, without dimensions, is an index")
        return value

    def __bool__(self) -> bool:
        if self._count == 1:
            return bool(self.item())
        raise ValueError(
            f"the truth of a buffer of {self._count} elements is ambiguous: use len() or .size()"
        )

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        if self._count == 1:
            return format(self.item(), form)
        from .refusals import in_numpy

        raise TypeError(
            f"format {form!r} is for one element, and these are {self._count} elements: "
            f"write numpy.array2string({in_numpy(self)}, ...)"
        )


def count(name: str, value: Any, accepted: str = "an int") -> int:
    """What a user gave as a count of elements; any int of 64 bits."""
    try:
        number = _native.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: accepted is {accepted}") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {value!r}: accepted are counts that fit in 63 bits")
    return number
