"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile


def replace_file(path: str, content: bytes) -> None:
    """Write a file beside the one that it replaces, and rename it; OSError names the path."""
    folder, name = os.path.split(os.path.abspath(path))
    beside = ""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, os.strerror(21), path)
        descriptor, beside = tempfile.mkstemp(prefix=f".{name[:100]}.", dir=folder)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_mask())
        os.replace(beside, path)
    except BaseException as error:
        if beside:
            with contextlib.suppress(OSError):
                os.remove(beside)
        if isinstance(error, OSError):
            raise type(error)(
                error.errno, f"{error.strerror}: nothing was written", path
            ) from error
        raise


def check_writable(path: str) -> None:
    """Raise OSError where ``replace_file`` would, before there is something to write."""
    folder, name = os.path.split(os.path.abspath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, os.strerror(21), path)
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{name[:100]}.", dir=folder)
        os.close(descriptor)
        os.remove(beside)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from error


def _mask() -> int:
    """The process's umask, which only can be read by setting it."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o077
