"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os


def replace_file(path: str, content: bytes) -> None:
    """Write a file beside the one that it replaces, and rename it. An error leaves the old one."""
    descriptor, beside = _new_file(path)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise


def check_writable(path: str) -> None:
    """Raise the OSError that ``replace_file`` would, before there is something to write."""
    descriptor, beside = _new_file(path)
    os.close(descriptor)
    os.remove(beside)


def _new_file(path: str) -> tuple[int, str]:
    """The descriptor and the name of an empty file beside ``path``."""
    if os.path.isdir(path):
        raise IsADirectoryError(21, os.strerror(21), path)
    folder, name = os.path.split(os.path.abspath(path))
    beside = os.path.join(folder, f".{name[:50]}.{os.urandom(8).hex()}")
    try:
        return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), beside
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from error
