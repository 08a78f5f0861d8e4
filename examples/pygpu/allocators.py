"""Memory that arrays share: of another array, of the host, and page-locked."""

import numpy as np

import hamr.pygpu as PybindGPU
from hamr.pygpu.gpuarray import GPUArray, HostAllocator, PagelockedAllocator, to_gpu

# The device's memory of another array, and a host side of its own.
x = np.zeros(4)
x_gpu = to_gpu(x)
other = GPUArray(allocator=PybindGPU.Allocator(x_gpu))
other.set_val(2, 5.0)
print("by the other array:", other.get(), "and on x's host side:", x)
print("by x_gpu:", x_gpu.get())

# Page-locked memory, which devices reach.
pinned = PagelockedAllocator((2, 2), "float64")
pinned.get()[:] = 1
first = GPUArray(allocator=PybindGPU.Allocator(pinned))
second = GPUArray(allocator=PybindGPU.Allocator(pinned))
first.set_val(3, 4.0)
print("seen by the other, and by the allocator:", second.get()[1, 1], pinned.get()[1, 1])

# Host memory below several low-level arrays.
shared = HostAllocator((2, 3), float)
a = PybindGPU.DeviceArray_float64(shared.ptr(), [2, 3])
b = PybindGPU.DeviceArray_float64(shared.ptr(), [3, 2])
np.array(a, copy=False)[:] = 6
print("the other's host side:", np.array(b, copy=False).sum(), shared.get().shape)

# Raw memory of the three kinds, for elements of one type.
for kind in ("Host", "Device", "Pagelocked"):
    allocator = getattr(PybindGPU, f"{kind}Allocator_int32")()
    before = int(allocator.ptr())
    status = allocator.allocate(100)
    print(kind, before, status, allocator.ptr().is_safe(), int(allocator.ptr()) != 0)
