"""Rare and wrong arguments of ``GPUArray(...)``. Imported when first needed."""

from __future__ import annotations

import sys

import hamr._native as _native

from .._base.allocator import Allocator as _Kinds, allocator_of, is_of_a_device, is_pinned
from .._base.element import TABLE
from .._buffer.views import extent
from .allocators import Allocator, ShapedAllocator
from .pointers import Pointer
from .runtime import device_allocator
from .sides import host_array, new_array, order_from, order_of, sizes_from, strides_in
from .types import ELEMENTS, UnsupportedDataType, name_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=Any)


def construct(
    cls: type[_A],
    shape: Any,
    dtype: Any,
    allocator: Any,
    base: Any,
    gpudata: Any,
    strides: Any,
    order: Any,
    *,
    copy: bool = False,
) -> _A:
    """The rest of GPUArray's constructor: see its arguments there."""
    if isinstance(allocator, (Allocator, ShapedAllocator)):
        if any(given is not None for given in (shape, dtype, base, gpudata, strides)) or copy:
            raise RuntimeError(
                "allocator is an Allocator, which has shape, dtype and memory: accepted beside it "
                "is order alone"
            )
        return _of_allocator(cls, allocator, order)
    if shape is None:
        raise TypeError("GPUArray() needs a shape or an array, or allocator=Allocator(x)")
    if _is_numpy_array(shape):
        for name, given in (("base", base), ("gpudata", gpudata), ("strides", strides)):
            if given is not None:
                raise TypeError(
                    f"{name} goes with a shape, and an array is given: write its .shape"
                )
        return _beside(cls, shape, dtype, allocator, order, copy)
    _check_shape(shape)
    if copy:
        raise TypeError("copy=True goes with an array: a shape has nothing to copy")
    name = "float64" if dtype is None else name_for(dtype)
    sizes = sizes_from(shape)
    if gpudata is not None:
        if allocator is not None and not callable(allocator):
            raise TypeError("allocator and gpudata are both given: accepted is one of them")
        return _at(cls, sizes, name, base, gpudata, strides, order)
    if strides is not None:
        return _strided(cls, sizes, name, allocator, base, strides, order)
    self = _allocated(cls, sizes, name, allocator, order_from(order))
    if base is not None:
        self._base = base
    return self


def _is_numpy_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _check_shape(shape: Any) -> None:
    like_array = any(hasattr(shape, n) for n in ("__cuda_array_interface__", "__dlpack__"))
    number = hasattr(type(shape), "__index__") and not isinstance(shape, bool) and not like_array
    if isinstance(shape, (tuple, list)) or number:
        if isinstance(shape, (tuple, list)) and any(hasattr(n, "__len__") for n in shape):
            raise UnsupportedDataType(
                f"shape is {shape!r}: a list is a shape here; to_gpu(numpy.array(list)) takes "
                "its elements"
            )
        return
    if like_array:
        raise UnsupportedDataType(
            f"a {type(shape).__name__} is given, and it is not said what for: "
            "GPUArray(allocator=Allocator(x)) shares the memory of an array on a device, "
            "to_gpu(x) copies"
        )
    raise UnsupportedDataType(
        f"a {type(shape).__name__} is given: accepted are a NumPy array, or a shape as an int, "
        "tuple or list of int"
    )


def _beside(cls: type[_A], array: Any, dtype: Any, allocator: Any, order: Any, copy: bool) -> _A:
    """New device memory for a NumPy array, which is the host side."""
    try:
        name = name_for(array.dtype)
        host = host_array(array)
    except UnsupportedDataType:
        raise
    except TypeError as error:  # big-endian elements, for one
        raise UnsupportedDataType(str(error)) from None
    if dtype is not None and name_for(dtype) != name:
        raise TypeError(
            f"dtype is {dtype!r}, and the array has {name} elements: accepted is its own; "
            "array.astype(dtype) converts"
        )
    lies = order_of(host) if order is None else order_from(order)
    self = _allocated(cls, host.shape, name, allocator, lies)
    self._host_side = array.copy(order="K") if copy else array
    return self


def _allocated(cls: type[_A], shape: tuple[int, ...], name: str, allocator: Any, order: str) -> _A:
    """New device memory: of the runtime's allocator, one of hamr's, or a function as in PyCUDA."""
    if allocator is None:
        return new_array(cls, shape, name, device_allocator(), order)
    if not isinstance(allocator, (_Kinds, str, int)) and callable(allocator):
        nbytes = TABLE[ELEMENTS[name]][3]
        for n in shape:
            nbytes *= n
        memory = allocator(nbytes) if nbytes else 0
        return _at(cls, shape, name, None, memory, None, order)
    number = allocator_of(allocator)
    if not is_of_a_device(number) and not is_pinned(number):
        raise ValueError(
            f"allocator is {allocator!r}: accepted are those of devices' memory, as 'cuda_async'"
        )
    return new_array(cls, shape, name, number, order)


def _of_allocator(cls: type[_A], allocator: Any, order: Any) -> _A:
    if isinstance(allocator, ShapedAllocator):
        allocator = Allocator(allocator)
    device = allocator._device
    self: Any
    if order is None or order_from(order) == order_of(device):
        self = _native.view(cls, device, 0, device.shape, device.strides)
    elif not (device.is_contiguous or device.is_fortran_contiguous):
        raise ValueError(
            f"order is {order!r}: accepted for memory with strides {device.strides} is none"
        )
    else:
        strides = strides_in(device.shape, device.itemsize, order_from(order))
        self = _native.view(cls, device, 0, device.shape, strides)
    self._origin = allocator
    return self  # type: ignore[no-any-return]


def _strided(
    cls: type[_A],
    shape: tuple[int, ...],
    name: str,
    allocator: Any,
    base: Any,
    strides: Any,
    order: Any,
) -> _A:
    """New memory with strides, which must be those of elements without gaps, in any order."""
    steps = _steps(strides, shape)
    itemsize = TABLE[ELEMENTS[name]][3]
    for lies in ("C", "F"):
        if steps == strides_in(shape, itemsize, lies):
            if order is not None and order_from(order) != lies and len(shape) > 1:
                raise ValueError(f"order is {order!r}, and strides are {steps}: those are {lies!r}")
            self = _allocated(cls, shape, name, allocator, lies)
            self._base = base
            return self
    axes = sorted(range(len(shape)), key=lambda k: -abs(steps[k]))
    packed = strides_in(tuple(shape[k] for k in axes), itemsize, "C")
    if any(steps[k] != step for k, step in zip(axes, packed, strict=True)):
        raise ValueError(
            f"strides are {steps}: accepted for new memory are those of {shape} {name} elements "
            "without gaps; gpudata= gives memory with others"
        )
    source = _allocated(cls, tuple(shape[k] for k in axes), name, allocator, "C")
    made: Any = _native.view(cls, source._snapshot(_native.Array), 0, shape, steps)
    made._base = base
    return made  # type: ignore[no-any-return]


def _at(
    cls: type[_A],
    shape: tuple[int, ...],
    name: str,
    base: Any,
    gpudata: Any,
    strides: Any,
    order: Any,
) -> _A:
    """Memory at an address that a user gave."""
    itemsize = TABLE[ELEMENTS[name]][3]
    if strides is None:
        steps = strides_in(shape, itemsize, order_from(order))
    else:
        steps = _steps(strides, shape)
    address = _address(gpudata)
    source = gpudata._owner if isinstance(gpudata, Pointer) else base
    first, end = (address + n for n in extent(shape, steps, itemsize))
    if isinstance(source, _native.Array):
        plain = source._snapshot(_native.Array)
        if plain.is_contiguous and plain.ptr <= first < end <= plain.ptr + plain.nbytes:
            flat = _native.view(
                _native.Array, plain, 0, (plain._count,), (plain.itemsize,), plain._element
            )
            made: Any = _native.view(cls, flat, address - plain.ptr, shape, steps, ELEMENTS[name])
            made._base = base
            return made  # type: ignore[no-any-return]
    if isinstance(gpudata, Pointer) and gpudata.is_safe() and address:
        allocator = _native.locate(address)[0]
    else:
        allocator = device_allocator()
    _, _, start, size = _native.locate(address) if first < end else (0, 0, 0, 0)
    if size and not start <= first < end <= start + size:
        raise ValueError(
            f"gpudata is {address:#x}: {shape} {name} elements end at {end:#x}, and the memory "
            f"there at {start + size:#x}"
        )
    made = _native.adopt_pointer(
        cls,
        *(ELEMENTS[name], allocator, -1, 0, 1, address, shape, steps, False),
        *((base, gpudata), False),
    )
    made._base = base
    return made  # type: ignore[no-any-return]


def _address(gpudata: Any) -> int:
    if isinstance(gpudata, bool):
        raise TypeError(f"gpudata is {gpudata!r}: accepted is an address")
    for name in ("__index__", "__int__"):  # PyCUDA's allocations have the latter alone
        if hasattr(type(gpudata), name):
            number = int(gpudata)
            if not 0 <= number < 2**64:
                raise ValueError(f"gpudata is {gpudata!r}: accepted are 0 ... 2**64-1")
            return number
    pointer = getattr(gpudata, "ptr", None)  # CuPy's
    if isinstance(pointer, int):
        return pointer
    raise TypeError(
        f"gpudata is {gpudata!r}: accepted are an int, a pointer wrapper and what turns into an int"
    )


def _steps(strides: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(strides, (tuple, list)) or not all(
        hasattr(type(n), "__index__") for n in strides
    ):
        raise TypeError(f"strides are {strides!r}: accepted is a tuple of int, in bytes")
    if len(strides) != len(shape):
        raise ValueError(f"strides are {strides!r}: accepted is one for each size of {shape}")
    return tuple(int(n) for n in strides)
