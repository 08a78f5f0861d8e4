"""What tests leave behind of allocators' memory: nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import hamr
from tests.support.processes import wait_until


@contextmanager
def nothing_left(*allocators: str) -> Iterator[None]:
    """As many allocations are live behind it as before: soon, as what work uses ends with that."""

    def live() -> list[int]:
        known = hamr.stats()["allocators"]
        return [known[name]["live"] if name in known else 0 for name in allocators]

    gc.collect()
    before = live()
    yield
    gc.collect()
    wait_until(lambda: live() == before)
