"""Programs as users of upstream HAMR write them: its names, its calls, its order of arguments."""

import numpy as np

#: A function for the GPU that does not know where its operands are, and one for the host.
WIND_SPEED = '''
import numpy as np
import cupy as cp
from hamr import *


def wind_speed(east, north):
    """The length of each vector of two components in any memory."""
    u = cp.array(east.get_cuda_accessible())
    v = cp.array(north.get_cuda_accessible())
    return buffer(cp.sqrt(u * u + v * v))


def report(title, quantity):
    """Say what a quantity in any memory is."""
    values = np.array(quantity.get_host_accessible())
    print(title, values.dtype, values)


stations = 300
east = buffer_float(buffer_allocator_cuda, stations, 5.0)
north = buffer_float(buffer_allocator_malloc, stations, 12.0)
report("speed:", wind_speed(east, north))
'''
WIND_SPEED_OUTPUT = f"speed: float32 {np.full(300, 13, 'f4')}\n"

#: hamr's memory in other libraries: copied, then shared and written to.
TAKEN_FROM_HAMR = """
import numpy
import cupy
from hamr import *

pressure = buffer_double(buffer_allocator_cuda, 9, 1013.25)
print("host:", numpy.array(pressure.get_host_accessible()))
print("device:", cupy.array(pressure.get_cuda_accessible()))
view = cupy.asarray(pressure.get_cuda_accessible())
assert view.data.ptr == pressure.data()
view[4] = 987.5
cupy.cuda.runtime.deviceSynchronize()
print("written:", numpy.array(pressure.get_host_accessible())[3:6])
"""
TAKEN_FROM_HAMR_OUTPUT = (
    f"host: {np.full(9, 1013.25)}\ndevice: {np.full(9, 1013.25)}\n"
    f"written: {np.array([1013.25, 987.5, 1013.25])}\n"
)

#: CuPy's memory in hamr, written to from both sides.
GIVEN_TO_HAMR = """
import numpy
import cupy
from hamr import *

depths = cupy.arange(0, 40, 8, dtype="int32")
taken = buffer(depths)
assert taken.data() == depths.data.ptr
print("taken:", numpy.array(taken.get_host_accessible()))
taken.set([-3])
taken.synchronize()
depths[2] = 7
cupy.cuda.runtime.deviceSynchronize()
print("array:", depths)
print("buffer:", numpy.array(taken.get_host_accessible()))
"""
_DEPTHS = np.array([-3, 8, 7, 24, 32], "i4")
GIVEN_TO_HAMR_OUTPUT = (
    f"taken: {np.arange(0, 40, 8, dtype='i4')}\narray: {_DEPTHS}\nbuffer: {_DEPTHS}\n"
)
