"""The streams and events that are kept for reuse."""

from __future__ import annotations

from typing import NamedTuple

import hamr._native as _native


class CacheCounts(NamedTuple):
    """How many streams, or events, of a device there are."""

    #: Those that were made and not destroyed.
    made: int
    #: Those that nobody has. One is handed out again when its work is over.
    kept: int
    #: Those that somebody has.
    used: int
    #: How often a kept one was handed out.
    hits: int


class CacheStatistics(NamedTuple):
    """What is kept for reuse on a device."""

    streams: CacheCounts
    events: CacheCounts


def cache_statistics() -> dict[str, CacheStatistics]:
    """What is kept for reuse on each device that was used, by its name, such as "cuda:0".

    ``hamr.trim()`` destroys what is kept and done. The hits of events do not include those that
    never reach the core, which are most.
    """
    _native.give_events()
    found = {}
    for place, *numbers in _native.cached_places():
        found[place] = CacheStatistics(CacheCounts(*numbers[:4]), CacheCounts(*numbers[4:]))
    return found
