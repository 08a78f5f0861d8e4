"""The stand-in for NVIDIA's management library, for processes that tests start."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support.paths import ROOT

SOURCES = ROOT / "tests" / "pygpu" / "stand_in"

#: Whether it can be built here.
AVAILABLE = shutil.which((os.environ.get("CC") or "cc").split()[0]) is not None


def build(old: bool = False) -> Path:
    """The library, built if no run before has left one of its sources; old: of before 2011."""
    digest = hashlib.sha256(f"{os.environ.get('CC', '')} {old}".encode())
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"hamr-nvml-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is another user's")
    library = folder / f"{digest.hexdigest()[:16]}.so"
    if not library.exists():
        environment = {**os.environ, **({"OLD": "1"} if old else {})}
        subprocess.run([SOURCES / "build.sh", library], check=True, env=environment)
    return library
