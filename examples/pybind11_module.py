"""A module of pybind11's on hamr's memory: no element is copied on the way in or out."""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import pybind11

import hamr


def build(folder: str) -> None:
    source, built = Path(__file__).with_suffix(".cpp"), Path(folder, "pybind11_module.so")
    headers = [hamr.get_include(), pybind11.get_include(), sysconfig.get_path("include")]
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]
    command = ["c++", *flags, *(f"-I{path}" for path in headers), source, "-o", built, "-ldl"]
    subprocess.run(command, check=True)


with tempfile.TemporaryDirectory() as folder:
    build(folder)
    sys.path.insert(0, folder)
    import pybind11_module as plates

plate = plates.make(48, 64)
array = np.asarray(plate)
print("made by C++:", type(plate).__name__, plate.shape, array.max())

plates.spread(plate, 20, 0.2)
print(f"written by C++, seen by NumPy: {array.sum():.6f}, of which {array.max():.3f} in one place")

array[0, 0] = 400
print(f"written by NumPy, seen by C++: {plates.total(plate):.6f}")

other = np.ones((3, 3))
plates.spread(other, 1, 0.2)
print(f"an array of NumPy's, too: {plates.total(other):.1f}")

try:
    plates.total(np.ones((3, 3), "f4"))
except TypeError as error:
    print(f"TypeError: {error}")
