"""Looking from time to time, by a timer that an event loop watches, whether something is over."""

from __future__ import annotations

import os
from time import monotonic

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

#: The pause between two looks, as a part of the time waited, so that what has ended is noticed
#: soon beside what it took; and the longest, in seconds.
_FRACTION = 1 / 160
_LONGEST = 20e-3

#: A loop that comes late, since it has much to do, is asked less often, but not for more than
#: this part of the time waited.
_LARGEST_FRACTION = 1 / 8


async def look_by_timer(loop: AbstractEventLoop, done: Callable[[], bool], begun: float) -> None:
    """Return when ``done()``, which is not so yet, is true; its errors are raised.

    ``begun`` is when the wait began, by ``time.monotonic``. A loop's own timers are up to a
    millisecond late; a thread that waited would have to wake the loop's, which sleeps deeply then.
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
