"""Memory that any device and any array library can share.

Producers and consumers declare where they touch data; hamr leaves it in place,
or moves it when it must. ``hamr.buffer(array)`` shares an array's memory,
``hamr.Buffer(shape, dtype, allocator)`` takes new memory, and
``numpy.asarray(buffer.get_host_accessible())`` shares it with NumPy.
"""

from ._base.allocator import Allocator, Transfer
from ._base.errors import (
    BackendUnavailable,
    DeviceError,
    Error,
    ForkError,
    FreedBuffer,
    InternalError,
    OutOfMemory,
)
from ._base.stream import Stream
from ._buffer.buffers import Buffer, buffer
from ._buffer.handle import Handle
from ._diagnostics.report import backends, devices, reset_peaks, stats, trim
from ._diagnostics.verbose import set_verbose
from ._upstream.functions import (
    access_cuda_peer,
    activate_cuda_device,
    buffer_allocator_cpp,
    buffer_allocator_cuda,
    buffer_allocator_cuda_async,
    buffer_allocator_cuda_host,
    buffer_allocator_cuda_uva,
    buffer_allocator_hip,
    buffer_allocator_hip_uva,
    buffer_allocator_malloc,
    buffer_allocator_none,
    buffer_allocator_openmp,
    buffer_allocator_same,
    buffer_char,
    buffer_double,
    buffer_float,
    buffer_handle,
    buffer_int,
    buffer_long,
    buffer_long_long,
    buffer_short,
    buffer_signed_char,
    buffer_transfer_async,
    buffer_transfer_sync,
    buffer_transfer_sync_host,
    buffer_unsigned_char,
    buffer_unsigned_int,
    buffer_unsigned_long,
    buffer_unsigned_long_long,
    buffer_unsigned_short,
    data,
    get_active_cuda_device,
    get_allocator_name,
    get_cuda_accessible,
    get_cuda_device,
    get_device_accessible,
    get_device_allocator,
    get_hip_accessible,
    get_host_accessible,
    get_host_allocator,
    get_openmp_accessible,
    make_buffer,
    pointer,
    set_active_cuda_device,
    stream,
    synchronize,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._base.cuda_devices import (
        current_device,
        device,
        device_of,
        device_properties,
        memory_info,
        peer_access,
    )
    from ._base.event import Event
    from ._base.headers import get_include
    from ._buffer.dlpack import from_dlpack
del TYPE_CHECKING

__all__ = [
    "Allocator",
    "BackendUnavailable",
    "Buffer",
    "DeviceError",
    "Error",
    "Event",
    "ForkError",
    "FreedBuffer",
    "Handle",
    "InternalError",
    "OutOfMemory",
    "Stream",
    "Transfer",
    "access_cuda_peer",
    "activate_cuda_device",
    "backends",
    "buffer",
    "buffer_allocator_cpp",
    "buffer_allocator_cuda",
    "buffer_allocator_cuda_async",
    "buffer_allocator_cuda_host",
    "buffer_allocator_cuda_uva",
    "buffer_allocator_hip",
    "buffer_allocator_hip_uva",
    "buffer_allocator_malloc",
    "buffer_allocator_none",
    "buffer_allocator_openmp",
    "buffer_allocator_same",
    "buffer_char",
    "buffer_double",
    "buffer_float",
    "buffer_handle",
    "buffer_int",
    "buffer_long",
    "buffer_long_long",
    "buffer_short",
    "buffer_signed_char",
    "buffer_transfer_async",
    "buffer_transfer_sync",
    "buffer_transfer_sync_host",
    "buffer_unsigned_char",
    "buffer_unsigned_int",
    "buffer_unsigned_long",
    "buffer_unsigned_long_long",
    "buffer_unsigned_short",
    "current_device",
    "data",
    "device",
    "device_of",
    "device_properties",
    "devices",
    "from_dlpack",
    "get_active_cuda_device",
    "get_allocator_name",
    "get_cuda_accessible",
    "get_cuda_device",
    "get_device_accessible",
    "get_device_allocator",
    "get_hip_accessible",
    "get_host_accessible",
    "get_host_allocator",
    "get_include",
    "get_openmp_accessible",
    "make_buffer",
    "memory_info",
    "peer_access",
    "pointer",
    "reset_peaks",
    "set_active_cuda_device",
    "set_verbose",
    "stats",
    "stream",
    "synchronize",
    "trim",
]


#: Where the names are that are imported when they are first used.
_LATE = {
    "Event": "_base.event",
    "current_device": "_base.cuda_devices",
    "device": "_base.cuda_devices",
    "device_of": "_base.cuda_devices",
    "device_properties": "_base.cuda_devices",
    "from_dlpack": "_buffer.dlpack",
    "get_include": "_base.headers",
    "memory_info": "_base.cuda_devices",
    "peer_access": "_base.cuda_devices",
}


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from ._base.library import core

        return core().Version()
    if name in _LATE:
        from importlib import import_module

        value = getattr(import_module("." + _LATE[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hamr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
