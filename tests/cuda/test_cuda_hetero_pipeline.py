"""Pipelines on devices: what is right, what waits for what, and until when things live."""

import asyncio
import contextvars
import gc
import itertools
import threading
import time
import weakref

import pytest

import hamr
from hamr import hetero
from hamr.hetero import Pipeline, Producer, module
from tests.cuda import driver
from tests.cuda.conftest import BLOCKING
from tests.cuda.hetero import streams_and_events
from tests.cuda.hetero_modules import (
    Fetched,
    chain,
    enqueue_copy,
    expected,
    loaded,
    made_by_kernel,
    on_host,
    page_locked,
    raw,
)
from tests.support.processes import scaled

pytestmark = pytest.mark.usefixtures("cuda_alone")

PLACES = [f"cuda:{n}" for n in range(driver.DEVICES)]


def handed_out():
    return [streams_and_events(place) for place in PLACES]


@pytest.fixture(autouse=True)
def nothing_leaks():
    before = handed_out()
    yield
    assert handed_out() == before


def blocking_calls():
    """How many there were; a real driver does not say."""
    return {call: driver.emulator.calls(call) for call in BLOCKING if driver.emulator}


@pytest.mark.freed_again
def test_every_checksum_is_right_and_no_thread_waits_for_a_device():
    count = scaled(1000, 40)
    pipeline, results = Pipeline(chain()), []

    def events():
        yield 0
        before.update(blocking_calls())  # memory for the run was taken by then
        yield from range(1, count)

    async def main():
        async for result in pipeline.results(events()):
            results.append(result)
            if len(results) == count:
                now = blocking_calls()
                # The core's goroutine waits for a device once for many pieces of memory whose
                # addresses the modules' kernels were given; no module and no event does.
                of_devices = now.pop("cuCtxSynchronize", 0) - before.pop("cuCtxSynchronize", 0)
                assert now == before
                assert of_devices <= count // 20

    before = {}
    asyncio.run(main())
    assert [r["total"] for r in results] == [expected(r.number) for r in results]
    assert {r.place for r in results} == set(PLACES)
    assert all(r.place == PLACES[r.stream % len(PLACES)] for r in results)
    assert pipeline.report["fetched"].device_stall > 0


#: Seconds: what takes less is called by the loop's thread, once that is known.
LONG = 2e-4


def test_device_modules_are_called_on_the_loops_thread_and_others_are_not():
    where = {}

    def noted(name, kind, *inputs):
        def call(*values, ctx=None):
            where.setdefault(name, set()).add(threading.current_thread() is threading.main_thread())
            if kind == "cpu":
                time.sleep(LONG)
            return name

        return module(kind, name=name, inputs=inputs)(call)

    class External(Producer):
        kind = "external"
        inputs = ("device",)

        def acquire(self, event, ctx):
            where.setdefault("acquire", set()).add(threading.current_thread())

        def produce(self, event, ctx):
            where.setdefault("produce", set()).add(threading.current_thread())
            time.sleep(LONG)

        def __del__(self):  # of the copies, which may have memory whose end waits
            where.setdefault("end", set()).add(threading.current_thread())

        def begin(self, place): ...

    class Ends:
        def __del__(self):
            where.setdefault("end", set()).add(threading.current_thread())

    ends = module(name="ends")(Ends)
    modules = [ends, noted("cpu", "cpu"), noted("device", "device", "cpu"), External()]
    Pipeline(modules, keep=[]).run(range(20))
    assert (where["cpu"], where["device"]) == ({False}, {True})
    main = {threading.main_thread()}
    assert where["acquire"] == main
    assert not main & (where["produce"] | where["end"])


def test_without_a_device_the_same_comes_of_the_fallback():
    fetched = Fetched()
    fetched.fallback = on_host
    for enabled in (True, False):
        chooser = hetero.DeviceChooser(enabled=enabled)
        results = Pipeline(chain(fetched=fetched), chooser=chooser).run(range(20))
        assert [r["total"] for r in results] == [expected(i) for i in range(20)]
        assert {r.place for r in results} == (set(PLACES) if enabled else {None})


def test_devices_that_are_named():
    chooser = hetero.DeviceChooser("least_pending", among=PLACES[-1])
    results = Pipeline(chain(), chooser=chooser, streams=3).run(range(10))
    assert {r.place for r in results} == {PLACES[-1]}


def test_one_events_device_work_stands_still_and_the_others_go_on(emulator):
    """Also: the loop runs on, and no input of that work is let go of before it is over."""
    alive = []

    class Content:
        def __init__(self):
            alive.append(weakref.ref(self))

    @module("device")
    def held(loaded, event, ctx):
        if event.number == 0:
            emulator.hold(ctx.stream.ptr)
        return Content()

    async def main():
        numbers = []
        events = range(40)
        async for result in Pipeline([raw, loaded, held], keep=["raw"]).results(
            events, ordered=False
        ):
            numbers.append(result.number)
            if len(numbers) == 39:
                assert [n for n, ref in enumerate(alive) if ref() is not None] == [0]
                await asyncio.sleep(0.005)
                emulator.let_go()
        return numbers

    numbers = asyncio.run(main())
    assert sorted(numbers) == [*range(40)]
    assert numbers[-1] == 0
    assert not any(ref() for ref in alive)


def test_two_consumers_of_a_product_have_streams_of_their_own():
    streams = {}

    def read(name):
        def call(loaded, event, ctx):
            streams.setdefault(event.number, []).append(ctx.stream.ptr)
            out = page_locked()
            made = hamr.Buffer(
                loaded.shape, "f4", "cuda_async", device=ctx.device, transfer="async"
            )
            driver.write_late(ctx.stream.ptr, made.ptr, out.size, 1, loaded.ptr, 2, ctx.device)
            enqueue_copy(out, made, ctx)
            return out, made

        return module("external", name=name)(call)

    @module()
    def both(one, two):
        return one[0][0] + two[0][-1]

    results = Pipeline([raw, loaded, read("one"), read("two"), both]).run(range(30))
    assert [r["both"] for r in results] == [2 * (2 * i + 1) for i in range(30)]
    assert all(one != two for one, two in streams.values())


def test_the_second_consumer_waits_on_the_device_for_what_is_not_there_yet(
    emulator,
):
    @module("device")
    def late(raw, ctx):
        emulator.hold(ctx.stream.ptr)
        asyncio.get_running_loop().call_later(0.01, emulator.let_go)
        return made_by_kernel(None, 1, raw, ctx)

    def read(name):
        out = page_locked()

        def call(late, ctx):
            enqueue_copy(out, late, ctx)
            return out

        return module("external", name=name)(call)

    before = emulator.calls("cuStreamWaitEvent")
    (result,) = Pipeline([raw, late, read("one"), read("two")], streams=1).run([5])
    assert [set(result[name].tolist()) for name in ("one", "two")] == [{5}, {5}]
    assert emulator.calls("cuStreamWaitEvent") == before + 1


def test_coroutines_of_devices():
    @module("device")
    async def waiting(loaded, ctx):
        await ctx.done()
        return loaded

    @module("external")
    async def read(waiting, event, ctx):
        out = page_locked()
        enqueue_copy(out, waiting, ctx)
        if event.number % 2:
            await ctx.done()
            assert (out == event.item).all()
        return out

    class Later(Fetched):
        name, inputs = "later", ("waiting",)

        async def acquire(self, event, ctx):
            with ctx.suspended():
                await asyncio.sleep(0)

        async def produce(self, event, ctx):
            await asyncio.sleep(0)
            return event.item

    results = Pipeline([raw, loaded, waiting, read, Later()]).run(range(30))
    assert [r.error for r in results] == [None] * 30
    assert [(r["read"][0], r["later"]) for r in results] == [(i, i) for i in range(30)]


@pytest.mark.parametrize("kind", ["device", "external"])
def test_a_coroutine_that_forgets_to_suspend_its_scope(kind):
    """While it waits, other tasks of the thread have what was current before the run."""
    before, found, over = driver.current_context(), [], []

    @module(kind)
    async def forgets(raw, ctx):
        inside = driver.context(ctx.device)
        for _ in range(3):
            assert driver.current_context() == inside
            await asyncio.sleep(0)
        with ctx.suspended():
            await asyncio.sleep(0)
            assert driver.current_context() == before
        assert driver.current_context() == inside
        try:
            await fails(ctx)
        except OSError:
            assert driver.current_context() == inside
        return raw

    async def fails(ctx):
        with hetero.ScopedContext(ctx.wrap(None)):
            await asyncio.sleep(0)
            raise OSError

    async def look():
        while not over:
            found.append(driver.current_context())
            await asyncio.sleep(0)

    async def main():
        looking = asyncio.create_task(look())
        pipeline = Pipeline([raw, forgets], streams=3, keep="raw")
        results = await pipeline.run_async(range(20))
        over.append(True)
        await looking
        return results

    results = asyncio.run(main())
    assert [r.error for r in results] == [None] * 20
    assert set(found) == {before}


@pytest.mark.parametrize("kind", ["device", "external"])
def test_what_a_device_module_sets_is_its_own(kind):
    variable = contextvars.ContextVar("variable", default=None)
    found = []

    @module(kind)
    def sets(raw, ctx):
        found.append(variable.get())
        variable.set(raw)
        return raw

    @module(kind)
    async def awaits(sets, ctx):
        found.append(variable.get())
        variable.set("awaits")
        await ctx.done()
        return sets

    results = Pipeline([raw, sets, awaits], streams=2).run(range(20))
    assert [r.error for r in results] == [None] * 20
    assert set(found) == {None}


def test_begin_is_called_for_each_stream_on_its_device():
    begun = []

    class Begins(Fetched):
        def begin(self, place):
            device = int(place.partition(":")[2])
            assert driver.current_context() == driver.context(device)
            self.memory = hamr.Buffer(10, "f4", "cuda_async", fill=device, transfer="async")
            assert self.memory.device == device
            begun.append((place, weakref.ref(self)))
            super().begin(place)

    for _ in range(2):
        Pipeline(chain(fetched=Begins()), streams=4).run(range(9))
        assert [place for place, _ in begun] == [PLACES[n % len(PLACES)] for n in range(4)]
        gc.collect()
        assert not any(ref() for _, ref in begun)
        begun.clear()


def test_what_begin_enqueues_is_over_before_the_first_event(emulator):
    let_go = []

    class Begins(Fetched):
        def begin(self, place):
            super().begin(place)
            emulator.hold(hamr.Buffer(1, "f4", "cuda_async", transfer="async").stream.ptr)
            threading.Timer(0.01, lambda: (let_go.append(True), emulator.let_go())).start()

        def acquire(self, event, ctx):
            assert let_go == [True]
            super().acquire(event, ctx)

    results = Pipeline(chain(fetched=Begins()), streams=1).run(range(3))
    assert [r.error for r in results] == [None] * 3


def test_the_trace_has_what_devices_did(tmp_path):
    from tests.hetero.test_hetero_telling import spans

    Pipeline(chain(), streams=2, trace=tmp_path / "trace.json").run(range(10))
    complete, _ = spans(tmp_path / "trace.json")
    found = {(e["name"], e["cat"]) for e in complete}
    assert {("fetched", phase) for phase in ("acquire", "completion", "produce")} <= found
    waits = [e for e in complete if e["cat"] == "completion"]
    assert sorted(e["args"]["event"] for e in waits) == [*range(10)]
    assert {e["pid"] for e in waits} == {2}


def test_a_source_without_an_end():
    async def main():
        async for result in Pipeline(chain()).results(itertools.count()):
            assert result["total"] == expected(result.number)
            if result.number == 50:
                break
        while any(t.name.startswith("hamr-pipeline") for t in threading.enumerate()):
            await asyncio.sleep(0.001)

    asyncio.run(main())
