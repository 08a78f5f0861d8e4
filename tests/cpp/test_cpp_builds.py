"""Programs that are written for LBL's HAMR, built by CMake in each way, and by Makefiles."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.c.test_config import IN_PLACE, cmake, installed, needs_cmake
from tests.cpp.test_cpp_programs import CODES, GCC, HOST, PROGRAMS
from tests.cpp.upstream_names import CMAKE
from tests.support.c_programs import PACKAGES, run
from tests.support.paths import ROOT
from tests.support.processes import SCALE, launch

pytestmark = [
    pytest.mark.skipif(not GCC, reason="no C++ compiler"),
    pytest.mark.skipif(IN_PLACE, reason="hamr is installed in place"),
]

#: Each program, and what it prints last. All of them are compiled at full scale; short runs do
#: without "variants", of which test_codes shows the same and whose templates take longest.
CLIENTS = {
    "upstream": "the sums are right",
    **{name: CODES[name] for name in ("adaptor", "bodies", "variants")[: 3 if SCALE >= 1 else 1]},
}

#: Where the headers are not beside the library, the program asks Python.
ENV = {**HOST, "HAMR_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}

BEGINNING = """
cmake_minimum_required(VERSION 3.16)
project(clients LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_EXTENSIONS OFF)
"""
#: A library that is installed, as users do with what links HAMR, and programs that link that.
CLIENTS_OF_CMAKE = """
add_library(checked STATIC checked.cpp)
target_link_libraries(checked PUBLIC hamr)
target_include_directories(checked PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>)
install(TARGETS checked EXPORT checked DESTINATION lib)
install(EXPORT checked DESTINATION lib)
foreach(name IN ITEMS @CLIENTS@)
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE checked)
endforeach()
add_library(ours STATIC checked.cpp)
target_link_libraries(ours PRIVATE hamr::hamr)
"""
FOUND = "find_package(hamr REQUIRED)\n"


def asked(option):
    """The one word that hamr config prints."""
    done = subprocess.run(
        [sys.executable, "-c", "from hamr.cli import main; main()", "config", option],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": PACKAGES},
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """hamr as make install has it."""
    folder = tmp_path_factory.mktemp("installed") / "prefix"
    assert installed(folder)[0] == 0
    return folder


@pytest.fixture
def sources(tmp_path):
    """A folder with the programs."""
    folder = tmp_path / "clients"
    folder.mkdir()
    for path in [*PROGRAMS.glob("*.hpp"), *(PROGRAMS / f"{name}.cpp" for name in CLIENTS)]:
        shutil.copy(path, folder)
    (folder / "checked.cpp").write_text("#include <hamr_buffer.h>\nint checked() { return 0; }\n")
    return folder


def built(folder, project, *options):
    """Configure and build a project of CMake's; return what it says while it is configured."""
    status, output = cmake(folder, project, *options)
    assert status == 0, output
    assert "CMake Warning at" not in output
    assert "CMake Deprecation" not in output
    status, said = launch(["cmake", "--build", str(folder / "build"), "-j2"], 600)
    assert status == 0, said
    return output


def check(folder, names, env=None):
    for name in names:
        assert run(folder / name, env={**ENV, **(env or {})}).splitlines()[-1] == CLIENTS[name]


#: How a project gets the targets: what it says, given the folders of hamr.
WAYS = {
    "find_package, of the wheel": lambda prefix: (FOUND, asked("--cmake-dir")),
    "find_package, below a prefix": lambda prefix: (FOUND, f"{prefix}/lib/cmake/hamr"),
    "add_subdirectory, of the wheel": lambda prefix: (asked("--prefix"), ""),
    "add_subdirectory, of its CMake files": lambda prefix: (asked("--cmake-dir"), ""),
    "add_subdirectory, below a prefix": lambda prefix: (f"{prefix}/lib/cmake/hamr", ""),
    "add_subdirectory, of the sources": lambda prefix: (str(ROOT), ""),
}
#: Those that build each program; the others find the same headers.
ALL_CLIENTS = ("find_package, of the wheel", "add_subdirectory, of the sources")


@needs_cmake
@pytest.mark.parametrize("way", WAYS)
def test_cmake(way, prefix, sources):
    got, folder = WAYS[way](prefix)
    if not got.startswith("find"):
        (sources / "utils").mkdir()
        (sources / "utils" / "HAMR").symlink_to(got)
        got = "add_subdirectory(utils/HAMR)\n"
    clients = [*CLIENTS] if way in ALL_CLIENTS else ["upstream"]
    project = BEGINNING + got + CLIENTS_OF_CMAKE.replace("@CLIENTS@", " ".join(clients))
    built(sources, project, f"-Dhamr_DIR={folder}" if folder else "-DCMAKE_BUILD_TYPE=Debug")
    check(sources / "build", clients)
    status, output = launch(
        ["cmake", "--install", str(sources / "build"), "--prefix", str(sources / "there")], 60
    )
    assert status == 0, output
    exported = (sources / "there" / "lib" / "checked.cmake").read_text()
    assert 'INTERFACE_LINK_LIBRARIES "hamr"' in exported


@needs_cmake
def test_a_target_of_a_subfolder_is_everyones(sources):
    """As in projects that look for their libraries in a folder of its own."""
    (sources / "thirdparty").mkdir()
    (sources / "thirdparty" / "CMakeLists.txt").write_text(FOUND)
    project = BEGINNING + "add_subdirectory(thirdparty)\n"
    project += "add_executable(upstream upstream.cpp)\ntarget_link_libraries(upstream hamr)\n"
    built(sources, project, f"-Dhamr_DIR={asked('--cmake-dir')}")
    check(sources / "build", ["upstream"])


SAYS = """
foreach(name IN ITEMS @NAMES@)
  message(STATUS "${name} is ${${name}}.")
endforeach()
get_target_property(definitions hamr INTERFACE_COMPILE_DEFINITIONS)
message(STATUS "definitions are ${definitions}.")
"""


def variables(folder, *options, by=FOUND):
    """What the variables are after find_package, or by another way, and the target's macros."""
    project = BEGINNING + by + SAYS.replace("@NAMES@", " ".join(CMAKE))
    status, output = cmake(folder, project, f"-Dhamr_DIR={asked('--cmake-dir')}", *options)
    assert status == 0, output
    lines = [line.removeprefix("-- ").removesuffix(".") for line in output.splitlines()]
    found = dict(line.split(" is ", 1) for line in lines if line.startswith("HAMR_"))
    (definitions,) = (line for line in lines if line.startswith("definitions are "))
    return found, set(definitions.removeprefix("definitions are ").split(";"))


@needs_cmake
def test_cmakes_variables(tmp_path):
    for number, by in enumerate((FOUND, f'add_subdirectory("{asked("--prefix")}" hamr)\n')):
        found, definitions = variables(tmp_path / str(number), by=by)
        assert found == CMAKE
        assert definitions == {"HAMR_ENABLE_OBJECTS=1"}


@needs_cmake
def test_options_override_cmakes_variables(tmp_path):
    asks = {name: value for name, value in CMAKE.items() if value in ("ON", "OFF")}
    other = {name: "OFF" if value == "ON" else "ON" for name, value in asks.items()}
    other["HAMR_OPENMP_LOOP"], other["HAMR_LIB_TYPE"] = "loop", "SHARED"
    found, definitions = variables(tmp_path, *(f"-D{name}={v}" for name, v in other.items()))
    assert found == other
    wanted = {f"{name}={int(other[name] == 'ON')}" for name in asks}
    assert definitions == {*wanted, "HAMR_OPENMP_LOOP=loop"}


OFFLOAD = """
{include}
set(CMAKE_CXX_COMPILER_ID {id})
get_offload_compile_flags({asked} RESULT compiled)
get_offload_link_flags({asked} RESULT linked)
message(STATUS "compiled: ${{compiled}}.")
message(STATUS "linked: ${{linked}}.")
"""
#: What each compiler is told, given a target and an architecture.
FLAGS = {
    "GNU": "-fopenmp -foffload=nvptx-none -foffload-options=nvptx-none=-march=sm_90",
    "Clang": "-fopenmp -fopenmp-targets=nvptx-none --offload-arch=sm_90",
    "IntelLLVM": "-qopenmp -fopenmp-targets=nvptx-none",
    "NVHPC": "-mp=gpu -gpu=sm_90",
    "Unknown": "",
}


@needs_cmake
@pytest.mark.parametrize("name", FLAGS)
def test_flags_for_offloading(name, tmp_path):
    folders = [ROOT / "cmake", f"{asked('--prefix')}/cmake", asked("--cmake-dir")]
    for number, folder in enumerate(folders):
        include = f'include("{folder}/hamr_omp_offload.cmake")'
        words = {
            "include": include,
            "id": name,
            "asked": "TARGET nvptx-none ARCH sm_90 ADD_FLAGS -O3",
        }
        project = BEGINNING + OFFLOAD.format(**words)
        status, output = cmake(tmp_path / str(number), project)
        assert status == 0, output
        flags = f"{FLAGS[name]} -O3".strip()
        assert f"-- compiled: {flags}.\n" in output
        assert f"-- linked: {flags.replace(' ', ';')}.\n" in output


@needs_cmake
def test_flags_for_offloading_without_a_device(tmp_path):
    """Empty variables as arguments are as none; a compiler that is not known is named."""
    words = {"include": f'find_package(hamr REQUIRED PATHS "{asked("--cmake-dir")}")'}
    words["asked"] = "TARGET ${none} ARCH ${none} ADD_FLAGS ${none}"
    output = cmake(tmp_path, BEGINNING + OFFLOAD.format(id="GNU", **words))[1]
    assert "-- compiled: -fopenmp.\n" in output
    output = cmake(tmp_path, BEGINNING + OFFLOAD.format(id="Unknown", **words))[1]
    assert "the C++ compiler Unknown offloads OpenMP is not known: pass ADD_FLAGS" in " ".join(
        output.split()
    )


MAKEFILE = """
CXXFLAGS = -std=c++17 -Wall -Wextra -I$(HAMR)/include
LDLIBS = -L$(HAMR)/lib -lhamr -ldl -lpthread
all: {names}
"""


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
@pytest.mark.parametrize("where", ["wheel", "prefix"])
def test_make(where, prefix, sources):
    """With -lhamr, as upstream's library is linked, though all of hamr is in headers."""
    hamr_is = asked("--prefix") if where == "wheel" else str(prefix)
    clients = [*CLIENTS] if where == "wheel" else ["upstream"]
    (sources / "Makefile").write_text(MAKEFILE.format(names=" ".join(clients)))
    words = ["make", "-j2", "-C", str(sources), f"HAMR={hamr_is}", f"CXX={' '.join(GCC)}"]
    status, output = launch(words, 600)
    assert status == 0, output
    env = {"LD_LIBRARY_PATH": f"{hamr_is}/lib"}
    check(sources, clients, env)
