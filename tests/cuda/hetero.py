"""What the tests of hamr.hetero share."""

import gc

from hamr._base.library import core


def streams_and_events(place="cuda:0"):
    """How many of each are handed out."""
    gc.collect()
    for line in core().CachedPlaces().splitlines():
        name, *numbers = line.split()
        if name == place:
            return int(numbers[2]), int(numbers[6])
    return 0, 0
