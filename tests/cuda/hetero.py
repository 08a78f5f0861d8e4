"""What the tests of hamr.hetero share."""

import gc

from hamr import hetero


def streams_and_events(place="cuda:0"):
    """How many of each are handed out."""
    gc.collect()
    found = hetero.cache_statistics().get(place)
    return (found.streams.used, found.events.used) if found else (0, 0)
