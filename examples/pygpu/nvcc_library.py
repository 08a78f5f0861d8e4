"""A library that nvcc has compiled, called by ctypes with the arrays' ``.ptr``."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import hamr.pygpu as gpuarray

with tempfile.TemporaryDirectory() as folder:
    library = Path(folder, "libsaxpy.so")
    source = Path(__file__).with_name("nvcc_library.cu")
    build = ["nvcc", "-shared", "-Xcompiler", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(build, check=True)
    saxpy = ctypes.CDLL(str(library)).launch_saxpy
saxpy.argtypes = [ctypes.c_int, ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p]

n = 1000
x, y = gpuarray.to_gpu(np.arange(n, dtype=np.float32)), gpuarray.zeros(n, np.float32)
# The library launches on the default stream, in whose order the arrays are, too.
print("code", saxpy(n, 2, x.ptr, y.ptr))
print(y.get()[-5:])
