"""Arrays there and back, as programs for PybindGPU have it: only the import is another one."""

import numpy as np

import hamr.pygpu as gpuarray

k = np.array([1, 2, 3, 4, 5, 6])
k_gpu = gpuarray.to_gpu(k)
print("sent:", k_gpu.get(), k_gpu.dtype, k_gpu.shape)

# What a kernel would do: write on the device.
k_gpu.set_val(0, 10)
print("on the host until get():", k)
print("after get():", k_gpu.get())

# The host side of k_gpu is k itself.
print("k is the host side:", np.shares_memory(k, k_gpu.get()))

fk_gpu = gpuarray.GPUArray((3, 3, 3), dtype="complex128")
fk_gpu.fill(1 + 2j)
print("complex:", fk_gpu.get()[2, 2, 2], fk_gpu.nbytes, "bytes")

# The low-level interface: nothing is allocated or moved unless it is said.
da = gpuarray.DeviceArray_int64(k)
da.allocate()
da.to_device()
k[:] = 0
da.to_host()
print("round trip:", k, da.last_status())
