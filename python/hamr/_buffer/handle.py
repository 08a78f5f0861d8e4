"""Handle: a place where code in one space can touch a buffer's elements."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, allocator_from, backend_of
from .._base.element import dtype_of, name_of, numpy_dtype
from .reading import Reading, count
from .views import shape_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Self

    import numpy

    from .._base.place import Device


class Handle(Reading, _native.Array):
    """What ``get_host_accessible()`` and its siblings return.

    It holds the memory, or a temporary copy of it, for as long as the handle or
    anything made from it lives: ``numpy.asarray(handle)`` shares the memory. It
    never changes, whatever happens to the buffer. Views of it are handles; copies
    and elements are buffers.

    A temporary on the host is read-only, since a write to it would not reach the buffer: write
    inside ``with b.on_host("rw") as array:``.
    """

    __slots__ = ("__weakref__",)

    #: hamr.Buffer, which hands itself in.
    _buffer: ClassVar[Any] = None

    if TYPE_CHECKING:  # the stub of the extension knows no handles; elements are buffers

        def __getitem__(self, key: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...
        def get_host_accessible(self) -> Handle: ...
        def get_cuda_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_hip_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_openmp_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_opencl_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_sycl_accessible(self, device: Device | None = -1) -> Handle: ...

    @property
    def is_temporary(self) -> bool:
        """Whether the elements are a copy: the buffer does not see changes to them."""
        return self._temporary

    @property
    def allocator(self) -> Allocator:
        """Where the memory came from."""
        return allocator_from(self._allocator)

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The element type: a NumPy dtype where NumPy is loaded."""
        found: numpy.dtype[Any] = dtype_of(self._element)
        return found

    @property
    def owner(self) -> int:
        """The device that owns the memory; -1 is the host."""
        return self.device

    def size(self) -> int:
        """The number of elements."""
        return self._count

    def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Self:
        """A view of the elements, in C order, in another shape; one size may be -1.

        A ValueError where strides do not reach the elements in that shape: ``copy()`` is a
        buffer that can be reshaped.
        """
        if copy not in (None, False):
            raise ValueError(f"copy is {copy!r}: a handle's views share, handle.copy() is a copy")
        dimensions = tuple(count("shape", d) for d in shape_from(shape))
        source = self._snapshot(_native.Array)
        made, _ = _native.reshape(_native.Array, source, dimensions, 1)
        return self._part(source, 0, made.shape, made.strides)

    def _part(
        self,
        source: _native.Array,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        element: int = 0,
    ) -> Self:
        return _native.view(type(self), source, offset, shape, strides, element)

    def _finalized(self, made: Any) -> Any:
        return made

    def _new(self, allocator: int, device: int, element: int) -> Any:
        return _native.copy(self._buffer, self, allocator, device, element)

    @classmethod
    def _sharing(cls, obj: Any) -> Any:
        return cls._buffer._sharing(obj)

    def close(self) -> None:
        """Give up the memory; arrays made from the handle keep it. Closing twice is harmless."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return array_of(self, dtype, copy)

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """The SYCL USM array interface, version 1, of USM: see ``Buffer``'s."""
        return usm_interface_of(self)

    @property
    def _as_parameter_(self) -> Any:
        """What ctypes passes to a C function: a pointer to the elements, on the host."""
        from .foreign import parameter_of

        return parameter_of(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a hamr.Handle is a place in this process's memory and cannot be pickled or copied: "
            "pickle the buffer, or hamr.buffer(handle).copy()"
        )

    def __repr__(self) -> str:
        if self._closed:
            return "<hamr.Handle closed>"
        kind = "temporary" if self._temporary else "in place"
        what = f"{self.shape} {name_of(self._element)} {self.allocator.name}"
        return f"<hamr.Handle {what} {kind} at {self.ptr:#x}>"


_native.set_handle_type(Handle)


def usm_interface_of(array: _native.Array) -> dict[str, Any]:
    """What an array says by ``__sycl_usm_array_interface__``; AttributeError if it is not USM."""
    # Before anything is imported: hasattr() may be asked of any buffer.
    if array._owner is None and backend_of(array._allocator) != "sycl":
        raise AttributeError("__sycl_usm_array_interface__: this memory is not USM")
    from .._protocols.sycl_usm import describe

    return describe(array)


def array_of(array: _native.Array, dtype: Any, copy: Any) -> Any:
    """NumPy's last resort: element types that its protocols have no name for."""
    if not array._host:
        raise TypeError(
            f"the host does not reach {allocator_from(array._allocator).name} memory: "
            "numpy.asarray(buffer.get_host_accessible()) brings it there"
        )
    import numpy

    named = numpy_dtype(array._element)
    # Waits. What is kept is nobody else's to close.
    array = array.get_host_accessible()._snapshot(_native.Array)
    raw = numpy.asarray(_RawStorage(array))
    values = raw.view(named)
    wanted = values.dtype if dtype is None else numpy.dtype(dtype)
    if copy is False and wanted != values.dtype:
        raise ValueError(f"copy is False: {values.dtype} elements become {wanted} only in a copy")
    return values.astype(wanted, copy=bool(copy))


class _RawStorage:
    """The elements as raw bytes, which every NumPy can view as elements of the same size."""

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
