"""What scripts of copies share: walks in threads, calls that each fail once, and the end."""

from __future__ import annotations

import sys

import hamr
from tests.cuda import driver
from tests.support.in_threads import in_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Calls that give something back, look at errors or restore a context.
NOT_FAILED = ("Free", "Destroy", "GetError", "CtxPop")
#: So many calls of one function fail, one after the other.
MOST = 12


def each_call_fails_once(act: Callable[[], object], check: Callable[[], object]) -> int:
    """How often ``act`` raised the error of a call that failed. ``check`` is right after each."""
    emulator = driver.emulator
    assert emulator is not None
    failed = 0
    for call, count in emulator.count_calls(act).items():
        if any(word in call for word in NOT_FAILED):
            continue
        for nth in range(1, min(count, MOST) + 1):
            emulator.fail(call, nth, 700)
            try:
                act()
            except hamr.DeviceError as error:
                failed += error.code == 700
            finally:
                emulator.stop_failing()
            check()
    return failed


def main(walk: Callable[[int, int], object], **kinds: Callable[[], object]) -> None:
    """Run what the command line says: KIND SEED STEPS. Four threads repeat a walk at once."""
    kind, seed, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if kind == "walk":
        walk(seed, steps)
        in_threads(lambda number: walk(seed + 1000 * number, max(steps // 8, 1)))
    else:
        kinds[kind]()
    hamr.trim()
    if driver.emulator is not None:
        driver.emulator.finish()
        assert driver.emulator.violations() == []
    print("OK")
