"""A free-threaded CPython, which HAMR_FREE_THREADED_PYTHON names, or which is on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess

MISSING = "no free-threaded CPython: HAMR_FREE_THREADED_PYTHON can name one"


def _ask(python: str, what: str) -> str:
    program = f"import sys; assert 't' in sys.abiflags; print({what})"
    done = subprocess.run([python, "-c", program], text=True, capture_output=True, check=False)
    return done.stdout.strip()


def _find() -> str:
    names = [os.environ.get("HAMR_FREE_THREADED_PYTHON", "")]
    names += [f"python3.{minor}t" for minor in range(20, 12, -1)]
    for name in filter(None, names):
        path = shutil.which(name)
        if path and _ask(path, "1"):  # a pyenv shim is there for versions that are not switched on
            return path
    return ""


PYTHON = _find()


def version() -> str:
    """Its version, as in "3.13"."""
    return _ask(PYTHON, "'{}.{}'.format(*sys.version_info)")
