"""Choosing by measured times: from which size on to stage copies, and by how many threads."""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: Seconds of a copy: by its size, and by the number of threads; 0 is the driver.
    Times = dict[int, dict[int, float]]

KIB, MIB = 1 << 10, 1 << 20

DRIVER = 0
NEVER = -1

#: The smallest is the smallest that the core looks for a tuning for.
SIZES = tuple(512 * KIB << n for n in range(8))
QUICK_SIZES = SIZES[1::2]

#: No copy of these sizes has pieces for more threads.
MOST_THREADS = 31

#: Threads cost others time. The fewest are chosen whose copies take up to so much of the fastest.
NEAR = 1.03


class Choice(NamedTuple):
    """From how many bytes on copies are staged, or NEVER, and by how many more threads."""

    start: int
    threads: int


def thread_counts(processors: int, quick: bool = False) -> list[int]:
    """Numbers of threads to try beside the caller's: up to one for each other processor."""
    most = max(min(processors - 1, MOST_THREADS), 1)
    powers = [1 << n for n in range(most.bit_length())]
    between = [] if quick else [n * 3 // 2 for n in powers if n > 1]
    return sorted({n for n in (*powers, *between) if n < most} | {most})


def measure(
    seconds: Callable[[str, int, int], float],
    direction: str,
    sizes: Sequence[int],
    counts: Sequence[int],
    rounds: int,
) -> Times:
    """Medians of ``seconds(direction, nbytes, threads)``, taken in turns."""
    ways = [DRIVER, *counts]
    times: Times = {}
    for nbytes in sizes:
        taken: dict[int, list[float]] = {way: [] for way in ways}
        for number in range(rounds):
            first = number % len(ways)  # so that none always follows the same one
            for way in ways[first:] + ways[:first]:
                taken[way].append(seconds(direction, nbytes, way))
        times[nbytes] = {way: statistics.median(list_) for way, list_ in taken.items()}
    return times


def choose(times: Times) -> Choice:
    """The fewest threads that are near the fastest for large copies, and where they win."""
    sizes = sorted(times)
    large = sizes[len(sizes) // 2 :]
    counts = sorted(n for n in times[sizes[0]] if n != DRIVER)
    cost = {n: sum(math.log(times[size][n]) for size in large) / len(large) for n in counts}
    best = min(cost.values())
    threads = next(n for n in counts if cost[n] <= best + math.log(NEAR))
    start = NEVER
    for size in reversed(sizes):
        if times[size][threads] >= times[size][DRIVER]:
            break
        start = size
    return Choice(start, threads)


def combine(choices: Sequence[Choice]) -> Choice:
    """One choice for several devices of a kind, which is worth it on each of them."""
    starts = [c.start for c in choices]
    return Choice(NEVER if NEVER in starts else max(starts), min(c.threads for c in choices))
