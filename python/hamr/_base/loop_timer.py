"""Polling by a timer that an event loop watches, until something is over."""

from __future__ import annotations

import os
from time import monotonic

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

#: The pause between two looks, as a part of the time waited, so that the delay is short beside
#: the whole wait; and the longest pause, in seconds.
_FRACTION = 1 / 160
_LONGEST = 20e-3

#: A busy loop, which comes late, is asked less often. The pause is at most this part of the time
#: waited.
_LARGEST_FRACTION = 1 / 8


async def look_by_timer(loop: AbstractEventLoop, done: Callable[[], bool], begun: float) -> None:
    """Return when ``done()``, which is still false, becomes true; its errors are raised.

    ``begun`` is when the wait began, by ``time.monotonic``. A loop's own timers are up to a
    millisecond late. A waiting thread would have to wake the loop's thread from deep sleep.
    """
    ended = loop.create_future()
    timer = _native.new_timer()
    due = 0.0

    def arm(now: float, behind: float) -> None:
        nonlocal due
        waited = now - begun
        pause = min(max(waited * _FRACTION, behind), waited * _LARGEST_FRACTION, _LONGEST)
        due = now + pause
        _native.set_timer(timer, pause)

    def look() -> None:
        if ended.done():
            return
        try:
            over = done()
        except Exception as error:
            ended.set_exception(error)
            return
        now = monotonic()
        if over:
            ended.set_result(None)
        else:
            arm(now, now - due)

    try:
        now = monotonic()
        arm(now, 0)
        loop.add_reader(timer, look)
        await ended
    finally:
        loop.remove_reader(timer)
        os.close(timer)
