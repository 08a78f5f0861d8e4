"""Waiting for a server in slices, to notice when a client or events are closed.

The core's calls handle signals meanwhile.
"""

from __future__ import annotations

import time

from .errors import StoreTimeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _T = TypeVar("_T")

#: Seconds that a call waits at most before it is made again.
SLICE = 0.25


def until_of(timeout: float | None) -> float | None:
    """The end of a timeout that begins now; None is never."""
    return None if timeout is None else time.monotonic() + timeout


def is_over(until: float | None) -> bool:
    """Whether a timeout has ended."""
    return until is not None and time.monotonic() >= until


def seconds_until(until: float | None) -> float | None:
    """The seconds that are left of a timeout."""
    return None if until is None else max(0.0, until - time.monotonic())


def milliseconds_of(until: float | None) -> int:
    """How long the next call may wait."""
    left = SLICE if until is None else max(0.0, min(SLICE, until - time.monotonic()))
    return int(left * 1000)


def found_within(
    timeout: float | None, wait: bool, look: Callable[[int], _T | None], what: str
) -> _T:
    """The result of ``look(milliseconds)``. With ``wait`` it looks until that is not None.

    StoreTimeout after ``timeout`` seconds; ``what`` begins its message.
    """
    until = until_of(timeout)
    while True:
        found = look(max(1, milliseconds_of(until)) if wait else 0)
        if found is not None:
            return found
        if is_over(until):
            raise StoreTimeout(f"{what} within {timeout} s")
