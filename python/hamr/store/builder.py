"""A new object, before it is sealed."""

from __future__ import annotations

from contextlib import suppress
from sys import getrefcount

import hamr._native as _native

from .errors import Sealed, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from .._buffer.buffers import Buffer
    from .ids import ObjectID
    from .leases import Lease


def _alone() -> int:
    """The reference count of a local object; before Python 3.14 getrefcount's own counts, too."""
    lease = object()
    return getrefcount(lease)


_OURS = _alone()


class SealedAtEnd:
    """Something unfinished, which the end of a ``with`` block seals, and an exception discards."""

    __slots__ = ()

    if TYPE_CHECKING:  # what it has
        _is_finished: Any
        _given_up: Any
        seal: Any

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if self._is_finished():
            return
        if kind is None:
            try:
                self.seal()
            except BaseException:
                self._given_up()
                raise
        else:
            self._given_up()


class Builder(SealedAtEnd):
    """An object that its maker writes, until it is sealed or aborted.

    ``buffer`` is its memory. After ``seal`` others can get the object, and nobody can write it;
    ``abort`` discards it. ``with builder:`` seals at the end of the block, and aborts after an
    exception. If the builder or its process ends before the object is sealed, the object is
    discarded. NumPy arrays and others that share the memory keep it in any case.
    """

    __slots__ = ("__weakref__", "_buffer", "_lease", "_sealed", "id")

    def __init__(self, lease: Lease, made: Buffer) -> None:
        self._lease: Lease | None = lease
        self._buffer: Buffer | None = made
        self._sealed = False
        self.id: ObjectID = lease.id

    def __repr__(self) -> str:
        state = "finished" if self._is_finished() else "not sealed"
        return f"<hamr.store.Builder of {self.id}, {state}>"

    def _is_finished(self) -> bool:
        return self._lease is None

    @property
    def buffer(self) -> Buffer:
        """The memory, for writing. Sealed after ``seal``, a ValueError after ``abort``."""
        return self._taken()[1]

    def seal(self) -> ObjectID:
        """Let others get the object, after the work that its buffer knows of.

        ``buffer`` is closed. NumPy arrays and others that share its memory must not write any more.
        On the host nobody else sees such writes, if the object has memory of its own; on a device
        they fail. If the store cannot seal the object, it is discarded. If the work has failed, or
        was interrupted, the object stays as it was, and can be aborted. Sealed if the object was
        sealed already, ValueError if it was aborted.
        """
        # Unless the id is taken, the object is deleted again.
        return self._seal()._taken  # type: ignore[no-any-return]

    def _seal(self, is_shared: bool = False) -> _native.Owned:
        """Seal; ``is_shared`` says that code has the elements that does not keep the lease."""
        lease, made = self._taken()
        made.synchronize()
        lease.token()  # refuses a forked child
        self._lease = self._buffer = None
        made.close()
        # Anything else that shares the memory keeps the lease.
        alone = not is_shared and getrefcount(lease) <= _OURS
        sealed = _native.store_seal(lease, alone)
        self._sealed = True
        return sealed

    def abort(self) -> None:
        """Discard the object, after the work that its buffer knows of."""
        lease, made = self._taken()
        lease.token()  # refuses a forked child
        try:
            made.synchronize()
        finally:
            self._lease = self._buffer = None
            made.close()
            _native.store_abort(lease)

    def _given_up(self) -> None:
        """Abort after another error, which is the one that is raised."""
        if self._lease is not None:
            with suppress(StoreError):
                self.abort()

    def _taken(self) -> tuple[Lease, Buffer]:
        if self._lease is None or self._buffer is None:
            if self._sealed:
                raise Sealed(f"object {self.id} was sealed: get it to read it")
            raise ValueError(f"object {self.id} was given up")
        return self._lease, self._buffer
