"""Which object has a name, each time that it is another one."""

from __future__ import annotations

import os
from contextlib import suppress

import hamr._native as _native

from .arguments import seconds_of
from .errors import StoreLost
from .ids import ObjectID
from .patience import SLICE, is_over, milliseconds_of, until_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable, Generator
    from typing import Any, Self

    from .leases import Connection

#: What no object has for an id.
_NONE = "0" * 32


class _Asked(_native.Owned):
    """The core's watch of a name, which has a connection of its own."""

    __slots__ = ()


class Watch:
    """The objects that have a name, one after the other; see ``Client.watch``.

    It is an iterator that waits, and an asynchronous one. Each gives the present object's id first,
    and then waits for another. ``await watch`` is the next id, too. The newest one is always told,
    of those in between some are not. An object that is told may be replaced before it is got: then
    ``get`` raises ObjectNotFound, and the next one follows.
    """

    def __init__(self, session: Callable[[], Connection], name: str) -> None:
        self.name = name
        self._session: Callable[[], Connection] | None = session
        self._known: str = _NONE
        self._waiting: set[tuple[AbstractEventLoop, Future[None]]] = set()
        self._asked = self._begun(session)

    def __repr__(self) -> str:
        state = ", closed" if self._session is None else ""
        return f"<hamr.store.Watch of {self.name!r}{state}>"

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __next__(self) -> ObjectID:
        while self._session is not None:
            found = self._look(int(SLICE * 1000))
            if found is not None:
                self._wake()
                self._known = found  # no signal is handled from here on
                return found
        raise StopIteration

    async def __anext__(self) -> ObjectID:
        found = await self._next()
        if found is None:
            raise StopAsyncIteration
        return found

    def __await__(self) -> Generator[Any, None, ObjectID]:
        return self._awaited().__await__()

    async def _awaited(self) -> ObjectID:
        found = await self._next()
        if found is None:
            raise self._closed()
        return found

    def take(self, timeout: float = 0.0) -> ObjectID | None:
        """The next id; None if there is no other object within ``timeout`` seconds.

        ValueError after ``close``.
        """
        until = until_of(seconds_of("timeout", timeout))
        while True:
            if self._session is None:
                raise self._closed()
            found = self._look(max(1, milliseconds_of(until)))
            if found is not None:
                self._wake()
                self._known = found
                return found
            if is_over(until):
                return None

    def close(self) -> None:
        """Stop watching. Who waits in another thread, or task, ends soon."""
        self._session = None
        self._asked._end()

    def _closed(self) -> ValueError:
        return ValueError(f"watch of {self.name!r}: it was closed")

    def _begun(self, session: Callable[[], Connection]) -> _Asked:
        asked = _Asked()
        _native.store_watch_name(asked, session(), self.name)
        return asked

    def _here(self) -> int:
        """The core's number of the watch. In a forked child it begins anew."""
        session = self._session
        if session is not None and not self._asked._is_here():
            self._asked = self._begun(session)
        return self._asked._token

    def _look(self, milliseconds: int) -> ObjectID | None:
        """An id that is not known, which is not noted as known yet."""
        try:
            return _native.store_next_name(self._here(), self._known, milliseconds)
        except ValueError:
            if self._session is None:
                return None  # meanwhile
            raise

    async def _next(self) -> ObjectID | None:
        """The next id, or None once it was closed. The loop goes on meanwhile."""
        from asyncio import get_running_loop  # which takes longer to import than all of hamr

        loop = get_running_loop()
        while self._session is not None:
            try:
                descriptor = _native.store_name_descriptor(self._here(), self._known)
            except StoreLost:  # looking for a server may take a second
                found = await loop.run_in_executor(None, self._look, 50)
            except ValueError:
                if self._session is None:
                    return None
                raise
            else:
                await self._readable(loop, descriptor)
                found = self._look(1)
            if found is not None:
                self._wake()
                self._known = found  # of this task, which was not cancelled
                return found
        return None

    async def _readable(self, loop: AbstractEventLoop, descriptor: int) -> None:
        """Wait until something may be read, and close the descriptor."""
        ready = loop.create_future()
        waiting = loop, ready
        try:
            self._waiting.add(waiting)
            loop.add_reader(descriptor, _set, ready)
            try:
                await ready
            finally:
                loop.remove_reader(descriptor)
        finally:
            self._waiting.discard(waiting)
            os.close(descriptor)

    def _wake(self) -> None:
        """Have the tasks ask again that wait for an answer which another one has taken."""
        for loop, ready in tuple(self._waiting):
            with suppress(RuntimeError):  # a loop that was closed
                loop.call_soon_threadsafe(_set, ready)


def _set(ready: Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
