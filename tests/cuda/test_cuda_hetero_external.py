"""Waiting for a device's work without blocking an event loop."""

import asyncio
import gc
import os
import time
import weakref

import numpy as np
import pytest

import hamr
from hamr import hetero
from hamr.hetero import completion
from hamr.hetero.completion import when_completed
from tests.cuda import driver
from tests.cuda.hetero import streams_and_events

N = 1000

pytestmark = pytest.mark.usefixtures("cuda_alone")


def test_the_loop_runs_on(emulator, token, nothing_blocks):
    turns = []

    async def turn():
        for i in range(5):
            turns.append(i)
            await asyncio.sleep(0.001)
        emulator.let_go()

    async def module():
        before = driver.current_context()
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            other = asyncio.create_task(turn())
            await ctx.done()
            assert driver.current_context() == driver.context(0)
        await other
        assert driver.current_context() == before

    asyncio.run(module())
    assert turns == [0, 1, 2, 3, 4]


def test_others_on_the_thread_have_what_was_current(emulator, token):
    driver.set_current(0)
    found = []

    async def look():
        found.append(driver.current_context())
        emulator.let_go()

    async def module():
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            other = asyncio.create_task(look())
            await ctx.done()
            await other

    asyncio.run(module())
    assert found == [0]


def test_errors_arrive(emulator, token):
    async def module():
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            waiting = asyncio.ensure_future(ctx.done())
            await asyncio.sleep(0.002)
            emulator.fail("cuEventQuery", 0, 700)
            with pytest.raises(hamr.DeviceError, match="700"):
                await waiting
        emulator.stop_failing()
        emulator.let_go()

    asyncio.run(module())


def test_cancellation_leaks_nothing(emulator):
    before = streams_and_events()

    async def module(chooser):
        with hetero.ScopedContext(chooser.choose(0)) as ctx:
            emulator.hold(ctx.stream.ptr)
            await ctx.done()

    async def main():
        chooser = hetero.DeviceChooser(among="cuda:0")
        tasks = [asyncio.create_task(module(chooser)) for _ in range(8)]
        await asyncio.sleep(0.005)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(e) for e in ended} == {asyncio.CancelledError}

    current = driver.current_context()
    asyncio.run(main())
    emulator.let_go()
    assert driver.current_context() == current
    assert streams_and_events() == before


def test_many_at_once():
    chooser = hetero.DeviceChooser()
    done = []

    async def module(key):
        ctx = hetero.ScopedContext(chooser.choose(key))
        for _ in range(10):
            with hetero.ScopedContext(ctx.wrap(None)) as inner:
                made = hamr.Buffer(N, "f4", "cuda", device=inner.device, fill=key)
                target = np.empty(N, "f4")
                made.get(target)
                await inner.done()
            assert target.tolist() == [key] * N
        done.append(key)

    async def main():
        await asyncio.gather(*(module(key) for key in range(16)))

    asyncio.run(main())
    assert sorted(done) == list(range(16))


def test_one_that_is_told_may_raise_what_ends_the_loop(token):
    """The others are told when it runs again."""
    told = []

    def interrupted(error):
        told.append("first")
        raise KeyboardInterrupt

    async def begin():
        ctx = hetero.ScopedContext(token)
        when_completed(ctx.wrap(None), interrupted)
        when_completed(ctx.wrap(None), lambda error: (told.append(error), loop.stop()))

    loop = asyncio.new_event_loop()

    def run():
        loop.run_until_complete(begin())  # perhaps the work is over by then
        loop.run_forever()

    with pytest.raises(KeyboardInterrupt):
        run()
    time.sleep(0.02)  # both are over
    loop.call_later(10, loop.stop)
    loop.run_forever()
    loop.close()
    assert told == ["first", None]


def test_without_a_scope(token):
    asyncio.run(hetero.ScopedContext(token).done())


def test_loops_one_after_the_other(emulator, token):
    async def module():
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            asyncio.get_running_loop().call_later(0.002, emulator.let_go)
            await ctx.done()

    for _ in range(3):
        asyncio.run(module())


def test_a_loop_that_ends_while_something_is_awaited(emulator, token, tmp_path):
    """Nothing is written to whatever has its descriptor's number afterwards."""
    ctx = hetero.ScopedContext(token)
    with ctx:
        emulator.hold(ctx.stream.ptr)
    point = ctx.wrap(None)
    loop = asyncio.new_event_loop()

    async def begin():
        when_completed(point, lambda error: None)

    loop.run_until_complete(begin())
    number = completion._loops[loop].descriptor
    loop.close()
    del loop
    gc.collect()
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), number, inheritable=False)
    emulator.let_go()
    emulator.finish()
    behind = hetero.ScopedContext(token).wrap(None)
    asyncio.run(completed_behind(point, behind))
    os.close(number)
    assert (tmp_path / "other").stat().st_size == 0


@pytest.mark.parametrize("kept", [False, True])
def test_a_loop_that_is_closed_while_a_task_waits_goes(emulator, kept):
    """With its descriptor, stream and event; those who waited go though the loop is kept."""
    before = streams_and_events(), len(os.listdir("/proc/self/fd"))

    async def waits():
        with hetero.ScopedContext(hetero.DeviceChooser(among="cuda:0").choose(0)) as ctx:
            emulator.hold(ctx.stream.ptr)
            await ctx.done()

    def leave():
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: None)  # a pending task is destroyed
        tasks = [loop.create_task(waits()) for _ in range(3)]
        loop.run_until_complete(asyncio.sleep(0.01))
        assert not any(task.done() for task in tasks)
        loop.close()
        return loop

    left = [leave() for _ in range(3)]
    there = [weakref.ref(loop) for loop in left]
    if not kept:
        left.clear()
    gc.collect()
    found, alive = streams_and_events(), sum(1 for loop in there if loop())
    emulator.let_go()
    assert (found, alive) == (before[0], len(left))
    left.clear()
    gc.collect()
    assert [loop() for loop in there] == [None] * 3
    assert len(os.listdir("/proc/self/fd")) == before[1]
    asyncio.run(hetero.ScopedContext(hetero.DeviceChooser(among="cuda:0").choose(0)).done())


async def completed_behind(*products):
    """What was watched before them has been told."""
    over = asyncio.Event()
    left = list(products)
    for product in products:
        when_completed(product, lambda error: (left.pop(), left or over.set()))
    await over.wait()
