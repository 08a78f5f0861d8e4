"""What to write for names that other libraries' modules have and hamr does not."""

from __future__ import annotations

import sys

from .element import TABLE, as_elsewhere

#: Functions of NumPy that make arrays, also if NumPy is not imported.
_NUMPYS = ("arange", "eye", "frombuffer", "fromfile", "linspace", "load", "loadtxt")
_MODULES = ("allocators", "dask", "hetero", "pygpu", "store")
_SHARED = "hamr.buffer(x), which shares, or hamr.array(x), which copies"
_GOT = "b.get(), or numpy.asarray(b.get_host_accessible())"
_MOVED = 'b.copy(device="cuda")'
_CURRENT = "with hamr.device(number)"

_INSTEAD = {
    "from_pointer": "hamr.Buffer.from_pointer(pointer, shape, dtype)",
    "from_address": "hamr.Buffer.from_pointer(address, shape, dtype)",
    "ndarray": "hamr.Buffer",
    "Array": "hamr.Buffer",
    "DeviceNDArray": "hamr.Buffer",
    "GPUArray": "hamr.pygpu.GPUArray",
    "Tensor": "hamr.Buffer",
    "tensor": "hamr.array(x)",
    "as_tensor": _SHARED,
    "as_buffer": _SHARED,
    "as_cuda_array": _SHARED,
    "asanyarray": _SHARED,
    "ascontiguousarray": _SHARED,
    "from_numpy": _SHARED,
    "share": _SHARED,
    "asnumpy": _GOT,
    "to_numpy": _GOT,
    "get_array_module": "hamr.device_of(x), which is -1 for the host",
    "to_device": _MOVED,
    "to_gpu": _MOVED,
    "device_put": _MOVED,
    "device_array": 'hamr.empty(shape, dtype, device="cuda")',
    "pinned_array": 'hamr.empty(shape, dtype, allocator="cuda_host")',
    "empty_pinned": 'hamr.empty(shape, dtype, allocator="cuda_host")',
    "zeros_pinned": 'hamr.zeros(shape, dtype, allocator="cuda_host")',
    "managed_array": 'hamr.empty(shape, dtype, allocator="cuda_uva")',
    "cuda": 'device="cuda" where memory is made, hamr.device and hamr.Stream',
    "Device": _CURRENT,
    "set_device": _CURRENT,
    "get_device": "hamr.current_device()",
    "device_count": "len(hamr.devices())",
    "is_available": 'hamr.backends()["cuda"]["available"]',
    "cuda_available": 'hamr.backends()["cuda"]["available"]',
    "mem_get_info": "hamr.memory_info()",
    "memory_allocated": "hamr.stats()",
    "memory_stats": "hamr.stats()",
    "memory_summary": "hamr.memory_snapshot().summary()",
    "empty_cache": "hamr.trim()",
    "free_all_blocks": "hamr.trim()",
    "set_memory_limit": "hamr.set_limit(device=0, bytes=size)",
    "info": "hamr.backends(), or on the command line: hamr info",
    "connect": "hamr.store.connect()",
    "Server": "hamr.store.Server()",
    "use_in_cupy": "hamr.allocators.use_in_cupy()",
    "use_in_torch": "hamr.allocators.use_in_torch()",
    "use_in_numba": "hamr.allocators.use_in_numba()",
}


def missing(name: str) -> AttributeError:
    """The error for a name that the module does not have."""
    return AttributeError(f"module 'hamr' has no attribute {name!r}{_hint(name)}", name=name)


def _hint(name: str) -> str:
    if name.startswith("_"):
        return ""
    if name in _INSTEAD:
        return f": write {_INSTEAD[name]}"
    if name in _MODULES:
        return f": write import hamr.{name}"
    numpy = sys.modules.get("numpy")
    found = None if numpy is None else vars(numpy).get(name)
    element = as_elsewhere(name) if len(name) > 1 else ""
    if isinstance(found, type) and numpy is not None and issubclass(found, numpy.generic):
        element = numpy.dtype(found).name
    if element in [row[0] for row in TABLE[1:]]:
        return f": element types are names, write {element!r}"
    if name in _NUMPYS or (callable(found) and not isinstance(found, type)):
        return f": write hamr.buffer(numpy.{name}(...))"
    from difflib import get_close_matches

    near = get_close_matches(name, dir(sys.modules["hamr"]), 1, 0.8)
    return f": there is hamr.{near[0]}" if near else ""
