"""A kernel as text, which NVRTC compiles: PyPI's nvidia-cuda-nvrtc has it, and every toolkit."""

import numpy as np

import hamr.pygpu as gpuarray

SOURCE = """
extern "C" __global__ void saxpy(unsigned n, float a, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""

try:
    gpuarray.compile("a mistake", name="wrong.cu")
except gpuarray.CompileError as error:
    print(error.log.splitlines()[0])

saxpy = gpuarray.compile(SOURCE).function("saxpy")
n = 1000
x, y = gpuarray.to_gpu(np.arange(n, dtype=np.float32)), gpuarray.zeros(n, np.float32)
saxpy(np.uint32(n), np.float32(2), x, y, grid=(n + 255) // 256, block=256)
print(y.get()[-5:])
