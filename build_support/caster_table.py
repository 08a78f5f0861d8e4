"""What an extension's argument costs: python build_support/caster_table.py.

Prints nanoseconds for a call of a function that pybind11 binds and that looks at one element, by
what it takes and what it is given, as the least of many rounds that take turns.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import timeit
from pathlib import Path

import numpy as np
import pybind11

import hamr

SOURCE = """
#include <hamr/pybind11.h>
#include <pybind11/numpy.h>

PYBIND11_MODULE(casters, module) {
    module.def("nothing", [](pybind11::handle) { return 0.0f; });
    module.def("array", [](const pybind11::array_t<float> &field) { return field.data()[0]; });
    module.def("buffer", [](const hamr::buffer<float> &field) { return field.data()[0]; });
    module.def("made_array", [] { return pybind11::array_t<float>(16); });
    module.def("made_buffer", [] {
        return hamr::buffer<float>(hamr::buffer_allocator::malloc, 16);
    });
}
"""
ROUNDS, CALLS = 200, 2000


def _compiled(folder: Path) -> object:
    source, output = folder / "casters.cpp", folder / "casters.so"
    source.write_text(SOURCE)
    includes = [hamr.get_include(), pybind11.get_include(), sysconfig.get_path("include")]
    command = [
        os.environ.get("CXX") or shutil.which("g++") or "c++",
        "-std=c++17",
        "-O2",
        "-shared",
    ]
    command += ["-fPIC", "-fvisibility=hidden", *(f"-I{path}" for path in includes)]
    subprocess.run([*command, str(source), "-o", str(output), "-ldl"], check=True)
    spec = importlib.util.spec_from_file_location("casters", output)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        casters = _compiled(Path(folder))
    array = np.ones(16, "f4")
    given = {"casters": casters, "array": array, "buffer": hamr.buffer(array)}
    calls = {
        "a handle": "nothing(array)",
        "py::array_t, a NumPy array": "array(array)",
        "hamr::buffer, a hamr.Buffer": "buffer(buffer)",
        "hamr::buffer, a NumPy array": "buffer(array)",
        "returned py::array_t": "made_array()",
        "returned hamr::buffer": "made_buffer()",
    }
    least = dict.fromkeys(calls, float("inf"))
    timers = {what: timeit.Timer(f"casters.{call}", globals=given) for what, call in calls.items()}
    for _ in range(ROUNDS):
        for what, timer in timers.items():
            least[what] = min(least[what], timer.timeit(CALLS) / CALLS)
    for what, seconds in least.items():
        print(f"{what:30} {1e9 * seconds:7.0f} ns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
