"""A walk at random over memory of the driver's pools, with forks and captures.

parked_walk.py SEED STEPS
"""

from __future__ import annotations

import ctypes
import os
import random
import sys

import pytest

import hamr
from tests.cuda import driver
from tests.scripts import forking

SIZES = 256, 1024, 1024, 1026, 16384


def check() -> None:
    """Nothing has used memory after its end, as far as HAMR_CHECK=raise knows."""
    if os.environ.get("HAMR_CHECK"):
        hamr.check_memory()


_RELAXED = 2


class Walk:
    """Buffers with the value that each holds, and streams, of which None is the default one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.streams = [
            (d, s) for d in range(driver.DEVICES) for s in (None, None, hamr.Stream(device=d))
        ]
        self.held: list[tuple[hamr.Buffer, int]] = []
        self.forks = 0

    def take(self) -> None:
        device, stream = self.random.choice(self.streams)
        size, value = self.random.choice(SIZES), self.random.randrange(1, 100)
        made = hamr.Buffer(size, "f4", "cuda_async", fill=value, device=device, stream=stream)
        self.held.append((made, value))

    def give(self) -> None:
        if self.held:
            self.held.pop(self.random.randrange(len(self.held)))

    def read(self) -> None:
        if self.held:
            buffer, value = self.random.choice(self.held)
            assert set(buffer.get()) == {value}

    def trim(self) -> None:
        hamr.trim()
        check()

    def capture(self) -> None:
        """What is taken and given back meanwhile on other streams does not end a relaxed one.

        Of the other modes the driver allows no use of its pools outside of the graph.
        """
        device = self.random.randrange(driver.DEVICES)
        stream, graph = driver.Stream(device), ctypes.c_uint64()
        with driver.on(device):
            driver.do("cuStreamBeginCapture_v2", stream.handle, _RELAXED)
            for _ in range(self.random.randrange(4)):
                self.random.choice((self.take, self.give))()
            driver.do("cuStreamEndCapture", stream.handle, ctypes.byref(graph))
            driver.do("cuGraphDestroy", graph.value)

    def fork(self) -> None:
        """A child has none of it, and what it gives back stays its parent's."""

        def child() -> None:
            for buffer, _ in self.held:
                with pytest.raises(hamr.ForkError):
                    buffer.get()
            for _ in range(self.random.randrange(9)):
                self.give()
            assert hamr.ones(3)[2] == 1

        forking.run(child)
        self.forks += 1

    def step(self) -> None:
        often, seldom = (self.take, self.give, self.read), (self.trim, self.capture)
        step = self.random.choice((*often * 5, *seldom))
        if self.forks < 2 and self.random.random() < 0.02:
            step = self.fork
        step()


def main(seed: int, steps: int) -> None:
    walk = Walk(seed)
    for _ in range(steps):
        walk.step()
    while walk.held:
        buffer, value = walk.held.pop()
        assert set(buffer.get()) == {value}
    del buffer
    check()
    assert hamr.stats()["allocators"]["cuda_async"]["live"] == 0
    if driver.emulator:
        driver.emulator.finish()
        assert driver.emulator.violations() == []
    print("done")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
