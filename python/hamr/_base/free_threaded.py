"""Free-threaded CPython, where extensions for the stable ABI do not work."""

from __future__ import annotations

import os
import sys
from _imp import extension_suffixes

#: Suffixes that other interpreters load as well, or that name no interpreter.
_OTHERS = (".abi3.so", ".so")


def check() -> None:
    """Raise ImportError before a file for another interpreter is loaded: that might crash."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for suffix in extension_suffixes():
        if suffix not in _OTHERS and os.path.exists(os.path.join(folder, "_native" + suffix)):
            return
    version = "{}.{}".format(*sys.version_info)
    raise ImportError(
        f"hamr: free-threaded CPython {version}t lays its objects out otherwise than the stable "
        f"ABI (abi3) that this copy of hamr is compiled for: install hamr there from source, or "
        f"use an ordinary CPython, 3.11 or newer, as python{version}"
    )
