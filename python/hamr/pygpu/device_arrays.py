"""PybindGPU's low-level interface: arrays with a side on the host and one on a device.

Errors of a device become statuses; wrong arguments raise exceptions.
"""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, is_of_a_device
from .._base.size import int_of
from .._buffer.buffers import Buffer
from .pointers import POINTERS, TypedPointer
from .runtime import device_allocator
from .sides import (
    copy_elements,
    host_array,
    new_array,
    order_of,
    reversed_view,
    sizes_from,
    strides_in,
)
from .status import INVALID_VALUE, call, cudaError_t, failed
from .types import ELEMENTS, NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self

_SUCCESS = cudaError_t(0)
_MALLOC = int(Allocator.malloc)

_C, _FORTRAN = "C", "F"

_shape_of = _native.Array.shape.__get__
_strides_of = _native.Array.strides.__get__
_nbytes_of = _native.Array.nbytes.__get__


class DeviceArray(_native.Array):
    """The base of ``DeviceArray_<dtype>``: host memory, and as much memory of a device.

    - ``DeviceArray(n)``, ``DeviceArray(list, order=1)``: new host memory of n elements, or of the
      shape in the list, in C order; with 0 in Fortran order.
    - ``DeviceArray(pointer, list, order=1)``: the host memory that a ``ptr_wrapper`` of the type
      points to. If it points to device memory, that becomes the device's side.
    - ``DeviceArray(host, device, list, order=1)``: memory at two addresses, as ints.
    - ``DeviceArray(array)``: the memory of a NumPy array or another exporter of the buffer protocol
      with elements of the type.

    ``allocate()`` takes the device's memory. Memory that was given is kept alive, and never freed.
    The buffer protocol exports the host's side, so that ``numpy.array(a, copy=False)`` and
    ``memoryview(a)`` share it. Transfers are complete when they return. Before ``allocate()`` they
    move nothing and have the status 1, cudaErrorInvalidValue.
    """

    __slots__ = ("_device_side", "_status")

    _dtype: ClassVar[str]
    _pointer: ClassVar[type[TypedPointer]]

    _device_side: _native.Array | None
    _status: cudaError_t

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Take or share the host's memory."""
        if not hasattr(cls, "_dtype"):
            raise TypeError("DeviceArray is for no element type: accepted is DeviceArray_float64 …")
        a, order = _by_position(cls.__name__, arguments, named)
        if len(a) == 3:
            self = cls._at(_size("host_addr", a[0]), _size("device_addr", a[1]), a[2], order)
        elif len(a) == 2:
            self = cls._pointing(a[0], a[1], order)
        elif isinstance(a[0], (list, tuple)):
            self = cls._new(sizes_from(list(a[0])), order)
        elif hasattr(type(a[0]), "__index__") and not isinstance(a[0], bool) and not _sized(a[0]):
            self = cls._new((_size("n", a[0]),), order)
        else:
            self = cls._over(a[0])
        self._status = _SUCCESS
        return self

    @classmethod
    def _new(cls, shape: tuple[int, ...], order: str) -> Self:
        self = new_array(cls, shape, cls._dtype, _MALLOC, order)
        self._device_side = None
        return self

    @classmethod
    def _over(cls, array: Any) -> Self:
        shared = host_array(array)
        _check_type(cls._dtype, shared, "buffer")
        self = _native.view(cls, shared, 0, shared.shape, shared.strides)
        self._device_side = None
        return self

    @classmethod
    def _pointing(cls, pointer: Any, sizes: Any, order: str) -> Self:
        if not isinstance(pointer, cls._pointer):
            raise TypeError(
                f"a is {pointer!r}: accepted is a {cls._pointer.__name__}, as "
                f"HostAllocator_{cls._dtype}().ptr() gives"
            )
        shape = sizes_from(_list("l", sizes))
        count = _count(shape)
        owner = pointer._owner
        if not pointer and count:
            raise ValueError(
                f"a is {pointer!r}, a null pointer: accepted is one to {count} elements"
            )
        if isinstance(owner, _native.Array):
            plain = owner._snapshot(_native.Array)
            if plain._count < count:
                raise ValueError(
                    f"l is {list(shape)}, of {count} elements: accepted are at most the "
                    f"{plain._count} that a points to"
                )
            side = _native.view(
                _native.Array, plain, 0, shape, strides_in(shape, plain.itemsize, order)
            )
            if is_of_a_device(side._allocator):
                self = cls._new(shape, order)
                self._device_side = side
                return self
        else:
            side = _adopted(int(pointer), shape, cls._dtype, _MALLOC, order, owner)
        self = _native.view(cls, side, 0, side.shape, side.strides)
        self._device_side = None
        return self

    @classmethod
    def _at(cls, host: int, device: int, sizes: Any, order: str) -> Self:
        shape = sizes_from(_list("l", sizes))
        side = _adopted(host, shape, cls._dtype, _MALLOC, order, None)
        self = _native.view(cls, side, 0, side.shape, side.strides)
        allocator = _native.locate(device)[0] if device else -1
        if allocator < 0:
            allocator = device_allocator()
        self._device_side = _adopted(device, shape, cls._dtype, allocator, order, None)
        return self

    # What it is.

    def size(self) -> int:
        """The number of elements."""
        return self._count

    def nbytes(self) -> int:  # type: ignore[override]
        """The bytes of the elements."""
        number: int = _nbytes_of(self)
        return number

    def shape(self) -> list[int]:  # type: ignore[override]
        """The sizes, as a list."""
        return list(_shape_of(self))

    def strides(self) -> list[int]:  # type: ignore[override]
        """The strides in bytes, as a list."""
        return list(_strides_of(self))

    def last_status(self) -> cudaError_t:
        """The status of the last call for the device."""
        return self._status

    def allocated(self) -> bool:
        """Whether there is memory on a device."""
        return self._device_side is not None

    def host_data(self) -> TypedPointer:
        """A pointer to the host's side, which is safe."""
        return self._pointer(self.ptr, True, self._snapshot(_native.Array))

    def device_data(self) -> TypedPointer:
        """A pointer to the device's side, which is not safe; a null pointer before allocate()."""
        side = self._device_side
        return self._pointer() if side is None else self._pointer(side.ptr, False, side)

    # Memory and transfers.

    def allocate(self) -> None:
        """Take memory on the current device, unless there is some; sets the status."""
        if self._device_side is not None:
            return
        with call() as c:
            host = self._snapshot(_native.Array)
            self._device_side = new_array(
                Buffer, host.shape, self._dtype, device_allocator(), order_of(host)
            )
        self._status = c.status

    def to_device(self) -> None:
        """Copy the host's elements to the device."""
        side = self._allocated()
        if side is not None:
            self._copy(side, self)

    def to_host(self) -> None:
        """Copy the device's elements to the host. Read-only host memory is a ValueError."""
        side = self._allocated()
        if side is not None:
            self._copy(self, side)

    def set(self, host_data: Any) -> None:
        """Copy elements to the device, from an array or from a host address, as an int.

        At an address there must be as many elements as on the device, in the same order.
        """
        side = self._allocated()
        if side is None:
            return
        if hasattr(type(host_data), "__index__") and not _sized(host_data):
            plain = side._snapshot(_native.Array)
            source = _adopted(
                _size("host_data", host_data),
                plain.shape,
                self._dtype,
                _MALLOC,
                order_of(plain),
                None,
            )
        else:
            source = host_array(host_data)
            _check_type(self._dtype, source, "host_data")
            if source.shape != _shape_of(self):
                raise ValueError(
                    f"host_data has shape {source.shape}: accepted is {_shape_of(self)}"
                )
        self._copy(side, source)

    def set_val(self, idx: int, val: Any) -> None:
        """Write one element on the device: the one at position ``idx`` of its memory."""
        side = self._allocated()
        if side is None:
            return
        with call() as c:
            write_element(side, idx, val)
        self._status = c.status

    @property
    def _kernel_argument(self) -> _native.Array:
        """The device's side, which kernels get."""
        if self._device_side is None:
            raise ValueError(f"{self!r} has no memory of a device: allocate() takes some")
        return self._device_side

    def _allocated(self) -> _native.Array | None:
        if self._device_side is None:
            self._status = failed(INVALID_VALUE)
        return self._device_side

    def _copy(self, target: _native.Array, source: _native.Array) -> None:
        with call() as c:
            copy_elements(target, source)
        self._status = c.status

    # The buffer protocol, DLPack and so on come from Array: they are of the host's side.

    def __len__(self) -> int:
        shape = _shape_of(self)
        if not shape:
            raise TypeError("an array without dimensions has no length")
        return int(shape[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        from .._buffer.reading import array_of

        return array_of(self._snapshot(_native.Array), dtype, copy)

    def __repr__(self) -> str:
        where = "host and device" if self.allocated() else "host"
        return f"<DeviceArray_{self._dtype} {_shape_of(self)} on {where}>"


def write_element(array: _native.Array, idx: Any, val: Any) -> None:
    """Write one element of a device's memory; positions count in the order of the memory."""
    number = _size("idx", idx)
    if number >= array._count:
        raise IndexError(f"idx is {number}: accepted are 0 ... {array._count - 1}")
    target = reversed_view(array) if order_of(array) == _FORTRAN else array
    if target.is_contiguous:
        flat = target._snapshot(_native.Array)
        if _native.fill_number(
            _native.view(_native.Array, flat, number * flat.itemsize, (), ()), val
        ):
            return
    value = buffer_of_number(val, array)
    _native.set_elements(target, number, value, 0, 1)


def buffer_of_number(val: Any, array: _native.Array) -> _native.Array:
    """A number as an element of an array's type; OutOfRange if the type cannot hold it."""
    from .._buffer.operands import operand

    value = operand(val, array, "val")
    if value._count != 1:
        raise ValueError(f"val has {value._count} elements: accepted is a number")
    return value


def _adopted(
    address: int, shape: tuple[int, ...], element: str, allocator: int, order: str, owner: Any
) -> _native.Array:
    strides = None if order == _C else strides_in(shape, _itemsize(element), order)
    if not address and _count(shape):
        raise ValueError(f"an address is 0: accepted is that of {_count(shape)} elements")
    return _native.adopt_pointer(
        _native.Array,
        *(ELEMENTS[element], allocator, -1, 0, 1, address, shape, strides, False, owner, False),
    )


def _itemsize(element: str) -> int:
    from .._base.element import item_size

    return item_size(ELEMENTS[element])


def _count(shape: tuple[int, ...]) -> int:
    product = 1
    for n in shape:
        product *= n
    return product


def _check_type(element: str, array: _native.Array, name: str) -> None:
    if array._element != ELEMENTS[element]:
        from .._base.element import name_of

        raise TypeError(f"{name} has {name_of(array._element)} elements: accepted are {element}")


def _sized(value: Any) -> bool:
    """Whether an object is an array, which may have an ``__index__`` as well."""
    # NumPy's numbers have a shape as well, but no attribute ctypes.
    return bool(getattr(value, "shape", ()) != ()) or hasattr(type(value), "ctypes")


def _size(name: str, value: Any) -> int:
    number = int_of(name, value)
    if number < 0:
        error = IndexError if name == "idx" else ValueError
        raise error(f"{name} is {value!r}: accepted are ints of 0 and more")
    return number


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} is {value!r}: accepted is a shape, as a list of int")
    return list(value)


#: The names of the arguments in each of the constructors, the order aside.
_NAMES = (("host_addr", "device_addr", "l"), ("a", "l"), ("l",))
_ORDER = ("flag_c_contiguous", "order")


def _by_position(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], str]:
    """All arguments by position, and separately the order of the memory."""
    flags = [named.pop(word) for word in _ORDER if word in named]
    arguments = list(given)
    for names in _NAMES:
        if named and set(named) == set(names[len(arguments) :]):
            arguments += [named.pop(word) for word in names[len(arguments) :]]
    if named or len(flags) > 1:
        raise TypeError(f"{name}() got unexpected arguments by name: {', '.join(named) or flags}")
    last_is_order = len(arguments) > 1 and isinstance(arguments[-2], (list, tuple))
    if last_is_order and not flags:
        flags = [arguments.pop()]
    if not 1 <= len(arguments) <= 3:
        raise TypeError(
            f"{name}() takes a count, a list, an array, (pointer, list) or (host, device, list), "
            f"and an order; got {len(given)} arguments"
        )
    flag = flags[0] if flags else 1
    if flag in ("F", 0):
        return arguments, _FORTRAN
    if flag in ("C", 1):
        return arguments, _C
    raise ValueError(f"order is {flag!r}: accepted are 1 for C's and 0 for Fortran's")


#: The classes by the names of element types.
DEVICE_ARRAYS: dict[str, type[DeviceArray]] = {}

for _name in NAMES:
    DEVICE_ARRAYS[_name] = type(
        f"DeviceArray_{_name}",
        (DeviceArray,),
        {
            "__slots__": (),
            "__module__": "hamr.pygpu",
            "__doc__": f"{_name} elements on the host and on a device, see ``DeviceArray``.",
            "_dtype": _name,
            "_pointer": POINTERS[_name],
        },
    )
del _name
