"""Many copies by one call: many_copies.py walk|faults|fork SEED STEPS.

walk: lists of views of random memory, streams, types and layouts beside a loop of NumPy's, by
several threads, too. faults: each call of the driver that such a copy makes fails once, and the
next one is right. fork: a child has the parent's memory of the host, and not that of devices.
"""

import os
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hamr
from tests.cuda import driver
from tests.cuda.makers import maker
from tests.support.copy_scripts import each_call_fails_once, main
from tests.support.random_many import Lists


def walk(seed, steps):
    """Lists of copies beside NumPy's loop."""
    for step in range(steps):
        choose = random.Random(seed * 10_007 + step)
        lists = Lists(choose, maker(choose))
        for _ in range(3):
            lists.step()
            if choose.random() < 0.5:
                lists.check()
        lists.check()


def fields(allocator, stream, count=20, size=300, first=0):
    """Buffers of numbers that tell one from the other."""
    return [
        hamr.Buffer(size, "f4", allocator, data=np.full(size, i + first, "f4"), stream=stream)
        for i in range(count)
    ]


def faults():
    """To, from and within a device, each call failing once."""
    emulator = driver.emulator
    stream = hamr.Stream(device=0)
    for ordered in (None, stream):
        device, other = fields("cuda", ordered), fields("cuda_async", ordered, first=100)
        pinned = fields("cuda_host", ordered, first=200)
        values = [np.full(300, i + 300, "f4") for i in range(20)]
        out = [np.zeros(300, "f4") for _ in range(20)]
        kinds = {
            "up": (device, values),
            "down": (out, device),
            "within": (device, other),
            "pinned": (device, pinned),
            "back": (pinned, device),
            "all": (device + out, values + other),
        }
        for name, (to, given) in kinds.items():

            def act(to=to, given=given):
                hamr.copy_many(to, given, transfer="sync")

            def check(to=to, given=given, name=name):
                act()
                for d, s in zip(to, given, strict=True):
                    a, b = (x.get() if isinstance(x, hamr.Buffer) else x for x in (d, s))
                    assert np.array_equal(a, b), (name, a, b)

            check()
            failed = each_call_fails_once(act, check)
            assert failed > 3, (name, failed)
    # A chunk that cannot be had is done without.
    hamr.trim()
    emulator.fail_locking(0, driver.OUT_OF_MEMORY)
    hamr.copy_many(device, values)
    hamr.copy_many(out, device)
    emulator.stop_failing()
    assert all(np.array_equal(a, b) for a, b in zip(out, values, strict=True))


def fork():
    """The child."""
    device, host = fields("cuda", None), fields("malloc", None, first=50)
    hamr.copy_many(device, host)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            hamr.copy_many([np.zeros(300, "f4")] * 20, host)
            hamr.copy_many(device, host)
        except hamr.ForkError:
            status = 7
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


main(walk, faults=faults, fork=fork)
