"""Install hamr beside this Python: the wheel that a step of this run has built, else the sources.

python -m build_support.wheel_at_hand EXTRAS [PACKAGE...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from build_support import summary

ROOT = Path(__file__).resolve().parent.parent
#: Seconds before an installation is tried again: registries and networks fail now and then.
PAUSES = (10, 60)


def built() -> Path | None:
    """Return the wheel that an earlier step of this run has left, if there is one."""
    folder = os.environ.get(summary.WHEELS)
    return next(Path(folder).glob("*.whl"), None) if folder else None


def install(extras: str, *packages: str) -> None:
    """Install hamr with these extras, and packages."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    wheel = built()
    fetch([*pip, f"{wheel or ROOT}[{extras}]", *packages])
    if wheel:  # the version alone does not tell pip that the wheel has changed
        subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], check=True)


def fetch(command: list[str]) -> None:
    """Run a command that needs the network, up to three times.

    Raises CalledProcessError with the end of what the last run said.
    """
    for pause in (*PAUSES, None):
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        print(done.stderr, end="", file=sys.stderr, flush=True)
        if done.returncode == 0:
            return
        if pause is not None:
            time.sleep(pause)
    raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)


if __name__ == "__main__":
    install(*sys.argv[1:])
