"""What to write for names of PyCUDA and NumPy that hamr.pygpu does not have."""

from __future__ import annotations

_COMPILE = "hamr.pygpu.compile(source).function(name)"
_ITSELF = "nothing: a device is made ready at its first use"
_COMPUTE = "hamr.pygpu computes nothing: write cupy.asarray(a), or a kernel by hamr.pygpu.compile"
_STREAM, _EVENT = "hamr.pygpu.cudaStream_t() or hamr.Stream()", "hamr.pygpu.cudaEvent_t()"

_INSTEAD = {
    "SourceModule": _COMPILE,
    "RawKernel": _COMPILE,
    "compiler": _COMPILE,
    "module_from_file": "hamr.pygpu.Module(path)",
    "autoinit": _ITSELF,
    "driver": "the names of hamr.pygpu itself, as hamr.pygpu.to_gpu(array)",
    "mem_alloc": 'hamr.Buffer(nbytes, "uint8", "cuda") or hamr.pygpu.empty(shape, dtype)',
    "mem_free": "a.close(), or let the last reference go",
    "mem_get_info": "hamr.memory_info()",
    "pagelocked_empty": "hamr.pygpu.PagelockedAllocator(shape, dtype).get()",
    "memcpy_htod": "a.set(array), or hamr.pygpu.to_gpu(array)",
    "memcpy_htod_async": "a.set_async(array, stream), or hamr.pygpu.to_gpu_async(array)",
    "memcpy_dtoh": "a.get(array)",
    "memcpy_dtoh_async": "a.get_async(stream, array)",
    "memcpy_dtod": "a[...] = b",
    "to_device": "hamr.pygpu.to_gpu(array)",
    "asarray": "hamr.pygpu.to_gpu(array)",
    "array": "hamr.pygpu.to_gpu(numpy.array(x))",
    "full": "hamr.pygpu.empty(shape, dtype).fill(value)",
    "Device": "hamr.pygpu.cudaDeviceProp(number), or with hamr.device(number)",
    "Context": "with hamr.device(number)",
    "Stream": _STREAM,
    "Event": _EVENT,
    "ndarray": "hamr.pygpu.GPUArray",
}
#: Names that compute: PyCUDA's functions of arrays, and its modules that make kernels.
_COMPUTING = {
    "concatenate", "cumath", "curandom", "dot", "elementwise", "ElementwiseKernel",
    "if_positive", "matmul", "max", "min", "reduction", "ReductionKernel", "sum",
}  # fmt: skip


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    other = _COMPUTE if name in _COMPUTING else _INSTEAD.get(name, "")
    if other and other is not _COMPUTE:
        other = f"write {other}"
    return AttributeError(f"{text}: {other}" if other else text, name=name)
