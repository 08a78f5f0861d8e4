"""Programs in Fortran that the tests compile with the module that hamr is installed with."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import hamr
from tests.support.c_programs import COMPILER
from tests.support.paths import ROOT

PROGRAMS = ROOT / "tests" / "fortran" / "programs"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
#: GNU's compiler warns of its own code that hands a pointer to C, whatever the pointer was before.
#: The others are of tests: equal numbers, and functions in conditions.
USUAL = [
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
    "-Wno-compare-reals",
    "-Wno-function-elimination",
]

_PROBE = """
program probe
    use, intrinsic :: iso_c_binding
    interface
        subroutine take(array) bind(C)
            type(*) :: array(..)
        end subroutine take
    end interface
end program probe
"""


@functools.cache
def absent() -> str:
    """Why no Fortran compiler is there that compiles what hands arrays to C, or ""."""
    names = shlex.split(os.environ.get("FC", "")) or ["gfortran"]
    if not COMPILER:
        return "no C compiler"
    if not shutil.which(names[0]):
        return f"no {names[0]}"
    with tempfile.TemporaryDirectory() as folder:
        source, header = Path(folder, "probe.f90"), Path(folder, "probe.c")
        source.write_text(_PROBE)
        header.write_text("#include <ISO_Fortran_binding.h>\n")
        for command in ([*names, "-c", source], [*COMPILER, "-c", header]):
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
            if done.returncode:
                return f"{command[0]} does not compile Fortran 2018's descriptors for C"
    return ""


def compiler() -> list[str]:
    """The words of the Fortran compiler's command."""
    return [*(shlex.split(os.environ.get("FC", "")) or ["gfortran"]), "-std=f2018"]


def _checked(command: list[str]) -> None:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def build_module(folder: Path, *flags: str) -> Path:
    """Compile the module and its C half into a folder, without a warning; the folder."""
    include = Path(hamr.get_include())
    options = ["-g", "-O1", "-fPIC", *WARNINGS, "-pedantic", f"-I{include}", "-c"]
    shim = [str(include / "hamr_fortran.c"), "-o", str(folder / "hamr_fortran.o")]
    _checked([*COMPILER, "-std=c99", *options, *shim])
    module = [str(include / "hamr.f90"), "-J", str(folder), "-o", str(folder / "hamr.o")]
    _checked([*compiler(), *options, *flags, *module])
    return folder


def compile_program(source: Path, module: Path, output: Path, *flags: str) -> Path:
    """Compile a program, or a library, with the module that build_module made."""
    folders = [f"-I{module}", "-J", str(output.parent)]
    options = ["-g", "-O1", "-fPIC", *WARNINGS, *USUAL, *folders]
    objects = [str(module / "hamr.o"), str(module / "hamr_fortran.o")]
    command = [*compiler(), *options, str(source), *objects, *flags, "-o", str(output)]
    _checked([*command, "-ldl", "-pthread"])
    return output
