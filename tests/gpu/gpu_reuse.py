"""Rounds in which one stream's memory is given back while a late kernel writes to it."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from typing import Any

from tests.gpu.gpu_delays import write_late

ROUNDS = 1000
LATE = 100.0  # microseconds that the kernel spins before it writes
SIZES = (4096, 40_000, 300_000)  # elements
HELD = 6


def rounds(
    cupy: Any,
    streams: list[Any],
    take: Callable[[int, int], Any],
    give_back: Callable[[Any], Any] = lambda array: None,
) -> tuple[int, int]:
    """In how many rounds a value was wrong, and how often memory went to another stream.

    ``take(number, n)`` makes an array of CuPy's whose memory is of stream ``number``; the
    first one of a round has no other references then. What ``give_back(array)`` returns, if it
    is not None, is used on another stream in place of new memory.
    """
    numbers, last = random.Random(1), {}
    held: collections.deque[Any] = collections.deque(maxlen=HELD)
    wrong = moved = 0
    for value in range(1, ROUNDS + 1):
        one, other = numbers.sample(range(len(streams)), 2)
        n = numbers.choice(SIZES)
        first = take(one, n)
        last[first.data.ptr] = one
        write_late(cupy, streams[one], first, value, LATE)
        second = give_back(first)
        del first
        if second is None:
            with streams[other]:
                second = cupy.empty(n, "f4")
        moved += last.get(second.data.ptr, other) != other
        last[second.data.ptr] = other
        with streams[other]:
            second.fill(-value)
        streams[other].synchronize()
        streams[one].synchronize()
        with streams[other]:
            wrong += bool((second != -value).any())
        held.append(second)
        del second
        if numbers.random() < 0.2:
            held.clear()
    return wrong, moved
