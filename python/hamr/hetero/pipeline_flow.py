"""An event in flight, and what threads do for it."""

from __future__ import annotations

from time import perf_counter_ns
from types import CoroutineType

from .._native import Product
from .pipeline_events import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextvars import Context
    from typing import Any, TypeAlias

    from .pipeline_events import ModuleError
    from .pipeline_graph import Step
    from .pipeline_lanes import Lane

    Given: TypeAlias = tuple[Sequence[Any], Event | None]  # the inputs, and what a module is told


class Flow:
    """An event in flight. Only the loop's thread uses it; other threads add to ``products``."""

    __slots__ = (
        *("acquired", "begun", "errors", "extra", "item", "lane", "missing", "number"),
        *("outstanding", "products", "settled"),
    )

    def __init__(self, number: int, item: Any, lane: Lane) -> None:
        self.number, self.item, self.lane = number, item, lane
        self.products: dict[str, Any] = lane.graph.absent.copy()
        self.missing = lane.graph.missing.copy()  # by module: how many it waits for
        self.acquired: dict[int, tuple[Given, Any]] = {}  # inputs and outcome, by module
        self.outstanding = 0  # threads, coroutines and devices that have not finished
        self.errors: list[ModuleError] = []
        self.extra: list[Product] = []  # for work that no other product stands for
        self.settled = False  # only work of devices is outstanding
        self.begun = perf_counter_ns()

    def event(self, step: Step, values: Sequence[Any]) -> Event | None:
        """The event for a module, if it asks for one."""
        lane = self.lane
        if not lane.wants_event[step.index]:
            return None
        return Event(
            self.number, self.item, lane.number, lane.place, step.name, step.inputs, values
        )

    def store(self, step: Step, made: Any, wrap: Callable[[Any], Product] | None = None) -> None:
        """Keep a module's products; those of a device module are wrapped by ``wrap``."""
        outputs = step.outputs
        if len(outputs) == 1:
            self.products[outputs[0]] = _product(made, wrap)
            return
        if isinstance(made, dict):
            if made.keys() != set(outputs):
                raise ValueError(
                    f"returned {', '.join(map(repr, made))}: its outputs are {outputs}"
                )
            made = [made[name] for name in outputs]
        elif not isinstance(made, (tuple, list)) or len(made) != len(outputs):
            raise ValueError(f"returned {type(made).__name__}: accepted is one each of {outputs}")
        products = [_product(one, wrap) for one in made]
        self.products |= zip(outputs, products, strict=True)  # all, or none


def _product(made: Any, wrap: Callable[[Any], Product] | None) -> Any:
    if type(made) is CoroutineType:
        made.close()
        raise TypeError("returned a coroutine, which nobody awaits: make it an async def itself")
    return made if wrap is None or type(made) is Product else wrap(made)


class HostJob:
    """A module's produce on a thread, and the modules that follow on the same thread."""

    __slots__ = (
        *("_context", "_event", "_told", "_values", "begun", "error", "flow", "last"),
        *("spans", "step", "stopping", "thread"),
    )

    def __init__(
        self,
        flow: Flow,
        step: Step,
        given: Given | None,
        told: Callable[[HostJob], None],
        stopping: Callable[[], bool],
        context: Context,
    ) -> None:
        """``given`` are inputs that a context has read; modules run in copies of ``context``."""
        self._context = context
        self.flow, self.step, self._told, self.stopping = flow, step, told, stopping
        self._values: Sequence[Any] | None = given[0] if given else None
        self._event: Event | None = given[1] if given else None
        self.begun = perf_counter_ns()
        self.last: Step | None = None  # the last module that is done
        self.error: tuple[Step, BaseException] | None = None
        self.spans: list[tuple[Step, int, int]] = []
        self.thread = 0

    def run(self, thread: int) -> None:
        """Call the modules, until one fails or the run is stopping."""
        self.thread = thread
        flow, step = self.flow, self.step
        while (
            self._context.copy().run(self._one, flow, step)
            and step.then is not None
            and not self.stopping()
        ):
            step = step.then
            self._values = None
        self._values = self._event = None

    def _one(self, flow: Flow, step: Step) -> bool:
        begun = perf_counter_ns()
        try:
            if self._values is None:
                self._values = [flow.products[name] for name in step.inputs]
                self._event = flow.event(step, self._values)
            flow.store(step, flow.lane.produce[step.index](self._values, self._event, None))
        except BaseException as error:
            self.error = step, error
        else:
            self.last = step
        self.spans.append((step, begun, perf_counter_ns()))
        return self.error is None

    def over(self) -> None:
        """Report the end, on the loop's thread."""
        self._told(self)
