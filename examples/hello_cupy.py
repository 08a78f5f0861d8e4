"""Field strength from two components, one in the GPU's memory and one in the host's."""

import cupy
import numpy

from hamr import Buffer, buffer, buffer_allocator_cuda, buffer_allocator_malloc, buffer_double


def strength(first: Buffer, second: Buffer) -> Buffer:
    """The length of each vector, computed on the GPU, wherever the components are."""
    components = [cupy.array(side.get_cuda_accessible()) for side in (first, second)]
    return buffer(cupy.hypot(*components))


def show(measured: Buffer) -> None:
    """Print the values and which of them is largest, on the host, wherever they are."""
    values = numpy.array(measured.get_host_accessible())
    print("field strength:", values)
    print(f"{values.max():g} is reached at sensor {values.argmax()}")


along = buffer_double(buffer_allocator_cuda, 5, [3, 5, 8, 7, 20])
across = buffer_double(buffer_allocator_malloc, 5, [4, 12, 15, 24, 21])
show(strength(along, across))
