"""Memory that arrays share: ``Allocator``, ``HostAllocator`` and ``PagelockedAllocator``."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator as _Kinds
from .._base.errors import Error
from .._buffer.buffers import Buffer, buffer
from .pointers import POINTERS, TypedPointer
from .runtime import device_allocator, pagelocked_allocator
from .sides import host_array, new_host_side, order_of, sizes_from
from .status import code_of, failed
from .types import UnsupportedDataType, name_for, supported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ShapedAllocator:
    """The base of HostAllocator and PagelockedAllocator: host memory of a shape and type.

    Arrays that are made of it share it: ``DeviceArray_<dtype>(a.ptr(), list)`` as their host side,
    ``GPUArray(allocator=Allocator(a))`` as described there. It lives as long as any of them.
    """

    __slots__ = ("__weakref__", "_dtype", "_memory", "_shape", "_size")

    def __init__(self, shape: Any, dtype: Any = "float64") -> None:
        self._dtype = name_for(dtype)
        sizes = sizes_from(shape)
        self._shape = list(sizes)
        try:
            self._memory = Buffer(sizes, self._dtype, self._kind())
        except Error as error:
            failed(code_of(error))
            raise
        self._size = self._memory._count

    def _kind(self) -> _Kinds:
        return _Kinds.malloc

    def get(self) -> Any:
        """The same memory at each call, as a NumPy array, or as a memoryview without NumPy."""
        handle = self._memory.get_host_accessible()
        try:
            import numpy
        except ImportError:
            return memoryview(handle)
        return numpy.asarray(handle)

    def ptr(self) -> TypedPointer:
        """A pointer to the memory, which is safe."""
        return POINTERS[self._dtype](self._memory.ptr, True, self._memory)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self._shape)

    @property
    def dtype(self) -> Any:
        """The element type: a NumPy dtype where NumPy is loaded."""
        return self._memory.dtype

    def __repr__(self) -> str:
        return f"<hamr.pygpu.{type(self).__name__} {self.shape} {self._dtype}>"


class HostAllocator(ShapedAllocator):
    """Ordinary host memory of a shape and type: ``HostAllocator((2, 3), "float32")``."""

    __slots__ = ()


class PagelockedAllocator(ShapedAllocator):
    """Page-locked host memory of a shape and type, which devices reach at the same address."""

    __slots__ = ()

    def _kind(self) -> _Kinds:
        return pagelocked_allocator()


class Allocator:
    """The memory that ``GPUArray(allocator=Allocator(data))`` is in.

    For a GPUArray, or any array with a device interface, it is that array's memory on the device,
    which both share. For a PagelockedAllocator it is its memory, which devices reach. For a
    HostAllocator it is new memory on the device, and the allocator's memory is the host side.
    ``host_data`` is a NumPy array of the same number of elements and type for the host side. By
    default the host side is made when it is needed. GPUArrays of one Allocator share both sides.
    """

    __slots__ = ("__weakref__", "_device", "_dtype", "_host", "_shape", "data")

    def __init__(self, data: Any, host_data: Any = None) -> None:
        self.data = data
        self._host = host_data
        try:
            self._device = self._device_side(data)
        except Error as error:
            failed(code_of(error))
            raise
        self._dtype = supported(self._device._element)
        self._shape = self._device.shape
        if host_data is not None:
            self._check(host_array(host_data))

    def _device_side(self, data: Any) -> _native.Array:
        if isinstance(data, HostAllocator):
            if self._host is None:
                self._host = data.get()
            made = Buffer(data.shape, data._dtype, device_allocator())
            return made._snapshot(_native.Array)
        if isinstance(data, ShapedAllocator):
            return data._memory._snapshot(_native.Array)
        try:
            shared = data if isinstance(data, Buffer) else buffer(data)
        except TypeError as error:
            raise UnsupportedDataType(
                f"data is {type(data).__name__}: accepted are a GPUArray, a PagelockedAllocator, a "
                f"HostAllocator, and arrays with a device interface ({error})"
            ) from None
        if shared._host and not isinstance(data, Buffer):
            raise TypeError(
                f"data is a {type(data).__name__} in memory of the host: accepted are arrays on a "
                "device; GPUArray(array) and to_gpu(array) take those of the host"
            )
        return shared._snapshot(_native.Array)

    def _check(self, host: _native.Array) -> None:
        if supported(host._element) != self._dtype or host._count != self._device._count:
            raise ValueError(
                f"host_data has {host._count} {supported(host._element)} elements: accepted are "
                f"{self._device._count} of {self._dtype}"
            )

    @property
    def host_data(self) -> Any:
        """The host side: what was given, else a NumPy array, or a Buffer without NumPy."""
        if self._host is None:
            self._host = new_host_side(self._shape, self._dtype, order_of(self._device))
        return self._host

    def ptr(self) -> Any:
        """The address of the memory on the device; for a PagelockedAllocator a pointer wrapper."""
        if isinstance(self.data, PagelockedAllocator):
            return self.data.ptr()
        return self._device.ptr

    def host_ptr(self) -> int:
        """The address of the host side."""
        return host_array(self.host_data).ptr

    def __repr__(self) -> str:
        return f"<hamr.pygpu.Allocator {self._shape} {self._dtype} at {self._device.ptr:#x}>"
