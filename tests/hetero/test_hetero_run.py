"""Runs of a pipeline without a device: order, back-pressure, what fails, cancellation."""

import asyncio
import gc
import itertools
import os
import signal
import threading
import time
import weakref

import pytest

from hamr import hetero
from hamr.hetero import ModuleError, Pipeline, Producer, module


def raw(event):
    return event.item


def negative(raw):
    return -raw


class Gate:
    """Events whose number is named stand still in a module until they are let through."""

    def __init__(self, *held):
        self.held = set(held)
        self.entered, self.opened = threading.Semaphore(0), threading.Event()

    def __call__(self, raw, event):
        if event.number in self.held:
            self.entered.release()
            assert self.opened.wait(30)
        return raw


def gated(gate):
    return module(name="gated", inputs=["raw"])(gate.__call__)


def test_results_are_in_the_order_of_the_events_or_as_they_come():
    for ordered in (True, False):
        gate = Gate(0)

        def last(gated, event, gate=gate):
            if event.number == 19:
                gate.opened.set()
            return gated

        pipeline = Pipeline([raw, gated(gate), last], streams=4)
        numbers = [r.number for r in pipeline.run(range(20), ordered=ordered)]
        assert sorted(numbers) == [*range(20)]
        assert (numbers == [*range(20)]) is ordered


def test_an_event_is_taken_when_a_stream_is_free():
    taken, finished = [], []

    def source():
        for i in range(50):
            taken.append(i)
            assert len(taken) - len(finished) <= 3
            yield i

    def last(raw):
        finished.append(raw)

    Pipeline([raw, last], streams=3).run(source())
    assert len(finished) == 50


def test_a_source_without_an_end():
    async def main():
        source = itertools.count()
        async for result in Pipeline([raw, negative], streams=2).results(source):
            await asyncio.sleep(0.002)  # in which many could be run
            if result.number == 20:
                break
        # Of what nobody reads there are no more than four for each stream, and what is in flight.
        assert next(source) <= 21 + 4 * 2 + 2
        assert result["negative"] == -20

    asyncio.run(main())


@pytest.mark.parametrize("ordered", [True, False])
def test_an_asynchronous_source(ordered):
    async def source():
        for i in range(20):
            await asyncio.sleep(0)
            yield i

    async def main():
        pipeline = Pipeline([raw, negative], streams=3)
        found = [r async for r in pipeline.results(source(), ordered=ordered)]
        assert sorted(r["negative"] for r in found) == [-i for i in range(19, -1, -1)]
        return await pipeline.run_async(source())

    assert [r.number for r in asyncio.run(main())] == [*range(20)]


def test_the_loop_goes_on_while_modules_wait():
    gate = Gate(0)

    async def main():
        running = asyncio.create_task(Pipeline([raw, gated(gate)]).run_async([1]))
        await asyncio.to_thread(gate.entered.acquire)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not running.done()
        gate.opened.set()
        return await running

    assert [r["gated"] for r in asyncio.run(main())] == [1]


def test_coroutines_are_modules():
    together = asyncio.Barrier(3)

    @module()
    async def awaiting(raw):
        async with asyncio.timeout(30):
            await together.wait()
        return raw * 2

    results = Pipeline([raw, awaiting, negative], streams=3).run(range(6))
    assert [r.values for r in results] == [{"awaiting": 2 * i, "negative": -i} for i in range(6)]


def test_a_module_waits_for_all_that_it_reads():
    def slow(raw):
        time.sleep(0.005)
        return raw

    def both(slow, negative):
        return slow, negative

    pipeline = Pipeline([raw, slow, negative, both])
    results = pipeline.run(range(4), raise_errors=True)
    assert [r["both"] for r in results] == [(i, -i) for i in range(4)]
    assert pipeline.report["both"].calls == 4


def test_run_does_not_block_a_loop():
    async def main():
        with pytest.raises(RuntimeError, match="await run_async"):
            Pipeline([raw]).run([1])

    asyncio.run(main())


# What fails.


def test_an_event_fails_alone_and_what_depends_on_it_is_not_run():
    def fragile(raw):
        if raw % 10 == 3:
            raise OSError(f"no {raw}")
        return raw

    def after(fragile):
        return fragile + 1

    pipeline = Pipeline([raw, fragile, after, negative])
    results = pipeline.run(range(50))
    for i, result in enumerate(results):
        if i % 10 != 3:
            assert (result.error, result["after"], result["negative"]) == (None, i + 1, -i)
            continue
        error = result.error
        assert (error.event, error.module, error.phase, error.place) == (
            i,
            "fragile",
            "produce",
            None,
        )
        assert str(error) == f"event {i}: fragile failed in produce: OSError: no {i}"
        assert isinstance(error.__cause__, OSError)
        assert dict(result.values) == {"negative": -i}
        with pytest.raises(ModuleError, match=f"no {i}"):
            result["after"]
    assert (pipeline.report.events, pipeline.report.failed) == (50, 5)
    assert [pipeline.report[n].calls for n in ("fragile", "after")] == [50, 45]
    assert [pipeline.report[n].failures for n in ("fragile", "after")] == [5, 0]


def test_a_summary_is_raised_if_it_is_asked_for():
    def fragile(raw):
        return 1 // raw

    with pytest.raises(ExceptionGroup, match="2 of 3 events failed") as told:
        Pipeline([raw, fragile]).run([0, 1, 0], raise_errors=True)
    assert [error.event for error in told.value.exceptions] == [0, 2]


class Begins(Producer):
    def begin(self, place):
        raise MemoryError("too large")

    def produce(self, event, ctx): ...


def test_begin_fails_before_the_first_event():
    taken = []
    with pytest.raises(ModuleError, match="stream 0 on cpu: Begins failed in begin: MemoryError"):
        Pipeline([Begins()]).run(taken.append(i) for i in range(3))
    assert taken == []


def test_a_source_that_fails():
    """What it gave before comes to its end."""
    finished = []

    def last(raw):
        time.sleep(0.001)
        finished.append(raw)

    def source():
        yield from range(5)
        raise OSError("torn")

    async def torn():
        for i in source():
            yield i

    for given in (source(), torn()):
        finished.clear()
        with pytest.raises(OSError, match="torn"):
            Pipeline([raw, last]).run(given)
        assert sorted(finished) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("awaiting", [False, True])
def test_what_is_not_for_the_pipeline_ends_the_run(kind, awaiting):
    def fails(raw):
        if raw == 5:
            raise kind
        return raw

    async def fails_later(raw):
        await asyncio.sleep(0)
        return fails(raw)

    chosen = module(name="fails")(fails_later if awaiting else fails)
    with pytest.raises(kind):
        Pipeline([raw, chosen]).run(itertools.count())
    assert threads() == []


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("hamr-pipeline")]


def test_an_exception_keeps_nothing_of_the_event():
    class Large:
        pass

    alive = []

    def made():
        alive.append(weakref.ref(large := Large()))
        return large

    def fails(made):
        inner = [made]
        try:
            raise KeyError(1)
        except KeyError:
            raise ValueError(len(inner)) from None

    gc.collect()
    gc.disable()
    try:
        results = Pipeline([made, fails], streams=2).run(range(5))
        assert [type(r.error.__cause__) for r in results] == [ValueError] * 5
        assert [ref() for ref in alive] == [None] * 5
    finally:
        gc.enable()


def test_an_exception_of_begin_keeps_nothing_of_the_run():
    class Large:
        pass

    class Fails(Producer):
        def begin(self, place):
            self.memory = Large()
            alive.append(weakref.ref(self.memory))
            if len(alive) == 3:
                raise OSError

        def produce(self, event, ctx): ...

    alive = []
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ModuleError, match="stream 2 on cpu: Fails failed in begin") as told:
            Pipeline([Fails()]).run([1])
        assert [ref() for ref in alive] == [None] * 3
        assert isinstance(told.value.__cause__, OSError)
    finally:
        gc.enable()


# Cancellation.


@pytest.mark.parametrize("way", ["run_async", "results"])
def test_cancellation_waits_for_what_is_under_way_and_goes_no_further(way):
    gate, after = Gate(*range(8)), []

    def last(gated):
        after.append(gated)

    async def all_results(pipeline):
        return [r async for r in pipeline.results(itertools.count())]

    async def main():
        pipeline = Pipeline([raw, gated(gate), last])
        if way == "results":
            running = asyncio.create_task(all_results(pipeline))
        else:
            running = asyncio.create_task(pipeline.run_async(itertools.count()))
        for _ in range(8):
            await asyncio.to_thread(gate.entered.acquire)
        running.cancel()
        await asyncio.sleep(0.01)
        running.cancel()  # once more
        await asyncio.sleep(0.01)
        assert not running.done()
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert after == []
    assert threads() == []


def test_coroutines_are_cancelled():
    ended = []

    async def waits(raw):
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(raw)

    async def main():
        running = asyncio.create_task(Pipeline([raw, waits]).run_async(range(100)))
        while len(asyncio.all_tasks()) < 10:
            await asyncio.sleep(0.001)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert sorted(ended) == [*range(8)]


def test_ctrl_c(ctrl_c):
    def interrupts(raw):
        if raw == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return raw

    taken = []

    def source():
        for i in itertools.count():
            taken.append(i)
            yield i

    with pytest.raises(KeyboardInterrupt):
        Pipeline([raw, interrupts]).run(source())
    assert threads() == []
    assert len(taken) >= 21


def test_a_loop_that_is_left_early_ends_the_run():
    async def main():
        async for result in Pipeline([raw, negative]).results(itertools.count()):
            if result.number == 3:
                break
        while threads():
            await asyncio.sleep(0.001)

    asyncio.run(main())


def test_two_runs_of_one_pipeline_at_a_time():
    pipeline = Pipeline([raw, negative], streams=2)

    async def main():
        return await asyncio.gather(*(pipeline.run_async(range(n, n + 30)) for n in (0, 100)))

    first, second = asyncio.run(main())
    assert [r["negative"] for r in first] == [-i for i in range(30)]
    assert [r["negative"] for r in second] == [-i for i in range(100, 130)]


def test_a_chooser_of_ones_own_is_asked_for_each_stream():
    asked = []

    class Chooser:
        def choose(self, key):
            asked.append(key)

    Pipeline([raw], streams=3, chooser=Chooser()).run([1])
    assert asked == [0, 1, 2]
    assert hetero.DeviceChooser().choose(0) is None
