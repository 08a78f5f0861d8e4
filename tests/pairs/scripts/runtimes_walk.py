"""Buffers of all runtimes beside NumPy's arrays: runtimes_walk.py SEED STEPS [faults].

Views, handles that are kept while their buffers change and end, accesses that write, streams that
keep an order or none, other libraries' late work, and moves between everything. With faults
calls of the emulated driver fail: what the failed step was not about is as before.
"""

import gc
import sys

import hamr
from tests.cuda import driver
from tests.pairs.scripts import late_work
from tests.pairs.scripts.walk_steps import Walk

#: What these fail to give back is lost.
GIVING_BACK = (
    *("Free", "Destroy", "GetError", "CtxPop", "CtxPush", "CtxGetCurrent", "Unmap", "Release"),
    "Unregister",
)
#: Steps that take part in what other libraries do, or change more than they are about.
KNOWN = ("late", "end", "swap", "resize")


class Failing(Walk):
    """Steps during which a call fails, perhaps."""

    failed, used = 0, ()

    def failing_step(self):
        """Steps until a call of the emulated driver fails, or none does."""
        while not self.used or self.choose.random() < 0.02:
            made = driver.emulator.count_calls(lambda: [self.step() for _ in range(20)])
            self.used = [c for c in sorted(made) if not any(w in c for w in GIVING_BACK)]
        driver.emulator.fail(self.choose.choice(self.used), self.choose.choice((1, 1, 2, 3)), 719)
        try:
            for _ in range(8):
                self.step([s for s in self.STEPS if s.__name__ not in KNOWN])
        except (hamr.DeviceError, hamr.OutOfMemory):
            self.failed += 1
            driver.emulator.stop_failing()
            self.unknown()
        finally:
            driver.emulator.stop_failing()

    def unknown(self):
        """What the elements of whatever was touched are."""
        for held in self.touched:
            for other in self.others(held):
                if other in self.handles:
                    self.handles.remove(other)
                    other.array.close()
                else:
                    values = self.values(other.model.shape, other.model.dtype)
                    other.array[...] = values
                    other.model[...] = values
            if held in self.buffers:  # not, where the step has put another one in its place
                self.buffers[self.buffers.index(held)] = self.new()
            held.array.close()


def live():
    return {n: r["live"] for n, r in hamr.stats()["allocators"].items() if r["live"]}


def main():
    seed, steps = int(sys.argv[1]), int(sys.argv[2])
    faults = sys.argv[3:] == ["faults"]
    walk = Failing(seed)
    try:
        for _ in range(steps):
            walk.failing_step() if faults and walk.choose.random() < 0.3 else walk.step()
        walk.finish()
    except BaseException:
        print(f"seed {seed}:", *walk.said, sep="\n  ", flush=True)
        raise
    assert walk.failed or not faults
    print(walk.failed, "failed")
    del walk
    gc.collect()
    late_work.finish()
    hamr.trim()
    assert not live(), live()
    if driver.emulator is not None:
        driver.emulator.finish()
        assert driver.emulator.violations() == [], driver.emulator.violations()
        assert driver.emulator.live("memory") == 0, "memory that nobody has"
    print("OK")


if __name__ == "__main__":
    main()
