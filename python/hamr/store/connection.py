"""A process's session with a server: what has leases."""

from __future__ import annotations

import hamr._native as _native

from .._base.library import core


class Connection:
    """A session, which ends when neither a Client nor a Lease keeps it.

    Were it to end before its leases, the place of a small object that is deleted could be another
    one's while a buffer still has it.
    """

    __slots__ = ("generation", "token")

    def __init__(self, token: int) -> None:
        self.token, self.generation = token, _native.generation()

    def __del__(self) -> None:
        if self.is_here():
            core().StoreDisconnect(self.token)

    def is_here(self) -> bool:
        """Whether it is this process's own, and not its parent's."""
        return self.generation == _native.generation()
