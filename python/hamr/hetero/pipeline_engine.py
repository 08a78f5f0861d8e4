"""A run of a pipeline: its events in flight, from the first one to the last one."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections import deque
from collections.abc import AsyncIterable
from contextvars import copy_context
from time import perf_counter_ns
from typing import NamedTuple

from .._native import Product, Token
from .choosing import DeviceChooser
from .completion import completed
from .pipeline_events import Result
from .pipeline_flow import Flow
from .pipeline_lanes import Begin, Lane, LetGo
from .pipeline_steps import Steps
from .pipeline_workers import Lengths, Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

    from .pipeline_graph import Graph
    from .pipeline_progress import Progress
    from .pipeline_report import Report
    from .pipeline_trace import Trace


class Plan(NamedTuple):
    """What runs of a pipeline have in common."""

    with_device: Graph
    without: Graph
    streams: int
    workers: int
    chooser: Any
    keep: tuple[str, ...]


class Engine(Steps):
    """Runs events through a pipeline: ``async with Engine(…) as engine: await engine.over``.

    ``deliver`` is called with the result of each event when it ends. ``room`` says whether another
    event may begin; call ``more`` when it becomes true again. ``over`` is done when all events are,
    and has the exception that ended the run. The end of the block always waits for what is in
    flight.
    """

    def __init__(
        self,
        plan: Plan,
        events: Iterable[Any] | AsyncIterable[Any],
        report: Report,
        deliver: Callable[[Result], None],
        room: Callable[[], bool],
        progress: Progress | None,
        trace: Trace | None,
    ) -> None:
        self._plan, self._deliver, self._room = plan, deliver, room
        self.report, self._progress, self.trace = report, progress, trace
        self._loop = asyncio.get_running_loop()
        self.context = copy_context()
        self.workers = Workers(self._loop, plan.workers, self.context)
        self.lengths = Lengths()
        self._source: Iterator[Any] | None = None
        # One context for all calls of the source, which may be a generator.
        self._source_context = self.context.copy()
        self._pumped: AsyncIterable[Any] | None = None
        if isinstance(events, AsyncIterable):
            self._pumped = events
        else:
            self._source = iter(events)
        self._free: deque[Lane] = deque()
        self._active = self._taken = 0
        self._exhausted = self._taking = self.stopping = False
        self._failure: BaseException | None = None  # of the source of events
        self.tasks: set[Task[Any]] = set()
        self._space: Future[None] | None = None  # a coroutine waits for it before it takes an event
        self._drained: Future[None] | None = None
        self.over: Future[None] = self._loop.create_future()
        self._begun = perf_counter_ns()

    async def __aenter__(self) -> Self:
        try:
            await self._begin()
            self._begun = perf_counter_ns()
            if self._pumped is not None:
                self._note(self._loop.create_task(self._pump(self._pumped)))
            self.more()
        except BaseException as error:
            await self._end(error)
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, at: object) -> None:
        await self._end(error)

    # Events.

    def more(self) -> None:
        """Begin events while there is room for them."""
        if self._source is None:
            if self._space is not None and not self._space.done() and self._has_room():
                self._space.set_result(None)
        elif not self._taking:
            self._taking = True
            try:
                self._take(self._source)
            finally:
                self._taking = False
        self._look_for_end()

    def _has_room(self) -> bool:
        return bool(self._free) and self._room()

    def _take(self, source: Iterator[Any]) -> None:
        for _ in range(self._plan.streams):
            if self._exhausted or not self._has_room():
                return
            try:
                item = self._source_context.run(next, source)
            except StopIteration:
                self._exhausted = True
            except BaseException as error:
                self._exhausted, self._failure = True, error
            else:
                self._start(item)
        if not self._exhausted and self._has_room():
            self._loop.call_soon(self.more)  # other callbacks come first

    async def _pump(self, events: AsyncIterable[Any]) -> None:
        source: Any = None
        try:
            source = aiter(events)
            while not self._exhausted:
                while not self._has_room():
                    self._space = self._loop.create_future()
                    await self._space
                self._start(await anext(source))
        except StopAsyncIteration:
            pass
        except BaseException as error:
            if not self.stopping:
                self._failure = _for_a_future(error)
        finally:
            self._exhausted = True
        await self._close_source(source)

    async def _close_source(self, source: Any) -> None:
        """End an asynchronous generator, which may have been left before its end."""
        if not hasattr(source, "aclose"):
            return
        try:
            await source.aclose()
        except BaseException as error:
            if self._failure is None and not self.stopping:
                self._failure = _for_a_future(error)
            elif not isinstance(error, asyncio.CancelledError):
                told = {"message": f"closing {source!r} failed", "exception": error}
                self._loop.call_exception_handler(told)

    def _start(self, item: Any) -> None:
        lane = self._free.popleft()
        flow = Flow(self._taken, item, lane)
        self._taken += 1
        self._active += 1
        self.advance(flow, list(lane.graph.first))

    def finish(self, flow: Flow) -> None:
        """Release what the event has, and deliver its result."""
        lane, products = flow.lane, flow.products
        values = {name: products[name] for name in self._plan.keep if name in products}
        result = Result(flow.number, lane.number, lane.place, values, flow.errors)
        if self.trace is not None:
            self.trace.event(lane.number, flow.begun, perf_counter_ns(), flow.number)
        left = [value for value in products.values() if not _ends_at_once(value)]
        left += flow.acquired.values()  # of modules that failed
        products.clear()
        flow.acquired.clear()
        flow.extra.clear()
        if left:
            self.workers.drop(left)
        self._free.append(lane)
        self._active -= 1
        if not self.stopping:
            self._deliver(result)
            self._count(bool(flow.errors))
        self.more()

    def _count(self, failed: bool) -> None:
        self.report.events += 1
        self.report.failed += failed
        self.report.seconds = (perf_counter_ns() - self._begun) / 1e9
        self._progress_told(lambda progress: progress.one(failed))

    def _progress_told(self, tell: Callable[[Progress], None]) -> None:
        if self._progress is not None:
            try:
                tell(self._progress)
            except Exception:  # nobody reads the progress any more: events matter more
                self._progress = None

    # The beginning and the end.

    async def _begin(self) -> None:
        plan = self._plan
        chooser = DeviceChooser() if plan.chooser is None else plan.chooser
        for number in range(plan.streams):
            token = chooser.choose(number)
            if token is not None and not isinstance(token, Token):
                raise TypeError(f"{chooser!r} chose {token!r}: accepted are a Token and None")
            graph = plan.without if token is None else plan.with_device
            self._free.append(Lane(number, token, graph))
        begun: Future[Begin] = self._loop.create_future()
        job = Begin(self._free, begun.set_result)
        if job.needed:
            self.workers.submit(job)
            try:
                await _through(begun, job.stop)
            finally:
                waits = [completed(began.work) for began in job.began]
                over = asyncio.gather(*waits, return_exceptions=True)
                await _through(over)
            if job.error is not None:
                raise job.error
            for began, error in zip(job.began, over.result(), strict=True):
                if isinstance(error, BaseException):
                    raise began.lane.begin_failed(began.step, error) from error

    async def _end(self, error: BaseException | None) -> None:
        self.stopping = self._exhausted = True
        for task in self.tasks:
            task.cancel()
        try:
            if self._active or self.tasks:
                self._drained = self._loop.create_future()
                await _through(self._drained)
            await self._let_go_of_lanes()
        finally:
            try:
                await _through(self.workers.end())
            finally:
                self._close(error)

    def _close(self, error: BaseException | None) -> None:
        while self._free:
            self._free.pop().let_go()
        if self.over.done() and not self.over.cancelled():
            self.over.exception()  # mark it as retrieved: nobody may have awaited it
        self._progress_told(lambda progress: progress.end())
        if self.trace is not None:
            try:
                self.trace.write()
            except Exception as failed:  # the results, or the run's own error, matter more
                told = f"the trace {os.fspath(self.trace.path)!r} is incomplete: {failed}"
                if isinstance(error, Exception):
                    error.add_note(told)
                else:
                    warnings.warn(told, RuntimeWarning, stacklevel=2)

    async def _let_go_of_lanes(self) -> None:
        """Release them on a thread that may wait: the end of a module's memory may wait."""
        if any(lane.producers for lane in self._free):
            gone: Future[Any] = self._loop.create_future()
            self.workers.submit(LetGo(self._free, gone.set_result))
            await _through(gone)

    def abort(self, error: BaseException) -> None:
        """End the run with an error, when nothing is in flight any more."""
        self.stopping = self._exhausted = True
        if not self.over.done():
            self.over.set_exception(_for_a_future(error))

    def _note(self, task: Task[Any]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: Task[Any]) -> None:
        self.tasks.discard(task)
        self._look_for_end()

    def _look_for_end(self) -> None:
        if self._active or self.tasks or not self._exhausted:
            return
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if not self.over.done():
            if self._failure is None:
                self.over.set_result(None)
            else:
                self.over.set_exception(self._failure)


#: Types whose objects wait for nothing when they end. Device memory is freed in stream order.
_PLAIN = frozenset((Product, type(None), bool, int, float, complex, str, bytes))


def _ends_at_once(value: Any) -> bool:
    """Whether the loop may free it. Freeing page-locked memory may wait for a device's work."""
    kind = type(value)
    return kind in _PLAIN or (kind.__module__ == "numpy" and value.base is None)


def _for_a_future(error: BaseException) -> BaseException:
    """An error for a future. A StopIteration is replaced: it would end the awaiting coroutine."""
    if not isinstance(error, StopIteration):
        return error
    instead = RuntimeError("the source of events raised StopIteration")
    instead.__cause__ = error
    return instead


async def _through(future: Future[Any], hurry: Callable[[], None] | None = None) -> None:
    """Wait for a future that cannot be cancelled. A cancellation is raised when it is done.

    ``hurry`` is called at each cancellation.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
            if hurry is not None:
                hurry()
    if cancelled is not None:
        raise cancelled
