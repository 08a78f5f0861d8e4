"""Memory of objects that this process has, and which object an address is of.

A buffer of an object keeps a ``Lease``, and so do its views, arrays and whatever shares its
memory. The lease ends with the last of them.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right, insort
from weakref import ref

import hamr._native as _native

from .._base.allocator import Transfer
from .._base.element import element_of
from .._base.library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from .ids import ObjectID

    _A = TypeVar("_A", bound=_native.Array)


class Lease:
    """An object's memory, for as long as anything keeps this."""

    __slots__ = (
        "__weakref__",
        "_generation",
        "_token",
        "address",
        "id",
        "nbytes",
        "path",
        "sealed",
    )

    def __init__(
        self, token: int, path: str, id: ObjectID, address: int, nbytes: int, sealed: bool
    ) -> None:
        self._token, self._generation = token, _native.generation()
        self.path, self.id = path, id
        self.address, self.nbytes, self.sealed = address, nbytes, sealed
        if nbytes:
            _regions.add(self)

    def __del__(self) -> None:
        if self.nbytes:
            _regions.remove(self)
        self.end()

    def end(self) -> None:
        """Tell the store, once; what is mapped is no longer to be used."""
        token, self._token = self._token, 0
        # A forked child has the memory of its parent, and no part in its leases.
        if token and self._generation == _native.generation():
            core().StoreRelease(token)

    def token(self) -> int:
        """The core's number; a ForkError in a child of the process that has the lease."""
        if self._generation != _native.generation():
            from .._base.errors import ForkError

            raise ForkError(
                f"object {self.id} is the parent's to finish: it was made before fork()"
            )
        return self._token

    def give_up(self) -> int:
        """The core's number, for a call that ends the lease."""
        token, self._token = self.token(), 0
        return token


class _Regions:
    """Leases by where their memory starts; an object that is had twice has several at one place."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a Lease may end on the thread that adds one
        self._starts: list[int] = []
        self._leases: dict[int, dict[int, ref[Lease]]] = {}

    def add(self, lease: Lease) -> None:
        with self._lock:
            there = self._leases.setdefault(lease.address, {})
            if not there:
                insort(self._starts, lease.address)
            there[id(lease)] = ref(lease)

    def remove(self, lease: Lease) -> None:
        with self._lock:
            there = self._leases.get(lease.address, {})
            if there.pop(id(lease), None) and not there:
                del self._leases[lease.address]
                self._starts.pop(bisect_right(self._starts, lease.address) - 1)

    def find(self, address: int) -> Lease | None:
        with self._lock:
            at = bisect_right(self._starts, address)
            for found in self._leases[self._starts[at - 1]].values() if at else ():
                lease = found()
                if lease is not None and address < lease.address + lease.nbytes:
                    return lease
        return None

    def after_fork(self) -> None:
        self._lock = threading.RLock()


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
    stream: Any = None,
) -> _A:
    """A buffer of an object's elements, which keeps its lease; ``place``: allocator and device."""
    made = _native.adopt_pointer(
        kind,
        element_of(dtype),
        *place,
        0 if stream is None else stream._value,
        Transfer.sync_host,
        lease.address,
        shape,
        None,
        readonly,
        lease,
        False,
    )
    made._source = "store"
    return made


os.register_at_fork(after_in_child=_regions.after_fork)
