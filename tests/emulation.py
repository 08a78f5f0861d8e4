"""The CUDA driver that the tests run on: HAMR_TEST_CUDA names the emulated or the real one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [ROOT / "tests" / "emulator", ROOT / "backends" / "cuda" / "kernels"]

#: "emulator", "driver" or "", which is none.
CHOSEN = os.environ.get("HAMR_TEST_CUDA", "")


def build() -> Path:
    """The emulator's library, built if no run before has left one of the same sources."""
    digest = hashlib.sha256(os.environ.get("CC", "").encode())
    for folder in SOURCES:
        for path in sorted(folder.iterdir()):
            if path.suffix in (".c", ".h", ".cu", ".sh"):
                digest.update(path.name.encode() + path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"hamr-emulator-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is another user's")
    library = folder / f"{digest.hexdigest()[:16]}.so"
    if not library.exists():
        subprocess.run([SOURCES[0] / "build.sh", library], check=True)
    return library


def choose() -> None:
    """Name the chosen driver to hamr, here and in child processes."""
    if CHOSEN not in ("", "driver", "emulator"):
        raise ValueError(f"HAMR_TEST_CUDA is {CHOSEN!r}: accepted are emulator and driver")
    if CHOSEN == "emulator":
        os.environ["HAMR_CUDA_LIBRARY"] = str(build())
        os.environ.setdefault("HAMR_EMULATOR_DEVICES", "2")
