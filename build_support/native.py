"""What the C extension is compiled from."""

from __future__ import annotations

from pathlib import Path

from build_support import toolchain

ROOT = toolchain.ROOT / "python" / "hamr" / "native"
# Holds what C and C++ programs may include, and what both extensions share.
INCLUDE = toolchain.ROOT / "include"

# Headers in ROOT are named from there, as "memory/block.h".
HEADER_FLAGS = [f"-I{folder}" for folder in (ROOT, INCLUDE)]


def sources() -> list[Path]:
    """Return the sources, which lie in a folder for each floor."""
    return sorted(ROOT.glob("*/*.c"))
