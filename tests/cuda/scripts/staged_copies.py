"""Copies in pieces: staged_copies.py walk|faults SEED STEPS, with small chunks by HAMR_COPY_CHUNK.

walk: random sizes, memory, streams and threads; every element that arrives is compared. faults:
each call of the driver that a copy makes fails once, and the next copy is right.
"""

import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hamr
from tests.cuda import driver
from tests.support.copy_scripts import each_call_fails_once, main

ALLOCATORS = "cuda", "cuda_async", "cuda_uva", "cuda_host", "malloc"
LARGEST = 40_000


def walk(seed, steps):
    """Copies of a thread's own buffers, on streams of its own and the default one."""
    choose, make = random.Random(seed), np.random.default_rng(seed)
    streams = [None, *(hamr.Stream(device=d % driver.DEVICES) for d in range(3))]
    for _ in range(steps):
        n = choose.choice((1, 100, choose.randrange(1, LARGEST)))
        values = make.integers(0, 255, n, dtype="u1")
        allocator, device = choose.choice(ALLOCATORS[:3]), choose.randrange(driver.DEVICES)
        fitting = [s for s in streams if s is None or s.device == device]
        b = hamr.Buffer(n, "u1", allocator, device=device, stream=choose.choice(fitting), fill=7)
        source = values.copy()
        b[...] = source
        source[...] = 0  # it has been read
        for _ in range(choose.randrange(4)):
            act = choose.randrange(6)
            if act == 0:
                assert np.array_equal(b.get(), values)
            elif act == 1:
                out = np.zeros(n, "u1")
                b.get(out)
                assert np.array_equal(out, values)
            elif act == 2:
                low = choose.randrange(n)
                part = make.integers(0, 255, n - low, dtype="u1")
                b[low:] = part
                values[low:] = part
                part[...] = 1
            elif act == 3:
                with b.on_host("rw") as array:
                    array += 1
                values += 1
            elif act == 4:
                b.set_stream(choose.choice([0, *(s for s in streams[1:] if s.device == b.device)]))
            else:
                b.move(choose.choice(ALLOCATORS))
        assert np.array_equal(np.asarray(b.get_host_accessible()), values)
        assert np.array_equal(np.asarray(hamr.buffer(values).copy("cuda").get()), values)


def faults():
    """Up and down, each call failing once."""
    emulator = driver.emulator
    values, out = np.arange(30_000, dtype="u2"), np.zeros(30_000, "u2")
    b = hamr.Buffer(30_000, "u2", "cuda", fill=0)
    stream = hamr.Stream(device=0)

    def up():
        b[...] = values
        b.synchronize()

    def down():
        out[...] = 0
        b.get(out)
        assert np.array_equal(out, values)

    def both():
        up()
        down()

    for ordered in (False, True):
        if ordered:
            b.set_stream(stream)
        for act in up, down:
            up()
            failed = each_call_fails_once(act, both)
            assert failed > 20, failed
    # A chunk that cannot be had is done without.
    hamr.trim()
    emulator.fail_locking(2, driver.OUT_OF_MEMORY)
    up()
    down()
    hamr.trim()
    emulator.fail_locking(0, driver.OUT_OF_MEMORY)
    up()
    down()
    emulator.stop_failing()


main(walk, faults=faults)
