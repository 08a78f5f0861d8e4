"""The errors of the store's calls."""

from __future__ import annotations

from .._base.errors import Error, OutOfMemory


class StoreError(Error):
    """The root of the store's own exceptions."""


class ObjectNotFound(StoreError, KeyError):
    """There is no object with this id or name. It may have been deleted or evicted."""

    __str__ = Exception.__str__  # KeyError's shows a repr


class NotSealed(StoreError, ValueError):
    """The object's maker has not sealed it, and may still write to it."""


class Sealed(StoreError, ValueError):
    """The object was sealed, and cannot be changed any more."""


class NameTaken(StoreError, ValueError):
    """Another object has the name; ``id`` is that object's."""

    id: str = ""


class StoreFull(StoreError, OutOfMemory):
    """There is no room, even after the store has evicted what it could.

    ``memory`` is ``"host"``, a device's UUID, or ``"table"``, the server's records of objects.
    ``size`` bytes are needed, and ``used`` of ``limit`` are in use. ``holders`` has pairs of a
    process's number and the bytes that are kept for it, the largest first.

    ``memory`` is ``"descriptors"`` if the server's process cannot open more files: each object of
    64 KiB and more takes one. Then ``limit`` is RLIMIT_NOFILE, and ``used`` counts those of memory.
    ``memory`` is ``"connections"`` if the server has reached its most connections, ``limit``.
    """

    memory: str = ""
    limit: int = 0
    used: int = 0
    holders: tuple[tuple[int, int], ...] = ()


class StoreLost(StoreError, ConnectionError):
    """The server has ended, or does not answer at ``path``. Memory that clients have stays."""

    path: str = ""


class StoreRefused(StoreError, PermissionError):
    """Server or client refuse each other: another user, another version, or a wrong path."""


class StoreTimeout(StoreError, TimeoutError):
    """A wait has timed out."""


#: In the order of the store's kinds in hamr/store_functions.h.
KINDS: tuple[type[Exception], ...] = (
    ObjectNotFound,
    NotSealed,
    Sealed,
    NameTaken,
    StoreFull,
    StoreLost,
    StoreRefused,
    StoreTimeout,
    StoreError,
    ValueError,
    OSError,
)
