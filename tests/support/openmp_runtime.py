"""What there is of OpenMP for tests: what hamr finds, LLVM's runtime, and what is built."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT
from tests.support.processes import launch

_BUILD = ROOT / "tests" / "openmp" / "offload" / "build.sh"
_PROBE = """
import hamr, json
from hamr._base.library import core
row = hamr.backends()["openmp"]
print(json.dumps({**row, "library": core().Library("openmp")} if row["available"] else row))
"""
#: Nothing but OpenMP is looked at: platforms of OpenCL's start threads.
ALONE = {"HAMR_OPENCL_LIBRARY": "/nowhere/libOpenCL.so"}


def said(env: dict[str, str]) -> dict[str, Any]:
    """What hamr.backends() says of OpenMP in a process with these settings, and the library."""
    status, output = launch([sys.executable, "-c", _PROBE], 120, {**ALONE, **env})
    assert status == 0, output
    row: dict[str, Any] = json.loads(output.splitlines()[-1])
    return row


@functools.cache
def found() -> dict[str, Any]:
    """The same without settings."""
    return said({})


def absent() -> str:
    """Why there is no OpenMP here; "" if there is."""
    return "" if found()["available"] else f"no OpenMP: {found()['reason']}"


def on_host() -> bool:
    """Whether its one device is the host."""
    return found()["devices"][0].get("kind") == "cpu"


def compiler() -> str:
    """The C compiler; "" where there is none."""
    return shutil.which((os.environ.get("CC") or "cc").split()[0]) or ""


def llvm() -> str:
    """The folder of LLVM's runtime; "" where it is not installed."""
    chosen = os.environ.get("HAMR_TEST_LLVM")
    if chosen:
        return chosen
    files = sorted(Path("/usr/lib").glob("llvm-*/lib/libomptarget.so"))
    return str(files[-1].parent) if files else ""


def clang() -> str:
    """LLVM's Clang, if it can compile regions for devices; else ""."""
    chosen = Path(os.environ.get("CLANG") or f"{llvm()}/../bin/clang")
    return str(chosen) if chosen.with_name("clang-offload-packager").exists() else ""


def build(what: str, folder: Path) -> str:
    """The file of what is built: see build.sh."""
    status, output = launch(["sh", str(_BUILD), what, str(folder), llvm()], 60)
    assert status == 0, output
    return output.strip()


@functools.cache
def cannot_link() -> str:
    """What a compiler says that cannot link target regions, for want of a part; "" if it can."""
    with tempfile.TemporaryDirectory() as folder:
        status, output = launch(["sh", str(_BUILD), "add", folder, ""], 60)
    return output.strip()[-200:] if status and "lto-wrapper" in output else ""


def with_plugin(folder: Path) -> dict[str, str]:
    """Settings by which libgomp has two devices with memory that the host cannot touch."""
    build("plugin", folder)
    for version in "1234":  # which one a libgomp takes it says to nobody
        env = {"LD_LIBRARY_PATH": str(folder), "HAMR_TEST_GOMP_VERSION": version}
        if len(said(env)["devices"]) == 2:
            return env
    raise AssertionError("no version of libgomp's plugins is taken")
