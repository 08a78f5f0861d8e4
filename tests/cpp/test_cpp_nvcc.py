"""The headers of C and C++ as nvcc takes them, and on a GPU machine what its programs do.

nvcc needs no device: HAMR_TEST_NVCC names one, as PyPI's nvidia-cuda-nvcc brings it.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import hamr
from hamr import cli
from tests.c.test_config import IN_PLACE, cmake, needs_cmake
from tests.cpp.test_cpp_programs import CODES, PROGRAMS
from tests.support import emulation
from tests.support.c_programs import EMBEDDED, python_library, run
from tests.support.paths import ROOT
from tests.support.processes import launch

NVCC = os.environ.get("HAMR_TEST_NVCC") or shutil.which("nvcc")
FLAGS = ["-arch=sm_75", "-Xcompiler", "-Wall,-Wextra,-Werror", "-Werror", "all-warnings"]

pytestmark = pytest.mark.skipif(not NVCC, reason="no nvcc")


def build(source, output, *flags, standard="c++17"):
    command = [NVCC, f"-std={standard}", *FLAGS, f"-I{hamr.get_include()}", "-x", "cu", *flags]
    done = subprocess.run(
        [*command, str(source), "-o", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return output


@pytest.mark.parametrize(
    ("name", "standard"), [("surface", "c++17"), ("upstream", "c++17"), ("views", "c++20")]
)
def test_the_headers_without_a_warning(name, standard, tmp_path):
    folders = [f"-I{PROGRAMS}", f"-I{PROGRAMS.parents[1] / 'c' / 'programs'}"]
    build(PROGRAMS / f"{name}.cpp", tmp_path / f"{name}.o", "-c", *folders, standard=standard)


@pytest.mark.parametrize("name", CODES)
def test_codes(name, tmp_path):
    """They run where a driver is there, on devices."""
    folders = [f"-I{PROGRAMS}", f"-I{PROGRAMS.parents[1] / 'c' / 'programs'}"]
    source = PROGRAMS / f"{name}.cpp"
    program = build(source, tmp_path / name, *folders, "-cudart", "static")
    if emulation.CHOSEN == "driver":
        assert run(program, "libcuda.so.1").splitlines()[-1] == CODES[name]


MACROS = """
#include <hamr_buffer.h>
#include <hamr_cuda_launch.h>
#if !defined(HAMR_ENABLE_CUDA) || !defined(HAMR_NVCC_CUDA)
#error "of a build for CUDA"
#endif
#if defined(HAMR_CLANG_CUDA) || defined(HAMR_NVHPC_CUDA) || defined(HAMR_ENABLE_OBJECTS)
#error "of another compiler, or of the host"
#endif
int main() { return hamr::buffer<int>(hamr::buffer_allocator::malloc, 0).size() != 0; }
"""


@pytest.mark.parametrize("linked", [[], ["--linked"]], ids=["loads", "linked"])
@pytest.mark.parametrize("separate", ["true", "false"])
def test_macros_and_flags(linked, separate, tmp_path, capsys):
    """nvcc takes what hamr config prints, and -lhamr, also where it links kernels itself."""
    assert cli.main(["config", *linked, "--libs", "--cflags"]) == 0
    flags = capsys.readouterr().out.split()
    if not IN_PLACE:
        assert cli.main(["config", "--prefix"]) == 0
        flags += [f"-L{capsys.readouterr().out.strip()}/lib", "-lhamr"]
    source = tmp_path / "macros.cu"
    source.write_text(MACROS)
    command = [NVCC, "-std=c++17", *FLAGS, f"-rdc={separate}", source, "-o", tmp_path / "macros"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(mixed LANGUAGES CXX CUDA)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CUDA_STANDARD 17)
find_package(hamr REQUIRED)
foreach(name IN LISTS hamr_SETTINGS)
  message(STATUS "${name} is ${${name}}.")
endforeach()
add_executable(mixed macros.cu other.cpp)
target_link_libraries(mixed PRIVATE hamr)
"""
#: What g++ compiles in the same project.
OTHER = """
#include <hamr_buffer.h>
#if !defined(HAMR_ENABLE_CUDA) || !defined(HAMR_NVCC_CUDA)
#error "of a build for CUDA"
#endif
hamr::stream given(cudaStream_t stream) { return stream; }
"""


@needs_cmake
@pytest.mark.skipif(IN_PLACE, reason="hamr is installed in place")
def test_cmake(tmp_path, capsys):
    """All files of a project that has the language CUDA have the macros, whoever compiles them."""
    assert cli.main(["config", "--cmake-dir"]) == 0
    folder = capsys.readouterr().out.strip()
    (tmp_path / "macros.cu").write_text(MACROS)
    (tmp_path / "other.cpp").write_text(OTHER)
    options = (f"-DCMAKE_CUDA_COMPILER={NVCC}", "-DCMAKE_CUDA_ARCHITECTURES=75")
    status, output = cmake(tmp_path, PROJECT, *options, f"-Dhamr_DIR={folder}")
    assert status == 0, output
    on = {"ENABLE_CUDA", "NVCC_CUDA", "ENABLE_PAGE_LOCKED_MEMORY"}
    assert set(re.findall(r"HAMR_(\w+) is ON", output)) == on
    status, output = launch(["cmake", "--build", str(tmp_path / "build")], 300)
    assert status == 0, output
    run(tmp_path / "build" / "mixed")


@pytest.mark.parametrize("name", ["kernels", "particles"])
def test_kernels(name, tmp_path):
    """They run where a driver is there: CUDA's runtime takes no emulated one."""
    program = build(PROGRAMS / f"{name}.cu", tmp_path / name, "-cudart", "static")
    if emulation.CHOSEN == "driver":
        assert run(program).splitlines()[-1] == "the sums are right"


@pytest.mark.skipif(not python_library(), reason="this Python has no library of its own to embed")
@pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists(), reason="no headers of Python's"
)
def test_a_kernel_hands_memory_to_cupy(tmp_path):
    """The example: it runs where there are a driver and CuPy."""
    library = python_library()
    folder, name = Path(library).parent, Path(library).name  # as a file it would be a source
    flags = [f"-isystem={sysconfig.get_path('include')}", "-cudart", "static"]
    flags += [f"-L{folder}", f"-l:{name}", f"-Xlinker=-rpath={folder}"]
    program = build(ROOT / "examples" / "cuda_field.cu", tmp_path / "cuda_field", *flags)
    if emulation.CHOSEN == "driver" and importlib.util.find_spec("cupy"):
        assert run(program, env=EMBEDDED).splitlines() == [
            "the same memory: True",
            "maximum: 99.0",
            "sum after Python's end: 10000000",
        ]
