"""Building without a network: HAMR_BUILD_OFFLINE=1.

Nothing is asked of a registry then. Go, a C compiler and pybindgen are the machine's own; the Go
modules are those of the folder vendor, which 'make sdist VENDOR=1' puts into an archive, or those
that Go has kept from an earlier build.
"""

from __future__ import annotations

import os
import subprocess
import sys

from build_support import toolchain

VARIABLE = "HAMR_BUILD_OFFLINE"


def wanted() -> bool:
    """Return whether the build is to do without a network."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "0", "1"):
        toolchain.fail(f"{VARIABLE} is {value!r}: accepted are 0 and 1")
    return value == "1"


def settings() -> dict[str, str]:
    """Return what keeps Go from the network; nothing where it may use it."""
    return {"GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local"} if wanted() else {}


def go_flags() -> list[str]:
    """Return how Go is to find the modules."""
    return ["-mod=vendor" if toolchain.VENDORED.is_dir() else "-mod=readonly"]


def missing_modules(go: str) -> str:
    """Return Go's words on the modules that it would have to download, or ""."""
    command = [go, "list", *go_flags(), "-deps", "./pyhamr", "tool"]
    env = {**os.environ, **settings(), "GOWORK": "off", "CGO_ENABLED": "1"}
    env.pop("GOFLAGS", None)
    done = subprocess.run(
        command, cwd=toolchain.ROOT, env=env, text=True, capture_output=True, check=False
    )
    return done.stderr.strip() if done.returncode else ""


def have_pybindgen() -> bool:
    """Return whether pybindgen is installed."""
    probe = [sys.executable, "-c", "import pybindgen"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def check(*, packages: bool) -> None:
    """End a build that may not use a network if something is missing, and name all of that.

    The packages are asked for only when pip has had its turn to install them, from a folder.
    """
    if not wanted():
        return
    found = []
    go = toolchain.find_go()
    if go is None:
        version = ".".join(map(str, toolchain.wanted_go()))
        found.append(f"Go {version} or newer on PATH")
    if toolchain.find_cc() is None:
        found.append("a C compiler: gcc or clang on PATH, PyPI's ziglang, or what CC names")
    if packages and not have_pybindgen():
        found.append("the Python package pybindgen 0.22")
    if go is not None and (said := missing_modules(go)):
        found.append(f"Go modules; an archive of 'make sdist VENDOR=1' has them: {said}")
    if found:
        listed = "\n  ".join(found)
        toolchain.fail(f"{VARIABLE}=1 forbids downloads, and this is missing:\n  {listed}")
