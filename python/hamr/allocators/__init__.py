"""One pool of device memory for every library of a process.

``use_in_cupy()``, ``use_in_torch()`` and ``use_in_numba()`` make these libraries take their CUDA
memory from the pool of hamr's own buffers. Memory that one of them frees can be used by the others:
on the same stream at once, on another stream when the work that used it is over.
"""

from ._cupy import CuPyUse, use_in_cupy
from ._numba import use_in_numba
from ._torch import TorchUse, use_in_torch

__all__ = ["CuPyUse", "TorchUse", "use_in_cupy", "use_in_numba", "use_in_torch"]

for _each in (CuPyUse, TorchUse, use_in_cupy, use_in_numba, use_in_torch):
    _each.__module__ = __name__
del _each
