"""Copies between a device and ordinary host memory, timed one by one."""

from __future__ import annotations

import secrets
import time

import hamr

from .._base.library import core
from .choosing import DRIVER, MIB, NEVER
from .settings import report_of

REPEATED = 4 * MIB  # bytes that a measurement copies at least
PAUSE = 0.0005  # seconds after which no thread polls for a copy any more
WARM = 8  # staged copies before the first one: each makes some of the page-locked memory

UP, DOWN = "up", "down"


class Copies:
    """Memory on both sides, for copies of up to ``largest`` bytes.

    A RuntimeError says that copies are wrong, or not staged.
    """

    def __init__(self, backend: str, device: int, allocator: str, largest: int) -> None:
        self.backend, self.device = backend, device
        self.host = hamr.Buffer(largest, "u1", "malloc", fill=0)
        self.remote = hamr.Buffer(largest, "u1", hamr.Allocator[allocator], device=device, fill=1)
        self.remote.synchronize()
        self._chosen: int | None = None

    def choose(self, threads: int) -> None:
        """Stage copies by a number of threads; with none the driver copies."""
        if threads != self._chosen:
            choice = (NEVER, 1) if threads == DRIVER else (1, threads)
            self._tune(*choice)
            self._chosen = threads

    def _tune(self, start: int, threads: int) -> None:
        for up in (True, False):
            core().TuneStaging(self.backend, self.device, up, start, threads)

    def run(self, direction: str, nbytes: int) -> None:
        """One copy, and the wait for it."""
        host, remote = self.host[:nbytes], self.remote[:nbytes]
        if direction == UP:
            remote[...] = host
        else:
            host[...] = remote
        self.remote.synchronize()

    def prepare(self, threads: int) -> None:
        """Copy until what is kept is there, and compare the bytes."""
        self.choose(threads)
        for _ in range(WARM):
            self.run(UP, len(self.host))
            self.run(DOWN, len(self.host))
        report = report_of(self.backend, self.device)
        if report is None or report["pinned_held"][0] == "0":
            raise RuntimeError("copies are not staged: no page-locked memory is available")
        for way in (threads, DRIVER):
            self.choose(way)
            self._check()

    def _check(self) -> None:
        pattern = secrets.token_bytes(1021)  # a prime number: a piece elsewhere does not fit
        count = len(self.host)
        expected = (pattern * (count // len(pattern) + 1))[:count]
        view = memoryview(self.host)
        view[:] = expected
        self.run(UP, count)
        view[:] = bytes(count)
        self.run(DOWN, count)
        if view != expected:
            raise RuntimeError("a copy is wrong: nothing is measured")

    def seconds(self, direction: str, nbytes: int, threads: int) -> float:
        """The time of a copy: half of them follow another copy, and half a pause."""
        self.choose(threads)
        pairs = max(REPEATED // nbytes // 2, 1)
        self.run(direction, nbytes)
        taken = 0.0
        for pause in (0.0, PAUSE) * pairs:
            if pause:
                time.sleep(pause)
            start = time.perf_counter()
            self.run(direction, nbytes)
            taken += time.perf_counter() - start
        return taken / (2 * pairs)

    def close(self) -> None:
        """Release the memory, and leave the choice to the core."""
        self._tune(0, 0)
        self.host.close()
        self.remote.close()
