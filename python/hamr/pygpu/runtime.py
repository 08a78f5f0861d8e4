"""Which runtime serves, CUDA or HIP by the same names, and its allocators."""

from __future__ import annotations

from .._base.allocator import Allocator
from .choosing import device_count, runtime as runtime

_ALLOCATORS = {
    "cuda": (Allocator.cuda, Allocator.cuda_uva, Allocator.cuda_host),
    "hip": (Allocator.hip, Allocator.hip_uva, Allocator.hip_host),
}

#: The allocators of the runtime that serves, once it is known: of device memory, as cudaMalloc's,
#: of managed memory, and of page-locked host memory.
serving: list[Allocator] = []


def serve() -> list[Allocator]:
    """Fill ``serving``, and return it."""
    if not serving:
        serving.extend(_ALLOCATORS[runtime()])
    return serving


def device_allocator() -> Allocator:
    """Hamr's allocator of device memory, as cudaMalloc's."""
    return serve()[0]


def pagelocked_allocator() -> Allocator:
    """Hamr's allocator of page-locked host memory, as cudaMallocHost's."""
    return serve()[2]


def use_hip() -> bool:
    """Whether HIP serves."""
    return runtime() == "hip"


def cuda_enabled() -> bool:
    """Whether there is a device of CUDA or HIP."""
    return device_count(runtime()) > 0
