"""Overlapping moves, as tests/support/stress.py has them: stress_copies.py walk|faults SEED STEPS.

faults: calls of the driver fail at random. The error arrives, nothing is changed but what was to be
written, and when that is written again everything is right.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hamr
from tests.cuda import driver
from tests.support import stress
from tests.support.in_threads import in_threads

THREADS = 4
#: What these fail to give back is lost, which is told of on standard error.
GIVING_BACK = (
    "Free",
    "Destroy",
    "GetError",
    "CtxPop",
    "CtxPush",
    "CtxGetCurrent",
    "Unmap",
    "Release",
    "Unregister",
)
CODES = (driver.OUT_OF_MEMORY, 700, 719)


def walk(seed, steps):
    kinds = stress.kinds()
    shared = stress.shared(seed, driver.DEVICES, kinds)

    def run(number):
        stress.Walk(seed + number + 1, driver.DEVICES, shared, kinds).run(steps // THREADS)

    in_threads(run, THREADS)
    for pair in shared:
        pair.check(pair.buffer.get())
        pair.buffer.close()


def faults(seed, steps):
    kinds = stress.kinds()
    walk = stress.Walk(seed, driver.DEVICES, [], kinds)
    choose, emulator = random.Random(seed), driver.emulator
    for _ in range(2 * stress.KEPT):
        walk.step()
    calls = [c for c in emulator.entry_points if not any(word in c for word in GIVING_BACK)]
    failed, used = 0, calls
    for step in range(steps):
        if step % 50 == 0:  # what such moves call
            made = emulator.count_calls(lambda: [walk.step() for _ in range(20)])
            used = [call for call in calls if call in made]
        models = [(pair, pair.model.copy()) for pair in walk.pairs]
        code = choose.choice(CODES)
        emulator.fail(choose.choice(used), choose.choice((1, 1, 1, 2, 3, 5, 9)), code)
        arrived = None
        try:
            walk.step()
        except (hamr.DeviceError, hamr.OutOfMemory) as error:
            arrived = error
        finally:
            emulator.stop_failing()
        if isinstance(arrived, hamr.DeviceError):
            assert arrived.code == code, arrived
        elif arrived is not None:
            assert code == driver.OUT_OF_MEMORY, arrived
        # What was to be written is unspecified; all else is as it was.
        failed += arrived is not None
        for pair in walk.touched if arrived else []:
            pair.model = next(model for before, model in models if before is pair)
            pair.buffer[...] = pair.model
        if choose.random() < 0.1:
            for pair in walk.pairs:
                pair.check(pair.buffer.get())
    walk.end()
    assert failed > steps // 50, f"{failed} of {steps} failed"


def live():
    return [row["live"] for row in hamr.stats()["allocators"].values()]


def main():
    """Run what the command line says."""
    kind, seed, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    {"walk": walk, "faults": faults}[kind](seed, steps)
    hamr.trim()
    assert not any(live()), hamr.stats()
    if driver.emulator is not None:
        driver.emulator.finish()
        assert driver.emulator.violations() == []
        assert driver.emulator.live("memory") == 0, "memory that nobody has"
    print("OK")


main()
