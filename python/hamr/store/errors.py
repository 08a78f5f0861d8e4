"""What the store's calls raise."""

from __future__ import annotations

from .._base.errors import Error, OutOfMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class StoreError(Error):
    """The root of the store's own exceptions."""


class ObjectNotFound(StoreError, KeyError):
    """There is no object of an id, or none that has a name: it was deleted or evicted, perhaps."""

    __str__ = Exception.__str__  # KeyError's shows a repr


class NotSealed(StoreError, ValueError):
    """An object's maker has not sealed it, and may still write to it."""


class Sealed(StoreError, ValueError):
    """An object was sealed, and is what it is for good."""


class NameTaken(StoreError, ValueError):
    """A name is another object's; ``id`` is whose."""

    id: str = ""


class StoreFull(StoreError, OutOfMemory):
    """There is no room: what could be evicted was not enough.

    ``memory`` is ``"host"``, a device's UUID, or ``"table"``: what the server knows of objects.
    ``size`` bytes are needed, and ``used`` of ``limit`` are in use. ``holders`` has pairs of a
    process's number and bytes that are kept for it, who has most first.

    ``memory`` is ``"descriptors"`` where the server's process can open no more files: each object
    of 64 KiB and more takes one. ``limit`` is RLIMIT_NOFILE then, and ``used`` those of memory. It
    is ``"connections"`` where the server has as many as it may have, ``limit``.
    """

    memory: str = ""
    limit: int = 0
    used: int = 0
    holders: tuple[tuple[int, int], ...] = ()


class StoreLost(StoreError, ConnectionError):
    """The server has ended, or does not answer at ``path``. What a client has mapped stays."""

    path: str = ""


class StoreRefused(StoreError, PermissionError):
    """Server and client do not deal with each other: another user's, another version, a path."""


class StoreTimeout(StoreError, TimeoutError):
    """What was waited for has not come in time."""


_KINDS: dict[str, type[Exception]] = {
    "not found": ObjectNotFound,
    "not sealed": NotSealed,
    "sealed": Sealed,
    "name taken": NameTaken,
    "full": StoreFull,
    "lost": StoreLost,
    "refused": StoreRefused,
    "timeout": StoreTimeout,
    "value": ValueError,
    "system": OSError,
}


def error_of(told: dict[str, Any]) -> Exception:
    """The exception that the core tells of: ``kind``, ``message`` and its attributes."""
    error = _KINDS.get(told.pop("kind"), StoreError)(told.pop("message"))
    for name, value in told.items():
        setattr(error, name, tuple(map(tuple, value)) if name == "holders" else value)
    return error
