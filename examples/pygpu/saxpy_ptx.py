"""A kernel from PTX: saxpy.ptx is made from saxpy.cu, which says how."""

from pathlib import Path

import numpy as np

import hamr.pygpu as gpuarray

module = gpuarray.Module(Path(__file__).parents[1] / "saxpy.ptx")
saxpy = module.function("saxpy")

n = 1000
x = gpuarray.to_gpu(np.arange(n, dtype=np.float32))
y = gpuarray.zeros(n, np.float32)
saxpy(y, x, np.float32(2), np.uint64(n), grid=(n + 255) // 256, block=256)
print(y.get()[-5:])

# NumPy's arrays are brought to the device and back by who says what the kernel does with them.
total = np.ones(n, np.float32)
given = gpuarray.InOut(total), gpuarray.In(np.arange(n, dtype=np.float32))
saxpy(*given, np.float32(1), np.uint64(n), grid=(n + 255) // 256, block=256)
print(total[-5:])
