"""Waiting for devices: in slices, so that Python handles signals, or as coroutines."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

#: How long a signal, such as Ctrl-C, may have to wait. Python handles it only between two calls.
_SLICE_MS = 50

#: How long a coroutine looks at each turn of the event loop, in seconds. After that it looks when
#: a timer fires.
_EAGER = 2e-3


def wait_in_slices(wait: Callable[[int], bool]) -> None:
    """Call a function that waits for some milliseconds, until it returns true."""
    while not wait(_SLICE_MS):
        pass


def until(done: Callable[[], bool]) -> Coroutine[Any, Any, None]:
    """A coroutine that ends when ``done()`` is true. Other coroutines run meanwhile."""
    from asyncio import get_running_loop, sleep
    from time import monotonic

    async def poll() -> None:
        begun = monotonic()
        while not done():
            if monotonic() - begun >= _EAGER:
                from .loop_timer import look_by_timer

                await look_by_timer(get_running_loop(), done, begun)
                return
            await sleep(0)

    return poll()
