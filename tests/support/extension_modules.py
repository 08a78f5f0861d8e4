"""Extension modules that the tests compile with the headers that hamr is installed with."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

import hamr
from tests.package.test_headers import LANGUAGES
from tests.support.c_programs import compile_program
from tests.support.paths import ROOT

HEADERS = sysconfig.get_path("include")
CPP = ROOT / "tests" / "cpp" / "programs"
SHARED = ("-shared", "-fPIC", "-fvisibility=hidden", "-g0", f"-isystem{HEADERS}")


def _need(language: str) -> None:
    if not LANGUAGES[language][1]:
        pytest.skip(f"no {language} compiler")
    if not os.path.exists(f"{HEADERS}/Python.h"):
        pytest.skip("no headers of Python's")


def compile_in_c(source: Path, folder: Path) -> Path:
    """A module over Python's limited API."""
    _need("c")
    return compile_program(source, folder / f"{source.stem}.so", *SHARED)


def compile_in_cpp(source: Path, folder: Path) -> Path:
    """A module over Python's headers and hamr's alone."""
    _need("c++")
    output = folder / f"{source.stem}.so"
    return compile_program(source, output, *SHARED, "-O0", language="c++", standard="c++17")


def compile_with_cython(source: Path, folder: Path) -> Path:
    """A module of a .pyx, which finds hamr's .pxd beside the package."""
    _need("c")
    pytest.importorskip("Cython")
    written, output = folder / f"{source.stem}.c", folder / f"{source.stem}.so"
    command = [sys.executable, "-m", "cython", "-3", str(source), "-o", str(written)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    command = [*LANGUAGES["c"][1], "-O0", "-w", *SHARED, f"-I{hamr.get_include()}"]
    subprocess.run([*command, str(written), "-o", str(output), "-ldl"], check=True)
    return output


def compile_with_pybind11(source: Path, folder: Path) -> Path:
    """A module of a source that binds with pybind11."""
    _need("c++")
    pybind11 = pytest.importorskip("pybind11")
    flags = [f"-isystem{pybind11.get_include()}", f"-I{CPP}", "-O0"]
    return compile_program(
        source, folder / f"{source.stem}.so", *SHARED, *flags, language="c++", standard="c++17"
    )


def compile_with_nanobind(source: Path, folder: Path) -> Path:
    """The same with nanobind, whose own sources are compiled, too."""
    _need("c++")
    package = Path(pytest.importorskip("nanobind").__file__).parent
    robin_map = package / "ext" / "robin_map" / "include"
    includes = [f"-isystem{package / 'include'}", f"-isystem{robin_map}"]
    own = folder / "nanobind.o"
    command = [*LANGUAGES["c++"][1], "-std=c++17", "-O0", "-w", "-DNDEBUG", "-fno-strict-aliasing"]
    command += ["-fPIC", "-fvisibility=hidden", f"-isystem{HEADERS}", *includes]
    source_of_nanobind = package / "src" / "nb_combined.cpp"
    done = subprocess.run(
        [*command, "-c", source_of_nanobind, "-o", own], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    flags = [*includes, f"-I{CPP}", "-O0", "-fno-strict-aliasing", str(own)]
    return compile_program(
        source, folder / f"{source.stem}.so", *SHARED, *flags, language="c++", standard="c++17"
    )


def compile_with_swig(swig: str, source: Path, folder: Path) -> ModuleType:
    """The module of an interface file, whose half in Python imports the other by its name."""
    _need("c++")
    written, name = folder / f"{source.stem}_wrap.cpp", source.stem
    command = [swig, "-Wall", "-Werror", "-c++", "-python", f"-I{hamr.get_include()}", f"-I{CPP}"]
    done = subprocess.run(
        [*command, "-outdir", folder, "-o", written, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    output = folder / f"_{name}.so"
    # What SWIG writes has warnings of its own.
    own = [
        "-Wno-unused-parameter",
        "-Wno-missing-field-initializers",
        "-Wno-cast-function-type",
        "-Wno-pedantic",
    ]
    flags = [*SHARED, *own, f"-I{CPP}", "-O0"]
    compile_program(written, output, *flags, language="c++", standard="c++17")
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def load(path: Path) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: What a program does first that runs in a process of its own.
LOADING = """
import importlib
import importlib.util
spec = importlib.util.spec_from_file_location({name!r}, {path!r})
m = importlib.util.module_from_spec(spec)
spec.loader.exec_module(m)
"""


def loading(path: Path) -> str:
    """Code that loads the module in a file as m."""
    return LOADING.format(name=path.stem, path=str(path))
