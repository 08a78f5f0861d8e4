"""CuPy's memory in hamr: shared as it is, and a write that both see."""

import cupy
import numpy

from hamr import buffer

tides = cupy.linspace(-1.5, 1.5, 13, dtype="float32")
shared = buffer(tides)

print("shared by", shared.source_protocol)
print("the same memory:", shared.data() == tides.data.ptr)
print("on the host:", numpy.array(shared.get_host_accessible()))

shared[0] = 42
shared.synchronize()
print("written by the buffer, seen by CuPy:", float(tides[0]))

# hamr waits for the stream that CuPy names when the array is shared; for what the array's
# owner does later, the owner waits.
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    tides *= 2
    again = buffer(tides)
print("written by CuPy on a stream, seen by a buffer:", again[0].item())

del tides
print("still there:", shared[12].item())
