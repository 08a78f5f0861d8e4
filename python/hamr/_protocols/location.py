"""Where an object's memory is: on which device, and of which runtime."""

from __future__ import annotations

import sys
from _operator import index

import hamr._native as _native

from .._base.allocator import is_of_a_device
from .._base.cuda_devices import current_device
from .._base.foreign_handles import backend_of_stream, is_stream
from .._base.location import HOST, device_of_address
from .._base.memory_stream import streams_of
from .._base.stream import BACKEND, Event, Stream, as_stream, blocks
from .._base.stream_blocks import fitting
from . import dlpack
from .cuda_array_interface import NAME
from .dispatch import share
from .fields import exact, is_capsule, short, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Interfaces that say where memory is only when they are read, and those of host memory alone.
_USM = "__sycl_usm_array_interface__"
_TELL_BY_SHARING = (_USM, "__arrow_c_device_array__")
_OF_THE_HOST = ("__arrow_c_array__", "__arrow_c_stream__", "__array_interface__")

#: The backends of DLPack's kinds of devices that are not CUDA's.
_RUNTIMES = {dlpack.ROCM: "hip", dlpack.ROCM_HOST: "hip"}


def device_of(x: Any) -> int:
    """The device that owns a buffer, handle, array, address, stream or event; -1 is the host.

    An int is an address. Page-locked memory belongs to the host, and so does memory
    that no device runtime knows. TypeError for any other object.
    """
    if isinstance(x, _native.Array):
        return x.device
    if isinstance(x, (Stream, Event)):
        return x.device if x.device >= 0 else current_device()
    number = _address(x)
    if number is not None:
        return device_of_address(number)
    try:
        interface = getattr(x, NAME, None)
    except Exception as error:
        found = _owner_by_dlpack(x)
        if found is None:
            raise unreadable(x, NAME, error) from error
        return found
    if interface is not None and not isinstance(x, type):
        return _owner_by_interface(x, interface)
    found = _owner_by_dlpack(x)
    if found is not None:
        return found
    if is_stream(x):
        return device_of(Stream.from_any(x))
    if not isinstance(x, type):
        if any(getattr(x, name, None) is not None for name in _TELL_BY_SHARING):
            return share(_native.Array, x, wait=False).device
        if any(getattr(x, name, None) is not None for name in _OF_THE_HOST):
            return HOST
    try:
        memoryview(x)
    except (TypeError, ValueError, BufferError):
        raise TypeError(
            f"x is {short(x)}: accepted is a buffer, a handle, an array, an address, "
            "a stream or an event"
        ) from None
    return HOST


def stream_near(stream: Any, x: Any) -> Stream | None:
    """The stream that was given for an object's memory; else that of a block, or None."""
    if stream is not None:
        return as_stream(stream, device_of(x), runtime_of(x, stream))
    try:
        if not isinstance(x, _native.Array) and getattr(x, _USM, None) is not None:
            return None  # its device is known only once it is shared
        device = device_of(x)
    except Exception:  # sharing it raises the error
        return None
    of_the_host = device < 0 and not (isinstance(x, _native.Array) and is_of_a_device(x._allocator))
    found: Stream | None = fitting(blocks(), runtime_of(x), None if of_the_host else device)
    return found


def runtime_of(x: Any, stream: Any = None) -> str:
    """The backend whose streams an object's memory is used on; CUDA if it is not known.

    A capsule says nothing before it is shared: until then the backend is that of the stream.
    """
    if isinstance(x, _native.Array):
        return streams_of(x._allocator)
    if isinstance(x, type):
        return BACKEND
    try:
        if getattr(x, _USM, None) is not None:
            told = stream._backend if isinstance(stream, Stream) else backend_of_stream(stream)
            return told or BACKEND
        if getattr(x, "__dlpack_device__", None) is not None:
            return _RUNTIMES.get(x.__dlpack_device__()[0], BACKEND)
        interface = getattr(x, NAME, None)
        if interface is not None:
            return streams_of(_native.locate(interface["data"][0])[0])
    except Exception:  # sharing it raises the error
        return BACKEND
    if is_capsule(x) and isinstance(stream, Stream) and stream._backend in _RUNTIMES.values():
        return stream._backend
    return BACKEND


def _address(x: Any) -> int | None:
    """The address in an int or a NumPy int; None for other objects."""
    numpy = sys.modules.get("numpy")
    if not isinstance(x, int) and (numpy is None or not isinstance(x, numpy.integer)):
        return None
    if isinstance(x, bool):
        raise TypeError(f"x is {x!r}: accepted as an address is an int")
    number = index(x)
    if not 0 <= number < 2**64:
        raise ValueError(f"x is {x!r}: accepted as an address are 0 ... 2**64-1")
    return number


def _owner_by_interface(x: Any, interface: Any) -> int:
    data = interface.get("data") if isinstance(interface, dict) else None
    pointer = exact(data[0]) if isinstance(data, tuple) and len(data) == 2 else None
    if pointer is None or not 0 <= pointer < 2**64:
        raise TypeError(f"x is {short(x)}: its __cuda_array_interface__ has no address")
    return device_of_address(pointer)


def _owner_by_dlpack(x: Any) -> int | None:
    """The device that an object names by DLPack; None if hamr does not know that device."""
    if isinstance(x, type) or getattr(x, "__dlpack_device__", None) is None:
        return None
    pair = x.__dlpack_device__()
    kind, number = map(exact, pair) if isinstance(pair, tuple) and len(pair) == 2 else (None, None)
    if kind in (dlpack.CPU, dlpack.CUDA_HOST, dlpack.ROCM_HOST):
        return HOST
    if kind == dlpack.CUDA_MANAGED:  # DLPack's number is always 0
        return dlpack.adopt(_native.Array, x, 0, 1, False).device
    return number if kind in (dlpack.CUDA, dlpack.ROCM) else None
