"""Telling an event loop that a device's work is over, without a thread that waits for it.

The core watches events, and writes to a descriptor that the loop watches when one is done. That
is what ``call_soon_threadsafe`` does for a thread that has waited, less the thread and its lock.
"""

from __future__ import annotations

import os
from asyncio import get_running_loop
from contextlib import suppress
from weakref import WeakKeyDictionary, finalize

import hamr._native as _native

from .._base.library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from .._native import Product


class _Told:
    """What one event loop waits for."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.generation = _native.generation()
        self.waiting: dict[int, tuple[Future[None], Product]] = {}  # by the core's ticket
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        finalize(self, os.close, self.descriptor)

    async def wait(self, loop: AbstractEventLoop, product: Product) -> None:
        future = loop.create_future()
        if not self.waiting:
            loop.add_reader(self.descriptor, self._look)
        ticket = core().WatchEvent(product.backend, product.device, product._event, self.descriptor)
        self.waiting[ticket] = future, product
        try:
            await future
        finally:
            if self.waiting.pop(ticket, None):  # cancelled
                core().Unwatch(ticket)
            if not self.waiting:
                loop.remove_reader(self.descriptor)

    def _look(self) -> None:
        with suppress(BlockingIOError):  # a ticket of a wait that was cancelled
            os.eventfd_read(self.descriptor)
        while ticket := core().TakeWatched(self.descriptor):
            future, product = self.waiting.pop(ticket)
            if future.done():  # cancelled, and not told yet
                continue
            try:
                product.done  # noqa: B018  # a device's error comes from here
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(None)


_loops: WeakKeyDictionary[AbstractEventLoop, _Told] = WeakKeyDictionary()


async def completed(product: Product) -> None:
    """Wait until the work is over that a product stands for; a device's error is raised.

    The running event loop is not blocked.
    """
    if product.done:
        return
    loop = get_running_loop()
    told = _loops.get(loop)
    if told is None or told.generation != _native.generation():
        told = _loops[loop] = _Told(loop)
    await told.wait(loop, product)
