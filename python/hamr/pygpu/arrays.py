"""GPUArray: PybindGPU's and PyCUDA's array, a buffer on a device with a side on the host."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import is_pinned
from .._base.element import name_of
from .._base.errors import Error
from .._buffer.buffers import Buffer
from .._buffer.views import shape_from
from .layouts import Flags, Strides
from .pointers import POINTERS
from .runtime import serve, serving
from .sides import copy_elements, host_array, order_from, order_of
from .status import call, code_of, cudaError_t, failed
from .types import known, name_for, supported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    import numpy

    from .pointers import TypedPointer

_SUCCESS = cudaError_t(0)

_new_buffer = Buffer.__new__
_read_into, _write_from = _native.read_into, _native.write_from
_native_strides = _native.Array.strides.__get__
_interface = _native.Array.__cuda_array_interface__.__get__


class GPUArray(Buffer):
    """An array on the current device, with a side on the host, as PybindGPU's and PyCUDA's.

    - ``GPUArray(shape, dtype="float64", order="C")``: new memory, not initialised. ``shape`` is an
      int, a tuple or a list.
    - ``GPUArray(array, copy=False)``: new memory of a NumPy array's shape, type and order, whose
      host side is that array, or a copy of it. ``to_device()`` copies the elements.
    - ``GPUArray(allocator=Allocator(x))``: the memory of x on the device.
    - ``GPUArray(shape, dtype, allocator=f)``: memory of ``f(nbytes)``, such as PyCUDA's pools, or
      of a ``hamr.Allocator``, also by its name. Managed memory is both sides.
    - ``GPUArray(shape, dtype, base=b, gpudata=p, strides=s)``: memory at a pointer, which b keeps.

    The host side is made when it is first used. ``get()`` copies the elements there and returns it
    as a NumPy array, the same memory each time; with ``copy=True`` it returns a copy of that.
    ``host_data`` and ``device_data`` are pointers to both sides. Slices, ``reshape``, ``view`` and
    ``T`` are views of the device's memory, each with a host side of its own.

    It has everything that hamr.Buffer has, above all the protocols. The element types are those of
    ``SUPPORTED_DTYPES``, bool, int8, uint8 and float16; others are UnsupportedDataType. After
    ``allocate``, ``to_host``, ``to_device`` and ``set_val`` errors of a device are in
    ``last_status``. Everything else, including the constructors, raises hamr's exceptions.
    """

    __slots__ = ("_base", "_host_side", "_origin", "_pending", "_status")

    _base: Any
    _host_side: Any  # a NumPy array, or a Buffer without NumPy
    _origin: Any  # the Allocator that has the host side
    _pending: list[_native.Array]  # host memory that copies in flight read or write
    _status: cudaError_t

    def __new__(
        cls,
        shape: Any = None,
        dtype: Any = None,
        allocator: Any = None,
        base: Any = None,
        gpudata: Any = None,
        strides: Any = None,
        order: Any = None,
        *,
        copy: bool = False,
    ) -> Self:
        """Take the memory, or share it."""
        if (
            (type(shape) is tuple or type(shape) is int)
            and allocator is base is gpudata is strides is order is None
            and not copy
        ):
            try:
                name = "float64" if dtype is None else known.get(dtype) or name_for(dtype)
                return _new_buffer(cls, shape, name, serving[0] if serving else serve()[0])
            except Error as error:
                failed(code_of(error))
                raise
            except TypeError:
                name_for(dtype or "float64")  # raises the error for a dtype without a hash
                raise
        from .constructing import construct

        try:
            return construct(cls, shape, dtype, allocator, base, gpudata, strides, order, copy=copy)
        except Error as error:
            failed(code_of(error))
            raise

    # What it is.

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of elements."""
        return self._count

    @property
    def strides(self) -> Strides:
        """The strides in bytes."""
        return Strides(_native_strides(self))

    @property
    def flags(self) -> Flags:
        """Whether the elements are in C order, and whether in Fortran order."""
        return Flags(self.is_contiguous, self.is_fortran_contiguous)

    @property
    def mem_size(self) -> int:
        """The number of elements, as PyCUDA has it."""
        return self._count

    @property
    def base(self) -> Any:
        """What was given as ``base``, else None."""
        return getattr(self, "_base", None)

    @property
    def device_data(self) -> TypedPointer:
        """A pointer to the device's side, which is not safe."""
        kind = POINTERS[supported(self._element)]
        return kind(self.ptr, False, self._snapshot(_native.Array))

    @property
    def gpudata(self) -> TypedPointer:
        """``device_data``, as PyCUDA has it."""
        return self.device_data

    @property
    def host_data(self) -> TypedPointer:
        """A pointer to the host's side, which is safe."""
        host = self._side()
        array = host_array(host)
        return POINTERS[supported(self._element)](array.ptr, True, array)

    @property
    def last_status(self) -> cudaError_t:
        """The status of the last ``allocate``, ``to_host``, ``to_device`` or ``set_val``."""
        return getattr(self, "_status", _SUCCESS)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3; page-locked memory has it, too."""
        if not is_pinned(self._allocator):
            described: dict[str, Any] = _interface(self)
            return described
        self.synchronize()
        return {
            "shape": self.shape,
            "typestr": self.typestr,
            "data": (self.ptr, self.readonly),
            "strides": None if self.is_contiguous else tuple(self.strides),
            "version": 3,
            "stream": None,
        }

    # Between the sides.

    def get(  # type: ignore[override]
        self,
        ary: Any = None,
        pagelocked: bool = False,
        async_: bool = False,
        stream: Any = None,
        *,
        copy: bool = False,
    ) -> numpy.ndarray[Any, numpy.dtype[Any]]:
        """Copy the elements to the host, and return them as a NumPy array.

        Without ``ary`` it returns the host side, the same memory at each call, or with
        ``copy=True`` or ``get(True)`` a copy of it. ``ary`` must have the array's shape and type;
        it is returned. ``pagelocked`` makes a new array in page-locked memory. With ``async_`` and
        ``stream`` the copy is enqueued on the stream, by default the array's own. If the target is
        page-locked, as a new array then is, the copy goes on after the call: synchronize the stream
        before you read the target.
        """
        result: numpy.ndarray[Any, numpy.dtype[Any]]
        try:
            if ary is None and not pagelocked and not async_ and stream is None:
                try:
                    host = self._host_side
                except AttributeError:
                    host = None
                # This refuses a host side that is now read-only or of another shape.
                if not _read_into(self, host):
                    host = self._side(True)
                    self._fetch(host)
                result = host.copy(order="K") if copy else host.view()
                return result
            from .moving import get

            result = get(self, ary, pagelocked, async_, stream, copy)
        except Error as error:
            failed(code_of(error))
            raise
        return result

    def get_async(self, stream: Any = None, ary: Any = None) -> Any:
        """``get(ary, async_=True, stream=stream)``."""
        return self.get(ary, async_=True, stream=stream)

    def set(self, ary: Any, async_: bool = False, stream: Any = None) -> None:  # type: ignore[override]
        """Copy the elements of an array of the same shape and type to the device.

        The host side stays as it is. With ``async_`` and ``stream`` the copy is enqueued on the
        stream, by default the array's own; page-locked memory is then read after the call, too.
        """
        try:
            if stream is None and not async_ and _write_from(self, ary):
                return
            from .moving import set_elements

            set_elements(self, ary, async_, stream)
        except Error as error:
            failed(code_of(error))
            raise

    def set_async(self, ary: Any, stream: Any = None) -> None:
        """``set(ary, async_=True, stream=stream)``."""
        self.set(ary, True, stream)

    def allocate(self) -> None:
        """Do nothing: there is memory on the device. PybindGPU's users call it."""
        self._status = _SUCCESS

    def to_device(self) -> None:
        """Copy the host side to the device; ``last_status`` is the result."""
        with call() as c:
            self._send(self._side())
        self._status = c.status

    def to_host(self) -> None:
        """Copy the elements to the host side; ``last_status`` is the result."""
        with call() as c:
            self._fetch(self._side(True))
        self._status = c.status

    def set_val(self, idx: int, val: Any) -> None:
        """Write one element on the device: the one at position ``idx`` of its memory.

        Positions count in C order, or in Fortran order if the array is in that order. IndexError
        for a position outside. The host side stays as it is.
        """
        from .device_arrays import write_element

        with call() as c:
            write_element(self, idx, val)
        self._status = c.status

    def _side(self, written: bool = False) -> Any:
        """The host side. If it shall be ``written`` and is read-only, a copy replaces it."""
        try:
            host = self._host_side
        except AttributeError:
            host = None
        if host is None or host.shape != self.shape:  # after resize(), for example
            from .moving import new_side

            host = new_side(self)
        if written and type(host) is not Buffer and not host.flags.writeable:
            host = self._host_side = host.copy(order="K")
        return host

    def _send(self, host: Any) -> None:
        if _write_from(self, host):
            return
        side = host_array(host)
        if self._host and side.ptr == self.ptr:  # managed memory is both sides
            return
        copy_elements(self, side)

    def _fetch(self, host: Any) -> None:
        if _read_into(self, host):
            return
        side = host_array(host)
        if self._host and side.ptr == self.ptr:
            self.synchronize()
        else:
            copy_elements(side, self)

    # Changing elements, copies and views.

    def fill(self, value: Any, stream: Any = None) -> Self:  # type: ignore[override]
        """Set every element to ``value``, on a stream if one is given. Returns the array."""
        try:
            if stream is None:
                Buffer.fill(self, value)
            else:
                from .moving import on_stream

                Buffer.fill(on_stream(self, stream), value)
        except Error as error:
            failed(code_of(error))
            raise
        return self

    def copy(self, *place: Any, **named: Any) -> Self:
        """A new array with the same elements, in Fortran order if they are only in that order.

        As for ``hamr.Buffer``, an allocator, device or dtype may be given for the copy.
        """
        try:
            if order_of(self) == "C":
                made: Self = Buffer.copy(self, *place, **named)
            else:
                made = Buffer.copy(self.T, *place, **named).T
        except Error as error:
            failed(code_of(error))
            raise
        return made

    def astype(self, dtype: Any) -> Self:
        """A new array with the elements converted, by the rules of NumPy's astype."""
        return self.copy(dtype=name_for(dtype))

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Self:
        """The elements in another shape, in C order or Fortran order; one size may be -1.

        It is a view if strides can describe that shape, else a copy.
        """
        lies = order_from(order)
        try:
            if lies == "C":
                return Buffer.reshape(self, *shape, copy=copy)
            return Buffer.reshape(self.T, *shape_from(shape)[::-1], copy=copy).T
        except Error as error:
            failed(code_of(error))
            raise

    def ravel(self, order: Any = "C") -> Self:
        """The elements in one dimension, in C order or Fortran's: ``reshape(-1)``."""
        return self.reshape(self._count, order=order)

    def view(self, dtype: Any = None) -> Self:
        """A view of the same bytes as elements of another type.

        If the types differ in size, the dimension whose elements lie without gaps changes its size:
        the last dimension, or the first one in Fortran order.
        """
        name = None if dtype is None else name_for(dtype)
        if order_of(self) == "C":
            return Buffer.view(self, name)
        return Buffer.view(self.T, name).T

    def __getitem__(self, key: Any) -> Self:
        """An integer for each dimension gives the value of an element, as for ``hamr.Buffer``.

        Other integers, slices, ``...`` and None give a view; masks and lists a copy, made by NumPy.
        """
        try:
            return Buffer.__getitem__(self, key)
        except TypeError:
            if not _is_fancy(key):
                raise
        from numpy import asarray

        from .moving import get

        values = asarray(get(self, None, False, False, None, True)[key])
        made = type(self)(values)
        made._send(values)
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            Buffer.__setitem__(self, key, value)
        except Error as error:
            failed(code_of(error))
            raise

    def __array_finalize__(self, source: Buffer) -> None:
        """Give a subclass's attributes to its views and copies. They have their own host sides."""
        if type(self) is not GPUArray:
            from .._buffer.copying import set_attributes

            set_attributes(self, _added(source))

    def __getstate__(self) -> Any:
        return None if type(self) is GPUArray else _added(self)

    def __repr__(self) -> str:
        if self._closed:
            return "<hamr.pygpu.GPUArray closed>"
        what = f"{self.shape} {name_of(self._element)} {self.allocator.name}"
        return f"<hamr.pygpu.GPUArray {what} device {self.device} at {self.ptr:#x}>"


def _added(array: Buffer) -> Any:
    """The attributes that a subclass adds, as by ``attributes_of``."""
    from .._buffer.copying import attributes_of

    found = attributes_of(array)
    entries, slots = found if isinstance(found, tuple) else (found, {})
    slots = {name: value for name, value in slots.items() if name not in GPUArray.__slots__}
    return (entries, slots) if slots else entries


def _is_fancy(key: Any) -> bool:
    """Whether a key is a mask or a list of positions to NumPy."""
    keys = key if isinstance(key, tuple) else (key,)
    return any(isinstance(k, (list, bool)) or hasattr(k, "dtype") for k in keys)
