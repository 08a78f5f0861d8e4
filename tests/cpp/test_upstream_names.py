"""Each header, and each macro, that codes know which were written for LBL's HAMR."""

import os
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hamr
from tests.cpp.test_cpp_programs import CLANG, GCC, PROGRAMS
from tests.cpp.upstream_names import HEADERS, INTERFACES, MACROS

INCLUDE = Path(hamr.get_include())
PYTHON = sysconfig.get_path("include")
#: Where these need Python.h.
OF_PYTHON = {"buffer_handle", "gil_state", "python_deleter", "python_deleter_impl"}
CLASSES = "hamr::gil_state, hamr::buffer_handle<int>, hamr::python_deleter<int>"

needs_python = pytest.mark.skipif(
    not Path(PYTHON, "Python.h").exists(), reason="no headers of Python's"
)
compilers = pytest.mark.parametrize(
    "command",
    [
        pytest.param(GCC, id="gcc", marks=pytest.mark.skipif(not GCC, reason="no C++ compiler")),
        pytest.param(CLANG, id="clang", marks=pytest.mark.skipif(not CLANG, reason="no clang++")),
    ],
)


def test_each_name_is_there():
    assert {path.stem for path in INCLUDE.glob("hamr_*.h")} == {f"hamr_{name}" for name in HEADERS}
    interfaces = {path.stem for path in INCLUDE.glob("*.i")}
    assert interfaces == {f"hamr_{name}" for name in INTERFACES}


def compiled(command, source, *flags):
    """What a compiler says of a source that includes one header."""
    words = [*command, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    done = subprocess.run(
        [*words, f"-I{INCLUDE}", *flags, source], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


@compilers
def test_each_header_compiles_alone(command, tmp_path):
    """And brings all of hamr along; Python.h is not there for those that do without."""

    def said_of(name):
        source = tmp_path / f"{name}.cpp"
        source.write_text(f"#include <hamr_{name}.h>\nhamr::buffer<int> *made;\n")
        return compiled(command, source)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        said = dict(zip(HEADERS, threads.map(said_of, HEADERS), strict=True))
    assert {name: words for name, words in said.items() if words} == {}


@needs_python
@compilers
def test_headers_with_python(command, tmp_path):
    for name in OF_PYTHON:
        source = tmp_path / f"{name}.cpp"
        text = f"#include <hamr_{name}.h>\nstd::tuple<{CLASSES}> *made;\n"
        source.write_text(text)
        assert compiled(command, source, f"-isystem{PYTHON}") == "", name
        assert "gil_state" in compiled(
            command, source, f"-isystem{PYTHON}", "-DHAMR_ENABLE_PYTHON=0"
        )
    refused = compiled(command, source, "-DHAMR_ENABLE_PYTHON")
    assert "includes Python.h: add the folder" in refused


def macros(command, *flags):
    """Those of hamr_config.h that are defined, with their values, in a compiler's words."""
    words = [*command, "-std=c++17", f"-I{INCLUDE}", f"-I{PROGRAMS / 'stand_in'}", *flags]
    done = subprocess.run(
        [*words, "-E", "-dM", "-x", "c++", INCLUDE / "hamr_config.h"],
        capture_output=True,
        text=True,
        check=True,
    )
    words = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()]
    return {name: "".join(value) for name, *value in words if name in MACROS}


#: What a compiler defines: which kinds of macros are there.
SITUATIONS = {
    "host": ((), {"host"}),
    "openmp": (("-fopenmp",), {"openmp"}),
    "nvcc": (("-D__CUDACC__", "-D__NVCC__"), {"cuda", "nvcc"}),
    "nvhpc": (("-D__CUDACC__", "-D_NVHPC_CUDA", "-D__NVCOMPILER"), {"cuda", "nvhpc"}),
    "clang": (("-D__clang__", "-D__CUDACC__", "-D__CUDA__"), {"cuda", "clang"}),
    "hip": (("-D__HIP__",), {"hip"}),
    "cuda by another compiler": (("-DHAMR_ENABLE_CUDA",), {"cuda"}),
}


@pytest.mark.skipif(not GCC, reason="no C++ compiler")
@pytest.mark.parametrize("situation", SITUATIONS)
def test_macros_are_as_the_compiler_is(situation):
    flags, kinds = SITUATIONS[situation]
    found = macros(GCC, *flags)
    assert found.keys() == {name for name, kind in MACROS.items() if kind in kinds | {"always"}}
    loop = "loop" if situation == "nvhpc" else "distribute parallel for"
    assert found["HAMR_OPENMP_LOOP"] == loop
    assert found["HAMR_EXPORT"] == '__attribute__((visibility("default")))'
    assert found["HAMR_PRIVATE"] == '__attribute__((visibility("hidden")))'


@pytest.mark.skipif(not GCC, reason="no C++ compiler")
def test_options_override_macros():
    optional = [name for name, kind in MACROS.items() if kind != "always"]
    assert macros(GCC, *(f"-D{name}" for name in optional)).keys() == MACROS.keys()
    every = ("-D__CUDACC__", "-D__NVCC__", "-D__HIP__", "-fopenmp", f"-isystem{PYTHON}")
    off = macros(GCC, *every, *(f"-D{name}=0" for name in optional))
    assert off.keys() == {"HAMR_OPENMP_LOOP", "HAMR_EXPORT", "HAMR_PRIVATE"}
    assert macros(GCC, "-DHAMR_OPENMP_LOOP=loop")["HAMR_OPENMP_LOOP"] == "loop"


@needs_python
@pytest.mark.skipif(not GCC, reason="no C++ compiler")
def test_python_is_there_where_its_header_is():
    assert "HAMR_ENABLE_PYTHON" in macros(GCC, f"-isystem{PYTHON}")
