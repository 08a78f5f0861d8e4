"""Memory that any device and any array library can share.

Producers and consumers declare where they use data; hamr leaves it in place,
or moves it when it must. ``hamr.buffer(array)`` shares an array's memory,
``hamr.Buffer(shape, dtype, allocator)`` takes new memory, and
``numpy.asarray(buffer.get_host_accessible())`` shares it with NumPy.
"""

from _thread import RLock
from atexit import register
from os import environ, register_at_fork
from sys import modules

from . import _base, _native  # noqa: F401 -- raise where hamr does not work, in this order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._base.allocator import Allocator, Transfer
    from ._base.cuda_devices import (
        current_device,
        device,
        device_properties,
        memory_info,
        peer_access,
    )
    from ._base.errors import (
        BackendUnavailable,
        DeviceError,
        Error,
        ForkError,
        FreedBuffer,
        InternalError,
        InUse,
        OutOfMemory,
        OutOfRange,
        PausedMemory,
        PinnedMemoryWarning,
    )
    from ._base.headers import get_include
    from ._base.out_of_memory import on_out_of_memory
    from ._base.pausing import pausable, pausable_memory, pause, resume
    from ._base.stream import Event, Stream
    from ._buffer.blocks import copy_blocks
    from ._buffer.buffers import Buffer, buffer
    from ._buffer.dlpack import from_dlpack
    from ._buffer.handle import Handle
    from ._buffer.making import (  # not of __all__
        array as array,
        asarray as asarray,
        empty as empty,
        empty_like as empty_like,
        full as full,
        full_like as full_like,
        ones as ones,
        ones_like as ones_like,
        zeros as zeros,
        zeros_like as zeros_like,
    )
    from ._buffer.many import copy_many
    from ._buffer.opening import open_shared
    from ._buffer.shares import SharedHandle
    from ._diagnostics.checking import MemoryMisuse, check_memory, checked_backends
    from ._diagnostics.memory_recording import record_memory, track
    from ._diagnostics.memory_server import MemoryServer, serve_memory
    from ._diagnostics.pool_limits import limits, set_limit
    from ._diagnostics.report import backends, devices, reset_peaks, stats, trim
    from ._diagnostics.snapshots import MemorySnapshot, memory_snapshot
    from ._diagnostics.verbose import set_verbose
    from ._protocols.location import device_of
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
        buffer_handle_char,
        buffer_handle_double,
        buffer_handle_float,
        buffer_handle_int,
        buffer_handle_long,
        buffer_handle_long_long,
        buffer_handle_short,
        buffer_handle_unsigned_char,
        buffer_handle_unsigned_int,
        buffer_handle_unsigned_long,
        buffer_handle_unsigned_long_long,
        buffer_handle_unsigned_short,
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
    "InUse",
    "InternalError",
    "MemoryMisuse",
    "MemoryServer",
    "MemorySnapshot",
    "OutOfMemory",
    "OutOfRange",
    "PausedMemory",
    "PinnedMemoryWarning",
    "SharedHandle",
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
    "buffer_handle_char",
    "buffer_handle_double",
    "buffer_handle_float",
    "buffer_handle_int",
    "buffer_handle_long",
    "buffer_handle_long_long",
    "buffer_handle_short",
    "buffer_handle_unsigned_char",
    "buffer_handle_unsigned_int",
    "buffer_handle_unsigned_long",
    "buffer_handle_unsigned_long_long",
    "buffer_handle_unsigned_short",
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
    "check_memory",
    "checked_backends",
    "copy_blocks",
    "copy_many",
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
    "limits",
    "make_buffer",
    "memory_info",
    "memory_snapshot",
    "on_out_of_memory",
    "open_shared",
    "pausable",
    "pausable_memory",
    "pause",
    "peer_access",
    "pointer",
    "record_memory",
    "reset_peaks",
    "resume",
    "serve_memory",
    "set_active_cuda_device",
    "set_limit",
    "set_verbose",
    "stats",
    "stream",
    "synchronize",
    "track",
    "trim",
]


#: Public, but not in ``__all__``: ``from hamr import *`` must not replace NumPy's names in
#: upstream's scripts.
_NOT_STARRED = (
    "array",
    "asarray",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
)

#: The modules of names, which are imported when they are first used. Classes of ``__all__`` that
#: are not here are errors, and functions are upstream's.
_LATE = {
    name: module
    for module, names in {
        "_native": "_C_API",
        "_base.allocator": "Allocator Transfer",
        "_base.cuda_devices": "current_device device device_properties memory_info peer_access",
        "_base.headers": "get_include",
        "_base.out_of_memory": "on_out_of_memory",
        "_base.pausing": "pausable pausable_memory pause resume",
        "_base.stream": "Event Stream",
        "_buffer.blocks": "copy_blocks",
        "_buffer.buffers": "Buffer _rebuild_shared buffer",
        "_buffer.dlpack": "from_dlpack",
        "_buffer.handle": "Handle",
        "_buffer.making": " ".join(_NOT_STARRED),
        "_buffer.many": "copy_many",
        "_buffer.opening": "open_shared",
        "_buffer.shares": "SharedHandle",
        "_diagnostics.checking": "MemoryMisuse check_memory checked_backends",
        "_diagnostics.memory_recording": "record_memory track",
        "_diagnostics.memory_server": "MemoryServer serve_memory",
        "_diagnostics.pool_limits": "limits set_limit",
        "_diagnostics.report": "backends devices reset_peaks stats trim",
        "_diagnostics.snapshots": "MemorySnapshot memory_snapshot",
        "_diagnostics.verbose": "set_verbose",
        "_protocols.location": "device_of",
    }.items()
    for name in names.split()
}
#: What Buffer's module imports. Finalisers use the names when nothing can be imported any more.
_WITH_BUFFER = ("_base.allocator", "_base.errors", "_buffer.buffers", "_buffer.handle")


if TYPE_CHECKING:
    __version__: str
else:  # hidden: to checkers a __getattr__ would have every name

    def __getattr__(name):
        if name == "__version__":
            from ._base.library import core

            return core().Version()
        if name in _LATE or name in __all__:
            place = _place(name)
            value = getattr(_imported(place), name)
            if getattr(value, "__module__", "").startswith("hamr._"):
                value.__module__ = __name__  # where users find it
            globals()[name] = value
            if place == "_buffer.buffers":
                for other in __all__:
                    if _place(other) in _WITH_BUFFER and other not in globals():
                        __getattr__(other)
            return value
        if name[:2] == "__":
            raise _unknown(name)
        from ._base.missing_names import missing

        raise missing(name)


del TYPE_CHECKING


def _place(name: "str") -> "str":
    return _LATE.get(name, "_base.errors" if name[0].isupper() else "_upstream.functions")


def _imported(name: "str") -> "Any":
    """One of the package's modules. importlib would take a millisecond to import."""
    with _loading:
        return __import__(name, globals(), None, ("*",), 1)


def _unknown(name: "str") -> "AttributeError":
    """The error for what programs ask all of sys.modules for, which must not grow meanwhile."""
    return AttributeError(f"module 'hamr' has no attribute {name!r}", name=name)


class _Moved(type(_native)):  # type: ignore[misc]
    """A module of version 0.2, which its pickles name."""

    def __getattr__(self, name: "str") -> "Any":
        if name[:2] == "__":
            raise _unknown(name)
        return getattr(_imported(_MOVED[self.__name__]), name)

    def __reduce__(self) -> "Any":  # cloudpickle takes it with each function that says hamr.buffer
        from importlib import import_module

        return import_module, (self.__name__,)


_MOVED = {"hamr.buffer": "_buffer.buffers", "hamr.allocator": "_base.allocator"}
modules.update({_name: _Moved(_name) for _name in _MOVED})

# A fork waits while another thread loads a module: the child would wait for that thread for ever.
_loading = RLock()
register_at_fork(
    before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
)
# Before the program's own exit handlers, which run first and may use hamr.
register(_native.end_owners)
if environ.get("HAMR_MEMORY"):
    from ._diagnostics.memory_server import serve_if_asked

    serve_if_asked()
    del serve_if_asked
if environ.get("HAMR_CHECK"):
    from ._diagnostics.checking import start_if_asked

    start_if_asked()
    del start_if_asked
del RLock, environ, modules, register, register_at_fork


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name[:2] == "__")
    return sorted({*__all__, *_NOT_STARRED, "__version__", *dunders})
