"""Memory that a C library with OpenMP filled, adopted by hamr and handed to NumPy."""

import ctypes
import gc
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import hamr


def build(folder: str) -> ctypes.CDLL:
    source, built = Path(__file__).with_suffix(".c"), Path(folder, "libproducer.so")
    command = ["cc", "-O2", "-fopenmp", "-shared", "-fPIC", "-o", str(built), str(source)]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(built))
    library.produce.argtypes = [ctypes.c_size_t]
    library.produce.restype = ctypes.c_void_p
    library.release.argtypes = [ctypes.c_void_p]
    library.release.restype = None
    return library


class Produced:
    """The library's memory, given back when nobody uses it any more."""

    def __init__(self, library: ctypes.CDLL, n: int) -> None:
        self.library, self.address = library, library.produce(n)
        if not self.address:
            raise MemoryError(f"no memory for {n} values")

    def __del__(self) -> None:
        if self.address:
            self.library.release(self.address)
            print("given back to the library")


with tempfile.TemporaryDirectory() as folder:
    library = build(folder)

n = 1000
produced = Produced(library, n)
buffer = hamr.Buffer.from_pointer(produced.address, n, "float64", owner=produced)
del produced

array = np.asarray(buffer)  # on the host, where C's memory is
print("in place:", array.ctypes.data == buffer.ptr)
print(array[:5], "of", len(array))

array[0] = 42
print("written through NumPy, seen by the buffer:", buffer[0].item())

del buffer
print("NumPy keeps the memory:", array[-1])
del array
gc.collect()
hamr.stats()  # what ended is let go at the next call, at the latest
print("end")
