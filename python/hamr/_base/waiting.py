"""Waiting for devices: in slices, so that signals come through, or as coroutines."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

#: How long a signal, such as Ctrl-C, may have to wait: Python handles it only
#: between two calls.
_SLICE_MS = 50

_SHORTEST, _LONGEST = 1e-5, 1e-3  # seconds between two looks of a coroutine


def wait_in_slices(wait: Callable[[int], bool]) -> None:
    """Call what waits for some milliseconds until it says that all is over."""
    while not wait(_SLICE_MS):
        pass


def until(done: Callable[[], bool]) -> Coroutine[Any, Any, None]:
    """A coroutine that ends when ``done()`` is true, and lets others run meanwhile."""
    import asyncio

    async def poll() -> None:
        pause = 0.0
        while not done():
            await asyncio.sleep(pause)
            pause = min(max(2 * pause, _SHORTEST), _LONGEST)

    return poll()
