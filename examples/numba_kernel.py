"""A Numba kernel works on buffers, wherever their memory is."""

import numpy as np
from numba import cuda

import hamr


@cuda.jit
def axpy(result, a, x, y):
    """Write a * x + y."""
    i = cuda.grid(1)
    if i < result.size:
        result[i] = a * x[i] + y[i]


n = 1_000_000
x = hamr.buffer(np.arange(n, dtype="float64"))  # NumPy's memory, on the host
y = hamr.Buffer(n, "float64", hamr.Allocator.cuda, fill=1)  # on the GPU
result = hamr.Buffer(n, "float64", hamr.Allocator.cuda_async)

threads = 256
axpy[(n + threads - 1) // threads, threads](
    cuda.as_cuda_array(result.get_cuda_accessible()),  # in place
    2.0,
    cuda.as_cuda_array(x.get_cuda_accessible()),  # moved there
    cuda.as_cuda_array(y.get_cuda_accessible()),  # in place
)
cuda.synchronize()

print(np.asarray(result.get_host_accessible()))
