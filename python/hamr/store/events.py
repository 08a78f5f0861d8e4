"""Events of objects, as they happen."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import hamr._native as _native

from .arguments import seconds_of
from .ids import ObjectID
from .patience import SLICE, is_over, milliseconds_of, until_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from .leases import Connection


class StoreEvent(NamedTuple):
    """Something that has happened to an object."""

    kind: str  #: ``"created"``, ``"sealed"``, ``"deleted"``, ``"evicted"``, ``"named"`` …
    id: ObjectID
    name: str = ""  #: of ``"named"`` and ``"unnamed"``
    missed: int = 0  #: of ``"missed"``: how many events were lost, since nobody read them in time


class Events(_native.Owned):
    """An iterator over the events of objects; see ``Client.events``."""

    def __init__(self, session: Connection) -> None:
        self._left: deque[StoreEvent] = deque()
        _native.store_watch(self, session)

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __next__(self) -> StoreEvent:
        while True:
            if not self._token or not self._is_here():
                raise StopIteration
            event = self.take(SLICE)
            if event is not None:
                return event

    def take(self, timeout: float = 0.0) -> StoreEvent | None:
        """The next event; None if there is none within ``timeout`` seconds."""
        until = until_of(seconds_of("timeout", timeout))
        while not self._left:
            if not self._token or not self._is_here():
                raise ValueError("events: it was closed, or is the parent process's")
            told = _native.store_next_events(self._token, milliseconds_of(until))
            self._left += [StoreEvent(*each) for each in told]
            if is_over(until):
                break
        return self._left.popleft() if self._left else None

    def close(self) -> None:
        """Stop watching."""
        self._end()
