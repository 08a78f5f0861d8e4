"""Install hamr beside this Python: the wheel that a step of this run has built, else the sources.

python -m build_support.wheel_at_hand EXTRAS [PACKAGE...]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from build_support import summary

ROOT = Path(__file__).resolve().parent.parent


def built() -> Path | None:
    """Return the wheel that an earlier step of this run has left, if there is one."""
    folder = os.environ.get(summary.WHEELS)
    return next(Path(folder).glob("*.whl"), None) if folder else None


def install(extras: str, *packages: str) -> None:
    """Install hamr with these extras, and packages."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    wheel = built()
    subprocess.run([*pip, f"{wheel or ROOT}[{extras}]", *packages], cwd=ROOT, check=True)
    if wheel:  # the version alone does not tell pip that the wheel has changed
        subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel)], cwd=ROOT, check=True)


if __name__ == "__main__":
    install(*sys.argv[1:])
