"""Go's build tags in a build: HAMR_BUILD_TAGS names them. No tag is in the product."""

from __future__ import annotations

import os
from pathlib import Path

from build_support import toolchain

VARIABLE = "HAMR_BUILD_TAGS"


def go_flags() -> str:
    """Return what GOFLAGS is to be."""
    tags = os.environ.get(VARIABLE, "")
    return f"-tags={tags}" if tags else ""


def write_headers(root: Path) -> None:
    """Write root/include/hamr/allocators.h anew, if tags may have added to the table."""
    go = toolchain.find_go()
    if not go_flags() or go is None:
        return
    (root / "include" / "hamr").mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "GOFLAGS": "", "GOWORK": "off"}
    command: list[str | Path] = [go, "run", go_flags(), "./internal/allocatorfacts", root]
    toolchain.run(command, cwd=toolchain.ROOT, env=env)
