"""Arrays on the host and on devices that processes share, and that outlive each process.

A ``Server`` keeps objects for one user's processes on one machine, and ``connect`` returns a
``Client`` of it. ``client.put(array)``, or ``client.create(shape, dtype)`` and ``seal()``, makes an
object. ``client.get(id)`` returns a read-only buffer of the same memory in any process. A pickle of
such a buffer carries the id, not the elements.
"""

from __future__ import annotations

from .builder import Builder
from .client import Client, connect
from .description import ObjectInfo
from .errors import (
    NameTaken,
    NotSealed,
    ObjectNotFound,
    Sealed,
    StoreError,
    StoreFull,
    StoreLost,
    StoreRefused,
    StoreTimeout,
)
from .events import Events, StoreEvent
from .group_builder import GroupBuilder
from .groups import Group
from .ids import ObjectID
from .opening import opened as _opened  # noqa: F401 -- pickles name it
from .server import Server
from .watch import Watch

__all__ = [
    "Builder",
    "Client",
    "Events",
    "Group",
    "GroupBuilder",
    "NameTaken",
    "NotSealed",
    "ObjectID",
    "ObjectInfo",
    "ObjectNotFound",
    "Sealed",
    "Server",
    "StoreError",
    "StoreEvent",
    "StoreFull",
    "StoreLost",
    "StoreRefused",
    "StoreTimeout",
    "Watch",
    "connect",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
