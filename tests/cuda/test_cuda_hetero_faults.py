"""What fails in a pipeline on devices, and that nothing stays behind: a walk at random, too."""

import asyncio
import gc
import itertools
import os
import random
import signal
import threading
import weakref

import pytest

import hamr
from hamr.hetero import ModuleError, Pipeline, Producer, module
from tests.cuda import driver
from tests.cuda.hetero_modules import Fetched, chain, expected, loaded, made_by_kernel, raw
from tests.cuda.test_cuda_hetero_pipeline import handed_out
from tests.support.processes import scaled

pytestmark = pytest.mark.usefixtures("cuda_alone")


def live():
    gc.collect()
    return {name: row["live"] for name, row in hamr.stats()["spaces"].items() if row["live"]}


@pytest.fixture(autouse=True)
def nothing_leaks(emulator):
    before = live(), handed_out()
    yield
    emulator.stop_failing()
    emulator.let_go()
    emulator.finish()
    assert (live(), handed_out()) == before
    assert not [t for t in threading.enumerate() if t.name.startswith("hamr-pipeline")]


class Fault(Exception):
    pass


class Fragile(Fetched):
    """Fails where it is told to, with work on its stream."""

    def __init__(self, faults, begins=True):
        self.faults, self.begins = faults, begins

    def begin(self, place):
        super().begin(place)
        self.memory = hamr.Buffer(100, "f4", "cuda_async", fill=1, transfer="async")
        if not self.begins:
            raise Fault("begin")

    def acquire(self, event, ctx):
        super().acquire(event, ctx)
        made_by_kernel(event["shifted"], 1, 1, ctx)
        self.fail(event, "acquire")

    def produce(self, event, ctx):
        self.fail(event, "produce")
        return super().produce(event, ctx)

    def fail(self, event, phase):
        if self.faults.get(event.number) == ("fetched", phase):
            raise Fault(f"{event.number} {phase}")


def fragile_chain(faults, begins=True):
    """Modules that fail in an event, where faults has (module, phase) for its number."""

    def failing(kind, name, source, body):
        def call(value, event, **context):
            made = body(value, **context)
            if faults.get(event.number) == (name, "produce"):
                raise Fault(f"{event.number} {name}")
            return made

        if kind == "cpu":
            return module(name=name, inputs=[source])(lambda value, event: call(value, event))
        return module(kind, name=name, inputs=[source])(
            lambda value, event, ctx: call(value, event, ctx=ctx)
        )

    return chain(
        scaled=failing("device", "scaled", "loaded", lambda v, ctx: made_by_kernel(v, 3, 1, ctx)),
        fetched=Fragile(faults, begins),
        total=failing("cpu", "total", "fetched", lambda v: float(v[-1])),
    )


PHASES = [
    ("scaled", "produce"),
    ("fetched", "acquire"),
    ("fetched", "produce"),
    ("total", "produce"),
]


@pytest.mark.parametrize(("name", "phase"), PHASES)
def test_a_module_that_raises(name, phase):
    faults = dict.fromkeys((3, 11, 12), (name, phase))
    results = Pipeline(fragile_chain(faults)).run(range(30))
    for i, result in enumerate(results):
        if i not in faults:
            assert result["total"] == expected(i)
        else:
            assert (result.error.module, result.error.phase, result.error.event) == (name, phase, i)
            assert isinstance(result.error.__cause__, Fault)
            assert dict(result.values) == {}


def test_what_a_module_enqueued_before_it_raised_is_waited_for(emulator):
    """The event's products live until then."""
    alive, seen = [], []

    class Content:
        pass

    @module("device")
    def content(raw):
        alive.append(weakref.ref(made := Content()))
        return made

    @module("device")
    def fails(content, ctx):
        emulator.hold(ctx.stream.ptr)
        threading.Timer(0.01, look).start()
        raise Fault

    def look():
        gc.collect()
        seen.append(alive[0]() is not None)
        emulator.let_go()

    (result,) = Pipeline([raw, content, fails]).run([1])
    assert (result.error.module, seen, alive[0]()) == ("fails", [True], None)


@pytest.mark.parametrize("phase", ["acquire", "produce"])
def test_an_error_keeps_nothing_of_its_event(phase):
    """Whichever thread called the module: short ones of the host are the loop's, after some."""
    alive = []

    class Content:
        pass

    @module("device")
    def content(raw):
        alive.append(weakref.ref(made := Content()))
        return made

    class Fails(Producer):
        kind = "external"
        inputs = ("content",)

        def acquire(self, event, ctx):
            self.fail(event, "acquire")

        def produce(self, event, ctx):
            self.fail(event, "produce")

        def fail(self, event, now):
            if event.number >= 30 and now == phase:
                raise Fault

    gc.collect()
    gc.disable()
    try:
        results = Pipeline([raw, content, Fails()]).run(range(40))
        assert [r.number for r in results if r.error] == [*range(30, 40)]
        assert [ref() for ref in alive if ref()] == []
    finally:
        gc.enable()


def test_begin_that_raises():
    taken = []
    with pytest.raises(ModuleError, match="stream 0 on cuda:0: fetched failed in begin: Fault"):
        Pipeline(fragile_chain({}, begins=False)).run(taken.append(i) for i in range(3))
    assert taken == []


@pytest.mark.parametrize("kind", ["external", "device"])
def test_a_device_error_in_a_kernel(emulator, kind):
    """It is told of the module that waits for the device, or else of the one whose work it is."""

    @module(kind)
    def last(raw, event, ctx):
        if event.number == 5:
            emulator.hold(ctx.stream.ptr)
            fail = emulator.fail, "cuEventQuery", 0, driver.ILLEGAL_ADDRESS
            asyncio.get_running_loop().call_soon(*fail)  # when the module has been called

    (*fine, failed) = Pipeline([raw, last], streams=1).run(range(6))
    assert [r.error for r in fine] == [None] * 5
    error = failed.error
    assert (error.event, error.module, error.phase) == (5, "last", "completion")
    assert isinstance(error.__cause__, hamr.DeviceError)


def test_out_of_memory(emulator):
    @module("device")
    def large(loaded, event, ctx):
        if event.number == 2:
            emulator.fail("cuMemAllocFromPoolAsync", 0, driver.OUT_OF_MEMORY)
        try:
            return made_by_kernel(loaded, 1, 1, ctx)
        finally:
            emulator.stop_failing()

    results = Pipeline([raw, loaded, large], streams=1).run(range(5))
    assert [r.number for r in results if r.error is None] == [0, 1, 3, 4]
    error = results[2].error
    assert (error.module, error.phase) == ("large", "produce")
    assert isinstance(error.__cause__, hamr.OutOfMemory)


@pytest.mark.parametrize("way", ["cancel", "ctrl-c"])
def test_cancellation_with_eight_events_in_flight(emulator, ctrl_c, way):
    """It waits for the devices, and lets go of nothing before."""
    held, after = [], []

    @module("device")
    def holding(loaded, ctx):
        emulator.hold(ctx.stream.ptr)
        held.append(loaded)  # which the work uses
        if len(held) == 8:
            threading.Thread(target=ends).start()
        return loaded

    @module("external")
    def read(holding, ctx):
        return held[0].shape

    def last(read):
        after.append(read)

    def ends():
        if way == "ctrl-c":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            loop.call_soon_threadsafe(lambda: running.cancel())
        stopped.wait(0.02)
        pending.append(emulator.pending())
        held.clear()
        emulator.let_go()

    stopped, pending = threading.Event(), []
    pipeline = Pipeline([raw, loaded, holding, read, last])
    if way == "ctrl-c":
        with pytest.raises(KeyboardInterrupt):
            pipeline.run(itertools.count())
    else:

        async def main():
            nonlocal loop, running
            loop = asyncio.get_running_loop()
            running = asyncio.create_task(pipeline.run_async(itertools.count()))
            with pytest.raises(asyncio.CancelledError):
                await running

        loop = running = None
        asyncio.run(main())
    assert pending[0] > 0
    assert after == []
    assert pipeline.report["holding"].calls == 8


# The walk.

#: What may fail of the driver, and how.
DRIVER_FAULTS = [
    ("cuEventQuery", driver.ILLEGAL_ADDRESS),
    ("cuEventRecord", driver.ILLEGAL_ADDRESS),
    ("cuEventCreate", driver.OUT_OF_MEMORY),
    ("cuMemAllocFromPoolAsync", driver.OUT_OF_MEMORY),
]


@pytest.mark.parametrize("seed", range(scaled(200, 20)))
def test_a_run_at_random(emulator, seed):
    chance = random.Random(seed)
    count = chance.randrange(1, 25)
    faults = {i: chance.choice(PHASES) for i in range(count) if chance.random() < 0.2}
    pipeline = Pipeline(fragile_chain(faults), streams=chance.randrange(1, 9))
    of_driver = chance.random() < 0.3 and chance.choice(DRIVER_FAULTS)
    left_after = chance.randrange(count) if chance.random() < 0.3 else None
    results = []

    async def main():
        async for result in pipeline.results(range(count), ordered=chance.random() < 0.5):
            results.append(result)
            if len(results) == 3 and of_driver:
                call, code = of_driver
                emulator.fail(call, chance.randrange(1, 10), code)
            if len(results) - 1 == left_after:
                asyncio.current_task().cancel()

    try:
        asyncio.run(main())
    except asyncio.CancelledError:
        assert left_after is not None
    emulator.stop_failing()
    if left_after is None:
        assert sorted(r.number for r in results) == [*range(count)]
    for result in results:
        told = [(e.module, e.phase) for e in result.errors]
        if not told:
            assert result.number not in faults
            assert result["total"] == expected(result.number)
        elif not of_driver:
            assert told == [faults[result.number]]
        else:
            assert dict(result.values) == {}
