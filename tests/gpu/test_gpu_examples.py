"""The examples that need a GPU run, and print what they should."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from tests.support.paths import ROOT
from tests.support.processes import launch

EXAMPLES = ROOT / "examples"
READINGS = str(np.full(12, 0.25, "f4"))
TIDES = str(np.linspace(-1.5, 1.5, 13, dtype="f4"))

# Modules that an example needs, and what it prints, in this order.
EXPECTED = {
    "hello_cupy.py": (
        ["cupy"],
        [
            f"field strength: {np.array([5, 13, 17, 25, 29], 'f8')}\n",
            "29 is reached at sensor 4",
        ],
    ),
    "zero_copy_to_cupy.py": (
        ["cupy"],
        [
            f"a copy on the host: {READINGS}\n",
            f"a copy on the GPU: {READINGS}\n",
            "the same memory: True",
            "written by CuPy, seen by the buffer: 42.0",
            "still there: 0.25",
        ],
    ),
    "zero_copy_from_cupy.py": (
        ["cupy"],
        [
            "shared by __cuda_array_interface__",
            "the same memory: True",
            f"on the host: {TIDES}",
            "written by the buffer, seen by CuPy: 42.0",
            "written by CuPy on a stream, seen by a buffer: 84.0",
            "still there: 3.0",
        ],
    ),
    "numba_kernel.py": (["numba.cuda"], [str(2 * np.arange(1_000_000.0) + 1)]),
    "ctypes_kernel.py": ([], [str(2 * np.arange(995, 1000, dtype="f4") + 1)]),
}


@pytest.fixture(params=EXPECTED)
def example(request, gpu_count):
    name = request.param
    missing = [module for module in EXPECTED[name][0] if not found(module)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if "numba.cuda" in EXPECTED[name][0]:
        request.getfixturevalue("numba_compiler")
    return name


def found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of the package around it
        return False


def test_example(example):
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / example)]
    status, output = launch(command, 180)
    assert status == 0, output[-4000:]
    rest = output
    for line in EXPECTED[example][1]:
        before, there, rest = rest.partition(line)
        assert there, f"{line!r} is not in {before!r}"
