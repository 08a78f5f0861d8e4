"""What buffers and handles have in common: their description, and reading elements."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, allocator_from, backend_of
from .._base.element import dtype_of, element_of, item_of, numpy_dtype
from .._base.place import copy_place
from .operators import Operators
from .views import Views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TypeVar, overload

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

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The element type: a NumPy dtype where NumPy is loaded, else its name."""
        found: numpy.dtype[Any] = dtype_of(self._element)
        return found

    @property
    def allocator(self) -> Allocator:
        """Where the memory came from. A buffer takes new memory from there, too."""
        return allocator_from(self._allocator)

    @property
    def owner(self) -> int:
        """The device that owns the memory; -1 is the host."""
        return self.device

    def size(self) -> int:
        """The number of elements."""
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

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

        Without ``out`` it makes a new NumPy array. ``n`` elements from ``start`` on are copied to
        ``out`` from ``at`` on. By default all elements are copied, and ``out`` must have the
        buffer's shape or its number of elements.
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

        ``device`` without an allocator says where: -1 or "cpu" is the host's memory, 0, "cuda:0"
        and the like a device's. ValueError if the allocator has no memory there.
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

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return array_of(self, dtype, copy)

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """The SYCL USM array interface, version 1, of SYCL's memory, or what was shared by it.

        hamr's work on SYCL's memory is over. ``syclobj`` is the queue of the buffer's stream, or
        the queue of the object that shared the memory. The consumer keeps the buffer.
        """
        # Before the import, since hasattr() may ask any buffer.
        if self._owner is None and backend_of(self._allocator) != "sycl":
            raise AttributeError("__sycl_usm_array_interface__: this memory is not USM")
        from .._protocols.sycl_usm import describe

        return describe(self)

    @property
    def _as_parameter_(self) -> Any:
        """What ctypes passes to a C function: a pointer to the elements, on the host."""
        from .foreign import parameter_of

        return parameter_of(self)

    @property
    def __jax_array__(self) -> Callable[[], Any]:
        """What ``jax.numpy.asarray`` calls for an array that shares the memory by DLPack.

        Read-only memory does not have it, since JAX asks for a version of DLPack that has no
        read-only flag. Elements with gaps do not have it, either: JAX takes them by
        ``__cuda_array_interface__`` or copies them.
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
        # A TypeError: after a ValueError bytes(buffer) would not copy the elements.
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
    """A count of elements that a user gave: any int of 64 bits."""
    try:
        number = _native.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: accepted is {accepted}") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {value!r}: accepted are counts that fit in 63 bits")
    return number


def array_of(array: _native.Array, dtype: Any, copy: Any) -> Any:
    """A NumPy array, for element types that NumPy's protocols have no name for."""
    if not array._host:
        raise TypeError(
            f"the host does not reach {allocator_from(array._allocator).name} memory: "
            "numpy.asarray(buffer.get_host_accessible()) brings it there"
        )
    import numpy

    named = numpy_dtype(array._element)
    # This waits. Nobody else can close the snapshot.
    array = array.get_host_accessible()._snapshot(_native.Array)
    raw = numpy.asarray(_RawStorage(array))
    values = raw.view(named)
    wanted = values.dtype if dtype is None else numpy.dtype(dtype)
    if copy is False and wanted != values.dtype:
        raise ValueError(f"copy is False: {values.dtype} elements become {wanted} only in a copy")
    return values.astype(wanted, copy=bool(copy))


class _RawStorage:
    """The elements as raw bytes. Every NumPy can view them as elements of the same size."""

    def __init__(self, array: _native.Array) -> None:
        self.keep = array
        self.__array_interface__ = {
            "shape": array.shape,
            "typestr": f"|V{array.itemsize}",
            # NumPy 1.24 takes no 0, not even for no elements.
            "data": (array.ptr or array.itemsize, array.readonly),
            "strides": array.strides,
            "version": 3,
        }
