"""A simulation whose steps are C functions, called through ctypes on hamr's memory."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import hamr

ROWS, COLUMNS, RATE = 48, 64, 0.2


def build(folder: str) -> ctypes.CDLL:
    source, built = Path(__file__).with_suffix(".c"), Path(folder, "libsimulation.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", built, source], check=True)
    library = ctypes.CDLL(str(built))
    pointer, size, real = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double
    library.step.argtypes = [pointer, pointer, size, size, real]
    library.step.restype = None
    library.cool.argtypes = [pointer, size, real]
    library.cool.restype = real
    return library


def advance(library: ctypes.CDLL, plate: hamr.Buffer, steps: int) -> hamr.Buffer:
    """The plate some steps later. Both buffers are on the host: C uses them in place."""
    spare = hamr.empty_like(plate)
    for _ in range(steps):
        library.step(plate, spare, ROWS, COLUMNS, RATE)
        plate, spare = spare, plate
    return plate


def cool(library: ctypes.CDLL, plate: hamr.Buffer, limit: float) -> float:
    """Cool the plate wherever it is; C gets a temporary where it cannot use the memory."""
    with plate.on_host("rw") as array:
        taken: float = library.cool(array.ctypes.data, array.size, limit)
    return taken


def by_numpy(cells: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        around = sum(np.roll(cells, shift, axis) for axis in (0, 1) for shift in (1, -1))
        cells = cells + RATE * (around - 4 * cells)
    return cells


with tempfile.TemporaryDirectory() as folder:
    library = build(folder)

plate = hamr.zeros((ROWS, COLUMNS))
plate[20:24, 30:34] = 100
expected = by_numpy(np.asarray(plate), 50)

plate = advance(library, plate, 50)
cells = np.asarray(plate)
print(f"heat after 50 steps: {cells.sum():.6f}")
print("as NumPy computes it:", np.allclose(cells, expected))

# To the memory of a GPU, if there is one: cool() does the same.
plate.move(hamr.get_device_allocator())
taken = cool(library, plate, 10)
cells = np.asarray(plate.get_host_accessible())
print(f"cooled to {cells.max():g}, all heat accounted for: {np.isclose(cells.sum() + taken, 1600)}")
