"""Sharing elements in place with other processes, without a server: handles, and what they open.

A handle is a frame, whose format Go knows, and descriptors. It is sent over a socket of the
program's own, by multiprocessing, or by anything else that duplicates descriptors.
"""

from __future__ import annotations

import os
import socket
import sys
from array import array
from contextlib import suppress
from multiprocessing.reduction import DupFd, ForkingPickler

import hamr._native as _native

from .._base.errors import ForkError
from .._base.unopened import or_unopened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn, Self

_COPYING = {None: 0, False: 1, True: 2}


class SharedHandle(_native.SharedHandle):
    """What another process needs to open a buffer's memory: the result of ``Buffer.share()``.

    Send it by ``send`` over a connected UNIX socket, or as an argument of a process, or by a queue
    or a pipe of multiprocessing; or let a forked child inherit it; or send ``to_bytes()`` and
    ``descriptors`` by a transport of your own. ``hamr.open_shared`` opens it, any number of times.
    The memory lasts while anybody has the handle, or what was opened by it. ``close()``, the end
    of a ``with`` block or the end of the object releases it. Do not close a handle that
    multiprocessing has not sent yet.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        what = ", ".join(name for name in ("copied", "readonly") if getattr(self, name))
        return f"<hamr.SharedHandle{state}{': ' * bool(what)}{what}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "a pickle carries no descriptors: send the handle by multiprocessing or by "
            "send(socket), or buffer.copy(), which a pickle carries"
        )

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that go with ``to_bytes()``. The handle owns and closes them."""
        _, descriptors = self._begin()
        self._end()
        return descriptors

    def to_bytes(self) -> bytes:
        """The bytes that go with the descriptors: at most 4096."""
        frame, _ = self._begin()
        self._end()
        return frame

    def send(self, connection: socket.socket) -> None:
        """Send the handle over a connected UNIX socket; ``hamr.open_shared`` receives it."""
        left = self._send(connection) if type(connection) is socket.socket else self
        if not isinstance(left, bytes):
            self._send_waiting(connection)
        elif left:
            connection.sendall(left)

    @property
    def copied(self) -> bool:
        """Whether receivers get a copy of the elements, in memory that nobody else has."""
        return super().copied

    @property
    def readonly(self) -> bool:
        """Whether receivers get the elements for reading only."""
        return super().readonly

    def close(self) -> None:
        """Release the handle. What was opened by it lasts. Closing twice is harmless."""
        super().close()

    def _send_waiting(self, connection: socket.socket) -> None:
        """Send it by Python's socket, which waits for room and raises the right errors."""
        check_socket(connection)
        frame, descriptors = self._begin()
        try:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))
            sent = connection.sendmsg([frame], [rights] if descriptors else [])
            if sent < len(frame):
                connection.sendall(frame[sent:])
        finally:
            self._end()


def close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def check_socket(connection: Any) -> None:
    if not isinstance(connection, socket.socket):
        raise TypeError(f"socket is {connection!r}: accepted is a connected UNIX socket")
    if connection.family != socket.AF_UNIX:
        raise ValueError(f"socket is {connection!r}: accepted is a UNIX socket")


# Making handles.


def shared(source: _native.Array, copy: bool | None, readonly: bool) -> SharedHandle:
    """What ``Buffer.share`` returns."""
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy is {copy!r}: accepted are None, True and False")
    if not isinstance(readonly, bool):
        raise TypeError(f"readonly is {readonly!r}: accepted are True and False")
    return _native.share(SharedHandle, source, _COPYING[copy], readonly, _stored)


def _stored(owner: Any) -> int:
    """The core's number of the store's object that owns memory; 0 for other owners."""
    leases = sys.modules.get("hamr.store.leases")
    if leases is not None and isinstance(owner, leases.Lease):
        with suppress(ForkError):  # the parent's lease: this process only has the elements
            token: int = owner.token()
            return token
    return 0


# Multiprocessing.


def _reduced(handle: SharedHandle) -> tuple[Any, ...]:
    frame, descriptors = handle._begin()
    try:
        sent = [DupFd(each) for each in descriptors]
    finally:
        handle._end()
    return _rebuilt, (frame, sent, handle.copied, handle.readonly)


@or_unopened
def _rebuilt(frame: bytes, sent: list[Any], copied: bool, readonly: bool) -> SharedHandle:
    descriptors: list[int] = []
    try:
        for each in sent:
            descriptors.append(each.detach())
            os.set_inheritable(descriptors[-1], False)
    except BaseException:
        close_all(descriptors)
        raise
    return SharedHandle(frame, (*descriptors,), copied, readonly)


def _before_fork() -> None:
    # Else a child would keep memory that nobody uses any more.
    if (raw := _native.library()) is not None:
        raw.Settle()


ForkingPickler.register(SharedHandle, _reduced)
os.register_at_fork(before=_before_fork, after_in_child=_native.leave_opened)
