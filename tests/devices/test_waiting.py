"""Waiting for streams, events and buffers, in slices and in coroutines.

The core's functions are replaced by a record of their calls, so that no device is needed.
"""

import asyncio
import os
import signal
import threading

import pytest

import hamr
from hamr._base.loop_timer import look_by_timer
from tests.support.recorded_core import Core


def test_blocking_is_in_slices(core):
    core.busy = 3
    hamr.Stream(9, device=1).synchronize()
    assert core.calls == [("WaitStream", "cuda", 1, 9, 50)] * 4


@pytest.mark.parametrize(
    "wait", [lambda: hamr.Stream(9).synchronize(), lambda: hamr.Event().wait()]
)
def test_ctrl_c_ends_a_wait(core, monkeypatch, wait):
    core.busy = 10**9

    def interrupted(*arguments):
        if core.busy == 10**9 - 3:
            signal.raise_signal(signal.SIGINT)
        return Core.over(core)

    monkeypatch.setattr(core, "WaitStream", interrupted, raising=False)
    monkeypatch.setattr(core, "WaitEvent", interrupted, raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("begin", [lambda: hamr.Stream(9), lambda: hamr.Event()])
def test_a_child_forked_in_the_middle_of_a_wait_is_told_so(core, monkeypatch, begin):
    made = begin()

    def forked(*arguments):
        assert hamr._native.generation() != 99
        monkeypatch.setattr(hamr._native, "generation", lambda: 99)
        return False

    monkeypatch.setattr(core, "WaitStream", forked, raising=False)
    monkeypatch.setattr(core, "WaitEvent", forked, raising=False)
    with pytest.raises(hamr.ForkError, match="before fork"):
        made.synchronize()
    assert len([call for call in core.calls if call[0].startswith("Wait")]) == 1


def test_a_child_forked_in_the_middle_of_a_wait_asks_its_own_core(core, monkeypatch):
    own = type(core)()

    def forked(*arguments):
        assert not own.calls
        assert len(core.calls) == 1
        monkeypatch.setattr("hamr._base.stream.core", lambda: own)
        return False

    monkeypatch.setattr(core, "WaitStream", forked, raising=False)
    hamr.Stream().synchronize()
    assert (len(core.calls), len(own.calls)) == (1, 1)


def test_idle_and_done(core):
    core.busy = 2
    stream = hamr.Stream(9)
    assert [stream.idle, stream.done, stream.idle] == [False, False, True]


def test_awaiting_lets_others_run(core):
    steps = []

    async def other():
        while core.busy >= 0:
            steps.append(core.busy)
            await asyncio.sleep(0)

    async def main():
        for waited in (hamr.Stream(9), hamr.Stream(9).record()):
            core.busy = 3
            del steps[:]
            await asyncio.gather(waited_for(waited), other())
            assert len(set(steps)) >= 3

    asyncio.run(main())


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


@pytest.fixture
def by_timer(monkeypatch):
    """Waits look by the timer from the start."""
    monkeypatch.setattr("hamr._base.waiting._EAGER", 0)


async def waited_for(x):
    await x


def test_a_long_await_looks_by_a_timer(core, by_timer):
    before, threads = descriptors(), threading.active_count()
    for begin in (lambda: hamr.Stream(9), lambda: hamr.Event()):
        waited = begin()
        core.busy = 20
        asyncio.run(waited_for(waited))
        assert core.busy == -1
    assert descriptors() == before
    assert threading.active_count() == threads
    assert not [name for name, *_ in core.calls if name.startswith("Wait")]


@pytest.mark.parametrize("how", ["error", "cancelled"])
def test_a_long_await_that_fails_leaves_nothing(core, by_timer, monkeypatch, how):
    def asked(*arguments):
        core.busy -= 1
        if core.busy == 0 and how == "error":
            raise hamr.DeviceError("the device has failed")
        return False

    async def main():
        inside = descriptors()
        waiter = asyncio.ensure_future(waited_for(hamr.Stream(9)))
        while core.busy > 0:
            await asyncio.sleep(0)
        if how == "cancelled":
            waiter.cancel()
        with pytest.raises(hamr.DeviceError if how == "error" else asyncio.CancelledError):
            await waiter
        assert descriptors() == inside

    monkeypatch.setattr(core, "StreamIdle", asked, raising=False)
    core.busy = 10
    asyncio.run(main())


class Clock:
    """Time as a wait sees it, and the pauses that it makes; its loop comes late."""

    def __init__(self, monkeypatch, late):
        self.now, self.late, self.pauses = 1000.0, late, []
        monkeypatch.setattr("hamr._base.loop_timer.monotonic", lambda: self.now)
        monkeypatch.setattr("hamr._base.loop_timer._native", self)
        self.new_timer = hamr._native.new_timer

    def set_timer(self, descriptor, seconds):
        self.pauses.append((self.now - 1000, seconds))
        self.now += seconds + self.late
        hamr._native.set_timer(descriptor, 0)


@pytest.mark.parametrize("late", [0, 1e-3, 1])
def test_pauses_are_short_beside_the_wait(monkeypatch, late):
    clock = Clock(monkeypatch, late)
    clock.now += 2e-3

    async def main():
        await look_by_timer(asyncio.get_running_loop(), lambda: clock.now > 1010, 1000)

    asyncio.run(main())
    for waited, pause in clock.pauses[1:]:
        # No more than half of a loop's time for what has much to do.
        wanted = min(max(waited / 160, late), waited / 8, 0.02)
        assert pause == pytest.approx(wanted, rel=1e-3), waited


def test_a_host_buffer_is_ready():
    async def main():
        buffer = hamr.Buffer(3, fill=1)
        assert await buffer.ready() is None

    asyncio.run(main())
    buffer = hamr.Buffer(3)
    assert buffer.synchronize() is None
    buffer.close()
    with pytest.raises(hamr.FreedBuffer):
        buffer.ready()
