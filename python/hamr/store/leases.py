"""Memory of objects that this process has, and which object an address is of.

A buffer of an object keeps a ``Lease``, and so do its views, arrays and whatever shares its
memory. The lease ends with the last of them.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import deque
from itertools import count
from weakref import ref

import hamr._native as _native

from .._base.allocator import Transfer
from .._base.element import element_of
from .._base.library import core
from .owned import Owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeVar

    from .connection import Connection
    from .ids import ObjectID

    _A = TypeVar("_A", bound=_native.Array)
    #: Where it starts, a number, bytes, and whose it is.
    _Region: TypeAlias = tuple[int, int, int, ref["Lease"]]


class Lease(Owned):
    """An object's memory, for as long as anything keeps this."""

    __slots__ = (
        "__weakref__",
        "_connection",
        "_region",
        "address",
        "id",
        "nbytes",
        "path",
        "sealed",
    )

    def __init__(
        self,
        token: int,
        connection: Connection,
        path: str,
        id: ObjectID,
        address: int,
        nbytes: int,
        sealed: bool,
    ) -> None:
        self._region = None  # so that __del__ ends the lease where a signal comes in between
        super().__init__(token)
        self._connection = connection  # it ends with the last lease
        self.path, self.id = path, id
        self.address, self.nbytes, self.sealed = address, nbytes, sealed
        if nbytes:
            self._region = _regions.add(self)

    def __del__(self) -> None:
        if self._region is not None:
            _regions.remove(self._region)
        self.end()

    def end(self) -> None:
        """Tell the store, once; what is mapped is no longer to be used."""
        # A forked child has the memory of its parent, and no part in its leases.
        if token := self._taken():
            core().StoreRelease(token)

    def token(self) -> int:
        """The core's number; a ForkError in a child of the process that has the lease."""
        if not self._is_here():
            from .._base.errors import ForkError

            raise ForkError(
                f"object {self.id} is the parent's to finish: it was made before fork()"
            )
        return self._token


class _Regions:
    """Leases by where their memory starts; an object that is had twice has several at one place.

    A lease may end at any time on any thread: in a collection, or in a signal's handler, also while
    this very thread is in a method here. So a change is noted by one step that nothing interrupts,
    and made by whoever has the lock, one at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0  # the thread that has the lock
        self._numbers = count()
        self._changes: deque[tuple[bool, _Region]] = deque()
        self._regions: list[_Region] = []  # sorted

    def add(self, lease: Lease) -> _Region:
        region = (lease.address, next(self._numbers), lease.nbytes, ref(lease))
        self._changes.append((True, region))
        self._settle()
        return region

    def remove(self, region: _Region) -> None:
        self._changes.append((False, region))
        self._settle()

    def _settle(self) -> None:
        """Make the changes, unless somebody does, who sees to these, too."""
        while self._changes and self._lock.acquire(blocking=False):
            self._with_lock()

    def _with_lock(self, address: int | None = None) -> Lease | None:
        """Make the changes, and find a lease; the lock is given back."""
        try:
            self._owner = threading.get_ident()
            while self._changes:
                self._change(*self._changes[0])
                self._changes.popleft()  # not before: who is interrupted has it made again
            return None if address is None else self._found(address)
        finally:
            self._owner = 0
            self._lock.release()

    def _change(self, added: bool, region: _Region) -> None:
        at = bisect_left(self._regions, region[:2])
        there = at < len(self._regions) and self._regions[at][:2] == region[:2]
        if added and not there:
            self._regions.insert(at, region)
        elif there and not added:
            del self._regions[at]

    def find(self, address: int) -> Lease | None:
        if self._owner == threading.get_ident():  # in a handler of this thread's
            added = [region for added, region in list(self._changes) if added]
            return _first_of(address, [*self._regions, *added])
        self._lock.acquire()
        found = self._with_lock(address)
        self._settle()
        return found

    def _found(self, address: int) -> Lease | None:
        last = bisect_left(self._regions, (address + 1,))
        if not last:
            return None
        first = bisect_left(self._regions, self._regions[last - 1][:1])
        return _first_of(address, self._regions[first:last])

    def before_fork(self) -> None:
        if self._owner != threading.get_ident():
            self._lock.acquire()
            self._owner = threading.get_ident()
            self._forking = True

    def after_fork(self) -> None:
        if self._forking:
            self._forking = False
            self._owner = 0
            self._lock.release()

    _forking = False


def _first_of(address: int, regions: list[_Region]) -> Lease | None:
    for start, _, nbytes, reference in regions:
        lease = reference()
        if lease is not None and start <= address < start + nbytes:
            return lease
    return None


_regions = _Regions()


def find(source: _native.Array) -> Lease | None:
    """The lease whose memory an array's elements lie in; None if they are not the store's."""
    return _regions.find(source.ptr) if source.ptr else None


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
    _regions.before_fork()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_regions.after_fork,
    after_in_child=_regions.after_fork,
)
