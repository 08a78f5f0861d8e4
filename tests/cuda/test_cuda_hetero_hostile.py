"""Pipelines on devices whose modules, drivers and surroundings mean no good."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
import weakref

import pytest

import hamr
from hamr import hetero
from hamr.hetero import ModuleError, Pipeline, Producer, module
from tests.cuda import driver
from tests.cuda.hetero_modules import loaded, made_by_kernel, raw
from tests.cuda.test_cuda_hetero_faults import nothing_leaks
from tests.hetero.test_hetero_hostile import ends

pytestmark = pytest.mark.usefixtures("cuda_alone")
__all__ = ["nothing_leaks"]


def test_of_several_products_there_are_all_or_none(emulator):
    class Trap(list):
        def __iter__(self):
            yield 1
            emulator.fail("cuEventRecord", 0, driver.ILLEGAL_ADDRESS)
            yield 2

    @module("device", outputs=["one", "two"])
    def both(raw, event):
        return [1, 2] if event.number < 3 else Trap([1, 2])

    pipeline = Pipeline([raw, both], streams=1, keep=["one", "two"])
    results = pipeline.run(range(4))
    emulator.stop_failing()
    assert [sorted(r.values) for r in results] == [["one", "two"]] * 3 + [[]]
    assert (results[3].error.module, results[3].error.phase) == ("both", "produce")


def test_work_of_begin_that_fails(emulator):
    class Begins(Producer):
        kind = "device"

        def begin(self, place):
            hold = hamr.Buffer(1, "f4", "cuda_async", transfer="async").stream.ptr
            emulator.hold(hold)

            def fail():
                emulator.fail("cuEventQuery", 0, driver.ILLEGAL_ADDRESS)
                emulator.let_go()

            threading.Timer(0.01, fail).start()

        def produce(self, event, ctx): ...

    with pytest.raises(ModuleError, match="stream 0 on cuda:0: Begins failed in begin") as told:
        ends(lambda: Pipeline([Begins()], streams=1).run([1]))
    assert isinstance(told.value.__cause__, hamr.DeviceError)


def test_the_streams_of_others_who_wait_are_not_the_modules(emulator):
    """Somebody in a scope waited first, whose callback calls the modules."""
    found, held = set(), []

    @module("external")
    def external(raw): ...

    @module(inputs=["external"])
    def made(external):
        found.add(hamr.Buffer(1, "f4", "cuda_async").stream.ptr)

    async def waits():
        with hetero.ScopedContext(hetero.DeviceChooser(among="cuda:0").choose(0)) as ctx:
            held.append(ctx.stream.ptr)
            emulator.hold(ctx.stream.ptr)
            await ctx.done()

    async def main():
        other = asyncio.create_task(waits())
        await asyncio.sleep(0.002)
        chooser = hetero.DeviceChooser(among="cuda:0")
        await Pipeline([raw, external, made], streams=2, chooser=chooser).run_async(range(40))
        emulator.let_go()
        await other

    asyncio.run(main())
    assert held[0] not in found


def test_what_cannot_be_watched_is_waited_for(emulator, monkeypatch):
    """Too many files are open for a descriptor that tells of devices."""

    def refused(*arguments):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    class Content:
        pass

    @module("device")
    def content(raw, ctx):
        emulator.hold(ctx.stream.ptr)
        made = Content()
        alive.append(weakref.ref(made))
        asyncio.get_running_loop().call_later(0.01, look)
        return made

    def look():
        gc.collect()
        seen.append(alive[0]() is not None)
        emulator.let_go()

    alive, seen = [], []
    monkeypatch.setattr("os.eventfd", refused)
    (result,) = Pipeline([raw, content], streams=1).run([1])
    assert (seen, alive[0](), result.error) == ([True], None, None)


def test_an_outcome_that_cannot_be_read():
    class Broken(dict):
        def keys(self):
            raise OSError("torn")

    @module("external", outputs=["one", "two"])
    def external(loaded, ctx):
        made_by_kernel(loaded, 1, 1, ctx)
        return Broken()

    results = ends(lambda: Pipeline([raw, loaded, external], streams=2).run(range(5)))
    assert [str(r.error.__cause__) for r in results] == ["torn"] * 5
