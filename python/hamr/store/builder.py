"""An object that is being made."""

from __future__ import annotations

from contextlib import suppress
from sys import getrefcount

import hamr._native as _native

from .errors import Sealed, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from .._buffer.buffers import Buffer
    from .ids import ObjectID
    from .leases import Lease


def _alone() -> int:
    """References to what a function alone has: getrefcount's own counts before Python 3.14."""
    lease = object()
    return getrefcount(lease)


_OURS = _alone()


class Builder:
    """An object that its maker writes, until it is sealed or aborted.

    ``buffer`` is its memory. ``seal`` lets others have it, and nobody write it any more; ``abort``
    gives it up. ``with builder:`` seals at the end of the block, and aborts after an exception. An
    object whose builder goes, or whose process dies, before it is sealed, is given up. Memory that
    NumPy's arrays and others share stays theirs in any case.
    """

    __slots__ = ("__weakref__", "_buffer", "_lease", "_sealed", "id")

    def __init__(self, lease: Lease, made: Buffer) -> None:
        self._lease: Lease | None = lease
        self._buffer: Buffer | None = made
        self._sealed = False
        self.id: ObjectID = lease.id

    def __repr__(self) -> str:
        state = "finished" if self._lease is None else "not sealed"
        return f"<hamr.store.Builder of {self.id}, {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if self._lease is None:
            return
        if kind is None:
            try:
                self.seal()
            except BaseException:
                self._given_up()
                raise
        else:
            self._given_up()

    @property
    def buffer(self) -> Buffer:
        """The memory, to be written; Sealed once it was sealed, a ValueError once aborted."""
        return self._taken()[1]

    def seal(self) -> ObjectID:
        """Let others have the object, once the work is over that its buffer knows of.

        ``buffer`` is closed. What shares its memory, as NumPy's arrays, must not write any more: on
        the host such writes are nobody else's to see, if the object has memory of its own; on a
        device they fail. If the store cannot seal it, the object is given up. Where the work has
        failed, or was interrupted, it is left as it was, to be aborted. An object that was sealed
        already is Sealed, one that was aborted a ValueError.
        """
        lease, made = self._taken()
        made.synchronize()
        lease.token()  # refuses a forked child
        self._lease = self._buffer = None
        made.close()
        alone = getrefcount(lease) <= _OURS  # whatever shares the memory keeps the lease
        sealed = _native.store_seal(lease, alone)
        self._sealed = True
        # Without this the object goes again.
        return sealed._taken  # type: ignore[no-any-return]

    def abort(self) -> None:
        """Give the object up, once the work is over that its buffer knows of."""
        lease, made = self._taken()
        lease.token()  # refuses a forked child
        try:
            made.synchronize()
        finally:
            self._lease = self._buffer = None
            made.close()
            _native.store_abort(lease)

    def _given_up(self) -> None:
        """Abort beside another error, which is the one to tell of."""
        if self._lease is not None:
            with suppress(StoreError):
                self.abort()

    def _taken(self) -> tuple[Lease, Buffer]:
        if self._lease is None or self._buffer is None:
            if self._sealed:
                raise Sealed(f"object {self.id} was sealed: get it to read it")
            raise ValueError(f"object {self.id} was given up")
        return self._lease, self._buffer
