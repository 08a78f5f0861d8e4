"""Pipelines at random, beside a plain sequential model of what must come of each event.

Modules add up what they read. Of a device module's inputs that are a device's the first counts: it
is read by a late kernel, so that whoever does not wait finds something else.
"""

from __future__ import annotations

import asyncio
import random
import warnings
from dataclasses import dataclass, field

from hamr.hetero import Pipeline, Producer, module

MODULO = 97


class Fault(Exception):
    pass


class Wordless(Exception):
    def __str__(self):
        raise Fault


FAULTS = [
    lambda: Fault("torn"),
    Wordless,
    StopIteration,
    asyncio.CancelledError,
    lambda: ExceptionGroup("several", [Fault(), KeyError(1)]),
]
ENDS = [KeyboardInterrupt, SystemExit, GeneratorExit]


@dataclass
class Made:
    """A module of a random pipeline, and what it is expected to do."""

    number: int
    kind: str  # without a device "cpu" for all
    inputs: list[str]
    outputs: list[str]
    style: str  # "function" or "producer"
    awaiting: bool
    begins: bool
    nothing: set[str]  # outputs that are None
    device_inputs: list[str] = field(default_factory=list)

    @property
    def name(self):
        return f"m{self.number}"

    @property
    def phases(self):
        if self.kind == "external":
            return ["acquire", "produce"] if self.style == "producer" else ["acquire"]
        return ["produce"]


def number_of(value):
    return 0.0 if value is None else float(value[0] if hasattr(value, "__getitem__") else value)


class Run:
    """A pipeline, its faults, and the model. ``devices`` says how devices do things, if any."""

    def __init__(self, seed, devices=None):
        self.random = random.Random(seed)
        self.devices = devices
        chance = self.random
        self.modules = []
        kind_of = {}
        for number in range(chance.randrange(1, 11)):
            self.modules.append(self._module(number, kind_of))
            kind_of |= dict.fromkeys(self.modules[-1].outputs, self.modules[-1].kind)
        self.count = chance.randrange(1, 25)
        self.faults = {}  # by event and module: phase, and what is raised or how it is wrong
        for event in range(self.count):
            for made in self.modules:
                if chance.random() < 0.03:
                    several = len(made.outputs) > 1
                    wrong = chance.random() < 0.3 and several and made.phases[-1] == "produce"
                    phase = "produce" if wrong else chance.choice(made.phases)
                    kind = (
                        chance.choice(["keys", "few", "text"]) if wrong else chance.choice(FAULTS)
                    )
                    self.faults[event, made.number] = phase, kind
        self.kept = [o for m in self.modules if m.kind != "device" for o in m.outputs]
        pipeline_order = [self._build(m) for m in self.modules]
        chance.shuffle(pipeline_order)
        self.options = {
            "streams": chance.randrange(1, 9),
            "keep": self.kept,
            "workers": chance.choice([None, 1, 3]),
            "chooser": devices and devices.chooser(chance),
        }
        self.pipeline_order = pipeline_order
        self.begin_fails = chance.random() < 0.05
        self.begun = 0

    def _module(self, number, kind_of):
        chance = self.random
        kind = chance.choice(["cpu", "device", "external"]) if self.devices else "cpu"
        allowed = [n for n, k in kind_of.items() if kind != "cpu" or k != "device"]
        inputs = chance.sample(allowed, min(len(allowed), chance.randrange(4)))
        outputs = [f"m{number}"]
        if chance.random() < 0.3:
            outputs = [f"m{number}{c}" for c in "abc"[: chance.randrange(2, 4)]]
        style = chance.choice(["function", "producer"])
        return Made(
            number,
            kind,
            inputs,
            outputs,
            style,
            chance.random() < 0.3,
            style == "producer" and chance.random() < 0.4,
            {o for o in outputs if kind != "device" and chance.random() < 0.1},
            [n for n in inputs if kind_of[n] == "device"],
        )

    # What modules do.

    def fault(self, made, event, phase):
        """The exception of a phase is raised; how the outcome is wrong is returned."""
        when, kind = self.faults.get((event.number, made.number), (None, None))
        if when != phase:
            return None
        if callable(kind):
            raise kind()
        return kind

    def host_sum(self, made, values, event):
        hosts = [number_of(v) for n, v in zip(made.inputs, values, strict=True)
                 if n not in made.device_inputs]  # fmt: skip
        return (sum(hosts) + made.number + event.item) % MODULO

    def outcome(self, made, values, wrong):
        """The outputs as a module returns them."""
        if wrong == "keys":
            return dict.fromkeys(["x", *made.outputs[1:]], 1)
        if wrong == "few":
            return values[1:]
        if wrong == "text":
            return "abcdef"[: len(values)]
        if len(values) == 1:
            return values[0]
        return dict(zip(made.outputs, values, strict=True)) if made.number % 2 else tuple(values)

    def host_outcome(self, made, total, wrong):
        values = [None if o in made.nothing else total + i for i, o in enumerate(made.outputs)]
        return self.outcome(made, values, wrong)

    def device_outcome(self, made, values, event, ctx, wrong):
        total = self.host_sum(made, values, event)
        source = next((v for n, v in zip(made.inputs, values, strict=True)
                       if n in made.device_inputs), None)  # fmt: skip
        found = [self.devices.kernel(source, total + i, ctx) for i in range(len(made.outputs))]
        return self.outcome(made, found, wrong)

    def enqueue_copy(self, made, values, ctx):
        """Of the first input that is a device's; what to read when it is over."""
        for name, value in zip(made.inputs, values, strict=True):
            if name in made.device_inputs:
                return self.devices.copy(value, ctx)
        return [0.0]

    def _build(self, made):
        run = self

        def body(values, event, ctx):
            if made.kind == "external":
                out = run.enqueue_copy(made, values, ctx)
                run.fault(made, event, "acquire")
                # What it returns is read when all is over, and no sooner.
                return run.outcome(made, [out] * len(made.outputs), None)
            wrong = run.fault(made, event, "produce")
            if made.kind == "device":
                return run.device_outcome(made, values, event, ctx, wrong)
            return run.host_outcome(made, run.host_sum(made, values, event), wrong)

        async def later(values, event, ctx):
            if ctx is None:
                await asyncio.sleep(0)
            elif event.number % 2:
                await ctx.done()
            return body(values, event, ctx)

        if made.style == "function":
            if made.kind == "cpu":

                def plain(*values, event):
                    return body(values, event, None)

                async def awaited(*values, event):
                    return await later(values, event, None)
            else:

                def plain(*values, event, ctx):
                    return body(values, event, ctx)

                async def awaited(*values, event, ctx):
                    return await later(values, event, ctx)

            return module(
                made.kind, name=made.name, inputs=made.inputs, outputs=made.outputs
            )(awaited if made.awaiting else plain)  # fmt: skip

        class Both(Producer):
            kind, name, inputs, outputs = made.kind, made.name, made.inputs, made.outputs

            def begin(self, place):
                run.begun += 1
                self.memory = run.devices and place != "cpu" and run.devices.memory()
                if run.begin_fails and run.begun == 3:
                    raise Fault("begin")

        if not made.begins:
            del Both.begin
        values_of = lambda event: [event[n] for n in made.inputs]  # noqa: E731
        if made.kind == "external":

            def acquire(self, event, ctx):
                self.out = run.enqueue_copy(made, values_of(event), ctx)
                run.fault(made, event, "acquire")

            def produce(self, event, ctx):
                wrong = run.fault(made, event, "produce")
                total = run.host_sum(made, values_of(event), event) + float(self.out[0])
                return run.host_outcome(made, total, wrong)

            Both.acquire, Both.produce = acquire, produce
            if made.awaiting:

                async def acquire_later(self, event, ctx):
                    if event.number % 2:
                        await ctx.done()
                    return acquire(self, event, ctx)

                async def produce_later(self, event, ctx):
                    await asyncio.sleep(0)
                    return produce(self, event, ctx)

                Both.acquire = acquire_later
                if made.number % 2:
                    Both.produce = produce_later
        elif made.awaiting:

            async def produce(self, event, ctx):
                return await later(values_of(event), event, ctx)

            Both.produce = produce
        else:
            Both.produce = lambda self, event, ctx: body(values_of(event), event, ctx)
        return Both()

    # The model.

    def expected(self, event, place):
        """Values of what is kept, and which modules fail in which phase."""
        values, failed = {}, set()
        for made in self.modules:
            if place is None and made.kind != "cpu":
                values |= dict.fromkeys(made.outputs)  # it is not there
                continue
            if any(n not in values for n in made.inputs):
                continue
            phase, _ = self.faults.get((event, made.number), (None, None))
            if phase:
                failed.add((made.name, phase))
                continue
            hosts = [values[n] or 0 for n in made.inputs if n not in made.device_inputs]
            total = (sum(hosts) + made.number + event) % MODULO
            first = values[made.device_inputs[0]] if made.device_inputs else 0
            for i, output in enumerate(made.outputs):
                if made.kind == "external" and made.style == "function":
                    values[output] = first
                elif output in made.nothing:
                    values[output] = None
                else:
                    values[output] = total + i + (first if made.kind != "cpu" else 0)
        return values, failed

    def check(self, result, lenient=False):
        """That of an event, which ``lenient`` allows to fail in other ways as well."""
        values, failed = self.expected(result.number, result.place)
        told = {(e.module, e.phase) for e in result.errors}
        assert all(e.event == result.number for e in result.errors)
        for error in result.errors:
            assert str(error).startswith(f"event {result.number}: {error.module} failed in ")
        if lenient and told - failed:
            assert result.errors
        else:
            assert told == failed
            assert result.values.keys() == {n for n in self.kept if n in values}
        for name, value in result.values.items():
            if value is not None:
                value = number_of(value)
            assert value == values[name], (result.number, name)

    def pipeline(self, **others):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return Pipeline(self.pipeline_order, **self.options, **others)

    # Runs.

    def events(self, fails_after):
        """A source, asynchronous or not, which may fail."""

        def plain():
            for i in range(self.count):
                if i == fails_after:
                    raise Fault("source")
                yield i

        async def slowly():
            for i in plain():
                if i % 3 == 0:
                    await asyncio.sleep(0)
                yield i

        return slowly() if self.random.random() < 0.4 else plain()


def assert_nothing_is_left():
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def walk(run, tmp_path, on_result=lambda count: False):
    """One run, which may be cancelled, ended by a module, or have a source that fails."""
    chance = run.random
    fails_after = chance.randrange(run.count) if chance.random() < 0.1 else None
    cancelled = chance.random() < 0.2
    ended = chance.random() < 0.1 and chance.choice(ENDS)
    if ended:
        run.faults = {k: v for k, v in run.faults.items() if k[0] != 0}
        for made in run.modules:
            run.faults[run.count // 2, made.number] = chance.choice(made.phases), ended
    trace = tmp_path / "trace.json" if chance.random() < 0.3 else None
    pipeline = run.pipeline(trace=trace)
    results = []

    async def consume():
        ordered = chance.random() < 0.5
        source = pipeline.results(run.events(fails_after), ordered=ordered)
        async for result in source:
            results.append(result)
            lenient = on_result(len(results))
            run.check(result, lenient)

    task = asyncio.ensure_future(consume())
    if cancelled:
        for _ in range(chance.randrange(60)):
            await asyncio.sleep(0)
        await asyncio.sleep(chance.random() * 0.002)
        task.cancel()
        if chance.random() < 0.3:
            await asyncio.sleep(0)
            task.cancel()
    await asyncio.wait([task])
    error = None if task.cancelled() else task.exception()
    if task.cancelled():
        assert cancelled
    elif error is not None:
        told = getattr(error, "phase", None)
        assert (
            (told == "begin" and run.begin_fails)
            or (fails_after is not None and isinstance(error, Fault))
            or (ended and isinstance(error, ended))
        ), error
    else:
        assert sorted(r.number for r in results) == [*range(run.count)]
        assert (pipeline.report.events, pipeline.report.failed) == (
            run.count,
            sum(bool(r.errors) for r in results),
        )
        for made in run.modules:
            told = sum(e.module == made.name for r in results for e in r.errors)
            assert pipeline.report[made.name].failures == told
    if trace is not None:
        import json

        for e in json.loads(trace.read_text())["traceEvents"]:
            assert e.get("dur", 0) >= 0
    while len(asyncio.all_tasks()) > 1:  # a generator's end
        await asyncio.sleep(0)
    assert str(pipeline.report)


def run_walk(run, tmp_path, on_result=lambda count: False):
    """What ends the run by force comes out of the loop, as from a task of one's own."""
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(walk(run, tmp_path, on_result))
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (KeyboardInterrupt, SystemExit):
                if task.done():
                    raise
        task.result()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
