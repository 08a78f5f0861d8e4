"""The graph of a pipeline's modules: its checks, and the order in which modules can run."""

from __future__ import annotations

from inspect import iscoroutinefunction

from .pipeline_modules import Declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Step:
    """A module in a graph, and what follows from it."""

    def __init__(
        self, index: int, declared: Declaration, kind: str, outputs: tuple[str, ...]
    ) -> None:
        self.index, self.declared, self.kind = index, declared, kind
        self.name, self.inputs, self.outputs = declared.name, declared.inputs, outputs
        self.consumers: list[int] = []
        self.missing = 0  # modules whose products it reads
        #: The first input of a device, which the context is made of; None means the token.
        self.device_input: str | None = None
        #: The module that the same thread calls next, since nothing else waits for this one.
        self.then: Step | None = None
        function = declared.is_function
        #: An external function only enqueues work. What it returns is the product.
        self.produces = not (function and kind == "external")
        target = declared.target
        waits = _waits(target if function else target.produce)
        self.produce_waits = waits and self.produces
        self.acquire_waits = waits if function else _waits(target.acquire)

    @property
    def on_host(self) -> bool:
        """Whether it needs no device."""
        return self.kind == "cpu"

    @property
    def on_worker(self) -> bool:
        """Whether a thread that may wait calls its produce."""
        return self.kind != "device" and self.produces and not self.produce_waits


class Graph:
    """The modules that run for an event with a device, or for one without.

    Without a device a module's fallback replaces it. A device or external module without a
    fallback is left out, and its products are None.
    """

    def __init__(self, modules: Iterable[Declaration], on_device: bool) -> None:
        self.on_device = on_device
        self.steps: list[Step] = []
        self.absent: dict[str, Any] = {}
        for declared in modules:
            kind = declared.kind
            if on_device or kind == "cpu":
                self._add(declared, kind, declared.outputs)
            elif declared.fallback is not None:
                self._add(declared.fallback, "cpu", declared.outputs)
            else:
                self.absent |= dict.fromkeys(declared.outputs)
        self.maker = {name: step for step in self.steps for name in step.outputs}
        for step in self.steps:
            self._connect(step)
        self._refuse_circles()
        #: The modules that an event begins with, and how many others each module waits for.
        self.first = [step for step in self.steps if not step.missing]
        self.missing = [step.missing for step in self.steps]
        before = self._ancestors()
        self._chain(before)
        over = {i for step in self.steps if step.kind == "external" for i in before[step.index]}
        read = {name for step in self.steps for name in step.inputs}
        #: Names of products for the host that no module reads.
        self.ends = tuple(
            name
            for step in self.steps
            if step.kind != "device"
            for name in step.outputs
            if name not in read
        )
        #: Names of products whose work may not be over when that of all external modules is.
        self.loose = [
            name
            for step in self.steps
            if step.kind == "device" and step.index not in over
            for name in step.outputs
        ]

    def _add(self, declared: Declaration, kind: str, outputs: tuple[str, ...]) -> None:
        self.steps.append(Step(len(self.steps), declared, kind, outputs))

    def _connect(self, step: Step) -> None:
        makers = []
        for name in step.inputs:
            if name in self.absent:
                continue
            if name not in self.maker:
                known = ", ".join(map(repr, [*self.maker, *self.absent]))
                raise ValueError(
                    f"module {step.name!r} reads {name!r}, which no module makes: there are {known}"
                )
            maker = self.maker[name]
            if maker.kind == "device":
                if step.on_host:
                    raise ValueError(
                        f"module {step.name!r} of the kind 'cpu' reads {name!r}, which module "
                        f"{maker.name!r} makes on a device: put one of the kind 'external' between"
                    )
                step.device_input = step.device_input or name
            if maker not in makers:
                makers.append(maker)
        step.missing = len(makers)
        for maker in makers:
            maker.consumers.append(step.index)

    def _refuse_circles(self) -> None:
        missing = [step.missing for step in self.steps]
        ready = [step for step in self.steps if not step.missing]
        while ready:
            for index in ready.pop().consumers:
                missing[index] -= 1
                if not missing[index]:
                    ready.append(self.steps[index])
        left = [step for step in self.steps if missing[step.index]]
        if not left:
            return
        way = [left[0]]  # each of them reads what another one makes
        while way.count(way[-1]) < 2:
            makers = [self.maker[name] for name in way[-1].inputs if name in self.maker]
            way.append(next(maker for maker in makers if missing[maker.index]))
        circle = way[way.index(way[-1]) :]
        inputs = next(name for name in circle[0].inputs if self.maker.get(name) is circle[1])
        told = " reads from ".join(repr(step.name) for step in circle)
        raise ValueError(f"modules in a circle: {told}; the first of them reads {inputs!r}")

    def _ancestors(self) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in self.steps]
        missing, ready = list(self.missing), list(self.first)
        while ready:
            step = ready.pop()
            for index in step.consumers:
                found[index] |= found[step.index] | {step.index}
                missing[index] -= 1
                if not missing[index]:
                    ready.append(self.steps[index])
        return found

    def _chain(self, before: list[set[int]]) -> None:
        for step in self.steps:
            if not step.on_worker or len(step.consumers) != 1:
                continue
            then = self.steps[step.consumers[0]]
            others = {self.maker[name].index for name in then.inputs if name in self.maker}
            if then.on_host and then.on_worker and others <= before[step.index] | {step.index}:
                step.then = then


def _waits(function: Any) -> bool:
    """Whether a call makes a coroutine; also for objects with ``__call__``."""
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


def graphs_of(modules: list[Declaration]) -> tuple[Graph, Graph]:
    """The graphs with a device and without one; ValueError if they are not possible."""
    if not modules:
        raise ValueError("modules is empty: accepted are instances of Producer, and functions")
    names: set[str] = set()
    makers: dict[str, str] = {}
    for declared in modules:
        for one in (declared, declared.fallback):
            if one is None:
                continue
            if one.name in names:
                raise ValueError(f"two modules have the name {one.name!r}")
            names.add(one.name)
        for output in declared.outputs:
            if output in makers:
                raise ValueError(
                    f"modules {makers[output]!r} and {declared.name!r} both make {output!r}"
                )
            makers[output] = declared.name
    with_device, without = Graph(modules, True), Graph(modules, False)
    for declared in modules:
        instead = declared.fallback
        if instead is None:
            continue
        for name in instead.inputs:
            if name in without.absent:
                raise ValueError(
                    f"fallback {instead.name!r} of module {declared.name!r} reads {name!r}, which "
                    f"is made on a device alone, by module {makers[name]!r}"
                )
    return with_device, without
