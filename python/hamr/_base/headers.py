"""Where the headers for C and C++ are."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """The folder to give a C or C++ compiler for ``#include "hamr/types.h"``: ``-I<folder>``."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "include"
    # An editable install leaves them in the tree.
    return str(installed if installed.is_dir() else package.parents[1] / "include")
