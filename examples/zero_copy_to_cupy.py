"""hamr's memory in NumPy and CuPy: the guide's "C++ to Python", and a write that both see."""

import cupy
import numpy

from hamr import buffer_allocator_cuda, buffer_float

buf = buffer_float(buffer_allocator_cuda, 16, 3.1415)

# The guide's two lines. numpy.array and cupy.array copy what they are given.
arr = numpy.array(buf.get_host_accessible())
print(arr)
arr = cupy.array(buf.get_cuda_accessible())
print(arr)

# asarray shares: the memory was taken for CUDA, so nothing is moved.
shared = cupy.asarray(buf.get_cuda_accessible())
print("the same memory:", shared.data.ptr == buf.data())

# hamr does not see CuPy's streams unless it is told of them: CuPy's default stream is
# waited for here.
shared[0] = 42
cupy.cuda.get_current_stream().synchronize()
print("written by CuPy, seen by the buffer:", buf[0].item())

# The array keeps the memory when the buffer is gone.
del buf
print("still there:", float(shared[15]))
