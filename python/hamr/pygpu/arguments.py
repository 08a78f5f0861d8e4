"""Arguments of kernels: arrays, the bytes of values, and arrays that are copied to the device."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import space_number
from .._base.library import core
from .._base.stream import Stream, as_stream, blocks, entered
from .._buffer.buffers import buffer
from .._protocols.wait_setting import wait_of
from .device_arrays import DeviceArray
from .pointers import Pointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The extension's numbers of the kinds: to be asked again when the device is known, bytes, objects
#: with __cuda_array_interface__, objects with an array as _kernel_argument, and arrays.
_LATER, _BYTES, _INTERFACE, _GIVES_ARRAY, _ARRAY = range(5)

_READ, _WRITE, _READ_WRITE = range(3)

_NO_DEVICE = -1


class Direction:
    """What a kernel does with an array: the base of ``In``, ``Out`` and ``InOut``."""

    __slots__ = ("argument",)

    _mode = _READ_WRITE

    def __init__(self, argument: Any) -> None:
        if isinstance(argument, Direction):
            raise TypeError(f"argument is {argument!r}: accepted is an array")
        self.argument = argument

    def __repr__(self) -> str:
        return f"hamr.pygpu.{type(self).__name__}({self.argument!r})"


class In(Direction):
    """An array that a kernel only reads. It may be read-only.

    Elements on the host, such as NumPy's, or on another device are copied to the kernel's device
    before the launch.
    """

    __slots__ = ()

    _mode = _READ


class Out(Direction):
    """An array that a kernel writes completely. It reads no element before it has written it.

    If they are on the host or another device, the kernel writes to memory of its device, which is
    not initialised and is copied back. Elements on the host are there when the call returns.
    """

    __slots__ = ()

    _mode = _WRITE


class InOut(Direction):
    """An array that a kernel reads and writes: copied to its device and back as by ``Out``."""

    __slots__ = ()

    _mode = _READ_WRITE


def classify(i: int, name: str, obj: Any, odd: bool) -> tuple[int, Any, bool, bool, int]:
    """The kind of argument i of the kernel ``name``, for the extension: see launch.c.

    ``odd`` says that it has no __cuda_array_interface__ of the plain form.
    """
    kind = _kind_of(obj, odd)
    if kind is not None:
        return kind, obj, False, True, _NO_DEVICE
    if isinstance(obj, Direction):
        inner = obj.argument
        if not isinstance(inner, _native.Array) and not _on_host(inner) and _has_interface(inner):
            return _INTERFACE, inner, obj._mode == _READ, False, _NO_DEVICE
        array = _array_of(i, name, inner)
        return _LATER, _bringer(array, obj._mode), obj._mode == _READ, False, array.device
    if isinstance(obj, int):
        return _LATER, int(obj), False, False, _NO_DEVICE
    if isinstance(obj, Pointer) and not obj.is_safe():
        return _LATER, int(obj), False, False, _NO_DEVICE
    if _on_host(obj):
        raise TypeError(
            f"argument {i} of {name} is a {_type_name(obj)}, which is in host memory: accepted "
            "are arrays of the device; In(array), Out(array) and InOut(array) bring it there"
        )
    if hasattr(obj, "__dlpack__") or _has_interface(obj):
        return _ARRAY, buffer(obj), False, False, _NO_DEVICE
    raise TypeError(
        f"argument {i} of {name} is {obj!r}: accepted are arrays of the device, NumPy's scalars, "
        "ctypes values, and int and float where the parameter has 4 or 8 bytes"
    )


def _kind_of(obj: Any, odd: bool) -> int | None:
    """The kind of all objects of the type; None if each object must be looked at."""
    if isinstance(obj, DeviceArray):
        return _GIVES_ARRAY
    if isinstance(obj, _native.Array):
        return _ARRAY
    if _is_scalar(obj) or _is_ctypes_value(obj):
        return _BYTES
    if not odd and not isinstance(obj, Direction) and _has_interface(obj):
        return _INTERFACE
    return None


def _is_scalar(obj: Any) -> bool:
    """Whether an object is a number or a record of NumPy."""
    if not type(obj).__module__.startswith("numpy") and not hasattr(obj, "dtype"):
        return False
    try:
        import numpy
    except ImportError:
        return False
    return isinstance(obj, (numpy.number, numpy.bool_, numpy.void))


def _is_ctypes_value(obj: Any) -> bool:
    import ctypes

    kinds = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._Pointer)
    of_the_host = (ctypes.c_char_p, ctypes.c_wchar_p, ctypes.py_object)
    return isinstance(obj, kinds) and not isinstance(obj, of_the_host)


def _has_interface(obj: Any) -> bool:
    return not isinstance(obj, type) and hasattr(obj, "__cuda_array_interface__")


def _on_host(obj: Any) -> bool:
    """Whether an object has its elements in host memory only."""
    if isinstance(obj, _native.Array) or _has_interface(obj):
        return False
    if hasattr(obj, "__array_interface__") or isinstance(obj, (bytes, bytearray, memoryview)):
        return True
    told = getattr(obj, "__dlpack_device__", None)
    return callable(told) and told()[0] == 1  # kDLCPU


def _type_name(obj: Any) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")


def _array_of(i: int, name: str, obj: Any) -> _native.Array:
    """An array over the elements of the object in In, Out or InOut."""
    if isinstance(obj, DeviceArray):
        return obj._kernel_argument
    if isinstance(obj, _native.Array):
        return obj
    if _on_host(obj) or hasattr(obj, "__dlpack__"):
        return buffer(obj)
    raise TypeError(f"argument {i} of {name} is {obj!r} in In, Out or InOut: accepted is an array")


def _bringer(
    array: _native.Array, mode: int
) -> Callable[[int, int, str, str], tuple[_native.Array, Callable[[int, Any, int], None]]]:
    """A function that lends the elements to the kernel when its device is known."""

    def bring(
        i: int, device: int, name: str, backend: str
    ) -> tuple[_native.Array, Callable[[int, Any, int], None]]:
        handle, opened = _native.open_access(array, space_number(backend), device, mode)

        def finish(launched: int, stream: Any, device: int) -> None:
            try:
                _native.end_access(handle, opened, bool(launched))
            finally:
                handle._close()

        return handle, finish

    return bring


def stream_for(stream: Any, backend: str) -> Stream | None:
    """The stream of a launch: the one given, or that of a block; None is the default stream."""
    if stream is not None:
        return as_stream(stream, -1, backend)
    block = blocks()
    while block is not None:
        if block[0]._backend == backend:
            innermost: Stream = block[0]
            return innermost
        block = block[1]
    return None


_native.set_argument_hook(classify)
_native.set_kernel_streams(Stream, stream_for, entered, wait_of)


def device_for(device: Any, backend: str) -> int:
    """The number of a device that a user gave; None is the current one."""
    from .._base.place import device_number

    number = device_number(device)
    return core().CurrentDevice(backend) if number < 0 else number


for _each in (In, Out, InOut):
    _each.__module__ = "hamr.pygpu"  # where users find them
