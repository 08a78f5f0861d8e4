"""Telling an event loop that a device's work is over, without a thread that waits for it.

The core watches events. When one is done it writes to a descriptor that the loop watches.
``call_soon_threadsafe`` does the same for a thread that has waited; here there is no thread and no
lock.
"""

from __future__ import annotations

import os
from asyncio import get_running_loop
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary, finalize, ref

import hamr._native as _native

from .._base.library import core
from .._base.waiting import until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import TypeAlias

    from .._native import Product

    Tell: TypeAlias = Callable[[Exception | None], None]


class _Waiting(dict[int, "tuple[Tell, Product]"]):
    """The waiters, by the core's ticket.

    Only the loop's reader keeps this object. The waiters refer to their loop, which could not be
    freed if this module kept them. A closed loop has no reader any more.
    """

    __slots__ = ("__weakref__", "_close")

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def __del__(self) -> None:
        self._close()  # the core still watches events of products, which end next


class _Told:
    """What one event loop waits for."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.generation = _native.generation()
        self.loop = ref(loop)
        self._waiting: ref[_Waiting] | None = None  # None: nobody waits
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.tickets: set[int] = set()  # those that the core watches
        self.looking = 0  # how many coroutines ask for themselves, see _MOST_LOOKING
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
        """Stop waiting for a ticket."""
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
                else:  # the core could not ask before: the work is still in flight
                    self.begin(product, tell)
                # The traceback of a later event's error refers to this frame.
                del tell, product, error
        except BaseException:  # mostly a signal's: the descriptor is not written again for the rest
            self._loop().call_soon(self._look, kept)
            raise
        self._end_reading()


def _outcome(product: Product) -> tuple[bool, Exception | None]:
    """Whether the work is over, and its error. After an error the work is over."""
    try:
        return product.done, None
    except Exception as error:
        del product  # the error refers to this frame
        return True, error


def _unwatch(tickets: set[int], generation: int) -> None:
    """Stop the core from watching the tickets and writing to their descriptor."""
    if generation == _native.generation():
        while tickets:
            core().Unwatch(tickets.pop())


def _close(descriptor: int, unwatch: Callable[[], None]) -> None:
    """Close the descriptor, after the core stops writing: the number may then be another file's."""
    unwatch()
    os.close(descriptor)


_loops: WeakKeyDictionary[AbstractEventLoop, _Told] = WeakKeyDictionary()


def _told_of(loop: AbstractEventLoop) -> _Told:
    told = _loops.get(loop)
    if told is None or told.generation != _native.generation():
        told = _loops[loop] = _Told(loop)
    return told


def when_completed(product: Product, tell: Tell) -> None:
    """Make the running event loop call ``tell(error)`` once a product's work is over.

    ``error`` is the device's error or None. The product is kept until then. ``tell`` runs with the
    context variables of the first waiter.
    """
    _told_of(get_running_loop()).begin(product, tell)


#: Seconds between two looks at a product that cannot be watched.
_PAUSE = 0.001


def when_completed_somehow(product: Product, tell: Tell) -> None:
    """The same; if there is no descriptor, the loop looks from time to time."""
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


#: So many coroutines of a loop ask the device themselves. That is sooner, since the loop's thread
#: need not be woken by another one, but each look takes the loop's time. For more of them the core
#: looks.
_MOST_LOOKING = 4


async def soon_completed(product: Product) -> None:
    """The same as ``completed``, and sooner if few coroutines wait."""
    told = _told_of(get_running_loop())
    if told.looking >= _MOST_LOOKING:
        await completed(product)
        return
    told.looking += 1
    try:
        await until(lambda: product.done)
    finally:
        told.looking -= 1


async def completed(product: Product) -> None:
    """Wait until a product's work is over. A device's error is raised.

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
