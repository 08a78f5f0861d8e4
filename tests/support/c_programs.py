"""Programs in C and C++ that the tests compile with the headers that hamr is installed with."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import hamr
from tests.package.test_headers import LANGUAGES
from tests.support.paths import ROOT
from tests.support.processes import launch

PROGRAMS = ROOT / "tests" / "c" / "programs"
COMPILER = LANGUAGES["c"][1]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]

#: For programs that look into DLPack's tensors.
TENSORS = f"-I{ROOT / 'python' / 'hamr' / 'native'}"

#: Where this process's hamr is, for a Python that a program embeds.
PACKAGES = os.pathsep.join([str(Path(hamr.__file__).parents[1]), *filter(None, sys.path)])
EMBEDDED = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": PACKAGES}


def compile_program(
    source: Path,
    output: Path,
    *flags: str,
    language: str = "c",
    standard: str = "c99",
    include: str = "",
) -> Path:
    """Compile a program, without a warning."""
    command = [*LANGUAGES[language][1], f"-std={standard}", "-O1", "-g", *WARNINGS, "-pthread"]
    command += [f"-I{include or hamr.get_include()}", f"-I{PROGRAMS}", "-x", language]
    # Clang warns of a language for files that are not there.
    others = [] if all(flag.startswith("-") for flag in flags) else ["-x", "none"]
    done = subprocess.run(
        [*command, str(source), *others, "-o", str(output), *flags, "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return output


def run(program: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """What a program prints, which must exit with status 0."""
    status, output = launch([str(program), *arguments], 120, env)
    assert status == 0, f"{program.name} {arguments} exited with {status}:\n{output[-4000:]}"
    return output


def python_library() -> str:
    """The file of Python's own library, or "" where the interpreter has all of it inside."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    path = Path(sysconfig.get_config_var("LIBDIR") or "") / name
    return str(path) if ".so" in name and path.is_file() else ""
