"""Sessions, memory of objects that this process has, and which object an address is of.

A buffer of an object keeps a ``Lease``, and so do its views, arrays and whatever shares its
memory. The lease ends with the last of them. What the core has for this process ends by code in C:
so it ends also where the handler of a signal raises, at whatever step of Python code that is.
"""

from __future__ import annotations

import os

import hamr._native as _native

from .errors import KINDS
from .ids import ObjectID


class Connection(_native.Owned):
    """A session, which ends when neither a Client nor a Lease keeps it.

    Were it to end before its leases, the place of a small object that is deleted could be another
    one's while a buffer still has it.
    """

    __slots__ = ()


class Lease(_native.Owned):
    """An object's memory, for as long as anything keeps this."""

    __slots__ = ("__weakref__",)

    def token(self) -> int:
        """The core's number; a ForkError in a child of the process that has the lease."""
        if not self._is_here():
            from .._base.errors import ForkError

            raise ForkError(
                f"object {self.id} is the parent's to finish: it was made before fork()"
            )
        return self._token


def find(source: _native.Array) -> Lease | None:
    """The lease whose memory an array's elements lie in; None if they are not the store's."""
    found = _native.owned_at(source.ptr)
    return found if isinstance(found, Lease) else None


def _before_fork() -> None:
    # A child would have memory mapped that nobody uses any more.
    if (raw := _native.library()) is not None:
        raw.Settle()


os.register_at_fork(before=_before_fork)
_native.store_classes(ObjectID, KINDS)
