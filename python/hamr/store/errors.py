"""What the store's calls raise."""

from __future__ import annotations

from .._base.errors import Error, OutOfMemory


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
