"""Each header, and each macro, that codes know which were written for LBL's HAMR."""

import functools
import os
import re
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hamr
from tests.cpp.test_cpp_programs import CLANG, GCC, PROGRAMS
from tests.cpp.upstream_names import FUNCTIONS, HEADERS, INTERFACES, MACROS, USES

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


def preprocessed(command, name):
    """What is compiled of a source that includes one header alone."""
    words = [*command, "-std=c++17", "-E", "-P", f"-I{INCLUDE}", "-x", "c++", "-"]
    source = f"#include <hamr_{name}.h>\nhamr::buffer<int> *made;\n"
    done = subprocess.run(words, input=source, capture_output=True, text=True, check=True)
    return done.stdout


@compilers
def test_each_header_compiles_alone(command, tmp_path):
    """And brings all of hamr along; Python.h is not there for those that do without.

    What is the same for two headers is compiled once.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        texts = threads.map(functools.partial(preprocessed, command), HEADERS)
        names = dict(zip(texts, HEADERS, strict=True))
    assert len(names) < len(HEADERS) / 4
    for name in names.values():
        source = tmp_path / f"{name}.cpp"
        source.write_text(f"#include <hamr_{name}.h>\nhamr::buffer<int> *made;\n")
        assert compiled(command, source) == "", name


@needs_python
@compilers
def test_headers_with_python(command, tmp_path):
    for name in OF_PYTHON:
        source = tmp_path / f"{name}.cpp"
        source.write_text(f"#include <hamr_{name}.h>\nstd::tuple<{CLASSES}> *made;\n")
        assert compiled(command, source, f"-isystem{PYTHON}") == "", name
    without = compiled(command, source, f"-isystem{PYTHON}", "-DHAMR_ENABLE_PYTHON=0")
    assert "gil_state" in without
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


PROGRAM = """
#include <hamr_buffer.h>
#include <hamr_buffer_util.h>
#include <hamr_device.h>
namespace names {{
{names}
}}
using namespace hamr;
void uses(buffer<double> &fixed, buffer<double> &other, buffer<int> &whole, stream &strm,
          access_cuda_peer &peers, buffer_allocator alloc, buffer_transfer sync, double *values,
          std::shared_ptr<double> shared) {{
    auto each = std::make_tuple(
{uses}
    0);
    (void)each;
}}
"""


@compilers
def test_functions(command, tmp_path):
    """What does not compile is named by its line."""
    named = [f"using hamr::{name};" for name in FUNCTIONS.split()]
    used = [f"[&]() -> decltype(auto) {{ return ({use}); }}," for use in USES.strip().split("\n")]
    source = tmp_path / "names.cpp"
    source.write_text(PROGRAM.format(names="\n".join(named), uses="\n".join(used)))
    said = compiled(command, source)
    lines = source.read_text().split("\n")
    wrong = {lines[int(n) - 1] for n in re.findall(r"names\.cpp:(\d+):\d+: error", said)}
    assert (wrong, said) == (set(), "")
