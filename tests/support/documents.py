"""The code blocks of README.md and the pages in docs: needs, runs, and what they print.

The blocks below one heading belong together. Those of C, C++, Fortran, CMake and Go, and those of
Python whose first line is a comment with a file's name, are files; then the shell blocks run, and
what is left of Python is one program. A comment ``<!-- needs: torch -->`` above a block names what
must be there beyond hamr, NumPy and, for C and Go, a compiler: one of NEEDS. A heading's blocks
run once with those that need nothing and each other set of needs. What nobody can run has
``<!-- not run: REASON -->`` above it; it is skipped with the reason, so that pytest counts it.

All that the blocks print has to be shown, in ``# prints …`` at a line's end or in a ``text``
block below, in which ``...`` stands for anything.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from build_support import toolchain
from tests.support import (
    emulation,
    fortran_programs,
    kokkos,
    mpi,
    opencl_runtime,
    openmp_runtime,
    sycl_runtime,
)
from tests.support.paths import PATHS, ROOT
from tests.support.processes import launch

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: Modules that stand in for libraries without which a block could not run on the emulator.
STAND_INS = ROOT / "tests" / "support" / "stand_ins"

_FILE = re.compile(r"(?:#|//|/\*|!) ([\w.]+\.(?:pyx|py|cpp|c|f90|go|i|txt))(?: \*/)?")
_PRINTS = re.compile(r"(?:#|//|!) prints (.*)$")
_NVRTC = (
    {"HAMR_NVRTC_LIBRARY": str(emulation.build(emulation.NVRTC))}
    if emulation.CHOSEN == "emulator"
    else {}
)
_SETTINGS = {
    **_NVRTC,
    **mpi.SETTINGS,
    "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
    # Newer Pythons say so of every fork with threads; the page on forks says it, too.
    "PYTHONWARNINGS": "ignore:This process:DeprecationWarning",
}


def _module(name: str) -> str:
    with contextlib.suppress(ImportError):  # of the package around it
        if importlib.util.find_spec(name) is not None:
            return ""
    return f"no {name}"


def _compiler(name: str) -> str:
    return "" if shutil.which(name) else f"no {name}, which the block runs"


def _headers() -> str:
    found = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
    return "" if found else "no headers of Python's"


def _go() -> str:
    return "" if toolchain.find_go() else "no go, or one that is too old"


def _cupy_itself() -> str:
    if emulation.CHOSEN == "emulator":
        return "the stand-in for CuPy takes no memory"
    return _module("cupy")


def _numba() -> str:
    if emulation.CHOSEN == "emulator":
        return "Numba asks the emulated driver for what it has not"
    return _module("numba_cuda") and _module("numba")


def _nvrtc() -> str:
    if emulation.CHOSEN == "emulator":
        return ""  # the stand-in runs
    import hamr
    from hamr import pygpu

    try:
        pygpu.compile("")
    except hamr.BackendUnavailable as error:
        return str(error)
    return ""


#: What a block may need: why it is absent, or "".
NEEDS: dict[str, Callable[[], str]] = {
    "c++": lambda: _compiler("c++"),
    "cc": lambda: _compiler("cc"),
    "cmake": lambda: _compiler("cmake"),
    "cuda": lambda: "",
    "cython": lambda: _module("Cython") or _headers(),
    "cupy": lambda: "",  # without it the stand-in runs
    "cupy-itself": _cupy_itself,
    "dask": lambda: _module("distributed"),
    "dpctl": sycl_runtime.absent,
    "gfortran": fortran_programs.absent,
    "go": _go,
    "kokkos": kokkos.absent,
    "mpi": lambda: mpi.MISSING or "",
    "numba": _numba,
    "opencl": opencl_runtime.absent,
    "nvrtc": _nvrtc,
    "openmp": openmp_runtime.absent,
    "pkg-config": lambda: _compiler("pkg-config"),
    "pybind11": lambda: _module("pybind11") or _headers(),
    "pyopencl": lambda: _module("pyopencl"),
    "swig": lambda: _module("swig") or _headers(),
    "torch": lambda: _module("torch"),
}
#: Those for which a CUDA device has to be there, emulated or not: tests/cuda runs these.
ON_A_DEVICE = {"cuda", "cupy", "cupy-itself", "numba", "nvrtc"}
#: Those of the extra "interop".
LIBRARIES = {"dask", "dpctl", "mpi", "pyopencl", "torch"}

#: Who runs which language, and what that needs.
LANGUAGES: dict[str, set[str]] = {
    "python": set(), "sh": set(), "text": set(), "c": {"cc"}, "cpp": set(),
    "cmake": {"cmake"}, "cython": {"cython"}, "fortran": {"gfortran"}, "go": {"go"},
}  # fmt: skip


#: What a language of a heading needs, its shell blocks need with it.
TOOLS = {"cc", "cmake", "gfortran", "go"}


@dataclass(frozen=True)
class Block:
    """Code between fences; ``line`` is that of its first line, counted from 1."""

    page: Path
    line: int
    heading: str
    language: str
    needs: frozenset[str]
    text: str
    not_run: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def file(self) -> str:
        """The name of the file that the block is, or ""."""
        found = _FILE.fullmatch(self.text.partition("\n")[0])
        return found[1] if found else "main.go" if self.language == "go" else ""

    @property
    def prints(self) -> list[str]:
        if self.language == "text":
            return self.text.rstrip("\n").split("\n")
        return [found[1].rstrip() for found in map(_PRINTS.search, self.text.split("\n")) if found]


@dataclass(frozen=True)
class Group:
    """The blocks below a heading that run together, and what they need."""

    blocks: tuple[Block, ...]
    needs: frozenset[str]

    def __str__(self) -> str:
        first = self.blocks[0]
        name = re.sub(r"\W+", "-", f"{first.page.stem} {first.heading}").strip("-")
        return "-".join([name, *sorted(self.needs - TOOLS)])

    def missing(self) -> str:
        """Why the blocks cannot run here, or ""."""
        return next(filter(None, (NEEDS[name]() for name in sorted(self.needs))), "")


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page. One that is not closed, or needs what nobody knows, is an error."""
    found: list[Block] = []
    heading = language = needs = fence = not_run = ""
    start = 0
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        mark = re.match(r" *(`{3,}|~{3,})(.*)", line)
        if fence:
            if mark and mark[1] == fence and not mark[2]:
                names = frozenset(filter(None, needs.replace(",", " ").split()))
                if names - NEEDS.keys():
                    raise ValueError(f"{page.name}:{start}: needs {sorted(names)}: {[*NEEDS]}")
                text = "".join(f"{one}\n" for one in lines[start : number - 1])
                found.append(Block(page, start + 1, heading, language, names, text, not_run))
                fence = needs = not_run = ""
        elif mark:
            fence, language, start = mark[1], mark[2].strip(), number
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif line:
            comment = re.fullmatch(r"<!-- needs: (.*) -->", line)
            needs = comment[1] if comment else ""
            comment = re.fullmatch(r"<!-- not run: (.+) -->", line)
            not_run = comment[1] if comment else ""
    if fence:
        raise ValueError(f"{page.name}:{start}: the block is not closed")
    return found


def groups_of(blocks: list[Block]) -> list[Group]:
    """What is run: the blocks of each heading, once for each set of needs."""
    groups: list[Group] = []
    blocks = [block for block in blocks if not block.not_run]
    headings = dict.fromkeys((block.page, block.heading) for block in blocks)
    for key in headings:
        below = [block for block in blocks if (block.page, block.heading) == key]
        below = [replace(b, needs=b.needs | LANGUAGES.get(b.language, set())) for b in below]
        shared = frozenset().union(*(b.needs & TOOLS for b in below))
        special = [b.needs - shared for b in below if b.language != "text"]
        for needs in dict.fromkeys(special):
            chosen = [b for b in below if b.needs - shared in (frozenset(), needs)]
            groups.append(Group(tuple(chosen), needs | shared))
    return groups


def parameters(on_a_device: bool) -> list[Any]:
    """The groups that run on a CUDA device, or those that need none, as parameters of a test."""
    found = []
    for group in GROUPS:
        if bool(group.needs & ON_A_DEVICE) is on_a_device:
            reason = group.missing()
            marks = [pytest.mark.skipif(bool(reason), reason=reason)]
            if group.needs & LIBRARIES:
                marks.append(pytest.mark.libraries)
            found.append(pytest.param(group, marks=marks, id=str(group)))
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
GROUPS = groups_of(BLOCKS)


def run(group: Group, folder: Path) -> None:
    """Run the blocks in a folder, and compare what they print with what the page shows."""
    scripts = "".join(b.text for b in group.blocks if b.language == "sh")
    program: list[Block] = []
    for block in group.blocks:
        if block.language == "python" and (not block.file or block.file not in scripts):
            program.append(block)
        elif block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    output = ""
    for block in group.blocks:
        if block.language == "sh":
            output += _shell(block, folder)
        elif block.language == "go":
            output += _go_program(folder)
        elif program and block is program[0]:
            output += _python(program, folder)
    _compare(group, output)


def _launched(command: list[str], folder: Path, more: dict[str, str] | None = None) -> str:
    programs = folder / "programs"
    if not programs.exists():
        programs.mkdir()
        for name, start in {"python": "", "hamr": " -m hamr"}.items():
            path = programs / name
            path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{start} "$@"\n')
            path.chmod(0o755)
    own = str(Path(sys.executable).parent)  # which has what comes from PyPI, as SWIG
    search = [str(programs), os.environ.get("PATH", os.defpath), own]
    started = mpi.mpirun()
    if started:
        search.insert(1, str(Path(started).parent))
    modules = [PATHS["PYTHONPATH"]]
    if emulation.CHOSEN == "emulator" or (emulation.CHOSEN and _module("cupy")):
        modules.append(str(STAND_INS))
    env = {"PATH": os.pathsep.join(search), "PYTHONPATH": os.pathsep.join(modules)}
    env |= {"KOKKOS_FLAGS": kokkos.FLAGS, "KOKKOS_LIBRARIES": kokkos.LIBRARIES, **(more or {})}
    status, output = launch(
        ["env", "-C", str(folder), *command], 300, _SETTINGS | env | {"PYTHONUNBUFFERED": "1"}
    )
    assert status == 0, f"{shlex.join(command)} exited with {status}:\n{output[-8000:]}"
    return output


def _python(program: list[Block], folder: Path) -> str:
    """Run blocks as one script, whose lines have the numbers that they have in the page."""
    text = ""
    for block in program:
        text += "\n" * (block.line - 1 - text.count("\n")) + block.text
    path = folder / f"page_{program[0].page.stem}.py"  # which imports no page as a module
    path.write_text(text, encoding="utf-8")
    needs = frozenset().union(*(block.needs for block in program))
    env = sycl_runtime.environment() if "dpctl" in needs else {}
    return _launched([sys.executable, "-W", "error::SyntaxWarning", path.name], folder, env)


def _go_program(folder: Path) -> str:
    """Build and run a module outside of the repository, with what the caches hold."""
    version = ".".join(map(str, toolchain.wanted_go()))
    (folder / "go.mod").write_text(
        f"module example\n\ngo {version}\n\nrequire hamr v0.0.0\n\nreplace hamr => {ROOT}\n"
    )
    shutil.copy(ROOT / "go.sum", folder)
    go = ["env", "GOFLAGS=-mod=mod", "GOPROXY=off", toolchain.find_go() or "go"]
    _launched([*go, "vet", "."], folder)
    return _launched([*go, "run", "."], folder)


def _shell(block: Block, folder: Path) -> str:
    output = ""
    for line in block.text.split("\n"):
        words = shlex.split(line, comments=True)
        if words[:2] == ["pip", "install"]:
            _check_installable(words[2:], block)
        elif words[:1] == ["make"]:  # which makes an environment, and runs the tests
            _launched(["make", "--dry-run", "-C", str(ROOT), *words[1:]], folder)
        elif words:
            found = _launched(["sh", "-e", "-c", line], folder)
            output += found if block.prints or words[0] != "hamr" else ""
    return output


def _check_installable(words: list[str], block: Block) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {f".[{name}]" for name in project["optional-dependencies"]}
    assert set(words) <= {".", *extras}, f"{block.place}: {words} is nothing to install"


def _compare(group: Group, output: str) -> None:
    shown = "\n".join(line for block in group.blocks for line in block.prints)
    pattern = ".*".join(map(re.escape, shown.split("...")))
    told = "\n".join(line.rstrip() for line in output.rstrip("\n").split("\n"))
    places = ", ".join(block.place for block in group.blocks)
    assert re.fullmatch(pattern, told, re.DOTALL), (
        f"{places} printed\n{told}\nwhere the page shows\n{shown}"
    )
