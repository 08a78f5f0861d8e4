"""Light control of GPUs for people who bring their own kernels.

``import hamr.pygpu as gpuarray`` replaces ``import PybindGPU as gpuarray`` (PyGPU in its
documentation) and, for arrays without arithmetic, ``import pycuda.gpuarray as gpuarray``. It
runs on CUDA and, by the same names, on HIP. Functions with PybindGPU's names report errors of a
device by status codes; those with PyCUDA's names raise hamr's exceptions. See docs/pygpu.md.
"""

import sys

from .allocators import Allocator, HostAllocator, PagelockedAllocator
from .arguments import In, InOut, Out
from .arrays import GPUArray
from .compiling import CompileError, compile  # noqa: A004
from .device_arrays import DEVICE_ARRAYS as _DEVICE_ARRAYS
from .making import (
    arange,
    empty,
    empty_like,
    ones,
    ones_like,
    to_gpu,
    to_gpu_async,
    zeros,
    zeros_like,
)
from .modules import Function, Module
from .pointers import POINTERS as _POINTERS
from .properties import cudaDeviceProp
from .runtime import cuda_enabled as _cuda_enabled, use_hip as _use_hip
from .status import (
    cudaError_t,
    cudaGetErrorName,
    cudaGetErrorString,
    cudaGetLastError,
    cudaPeekAtLastError,
)
from .streams import (
    cudaDeviceReset,
    cudaDeviceSynchronize,
    cudaEvent_t,
    cudaEventElapsedTime,
    cudaEventQuery,
    cudaEventRecord,
    cudaEventSynchronize,
    cudaGetDevice,
    cudaGetDeviceCount,
    cudaSetDevice,
    cudaStream_t,
    cudaStreamQuery,
    cudaStreamSynchronize,
    cudaStreamWaitEvent,
)
from .typed_allocators import (
    DEVICE_ALLOCATORS as _DEVICE_ALLOCATORS,
    HOST_ALLOCATORS as _HOST_ALLOCATORS,
    PAGELOCKED_ALLOCATORS as _PAGELOCKED_ALLOCATORS,
)
from .types import SUPPORTED_DTYPES, UnsupportedDataType, dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Whether HIP serves, and not CUDA.
    use_hip: bool
    #: Whether there is a device of CUDA or HIP.
    cuda_enabled: bool

    from .nvml import nvmlDevice, nvmlErrorString, nvmlInit, nvmlReturn_t, nvmlShutdown

__all__ = [
    "SUPPORTED_DTYPES",
    "Allocator",
    "CompileError",
    "DeviceAllocator_complex64",
    "DeviceAllocator_complex128",
    "DeviceAllocator_float32",
    "DeviceAllocator_float64",
    "DeviceAllocator_int16",
    "DeviceAllocator_int32",
    "DeviceAllocator_int64",
    "DeviceAllocator_uint16",
    "DeviceAllocator_uint32",
    "DeviceAllocator_uint64",
    "DeviceArray_complex64",
    "DeviceArray_complex128",
    "DeviceArray_float32",
    "DeviceArray_float64",
    "DeviceArray_int16",
    "DeviceArray_int32",
    "DeviceArray_int64",
    "DeviceArray_uint16",
    "DeviceArray_uint32",
    "DeviceArray_uint64",
    "Function",
    "GPUArray",
    "HostAllocator",
    "HostAllocator_complex64",
    "HostAllocator_complex128",
    "HostAllocator_float32",
    "HostAllocator_float64",
    "HostAllocator_int16",
    "HostAllocator_int32",
    "HostAllocator_int64",
    "HostAllocator_uint16",
    "HostAllocator_uint32",
    "HostAllocator_uint64",
    "In",
    "InOut",
    "Module",
    "Out",
    "PagelockedAllocator",
    "PagelockedAllocator_complex64",
    "PagelockedAllocator_complex128",
    "PagelockedAllocator_float32",
    "PagelockedAllocator_float64",
    "PagelockedAllocator_int16",
    "PagelockedAllocator_int32",
    "PagelockedAllocator_int64",
    "PagelockedAllocator_uint16",
    "PagelockedAllocator_uint32",
    "PagelockedAllocator_uint64",
    "UnsupportedDataType",
    "arange",
    "compile",
    "cudaDeviceProp",
    "cudaDeviceReset",
    "cudaDeviceSynchronize",
    "cudaError_t",
    "cudaEventElapsedTime",
    "cudaEventQuery",
    "cudaEventRecord",
    "cudaEventSynchronize",
    "cudaEvent_t",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaSetDevice",
    "cudaStreamQuery",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
    "cudaStream_t",
    "cuda_enabled",
    "dtype",
    "empty",
    "empty_like",
    "major_version",
    "minor_version",
    "nvmlDevice",
    "nvmlErrorString",
    "nvmlInit",
    "nvmlReturn_t",
    "nvmlShutdown",
    "ones",
    "ones_like",
    "pointer_wrapper_complex64",
    "pointer_wrapper_complex128",
    "pointer_wrapper_float32",
    "pointer_wrapper_float64",
    "pointer_wrapper_int16",
    "pointer_wrapper_int32",
    "pointer_wrapper_int64",
    "pointer_wrapper_uint16",
    "pointer_wrapper_uint32",
    "pointer_wrapper_uint64",
    "ptr_wrapper_complex64",
    "ptr_wrapper_complex128",
    "ptr_wrapper_float32",
    "ptr_wrapper_float64",
    "ptr_wrapper_int16",
    "ptr_wrapper_int32",
    "ptr_wrapper_int64",
    "ptr_wrapper_uint16",
    "ptr_wrapper_uint32",
    "ptr_wrapper_uint64",
    "release_version",
    "to_gpu",
    "to_gpu_async",
    "use_hip",
    "zeros",
    "zeros_like",
]

DeviceArray_int16 = _DEVICE_ARRAYS["int16"]
DeviceArray_int32 = _DEVICE_ARRAYS["int32"]
DeviceArray_int64 = _DEVICE_ARRAYS["int64"]
DeviceArray_uint16 = _DEVICE_ARRAYS["uint16"]
DeviceArray_uint32 = _DEVICE_ARRAYS["uint32"]
DeviceArray_uint64 = _DEVICE_ARRAYS["uint64"]
DeviceArray_float32 = _DEVICE_ARRAYS["float32"]
DeviceArray_float64 = _DEVICE_ARRAYS["float64"]
DeviceArray_complex64 = _DEVICE_ARRAYS["complex64"]
DeviceArray_complex128 = _DEVICE_ARRAYS["complex128"]

HostAllocator_int16 = _HOST_ALLOCATORS["int16"]
HostAllocator_int32 = _HOST_ALLOCATORS["int32"]
HostAllocator_int64 = _HOST_ALLOCATORS["int64"]
HostAllocator_uint16 = _HOST_ALLOCATORS["uint16"]
HostAllocator_uint32 = _HOST_ALLOCATORS["uint32"]
HostAllocator_uint64 = _HOST_ALLOCATORS["uint64"]
HostAllocator_float32 = _HOST_ALLOCATORS["float32"]
HostAllocator_float64 = _HOST_ALLOCATORS["float64"]
HostAllocator_complex64 = _HOST_ALLOCATORS["complex64"]
HostAllocator_complex128 = _HOST_ALLOCATORS["complex128"]

DeviceAllocator_int16 = _DEVICE_ALLOCATORS["int16"]
DeviceAllocator_int32 = _DEVICE_ALLOCATORS["int32"]
DeviceAllocator_int64 = _DEVICE_ALLOCATORS["int64"]
DeviceAllocator_uint16 = _DEVICE_ALLOCATORS["uint16"]
DeviceAllocator_uint32 = _DEVICE_ALLOCATORS["uint32"]
DeviceAllocator_uint64 = _DEVICE_ALLOCATORS["uint64"]
DeviceAllocator_float32 = _DEVICE_ALLOCATORS["float32"]
DeviceAllocator_float64 = _DEVICE_ALLOCATORS["float64"]
DeviceAllocator_complex64 = _DEVICE_ALLOCATORS["complex64"]
DeviceAllocator_complex128 = _DEVICE_ALLOCATORS["complex128"]

PagelockedAllocator_int16 = _PAGELOCKED_ALLOCATORS["int16"]
PagelockedAllocator_int32 = _PAGELOCKED_ALLOCATORS["int32"]
PagelockedAllocator_int64 = _PAGELOCKED_ALLOCATORS["int64"]
PagelockedAllocator_uint16 = _PAGELOCKED_ALLOCATORS["uint16"]
PagelockedAllocator_uint32 = _PAGELOCKED_ALLOCATORS["uint32"]
PagelockedAllocator_uint64 = _PAGELOCKED_ALLOCATORS["uint64"]
PagelockedAllocator_float32 = _PAGELOCKED_ALLOCATORS["float32"]
PagelockedAllocator_float64 = _PAGELOCKED_ALLOCATORS["float64"]
PagelockedAllocator_complex64 = _PAGELOCKED_ALLOCATORS["complex64"]
PagelockedAllocator_complex128 = _PAGELOCKED_ALLOCATORS["complex128"]

ptr_wrapper_int16 = _POINTERS["int16"]
ptr_wrapper_int32 = _POINTERS["int32"]
ptr_wrapper_int64 = _POINTERS["int64"]
ptr_wrapper_uint16 = _POINTERS["uint16"]
ptr_wrapper_uint32 = _POINTERS["uint32"]
ptr_wrapper_uint64 = _POINTERS["uint64"]
ptr_wrapper_float32 = _POINTERS["float32"]
ptr_wrapper_float64 = _POINTERS["float64"]
ptr_wrapper_complex64 = _POINTERS["complex64"]
ptr_wrapper_complex128 = _POINTERS["complex128"]

pointer_wrapper_int16 = _POINTERS["int16"]
pointer_wrapper_int32 = _POINTERS["int32"]
pointer_wrapper_int64 = _POINTERS["int64"]
pointer_wrapper_uint16 = _POINTERS["uint16"]
pointer_wrapper_uint32 = _POINTERS["uint32"]
pointer_wrapper_uint64 = _POINTERS["uint64"]
pointer_wrapper_float32 = _POINTERS["float32"]
pointer_wrapper_float64 = _POINTERS["float64"]
pointer_wrapper_complex64 = _POINTERS["complex64"]
pointer_wrapper_complex128 = _POINTERS["complex128"]

#: The version of PybindGPU whose names these are.
major_version, minor_version, release_version = 0, 2, 1

#: The name of PybindGPU's compiled module, all of whose names are here.
backend = sys.modules[__name__]
sys.modules[__name__ + ".backend"] = backend
del sys

_LATE = {"use_hip": _use_hip, "cuda_enabled": _cuda_enabled}
_OF_NVML = {"nvmlDevice", "nvmlErrorString", "nvmlInit", "nvmlReturn_t", "nvmlShutdown"}

if not TYPE_CHECKING:  # hidden: checkers take every name for one that a __getattr__ has

    def __getattr__(name):
        if name in _LATE:
            return _LATE[name]()
        if name in ("gpuarray", "nvml"):  # attributes of the module under another name
            from importlib import import_module

            return import_module(f".{name}", __name__)
        if name in _OF_NVML:  # importing nvml takes longer than all the rest
            from . import nvml

            return getattr(nvml, name)
        from .hints import missing

        raise missing(__name__, name)


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name[:2] == "__")
    return sorted({*__all__, "gpuarray", "nvml", *dunders})
