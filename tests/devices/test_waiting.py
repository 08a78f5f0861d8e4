"""Waiting for streams, events and buffers, in slices and in coroutines.

The core's functions are replaced by a record of their calls, so that no device is needed.
"""

import asyncio
import signal
import threading

import pytest

import hamr
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

    async def waited_for(x):
        await x

    asyncio.run(main())


def test_a_long_await_waits_on_a_thread(core, monkeypatch):
    """The loop goes on, and who awaits hears of an error or a cancellation."""
    monkeypatch.setattr("hamr._base.waiting._EAGER", 0)
    threads, inside, release = set(), threading.Event(), threading.Event()

    def wait(backend, device, stream, milliseconds):
        assert milliseconds == 50
        threads.add(threading.get_ident())
        inside.set()
        assert release.wait(10)
        if core.busy == 7:
            raise hamr.DeviceError("the device has failed")
        core.busy = 0
        return True

    async def main(end):
        waiter = asyncio.ensure_future(waited_for(hamr.Stream(9)))
        while not inside.is_set():
            await asyncio.sleep(0)
        end(waiter)
        await waiter

    async def waited_for(x):
        await x

    monkeypatch.setattr(core, "WaitStream", wait, raising=False)
    monkeypatch.setattr(core, "WaitEvent", wait, raising=False)
    core.busy = 10**9
    asyncio.run(main(lambda waiter: release.set()))
    assert threads
    assert threading.get_ident() not in threads

    for busy, end, error in (
        (10**9, asyncio.Future.cancel, asyncio.CancelledError),
        (8, lambda waiter: None, hamr.DeviceError),
    ):
        core.busy = busy
        inside.clear()
        release.clear()

        def both(waiter, end=end):
            end(waiter)
            release.set()

        with pytest.raises(error):
            asyncio.run(main(both))


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
