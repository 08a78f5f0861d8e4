"""Elements in C order and in Fortran's: strides, and what get() gives."""

import numpy as np

from hamr.pygpu.gpuarray import GPUArray, to_gpu

c = np.arange(6.0).reshape(2, 3)
f = np.asfortranarray(c)

for name, host in (("C", c), ("F", f)):
    array = to_gpu(host)
    print(name, tuple(array.strides), (array.get() == c).all(), array.flags.f_contiguous)

array = GPUArray((2, 3), dtype="float64", order="F")
array.set(c)  # by index, whatever the orders are
array.set_val(1, -1)  # the second element of the memory, which is [1, 0]
print(array.get())
print("columns are contiguous:", array[:, 1].flags.c_contiguous)
