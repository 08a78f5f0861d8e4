"""New GPUArrays: to_gpu and so on, by PybindGPU's names and PyCUDA's."""

from __future__ import annotations

import sys

import hamr._native as _native

from .._base.element import name_of
from .._base.errors import Error
from .._buffer.buffers import Buffer, buffer
from .arrays import GPUArray
from .runtime import serve, serving
from .sides import order_of
from .status import code_of, failed
from .types import UnsupportedDataType, known, name_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: numpy.ndarray, once it is known.
_numpys: set[type] = set()

_new_buffer, _write_from = Buffer.__new__, _native.write_from


def to_gpu(ary: Any, allocator: Any = None) -> GPUArray:
    """A GPUArray with the elements of a NumPy array, which becomes its host side.

    So ``get()`` writes to that array, as in PybindGPU and not in PyCUDA. To leave it unchanged,
    write ``to_gpu(ary.copy())`` or ``get(numpy.empty_like(ary))``. Arrays of other libraries and
    hamr's are accepted, too; their elements are copied. Lists are a TypeError, since GPUArray
    takes them for shapes.
    """
    if type(ary) not in _numpys and not _is_numpys(ary):
        return _copied(ary, allocator)
    try:
        if allocator is None:
            name = known.get(ary.dtype) or name_for(ary.dtype)
            made = _new_buffer(GPUArray, ary.shape, name, serving[0] if serving else serve()[0])
            made._host_side = ary
            if _write_from(made, ary):
                return made
            del made  # before there is memory in the array's order
        made = GPUArray(ary, allocator=allocator)
        made._send(ary)
    except Error as error:
        failed(code_of(error))
        raise
    return made


def _is_numpys(ary: Any) -> bool:
    """Whether an object is a NumPy array. NumPy is not loaded for that."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    _numpys.add(numpy.ndarray)
    return isinstance(ary, numpy.ndarray)


def _copied(ary: Any, allocator: Any) -> GPUArray:
    if isinstance(ary, (list, tuple)):
        raise TypeError(
            f"ary is a {type(ary).__name__}, which GPUArray takes for a shape: accepted are "
            "arrays, to_gpu(numpy.array(list))"
        )
    if isinstance(ary, (int, float, complex)):
        import numpy

        return to_gpu(numpy.asarray(ary), allocator)
    shared = ary if isinstance(ary, Buffer) else buffer(ary)
    made = empty(shared.shape, name_of(shared._element), allocator, order_of(shared))
    made.set(shared)
    return made


def to_gpu_async(ary: Any, allocator: Any = None, stream: Any = None) -> GPUArray:
    """``to_gpu`` whose copy is enqueued on a stream; page-locked memory is read after the call.

    The array is used on the stream from then on.
    """
    from .moving import stream_for

    model = ary if isinstance(ary, Buffer) else buffer(ary)
    made = empty(model.shape, name_of(model._element), allocator, order_of(model))
    if stream is not None:
        made.set_stream(stream_for(made, stream), "sync_host")
    made.set(ary, async_=True, stream=stream)
    if _is_numpys(ary):
        made._host_side = ary
    return made


def empty(shape: Any, dtype: Any = "float64", allocator: Any = None, order: Any = "C") -> GPUArray:
    """A GPUArray whose elements are not initialised."""
    if allocator is None and order == "C":
        return GPUArray(shape, dtype)
    return GPUArray(shape, dtype, allocator, order=order)


def zeros(shape: Any, dtype: Any = "float64", allocator: Any = None, order: Any = "C") -> GPUArray:
    """A GPUArray of zeros."""
    return _filled(shape, dtype, allocator, order, 0)


def ones(shape: Any, dtype: Any = "float64", allocator: Any = None, order: Any = "C") -> GPUArray:
    """A GPUArray of ones."""
    return _filled(shape, dtype, allocator, order, 1)


def _filled(shape: Any, dtype: Any, allocator: Any, order: Any, value: int) -> GPUArray:
    if allocator is not None or order != "C" or type(shape) not in (tuple, int):
        return empty(shape, dtype, allocator, order).fill(value)
    try:
        name = known.get(dtype) or name_for(dtype)
        return _new_buffer(GPUArray, shape, name, serving[0] if serving else serve()[0], fill=value)
    except Error as error:
        failed(code_of(error))
        raise
    except TypeError:
        name_for(dtype)  # raises the error for a dtype without a hash
        raise


def empty_like(other_ary: Any, dtype: Any = None, order: Any = "K") -> GPUArray:
    """A GPUArray of another array's shape, type and order, not initialised.

    ``order`` is "C" or "F", or "K" and "A" for that of the other array.
    """
    model = other_ary if isinstance(other_ary, Buffer) else buffer(other_ary)
    if order in ("K", "A"):
        order = order_of(model)
    return empty(model.shape, name_of(model._element) if dtype is None else dtype, None, order)


def zeros_like(other_ary: Any, dtype: Any = None, order: Any = "K") -> GPUArray:
    """A GPUArray of zeros of another array's shape, type and order."""
    return empty_like(other_ary, dtype, order).fill(0)


def ones_like(other_ary: Any, dtype: Any = None, order: Any = "K") -> GPUArray:
    """A GPUArray of ones of another array's shape, type and order."""
    return empty_like(other_ary, dtype, order).fill(1)


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, stream: Any = None
) -> GPUArray:
    """``numpy.arange`` on the device: ``arange(stop)``, ``arange(start, stop, step)``.

    The type is by default that of the numbers, int64 or float64. ``stream`` is used if it is given.
    """
    import numpy

    if stop is None:
        start, stop = 0, start
    name = None if dtype is None else name_for(dtype)
    make: Any = numpy.arange
    values = make(start, stop, 1 if step is None else step, name)
    if name is None and values.dtype.name not in known and values.dtype.kind not in "iufc":
        raise UnsupportedDataType(f"dtype is {values.dtype!r}: accepted are types of numbers")
    made = to_gpu(values) if stream is None else to_gpu_async(values, None, stream)
    del made._host_side  # nobody has it
    return made
