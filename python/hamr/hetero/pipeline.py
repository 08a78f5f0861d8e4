"""A small framework that runs modules for many events at a time, on devices and beside them."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from operator import index

from .pipeline_engine import Engine, Plan
from .pipeline_graph import graphs_of
from .pipeline_interrupts import run_until_interrupted
from .pipeline_modules import declaration_of
from .pipeline_progress import Progress
from .pipeline_report import Report
from .pipeline_trace import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
    from typing import Any

    from .pipeline_events import Result

#: For each stream of events: how many results may wait to be read.
_AHEAD = 4


class Pipeline:
    """Modules that run for one event after another, several of them in flight.

    ``modules`` are instances of Producer and functions, as ``module`` makes them, in any order: a
    module runs when its inputs are there. ``streams`` is how many events are in flight. Each of
    these streams has a device, or none: ``chooser``, by default a DeviceChooser(), chooses it by
    the stream's number. Of each event the products in ``keep`` are kept: by default those for the
    host that no module reads. ``workers`` is the most threads for cpu modules and for produce of
    external modules; by default as many as streams. Modules that recently took less than 0.1 ms are
    called on the event loop's own thread.

    With ``progress=True`` a bar on the standard error shows how far a run is; it is tqdm's if that
    is installed. ``trace`` is a file that each run writes anew for Perfetto or chrome://tracing,
    with the last million of calls and waits. If it cannot be written at the end, that is a
    RuntimeWarning, or a note of the error that ended the run. ``report`` has the times of the last
    run, or of the one that is in flight.

    ValueError for an unknown input, a circle, two modules of one name, or a cpu module that reads
    the product of a device module.
    """

    def __init__(
        self,
        modules: Iterable[Any],
        *,
        streams: int = 8,
        chooser: Any = None,
        progress: bool = False,
        trace: str | os.PathLike[str] | None = None,
        keep: Iterable[str] | None = None,
        workers: int | None = None,
    ) -> None:
        if isinstance(modules, str) or not hasattr(type(modules), "__iter__"):
            raise TypeError(f"modules is {modules!r}: accepted is a list of modules")
        declared = [declaration_of(item) for item in modules]
        with_device, without = graphs_of(declared)
        self._plan = Plan(
            with_device,
            without,
            _at_least_one(streams, "streams"),
            _at_least_one(streams if workers is None else workers, "workers"),
            chooser,
            with_device.ends if keep is None else _known(keep, with_device.maker),
        )
        rows = [
            (one.name, one.kind) for d in declared for one in (d, d.fallback) if one is not None
        ]
        self._rows = rows
        self._progress, self._trace = bool(progress), trace
        self.report = Report(rows)

    def run(
        self,
        events: Iterable[Any] | AsyncIterable[Any],
        *,
        ordered: bool = True,
        raise_errors: bool = False,
    ) -> list[Result]:
        """Run all events, and return their results: in order, or as they ended.

        It blocks the calling thread; in a coroutine write ``await run_async(…)``. An exception of a
        module is in its event's result. With ``raise_errors`` an ExceptionGroup of ModuleErrors is
        raised after all events. A begin that fails raises a ModuleError before the first event.
        After Ctrl-C no further event is taken, the call waits for what devices and threads are
        doing, and raises KeyboardInterrupt. Several Ctrl-C within a second count as one.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError(
                "run() would block the event loop: await run_async(…) in a coroutine"
            )
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return run_until_interrupted(
                runner, self.run_async(events, ordered=ordered, raise_errors=raise_errors)
            )

    async def run_async(
        self,
        events: Iterable[Any] | AsyncIterable[Any],
        *,
        ordered: bool = True,
        raise_errors: bool = False,
    ) -> list[Result]:
        """The same on the running event loop, which is not blocked.

        After it is cancelled no further event is taken. It waits for what devices and threads are
        doing.
        """
        found: list[Result] = []
        async with self._engine(events, found.append, lambda: True) as engine:
            await engine.over
        if ordered:
            found.sort(key=lambda result: result.number)
        errors = [error for result in found for error in result.errors]
        if errors and raise_errors:
            failed = sum(result.error is not None for result in found)
            raise ExceptionGroup(f"{failed} of {len(found)} events failed", errors)
        return found

    async def results(
        self, events: Iterable[Any] | AsyncIterable[Any], *, ordered: bool = True
    ) -> AsyncGenerator[Result, None]:
        """Results one by one: ``async for result in pipeline.results(events)``.

        The events may never end: the next one is taken when a stream is free, and at most four
        results of each stream wait to be read. ``contextlib.aclosing`` ends the run if the loop is
        left early.
        """
        come = _Coming(ordered, _AHEAD * self._plan.streams)
        async with self._engine(events, come.put, come.room) as engine:
            engine.over.add_done_callback(come.wake)
            while True:
                while come.ready:
                    yield come.ready.popleft()
                    engine.more()
                if engine.over.done():
                    break
                await come.wait()
            engine.over.result()

    def _engine(
        self, events: Any, deliver: Callable[[Result], None], room: Callable[[], bool]
    ) -> Engine:
        if not hasattr(events, "__aiter__") and not hasattr(events, "__iter__"):
            raise TypeError(f"events is {events!r}: accepted are iterables, asynchronous ones, too")
        self.report = Report(self._rows)
        trace = None if self._trace is None else Trace(self._trace, len(self._rows))
        progress = Progress(_count_of(events)) if self._progress else None
        return Engine(self._plan, events, self.report, deliver, room, progress, trace)

    def __repr__(self) -> str:
        names = ", ".join(step.name for step in self._plan.with_device.steps)
        return f"<hamr.hetero.Pipeline of {names}, {self._plan.streams} events in flight>"


class _Coming:
    """Results on the way from the engine to the reader."""

    def __init__(self, ordered: bool, most: int) -> None:
        self._ordered, self._most = ordered, most
        self.ready: deque[Result] = deque()
        self._held: dict[int, Result] = {}  # those after a result that is still missing
        self._next = 0
        self._woken = asyncio.Event()

    def room(self) -> bool:
        return len(self.ready) + len(self._held) < self._most

    def put(self, result: Result) -> None:
        if not self._ordered:
            self.ready.append(result)
        else:
            self._held[result.number] = result
            while self._next in self._held:
                self.ready.append(self._held.pop(self._next))
                self._next += 1
        self.wake()

    def wake(self, over: object = None) -> None:
        self._woken.set()

    async def wait(self) -> None:
        await self._woken.wait()
        self._woken.clear()


def _at_least_one(given: Any, name: str) -> int:
    number = index(given)
    if number < 1:
        raise ValueError(f"{name} is {given!r}: accepted is a number from 1")
    return number


def _count_of(events: Any) -> int | None:
    try:
        return len(events)
    except TypeError:  # some raise it though they have __len__
        return None


def _known(names: Iterable[str], made: Iterable[str]) -> tuple[str, ...]:
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        if name not in made:
            known = ", ".join(map(repr, made))
            raise ValueError(f"keep names {name!r}, which no module makes: there are {known}")
    return chosen
