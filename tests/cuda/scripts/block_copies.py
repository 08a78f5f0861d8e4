"""Scattered blocks by one call: block_copies.py walk|faults SEED STEPS.

walk: calls on random memory, streams, types, layouts and indices beside NumPy's assignments, by
several threads, too. faults: each call of the driver that such a copy makes fails once, and the
next one is right.
"""

import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hamr
from tests.cuda.makers import maker
from tests.support.copy_scripts import each_call_fails_once, main
from tests.support.random_blocks import Blocks


def walk(seed, steps):
    """Copies of blocks beside NumPy's."""
    for step in range(steps):
        choose = random.Random(seed * 10_007 + step)
        blocks = Blocks(choose, maker(choose))
        for _ in range(5):
            blocks.step()
            if choose.random() < 0.3:
                blocks.check()
        blocks.check()


def faults():
    """To, from and within a device, by indices on either side, each call failing once."""
    stream = hamr.Stream(device=0)
    values = np.arange(16 * 64, dtype="f4").reshape(16, 64)

    def made(allocator, add=0):
        return hamr.Buffer((16, 64), "f4", allocator, data=values + add, stream=stream)

    device, other, pinned = made("cuda"), made("cuda_async", 100), made("cuda_host", 200)
    host, out = values + 300, values + 400
    numbers = [3, 9, 3, 15], [0, 2, 4, 6]
    there = [hamr.Buffer(4, "i8", "cuda", data=np.array(n), stream=stream) for n in numbers]
    ways = {"up": (device, host), "down": (out, device), "within": (device, other)}
    ways |= {"pinned": (device, pinned), "back": (pinned, device)}
    for name, (to, given) in ways.items():
        for index in (numbers, there):

            def act(to=to, given=given, index=index):
                hamr.copy_blocks(to, index[0], given, index[1], transfer="sync")

            def check(to=to, given=given, act=act, name=name):
                want, source = (
                    np.array(x.get() if isinstance(x, hamr.Buffer) else x) for x in (to, given)
                )
                want[numbers[0]] = source[numbers[1]]
                act()
                found = to.get() if isinstance(to, hamr.Buffer) else to
                assert np.array_equal(found, want), name

            check()
            failed = each_call_fails_once(act, check)
            assert failed > 1, (name, failed)


main(walk, faults=faults)
