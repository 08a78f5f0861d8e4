"""The names of PybindGPU's and PyCUDA's modules gpuarray: arrays, and functions that make them."""

from .allocators import Allocator, HostAllocator, PagelockedAllocator
from .arrays import GPUArray
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
from .types import SUPPORTED_DTYPES, UnsupportedDataType, dtype

__all__ = [
    "SUPPORTED_DTYPES",
    "Allocator",
    "GPUArray",
    "HostAllocator",
    "PagelockedAllocator",
    "UnsupportedDataType",
    "arange",
    "dtype",
    "empty",
    "empty_like",
    "ones",
    "ones_like",
    "to_gpu",
    "to_gpu_async",
    "zeros",
    "zeros_like",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:  # hidden: checkers take every name for one that a __getattr__ has

    def __getattr__(name):
        from .hints import missing

        raise missing(__name__, name)
