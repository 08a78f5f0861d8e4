"""Two buffers from different allocators, added by a function that does not know where they are."""

import sys

import numpy as np

import hamr


def add(a: hamr.Buffer, b: hamr.Buffer) -> hamr.Buffer:
    """Add two buffers on the host, wherever their memory is."""
    first = np.asarray(a.get_host_accessible())
    second = np.asarray(b.get_host_accessible())
    return hamr.buffer(first + second)


def write(file: object, buffer: hamr.Buffer) -> None:
    """Print a buffer's elements, shared with NumPy."""
    print(np.asarray(buffer.get_host_accessible()), file=file)


n = 8
ones = hamr.Buffer(n, "float32", hamr.Allocator.malloc, fill=1)
ramp = hamr.buffer(np.arange(n, dtype="float32")).copy(hamr.Allocator.cpp)

total = add(ones, ramp)
write(sys.stdout, total)

with total.on_host("rw") as array:  # the same lines write to the memory of a GPU
    array[0] = 42
print("written through NumPy, seen by the buffer:", total[0].item())
print(f"{total!r} shared by {total.source_protocol}")
