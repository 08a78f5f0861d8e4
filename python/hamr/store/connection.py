"""A process's session with a server: what has leases."""

from __future__ import annotations

from .._base.library import core
from .owned import Owned


class Connection(Owned):
    """A session, which ends when neither a Client nor a Lease keeps it.

    Were it to end before its leases, the place of a small object that is deleted could be another
    one's while a buffer still has it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(core().StoreDisconnect)
