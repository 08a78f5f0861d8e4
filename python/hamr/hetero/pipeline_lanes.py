"""The streams of events of a run: each has a device or none, and copies of the modules."""

from __future__ import annotations

from asyncio import CancelledError
from copy import copy
from gc import get_referents
from typing import NamedTuple

from .._native import ScopedContext
from .pipeline_events import ModuleError
from .pipeline_graph import Graph, Step
from .pipeline_modules import Producer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from .._native import Product, Token
    from .pipeline_events import Event

    Call = Callable[[Sequence[Any], Any, Any], Any]  # with the inputs, the Event and the context


def _function(step: Step) -> Call:
    """A call of a function with the arguments that it asks for."""
    declared = step.declared
    function, names = declared.target, declared.inputs
    ctx, event = ("ctx" in declared.wants), ("event" in declared.wants)
    if declared.by_name or (ctx and event):

        def call(values: Sequence[Any], of: Event | None, context: ScopedContext | None) -> Any:
            given = dict(zip(names, values, strict=True)) if declared.by_name else {}
            if ctx:
                given["ctx"] = context
            if event:
                given["event"] = of
            return function(**given) if declared.by_name else function(*values, **given)

        return call
    if ctx:
        return lambda values, of, context: function(*values, ctx=context)
    if event:
        return lambda values, of, context: function(*values, event=of)
    return lambda values, of, context: function(*values)


class Lane:
    """A stream of events, with one event at a time."""

    def __init__(self, number: int, token: Token | None, graph: Graph) -> None:
        self.number, self.token, self.graph = number, token, graph
        self.place = None if token is None else token.place
        self.acquire: list[Call] = []
        self.produce: list[Call] = []
        self.wants_event: list[bool] = []
        self.producers: list[tuple[Step, Producer]] = []
        for step in graph.steps:
            target = step.declared.target
            if isinstance(target, Producer):
                self._add_producer(step, copy(target))
                continue
            call = _function(step)
            self.acquire.append(call)
            self.produce.append(call)
            self.wants_event.append("event" in step.declared.wants)

    def _add_producer(self, step: Step, own: Producer) -> None:
        acquire, produce = own.acquire, own.produce
        self.acquire.append(lambda values, event, context: acquire(event, context))
        self.produce.append(lambda values, event, context: produce(event, context))
        self.wants_event.append(True)
        if type(own).begin is not Producer.begin:
            self.producers.append((step, own))

    def begin(self, began: list[Began], stopping: Callable[[], bool]) -> None:
        """Call begin of the modules. ``began`` gets products for the work that they enqueue."""
        for step, own in self.producers:
            if stopping():
                return
            ctx: ScopedContext | None = None
            try:
                if self.token is None or step.kind == "cpu":
                    own.begin("cpu")
                    continue
                with ScopedContext(self.token) as ctx:
                    own.begin(self.token.place)
                    began.append(Began(self, step, ctx.wrap(None)))
            except BaseException as error:
                shed(error)
                del own, ctx  # the error's traceback refers to this frame
                if ends_the_run(error):
                    raise
                raise self.begin_failed(step, error) from error

    def begin_failed(self, step: Step, error: BaseException) -> ModuleError:
        """The error if a module's begin, or the work that it enqueued, has failed."""
        return ModuleError(error, None, step.name, "begin", self.number, self.place)

    def let_go(self) -> None:
        """Release what it has, even if tracebacks of errors refer to the lane."""
        self.token = None
        for owned in (self.acquire, self.produce, self.producers):
            owned.clear()


def ends_the_run(error: BaseException) -> bool:
    """Whether an error ends the whole run, such as KeyboardInterrupt."""
    return not isinstance(error, (Exception, CancelledError))


def shed(error: BaseException) -> None:
    """Clear the frames that an exception came through: they mostly hold device memory.

    The outermost frame is the caller's, which still runs; it is removed from the traceback. Frames
    still refer to their callers, which must release what they hold themselves. So must coroutines
    and generators that caught the exception, passed it on and are suspended: clearing the frame of
    one would close it.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        traceback = one.__traceback__
        while traceback is not None:
            if _is_finished(traceback.tb_frame):
                traceback.tb_frame.clear()
            traceback = traceback.tb_next
        left += [other for other in (one.__cause__, one.__context__) if other is not None]
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions


def _is_finished(frame: FrameType) -> bool:
    """Whether a frame neither runs nor is suspended. Only then it owns what it holds.

    Else the thread or generator owns it, and the garbage collector sees no references of the frame.
    """
    return any(held is frame.f_code for held in get_referents(frame))


class Began(NamedTuple):
    """The work that a module's begin has enqueued."""

    lane: Lane
    step: Step
    work: Product


class Begin:
    """The begin of all modules in all streams, on a thread that may wait."""

    def __init__(self, lanes: deque[Lane], told: Callable[[Begin], None]) -> None:
        self.lanes, self._told = lanes, told
        self.error: BaseException | None = None
        self.began: list[Began] = []
        self._stopping = False

    @property
    def needed(self) -> bool:
        """Whether any module has a begin."""
        return any(lane.producers for lane in self.lanes)

    def run(self, thread: int) -> None:
        """Call all of them, until one fails or the run is cancelled."""
        try:
            for lane in self.lanes:
                lane.begin(self.began, lambda: self._stopping)
        except BaseException as error:
            shed(error)
            self.error = error

    def stop(self) -> None:
        """Call no further one, since the run was cancelled."""
        self._stopping = True

    def over(self) -> None:
        """Tell the engine, on the loop's thread."""
        self._told(self)


class LetGo:
    """Releases what all streams of events have, on a thread that may wait."""

    def __init__(self, lanes: deque[Lane], told: Callable[[LetGo], None]) -> None:
        self._lanes, self._told = lanes, told

    def run(self, thread: int) -> None:
        """Do it."""
        while self._lanes:
            self._lanes.pop().let_go()

    def over(self) -> None:
        """Tell the engine, on the loop's thread."""
        self._told(self)
