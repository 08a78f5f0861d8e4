"""How an event goes from module to module, on the loop's thread, which never waits."""

from __future__ import annotations

from asyncio import CancelledError, create_task
from collections.abc import Coroutine
from functools import partial
from time import perf_counter_ns

from .._native import Product, ScopedContext
from .completion import completed, when_completed, when_completed_somehow
from .context import outside
from .pipeline_events import ModuleError
from .pipeline_flow import Flow, HostJob
from .pipeline_lanes import ends_the_run, shed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from contextvars import Context
    from typing import Any

    from .pipeline_flow import Given
    from .pipeline_graph import Step
    from .pipeline_report import Report
    from .pipeline_trace import Trace
    from .pipeline_workers import Lengths, Workers


class Steps:
    """What an engine does with one event. Engine begins and ends the events.

    Enqueued work uses what the event has. So an event is over only when all of that work is, even
    if a module has failed or the run was cancelled.
    """

    report: Report
    trace: Trace | None
    workers: Workers
    lengths: Lengths
    stopping: bool  # no further module is called
    tasks: set[Task[Any]]
    context: Context  # of variables; each call of a module gets a copy

    def finish(self, flow: Flow) -> None:
        """End an event of which nothing is in flight any more."""
        raise NotImplementedError

    def abort(self, error: BaseException) -> None:
        """End the run, since a module raised something such as KeyboardInterrupt."""
        raise NotImplementedError

    def advance(self, flow: Flow, ready: list[Step]) -> None:
        """Call the modules whose inputs are there, and the modules that become ready by that."""
        flow.outstanding += 1  # so that the event does not end meanwhile
        while ready and not self.stopping:
            step = ready.pop()
            if step.kind == "device":
                if step.produce_waits:
                    self._spawn(flow, step, self._enqueue_awaiting(flow, step))
                elif self.context.copy().run(self._enqueue, flow, step):
                    self._follow(flow, step, ready)
            elif step.kind == "external":
                if step.acquire_waits:
                    self._spawn(flow, step, self._acquire_awaiting(flow, step))
                else:
                    self.context.copy().run(self._acquire, flow, step)
            else:
                self._produce(flow, step, None, ready)
        flow.outstanding -= 1
        if not flow.outstanding:
            self._settle(flow)

    def _follow(self, flow: Flow, step: Step, ready: list[Step]) -> None:
        """Find the modules that are ready after a module's product."""
        steps, missing = flow.lane.graph.steps, flow.missing
        for index in step.consumers:
            missing[index] -= 1
            if not missing[index]:
                ready.append(steps[index])

    def _context(self, flow: Flow, step: Step) -> ScopedContext:
        name = step.device_input
        token = flow.lane.token
        assert token is not None
        return ScopedContext(flow.products[name] if name else token)

    def _given(self, flow: Flow, step: Step, ctx: ScopedContext) -> Given:
        values = [
            ctx.get(value) if type(value) is Product else value
            for value in [flow.products[name] for name in step.inputs]
        ]
        return values, flow.event(step, values)

    def _enqueue(self, flow: Flow, step: Step) -> bool:
        """Call a device module. Returns whether it succeeded."""
        begun = perf_counter_ns()
        ctx: ScopedContext | None = None
        values: Any = None
        try:
            with self._context(flow, step) as ctx:
                values, event = self._given(flow, step, ctx)
                made = flow.lane.produce[step.index](values, event, ctx)
                flow.store(step, made, ctx.wrap)
        except BaseException as error:
            self._failed(flow, step, "produce", error, ctx)
            values = event = made = ctx = None  # the error's traceback refers to this frame
            return False
        finally:
            self._called(flow, step, "produce", begun)
        return True

    def _acquire(self, flow: Flow, step: Step) -> None:
        """Call an external module's acquire. The device reports when its work is over."""
        begun = perf_counter_ns()
        ctx: ScopedContext | None = None
        given: Any = None
        values: Any = None
        try:
            with self._context(flow, step) as ctx:
                given = values, event = self._given(flow, step, ctx)
                flow.acquired[step.index] = (
                    given,
                    flow.lane.acquire[step.index](values, event, ctx),
                )
                product = ctx.wrap(None)
            ended = self._called(flow, step, "acquire", begun)
            when_completed(product, partial(self._completed, flow, step, ended))
        except BaseException as error:
            self._failed(flow, step, "acquire", error, ctx)
            given = values = event = ctx = None
            return
        flow.outstanding += 1

    def _completed(self, flow: Flow, step: Step, begun: int, error: Exception | None) -> None:
        given, made = flow.acquired.pop(step.index)
        self._stalled(flow, step, "completion", begun)
        ready: list[Step] = []
        if error is not None:
            self._failed(flow, step, "completion", error, None)
        elif self.stopping:
            pass
        elif step.produces:
            self._produce(flow, step, given, ready)
        elif self._store(flow, step, made):
            self._follow(flow, step, ready)
        del given, made  # so that they end with the event
        flow.outstanding -= 1  # only now: a module that ends at once must not end the event
        self.advance(flow, ready)

    def _store(self, flow: Flow, step: Step, made: Any) -> bool:
        try:
            flow.store(step, made)
        except BaseException as error:
            self._failed(flow, step, "produce", error, None)
            return False
        return True

    def _produce(self, flow: Flow, step: Step, given: Given | None, ready: list[Step]) -> None:
        """Call a host module: on this thread, on another one, or as a coroutine."""
        if step.produce_waits:
            self._spawn(flow, step, self._produce_awaiting(flow, step, given))
            return
        job = HostJob(flow, step, given, self._produced, self._is_stopping, self.context)
        if self.lengths.short(step):
            job.run(0)
            del given  # an error's traceback refers to this frame
            self._follow_job(job, ready)
            return
        try:
            self.workers.submit(job)
        except RuntimeError as error:  # no thread could be started
            self._failed(flow, step, "produce", error, None)
            return
        flow.outstanding += 1

    def _is_stopping(self) -> bool:
        return self.stopping

    def _produced(self, job: HostJob) -> None:
        """Go on after a thread is done."""
        ready: list[Step] = []
        self._follow_job(job, ready)
        job.flow.outstanding -= 1
        self.advance(job.flow, ready)

    def _follow_job(self, job: HostJob, ready: list[Step]) -> None:
        flow = job.flow
        first = job.spans[0]
        self.report.modules[job.step.name].worker_stall_ns += first[1] - job.begun
        self.lengths.took(job.step, job.spans[-1][2] - first[1])
        for step, begun, ended in job.spans:
            self._called(flow, step, "produce", begun, ended, job.thread)
        if job.error is not None:
            self._failed(flow, job.error[0], "produce", job.error[1], None)
            job.error = None
        elif job.last is not None:
            self._follow(flow, job.last, ready)

    # Coroutines, each in a task. They return whether they have made a product.

    def _spawn(self, flow: Flow, step: Step, body: Coroutine[Any, Any, bool]) -> None:
        flow.outstanding += 1
        task = create_task(body, context=self.context.copy())
        self.tasks.add(task)
        task.add_done_callback(partial(self._awaited, flow, step))

    def _awaited(self, flow: Flow, step: Step, task: Task[bool]) -> None:
        self.tasks.discard(task)
        flow.outstanding -= 1
        ready: list[Step] = []
        if not task.cancelled() and task.exception() is None and task.result():
            self._follow(flow, step, ready)
        self.advance(flow, ready)

    async def _enqueue_awaiting(self, flow: Flow, step: Step) -> bool:
        begun = perf_counter_ns()
        ctx: ScopedContext | None = None
        values: Any = None
        try:
            with self._context(flow, step) as ctx:
                values, event = self._given(flow, step, ctx)
                made = await outside(ctx, flow.lane.produce[step.index](values, event, ctx))
                flow.store(step, made, ctx.wrap)
        except BaseException as error:
            self._failed(flow, step, "produce", error, ctx)
            values = event = made = ctx = None
            return False
        finally:
            self._took(flow, step, "produce", begun)
        return True

    async def _acquire_awaiting(self, flow: Flow, step: Step) -> bool:
        begun, phase = perf_counter_ns(), "acquire"
        ctx: ScopedContext | None = None
        given: Any = None
        product: Any = None
        values: Any = None
        try:
            with self._context(flow, step) as ctx:
                given = values, event = self._given(flow, step, ctx)
                made = await outside(ctx, flow.lane.acquire[step.index](values, event, ctx))
                product = ctx.wrap(made)
            flow.extra.append(product)  # outlasts a cancellation
            begun, phase = self._took(flow, step, phase, begun), "completion"
            await completed(product)
            self._stalled(flow, step, phase, begun)
        except BaseException as error:
            self._failed(flow, step, phase, error, ctx if phase == "acquire" else None)
            given = values = event = made = product = ctx = None
            return False
        if not step.produces:
            return self._store(flow, step, made)
        if not self.stopping:
            ready: list[Step] = []
            self._produce(flow, step, given, ready)
            given = values = event = made = None
            self.advance(flow, ready)
        return False

    async def _produce_awaiting(self, flow: Flow, step: Step, given: Given | None) -> bool:
        begun = perf_counter_ns()
        try:
            if given is None:
                values = [flow.products[name] for name in step.inputs]
                given = values, flow.event(step, values)
            flow.store(step, await flow.lane.produce[step.index](*given, None))
        except BaseException as error:
            self._failed(flow, step, "produce", error, None)
            given = values = None
            return False
        finally:
            self._took(flow, step, "produce", begun)
        return True

    # The end.

    def _failed(
        self, flow: Flow, step: Step, phase: str, error: BaseException, ctx: ScopedContext | None
    ) -> None:
        """Note a failure. The work that the module has enqueued before must be waited for."""
        if ctx is not None:
            try:
                flow.extra.append(ctx.wrap(None))
            except Exception as second:  # the device has failed, which the first error says
                shed(second)
        shed(error)
        if self.stopping and isinstance(error, CancelledError):
            return
        lane = flow.lane
        flow.errors.append(
            ModuleError(error, flow.number, step.name, phase, lane.number, lane.place)
        )
        self.report.modules[step.name].failures += 1
        if ends_the_run(error):
            self.abort(error)

    def _settle(self, flow: Flow) -> None:
        """Wait for what devices still do with the event's products, and finish the event."""
        if not flow.settled:
            flow.settled = True
            self._wait_for_loose(flow)
            if flow.outstanding:
                return
        self.finish(flow)

    def _wait_for_loose(self, flow: Flow) -> None:
        graph, products = flow.lane.graph, flow.products
        names = products if flow.errors or self.stopping else graph.loose
        now = perf_counter_ns()
        waiting = [(graph.maker.get(n), products[n]) for n in names if type(products[n]) is Product]
        for step, product in [*waiting, *((None, one) for one in flow.extra)]:
            over = partial(self._loose_completed, flow, step, product, now)
            try:
                if product.done:
                    continue
            except Exception as error:
                self._loose_failed(flow, step, error)
                continue
            flow.outstanding += 1
            when_completed_somehow(product, over)

    def _loose_completed(
        self, flow: Flow, step: Step | None, product: Product, begun: int, error: Exception | None
    ) -> None:
        del product  # it was kept until now; an error's traceback may refer to this frame
        flow.outstanding -= 1
        if step is not None:
            self._stalled(flow, step, "completion", begun)
        if error is not None:
            self._loose_failed(flow, step, error)
        if not flow.outstanding:
            self._settle(flow)

    def _loose_failed(self, flow: Flow, step: Step | None, error: Exception) -> None:
        if step is not None and not flow.errors and not self.stopping:
            self._failed(flow, step, "completion", error, None)

    # Times.

    def _called(
        self, flow: Flow, step: Step, phase: str, begun: int, ended: int = 0, thread: int = 0
    ) -> int:
        """Note a call by a thread. Returns when it ended."""
        ended = ended or perf_counter_ns()
        row = self.report.modules[step.name]
        row.calls += phase == "produce" or not step.produces
        row.time_ns += ended - begun
        if self.trace is not None:
            self.trace.called(thread, step.name, phase, begun, ended, flow.number)
        return ended

    def _took(self, flow: Flow, step: Step, phase: str, begun: int) -> int:
        """Note a coroutine that was awaited. Returns when it ended."""
        ended = perf_counter_ns()
        row = self.report.modules[step.name]
        row.calls += phase == "produce" or not step.produces
        row.time_ns += ended - begun
        if self.trace is not None:
            number = flow.lane.number
            self.trace.waited(number, step.index, step.name, phase, begun, ended, flow.number)
        return ended

    def _stalled(self, flow: Flow, step: Step, phase: str, begun: int) -> None:
        """Note that the event has waited for the device."""
        ended = perf_counter_ns()
        self.report.modules[step.name].device_stall_ns += ended - begun
        if self.trace is not None:
            number = flow.lane.number
            self.trace.waited(number, step.index, step.name, phase, begun, ended, flow.number)
