"""A simulation in Fortran whose field NumPy analyses, and changes, in place."""

import ctypes
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import hamr

NX, NY, RATE = 64, 48, 0.2
TENSOR = b"dltensor_versioned"  # a capsule refers to its name


def build(folder: str) -> ctypes.CDLL:
    config = [sys.executable, "-m", "hamr", "config", "--fortran-module", "--cflags", "--libs"]
    flags = shlex.split(subprocess.run(config, text=True, check=True, capture_output=True).stdout)
    # The module comes first, as those that use it need it.
    module, shim, *flags = flags
    sources = [module, shim, str(Path(__file__).with_name("heat.f90"))]
    built = str(Path(folder, "libheat.so"))
    command = ["gfortran", "-O2", "-shared", "-fPIC", "-J", folder, *sources, "-o", built, *flags]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(built)
    library.heat_step.argtypes = [ctypes.c_int, ctypes.c_double]
    library.heat_peak.restype = ctypes.c_double
    library.heat_tensor.restype = ctypes.c_void_p
    return library


class Plate:
    """What the library has, for hamr.buffer() and everybody else who takes DLPack."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p,
        ]  # fmt: skip
        return capsule(self.library.heat_tensor(), TENSOR, None)


def peak(library: ctypes.CDLL) -> tuple[float, int, int]:
    i, j = ctypes.c_int(), ctypes.c_int()
    found = library.heat_peak(ctypes.byref(i), ctypes.byref(j))
    return round(found, 3), i.value, j.value


with tempfile.TemporaryDirectory() as folder:
    library = build(folder)

if library.heat_start(NX, NY):
    sys.exit("there is no plate")
plate = np.asarray(hamr.buffer(Plate(library)))
print("the plate in Python:", plate.shape, f"heat {plate.sum():.6f}")

before = plate.copy()
library.heat_step(50, RATE)
for _ in range(50):
    around = sum(np.roll(before, shift, axis) for axis in (0, 1) for shift in (1, -1))
    before = before + RATE * (around - 4 * before)
print("after 50 steps, as NumPy computes them:", np.allclose(plate, before))

plate[4, 9] = 1000
print("NumPy's hot spot, as Fortran finds it:", peak(library))
print("counted by Python:", hamr.stats()["allocators"]["malloc"]["live"])
library.heat_end()
print("kept for NumPy:", hamr.stats()["allocators"]["malloc"]["live"], plate[4, 9])
