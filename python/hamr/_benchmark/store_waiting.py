"""What a thread's other work takes beside threads that wait in the store."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

#: Of the time alone.
BESIDE_TARGET = 1.2
THREADS = 1, 8, 64
TITLE = "hamr.zeros(4096) beside threads in wait(ids, timeout=.015)"
_WAIT = 0.015  # seconds
_PAUSE = 0.0005  # seconds between calls, in which others may run
_SECONDS, _QUICK_SECONDS = 0.15, 0.02  # of a measurement
_ROUNDS = 11


def rows(path: str, quick: bool) -> list[dict[str, Any]]:
    """Medians of rounds in which each number of threads takes its turn.

    Each is compared with the time alone just before and after it: what else a machine does changes
    within a second, and by more than the target. A ratio is the median of those of the rounds.
    """
    seconds, rounds = (_QUICK_SECONDS, 1) if quick else (_SECONDS, _ROUNDS)
    took: dict[int, list[float]] = {count: [] for count in (0, *THREADS)}
    ratios: dict[int, list[float]] = {count: [] for count in THREADS}
    before = _beside(path, 0, seconds)
    for _ in range(rounds):
        for count in THREADS:
            beside, after = _beside(path, count, seconds), _beside(path, 0, seconds)
            took[count].append(beside)
            took[0].append(after)
            ratios[count].append(2 * beside / (before + after))
            before = after
    alone = statistics.median(took[0])
    found: list[dict[str, Any]] = [{"operation": "alone", "value": round(alone, 3)}]
    for count in THREADS:
        ratio = statistics.median(ratios[count])
        found.append(
            {
                "operation": f"hamr: beside {count} thread{'s' * (count > 1)}",
                "value": round(statistics.median(took[count]), 3),
                "ratio": round(ratio, 3),
                "target": BESIDE_TARGET,
                "met": ratio <= BESIDE_TARGET,
            }
        )
    return found


def _beside(path: str, count: int, seconds: float) -> float:
    """The median of the calls that are made while so many threads wait."""
    from hamr.store import connect

    stop = threading.Event()
    begun = threading.Barrier(count + 1)

    def wait() -> None:
        with connect(path) as client:
            begun.wait()
            while not stop.is_set():
                client.wait(["0" * 32], timeout=_WAIT)

    threads = [threading.Thread(target=wait) for _ in range(count)]
    for thread in threads:
        thread.start()
    begun.wait()
    try:
        return _calls(seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _calls(seconds: float) -> float:
    import hamr

    took: list[float] = []
    until = time.perf_counter() + seconds
    while not took or time.perf_counter() < until:
        start = time.perf_counter_ns()
        hamr.zeros(4096)
        took.append(time.perf_counter_ns() - start)
        time.sleep(_PAUSE)
    return statistics.median(took) / 1e3
