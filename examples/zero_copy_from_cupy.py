"""CuPy's memory in hamr: the guide's "Python to C++", and a write that both see."""

import cupy
import numpy

from hamr import buffer

# The guide's two lines.
arr = cupy.full(16, 3.1415, dtype="float32")
buf = buffer(arr)

print("shared by", buf.source_protocol)
print("the same memory:", buf.data() == arr.data.ptr)
print(numpy.array(buf.get_host_accessible()))

buf[0] = 42
buf.synchronize()
print("written by the buffer, seen by CuPy:", float(arr[0]))

# hamr waits for the stream that CuPy names when the array is shared; for what the array's
# owner does later, the owner waits.
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    arr *= 2
    again = buffer(arr)
print("written by CuPy on a stream, seen by a buffer:", again[0].item())

del arr
print("still there:", buf[15].item())
