"""hamr's memory in NumPy and CuPy: copies, a view, and a write that both see."""

import cupy
import numpy

from hamr import buffer_allocator_cuda, buffer_float

readings = buffer_float(buffer_allocator_cuda, 12, 0.25)

# numpy.array and cupy.array copy what they are given.
print("a copy on the host:", numpy.array(readings.get_host_accessible()))
print("a copy on the GPU:", cupy.array(readings.get_cuda_accessible()))

# asarray shares: the memory was taken for CUDA, so nothing is moved.
shared = cupy.asarray(readings.get_cuda_accessible())
print("the same memory:", shared.data.ptr == readings.data())

# hamr does not see CuPy's streams unless it is told of them: CuPy's default stream is
# waited for here.
shared[0] = 42
cupy.cuda.get_current_stream().synchronize()
print("written by CuPy, seen by the buffer:", readings[0].item())

# The array keeps the memory when the buffer is gone.
del readings
print("still there:", float(shared[11]))
