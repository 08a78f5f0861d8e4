"""Sessions, and leases of the objects whose memory this process has.

A buffer of an object keeps a ``Lease``, and so do its views, arrays and whatever shares its
memory. The lease ends with the last of them. C code ends it, so that it ends even if a signal's
handler raises between any two steps of Python code.
"""

from __future__ import annotations

import os

import hamr._native as _native

from .errors import KINDS
from .ids import ObjectID


class Connection(_native.Owned):
    """A session. It ends when no Client and no Lease keeps it.

    It must not end before its leases. Else the place of a deleted small object could be given to
    another object while a buffer still has it.
    """

    __slots__ = ()


class Lease(_native.Owned):
    """A lease of an object's memory. It lasts as long as anything keeps it."""

    __slots__ = ("__weakref__",)

    def token(self) -> int:
        """The core's number of the lease; ForkError in a forked child of its process."""
        if not self._is_here():
            from .._base.errors import ForkError

            raise ForkError(
                f"object {self.id} is the parent's to finish: it was made before fork()"
            )
        return self._token


def find(source: _native.Array) -> Lease | None:
    """The lease of the memory that has an array's elements; None if it is not the store's."""
    found = _native.owned_at(source.ptr)
    return found if isinstance(found, Lease) else None


def _before_fork() -> None:
    # Else the child would map memory that nobody uses any more.
    if (raw := _native.library()) is not None:
        raw.Settle()


os.register_at_fork(before=_before_fork)
_native.store_classes(ObjectID, KINDS)
