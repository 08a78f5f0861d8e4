"""Modules, sources and surroundings that mean no good to a pipeline: it ends, and says what was."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import subprocess
import sys
import threading
import time
import weakref

import pytest

from hamr.hetero import ModuleError, Pipeline, Producer, module

pytestmark = pytest.mark.usefixtures("no_threads_left")


@pytest.fixture
def no_threads_left():
    yield
    assert not [t for t in threading.enumerate() if t.name.startswith("hamr-pipeline")]


def ends(call):
    """What a call returns or raises, of one that may hang."""
    told = []

    def run():
        try:
            told.append((call(), None))
        except BaseException as error:
            told.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert told, "it hangs"
    made, error = told[0]
    if error is not None:
        raise error
    return made


def raw(event):
    return event.item


class Wordless(Exception):
    def __str__(self):
        raise OSError("no words")


@pytest.mark.parametrize("awaiting", [False, True])
def test_an_exception_without_words(awaiting):
    """Called by a thread, and later by the loop."""

    def fails(raw):
        raise Wordless

    async def later(raw):
        fails(raw)

    chosen = module(name="fails")(later if awaiting else fails)
    results = ends(lambda: Pipeline([raw, chosen], streams=1).run(range(40)))
    told = [str(r.error) for r in results]
    assert told == [
        f"event {i}: fails failed in produce: Wordless: <its text cannot be had>" for i in range(40)
    ]


def test_a_group_of_exceptions_keeps_nothing_of_the_event():
    class Large:
        pass

    alive = []

    def made():
        alive.append(weakref.ref(large := Large()))
        return large

    async def one(made):
        held = [made]
        raise ValueError(len(held))

    async def fails(made):
        async with asyncio.TaskGroup() as group:
            group.create_task(one(made))

    gc.collect()
    gc.disable()
    try:
        results = Pipeline([made, fails], streams=2).run(range(5))
        assert {type(r.error.__cause__) for r in results} == {ExceptionGroup}
        del results[:-1]
        assert [ref() for ref in alive] == [None] * 5
    finally:
        gc.enable()


def test_a_coroutine_that_handed_its_error_on_goes_on():
    """An event fails with an error of a reader's, which reads what comes after it, too."""

    async def main():
        asked_for = asyncio.Queue()

        async def read():
            while True:
                number, future = await asked_for.get()
                try:
                    future.set_result(await answer(number))
                except OSError as error:
                    future.set_exception(error)

        async def answer(number):
            await asyncio.sleep(0)
            if number % 2:
                raise OSError(number)
            return number

        async def asked(raw):
            future = asyncio.get_running_loop().create_future()
            asked_for.put_nowait((raw, future))
            async with asyncio.timeout(10):
                return await future

        reader = asyncio.create_task(read())
        results = await Pipeline([raw, asked], streams=1).run_async(range(6))
        assert not reader.done()
        reader.cancel()
        return [type(r.error and r.error.__cause__) for r in results]

    assert asyncio.run(main()) == [type(None), OSError] * 3


def test_a_generator_that_handed_its_error_on_goes_on():
    def reader():
        caught = None
        while True:
            try:
                yield caught
            except OSError as error:
                caught = error

    reading = reader()
    next(reading)

    def fails(raw):
        raise reading.throw(OSError(raw))

    results = ends(lambda: Pipeline([raw, fails], streams=1).run(range(3)))
    assert [type(r.error.__cause__) for r in results] == [OSError] * 3
    assert reading.gi_frame is not None


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_many_modules_one_after_another(kind):
    """None of them is short for the stack."""
    count = 500

    def sums(*values):
        return sum(values) % 1000

    steps = [raw]
    for i in range(count):
        inputs = [f"m{j}" if j >= 0 else "raw" for j in (i - 1, i - 2)]
        steps.append(module(name=f"m{i}", inputs=inputs)(sums))
    expected = [1, 1]
    for _ in range(count):
        expected.append(sum(expected[-2:]) % 1000)
    streams = 1 if kind == "loop" else 4
    results = ends(lambda: Pipeline(steps, streams=streams).run([1] * 12))
    assert [r.error for r in results] == [None] * 12
    assert {r[f"m{count - 1}"] for r in results} == {expected[-1]}


@pytest.mark.parametrize("kind", [StopIteration, asyncio.CancelledError, GeneratorExit])
def test_a_source_that_raises_what_futures_do_not_take(kind):
    class Source:
        left = 3

        def __aiter__(self):
            return self

        def __anext__(self):
            self.left -= 1
            if self.left < 0:
                raise kind
            return self

        def __await__(self):
            yield from ()
            return 7

    with pytest.raises(RuntimeError if kind is StopIteration else kind):
        ends(lambda: Pipeline([raw]).run(Source()))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, OSError])
def test_begin_may_end_the_run(kind):
    class Begins(Producer):
        def begin(self, place):
            raise kind

        def produce(self, event, ctx): ...

    as_given = issubclass(kind, (KeyboardInterrupt, SystemExit))
    with pytest.raises(kind if as_given else ModuleError):
        ends(lambda: Pipeline([Begins()]).run([1]))


def test_the_trace_of_a_run_that_was_cancelled(tmp_path):
    path, ended = tmp_path / "trace.json", []

    class Bar:
        def end(self):
            ended.append(True)

        def one(self, failed): ...

    async def main():
        pipeline = Pipeline([raw, waits], trace=path, progress=True)
        running = asyncio.create_task(pipeline.run_async(range(100)))
        while len(asyncio.all_tasks()) < 10:
            await asyncio.sleep(0.001)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    async def waits(raw):
        await asyncio.sleep(1000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hamr.hetero.pipeline.Progress", lambda total: Bar())
        asyncio.run(main())
    assert ended == [True]
    names = {e["name"] for e in json.loads(path.read_text())["traceEvents"]}
    assert {"raw", "waits"} <= names


def test_nobody_listens_to_the_progress(monkeypatch, tmp_path):
    class Deaf:
        def isatty(self):
            raise BrokenPipeError

        write = flush = isatty

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr("hamr.hetero.pipeline_progress.PAUSE", 0)
    monkeypatch.setattr(sys, "stderr", Deaf())
    pipeline = Pipeline([raw], progress=True, trace=tmp_path / "trace.json")
    results = pipeline.run(range(30))
    assert [r["raw"] for r in results] == [*range(30)]
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_events_that_do_not_say_how_many_they_are():
    class Unsized:
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            raise TypeError("a stream has no len")

    assert [r["raw"] for r in Pipeline([raw]).run(Unsized())] == [0, 1, 2]


def test_the_loop_runs_on_while_threads_end():
    """One of them lets go of something whose end waits for the loop."""
    go = threading.Event()

    class Slow:
        def __del__(self):
            slow.append(go.wait(10))

    slow = []

    def made():
        return Slow()

    async def main():
        asyncio.get_running_loop().call_later(0.05, go.set)
        await Pipeline([made], streams=1, keep=[]).run_async([1])

    asyncio.run(main())
    assert slow == [True]


def test_an_object_whose_call_is_a_coroutine():
    class Doubled:
        async def __call__(self, raw):
            await asyncio.sleep(0)
            return 2 * raw

    chosen = module(name="doubled")(Doubled())
    assert [r["doubled"] for r in Pipeline([raw, chosen]).run(range(3))] == [0, 2, 4]


def test_a_function_that_returns_a_coroutine_is_told_so():
    async def later():
        return 1

    forgotten = module(name="forgotten")(lambda raw: later())
    (result,) = Pipeline([raw, forgotten]).run([1])
    assert isinstance(result.error.__cause__, TypeError)
    assert "returned a coroutine" in str(result.error)


def test_a_chooser_that_chooses_something_else():
    class Chooser:
        def choose(self, key):
            return "cuda:0"

    with pytest.raises(TypeError, match=r"chose 'cuda:0'.*Token"):
        Pipeline([raw], chooser=Chooser()).run([1])


def test_modules_have_the_variables_of_who_runs_the_pipeline():
    """Whoever else uses the loop, and whichever thread calls them."""
    variable = contextvars.ContextVar("variable", default=None)
    found = []

    def first(event):
        found.append(variable.get())

    async def second(first):
        found.append(variable.get())

    def third(second):
        found.append(variable.get())

    async def other():
        variable.set("another one's")
        async for _ in pipeline.results(range(30)):
            pass

    async def main():
        variable.set("the run's")
        await pipeline.run_async(range(30))
        await asyncio.create_task(other())

    pipeline = Pipeline([first, second, third], streams=2)
    asyncio.run(main())
    assert set(found[:90]) == {"the run's"}
    assert set(found[90:]) == {"another one's"}


@pytest.mark.parametrize("slow", [False, True])
def test_what_a_module_sets_is_its_own(slow):
    """Later events, later modules and the source have the run's variables."""
    variable = contextvars.ContextVar("variable", default=None)
    found = []

    def note(name):
        found.append((name, variable.get()))
        variable.set(name)
        if slow:  # threads call it
            time.sleep(0.001)

    def source():
        for i in range(20):
            assert variable.get() in ("the run's", i - 1)
            variable.set(i)
            yield i

    def first(event):
        note("first")

    def second(first):
        note("second")

    async def third(event):
        note("third")
        await asyncio.sleep(0)
        note("third")

    variable.set("the run's")
    results = Pipeline([first, second, third], streams=2).run(source())
    assert [r.error for r in results] == [None] * 20
    assert variable.get() == "the run's"
    assert set(found) == {
        ("first", "the run's"),
        ("second", "the run's"),
        ("third", "the run's"),
        ("third", "third"),
    }


def test_the_trace_of_very_many_modules(tmp_path):
    """No row is of two streams."""
    from tests.hetero.test_hetero_telling import spans

    async def waits(raw): ...

    steps = [raw, *(module(name=f"m{i}", inputs=["raw"])(waits) for i in range(1001))]
    Pipeline(steps, streams=2, trace=tmp_path / "trace.json").run(range(2))
    complete, told = spans(tmp_path / "trace.json")
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in told if e["name"] == "thread_name"}
    for e in complete:
        if e["pid"] == 2:
            title = rows[e["pid"], e["tid"]]
            assert title == f"stream {e['args']['event']}" or title.endswith(e["name"])


INTERRUPTED_TWICE = """
import itertools, os, signal
from hamr.hetero import Pipeline
from hamr.hetero.pipeline_steps import Steps

signal.signal(signal.SIGINT, signal.default_int_handler)
called, calls = Steps._called, itertools.count()

def interrupted(self, *given):
    if next(calls) == 50:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
    return called(self, *given)

def raw(event):
    return event.item

def both(raw, event): ...

Steps._called = interrupted
try:
    Pipeline([raw, both]).run(itertools.count())
except KeyboardInterrupt:
    print("ended")
"""


def test_ctrl_c_several_times_at_once():
    """As from a terminal and a wrapper: where an event's account is kept, that is not lost."""
    script = [sys.executable, "-c", INTERRUPTED_TWICE]
    ended = subprocess.run(script, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.stdout, ended.stderr) == ("ended\n", "")
