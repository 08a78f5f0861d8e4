"""Memory of objects that this process has, and which object an address is of.

A buffer of an object keeps a ``Lease``, and so do its views, arrays and whatever shares its
memory. The lease ends with the last of them.
"""

from __future__ import annotations

import os

import hamr._native as _native

from .._base.allocator import Transfer
from .._base.element import element_of
from .._base.library import core
from .owned import Owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from .connection import Connection
    from .ids import ObjectID

    _A = TypeVar("_A", bound=_native.Array)


class Lease(Owned):
    """An object's memory, for as long as anything keeps this.

    It is there before the request for it, and ``made`` says then what has come.
    """

    __slots__ = ("__weakref__", "address", "id", "nbytes", "path", "sealed")

    def __init__(self, connection: Connection) -> None:
        super().__init__(core().StoreRelease, connection)  # which ends with the last lease

    def made(self, path: str, id: ObjectID, address: int, nbytes: int, sealed: bool) -> None:
        """Say which object it is of, and where that is."""
        self.path, self.id = path, id
        self.address, self.nbytes, self.sealed = address, nbytes, sealed
        self._lies_at(address, nbytes)

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


def over(
    kind: type[_A],
    lease: Lease,
    dtype: str,
    shape: tuple[int, ...],
    place: tuple[int, int],
    readonly: bool,
) -> _A:
    """A buffer of an object's elements, which keeps its lease; ``place``: allocator and device."""
    made = _native.adopt_mapped(
        kind,
        element_of(dtype),
        *place,
        0,
        Transfer.sync_host,
        lease.address,
        shape,
        None,
        readonly,
        lease,
    )
    made._source = "store"
    return made


def _before_fork() -> None:
    # A child would have memory mapped that nobody uses any more.
    if (raw := _native.library()) is not None:
        raw.Settle()


os.register_at_fork(before=_before_fork)
