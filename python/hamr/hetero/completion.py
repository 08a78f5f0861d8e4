"""Telling an event loop that a device's work is over, without a thread that waits for it.

The core watches events, and writes to a descriptor that the loop watches when one is done. That
is what ``call_soon_threadsafe`` does for a thread that has waited, less the thread and its lock.
"""

from __future__ import annotations

import os
from asyncio import get_running_loop
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary, finalize, ref

import hamr._native as _native

from .._base.library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import TypeAlias

    from .._native import Product

    Tell: TypeAlias = Callable[[Exception | None], None]


class _Waiting(dict[int, "tuple[Tell, Product]"]):
    """Who waits, by the core's ticket.

    The loop's reader keeps it, and nothing else does: those who wait lead to their loop, which
    could not go while this module kept them. A loop that is closed has no reader any more.
    """

    __slots__ = ("__weakref__", "_close")

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def __del__(self) -> None:
        self._close()  # the core asks for products' events, which go next


class _Told:
    """What one event loop waits for."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.generation = _native.generation()
        self.loop = ref(loop)
        self._waiting: ref[_Waiting] | None = None  # None: nobody waits
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.tickets: set[int] = set()  # that the core watches
        self._unwatch = partial(_unwatch, self.tickets, self.generation)
        finalize(self, _close, self.descriptor, self._unwatch)

    def begin(self, product: Product, tell: Tell) -> int:
        waiting = self._now()
        if waiting is None:
            waiting = _Waiting(self._unwatch)
            self._loop().add_reader(self.descriptor, self._look, waiting)
            self._waiting = ref(waiting)
        try:
            event = product._event
            ticket = core().WatchEvent(product.backend, product.device, event, self.descriptor)
        except BaseException:
            self._end_reading()
            raise
        waiting[ticket] = tell, product
        self.tickets.add(ticket)
        return ticket

    def end(self, ticket: int) -> None:
        """Nobody waits for it any more."""
        if ticket in self.tickets:
            core().Unwatch(ticket)
            self.tickets.discard(ticket)
        waiting = self._now()
        if waiting is not None:
            waiting.pop(ticket, None)
            self._end_reading()

    def _now(self) -> _Waiting | None:
        return None if self._waiting is None else self._waiting()

    def _end_reading(self) -> None:
        waiting, loop = self._now(), self.loop()
        if waiting is not None and not waiting and loop is not None:
            self._waiting = None
            if not loop.is_closed():
                loop.remove_reader(self.descriptor)

    def _loop(self) -> AbstractEventLoop:
        loop = self.loop()
        assert loop is not None
        return loop

    def _look(self, kept: _Waiting) -> None:
        with suppress(BlockingIOError):  # a ticket of a wait that was cancelled
            os.eventfd_read(self.descriptor)
        try:
            while ticket := core().TakeWatched(self.descriptor):
                waiting = self._now()
                assert waiting is not None
                tell, product = waiting.pop(ticket)
                self.tickets.discard(ticket)
                over, error = _outcome(product)
                if over:
                    tell(error)
                else:  # asking failed, and does so no more: the work is still under way
                    self.begin(product, tell)
                # The frames of an error that a later event has met lead to this one.
                del tell, product, error
        except BaseException:  # a signal's, as a rule: what is left is not written for again
            self._loop().call_soon(self._look, kept)
            raise
        self._end_reading()


def _outcome(product: Product) -> tuple[bool, Exception | None]:
    """Whether the work is over, as it is after an error, and the error."""
    try:
        return product.done, None
    except Exception as error:
        del product  # the error leads to this frame
        return True, error


def _unwatch(tickets: set[int], generation: int) -> None:
    """Have the core watch none of them, nor write to their descriptor."""
    if generation == _native.generation():
        while tickets:
            core().Unwatch(tickets.pop())


def _close(descriptor: int, unwatch: Callable[[], None]) -> None:
    """The core writes to the descriptor no more: its number may be somebody else's file then."""
    unwatch()
    os.close(descriptor)


_loops: WeakKeyDictionary[AbstractEventLoop, _Told] = WeakKeyDictionary()


def _told_of(loop: AbstractEventLoop) -> _Told:
    told = _loops.get(loop)
    if told is None or told.generation != _native.generation():
        told = _loops[loop] = _Told(loop)
    return told


def when_completed(product: Product, tell: Tell) -> None:
    """Have ``tell(error)`` called by the running event loop once a product's work is over.

    ``error`` is the device's, None if there is none. The product is kept until then. ``tell`` has
    the context variables of whoever waited first.
    """
    _told_of(get_running_loop()).begin(product, tell)


#: Seconds between two looks at what cannot be watched.
_PAUSE = 0.001


def when_completed_somehow(product: Product, tell: Tell) -> None:
    """The same, by looks now and then where there is no descriptor for it."""
    try:
        when_completed(product, tell)
    except Exception:
        get_running_loop().call_later(_PAUSE, _look_at, product, tell)


def _look_at(product: Product, tell: Tell) -> None:
    over, error = _outcome(product)
    if over:
        tell(error)
    else:
        get_running_loop().call_later(_PAUSE, _look_at, product, tell)
    del product, tell, error  # as in _Told._look


async def completed(product: Product) -> None:
    """Wait until the work is over that a product stands for; a device's error is raised.

    The running event loop is not blocked.
    """
    if product.done:
        return
    loop = get_running_loop()
    told, future = _told_of(loop), loop.create_future()

    def tell(error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    ticket = told.begin(product, tell)
    try:
        await future
    finally:
        told.end(ticket)
