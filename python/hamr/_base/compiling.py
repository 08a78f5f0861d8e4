"""``hamr config``: what compilers and build systems need to know of hamr."""

from __future__ import annotations

import os
import shlex
import sys

from .headers import get_include
from .library import core, library_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

#: nvcc accepts these, too. It has neither -pthread nor -Wl.
_FLAGS = ["-ldl", "-lpthread"]


def _below(*names: str) -> str:
    """A path that is installed beside the headers; an OSError for an editable install."""
    path = os.path.join(_prefix(), *names)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"{path} is missing: an editable install of hamr has only --cflags, --libs, "
            "--include-dir, --fortran-module and --version"
        )
    return path


def _prefix() -> str:
    return os.path.dirname(get_include())


def _cflags(linked: bool) -> list[str]:
    return [f"-I{get_include()}", *(["-DHAMR_LINKED"] if linked else [])]


def _libs(linked: bool) -> list[str]:
    if not linked:
        return _FLAGS
    folder, name = os.path.split(library_path())
    return [f"-L{folder}", "-Xlinker", f"-rpath={folder}", f"-l:{name}", *_FLAGS]


def _fortran(_: bool) -> list[str]:
    return [os.path.join(get_include(), name) for name in ("hamr.f90", "hamr_fortran.c")]


def _version(_: bool) -> list[str]:
    return [core().Version()]


#: Each option: what it prints, given whether the program is linked with the library.
ANSWERS: dict[str, tuple[str, Callable[[bool], list[str]]]] = {
    "cflags": ("what C, C++ and Fortran compilers need", _cflags),
    "libs": ("what linkers need", _libs),
    "include-dir": ("the folder of hamr.h and hamr.hpp", lambda _: [get_include()]),
    "fortran-module": ("the module hamr.f90 and its C file, to be compiled together", _fortran),
    "cmake-dir": (
        "the folder for CMake's hamr_DIR, for find_package(hamr CONFIG)",
        lambda _: [_below("lib", "cmake", "hamr")],
    ),
    "pkgconfig-dir": (
        "the folder for PKG_CONFIG_PATH, for the packages hamr and hamr-linked",
        lambda _: [_below("lib", "pkgconfig")],
    ),
    "prefix": (
        "the folder of include and lib, for CMAKE_PREFIX_PATH",
        lambda _: [os.path.dirname(_below("lib"))],
    ),
    "version": ("hamr's version", _version),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``hamr config``."""
    for name, (help_text, _) in ANSWERS.items():
        parser.add_argument(
            f"--{name}", dest="asked", action="append_const", const=name, help=help_text
        )
    parser.add_argument(
        "--linked",
        action="store_true",
        help="for programs that are linked with the library, and do not look for it",
    )


def run(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    """Print the answers in the order of the options, on one line. Returns the exit status."""
    if not chosen.asked:
        parser.error("say what to print: " + ", ".join(f"--{name}" for name in ANSWERS))
    try:
        words = [word for name in chosen.asked for word in ANSWERS[name][1](chosen.linked)]
    except OSError as error:
        print(f"hamr config: {error}", file=sys.stderr)
        return 1
    print(shlex.join(words))
    return 0
