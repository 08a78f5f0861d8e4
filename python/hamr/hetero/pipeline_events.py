"""Events of a pipeline: what modules see of an event, its result, and its errors."""

from __future__ import annotations

from .._base.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Event:
    """An event as a module sees it: ``event["name"]`` is an input, ``item`` the pipeline's item.

    ``number`` counts the events from 0. ``stream`` is the number of its stream of events, from 0.
    ``place`` is the stream's device, such as "cuda:0", or None.
    """

    __slots__ = ("_inputs", "_module", "_values", "item", "number", "place", "stream")

    def __init__(
        self,
        number: int,
        item: Any,
        stream: int,
        place: str | None,
        module: str,
        inputs: Sequence[str] = (),
        values: Sequence[Any] = (),
    ) -> None:
        self.number, self.item, self.stream, self.place = number, item, stream, place
        self._module, self._inputs, self._values = module, inputs, values

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[self._inputs.index(name)]
        except ValueError:
            declared = ", ".join(map(repr, self._inputs)) or "none"
            raise KeyError(
                f"{name!r}: the inputs of module {self._module!r} are {declared}"
            ) from None

    def __repr__(self) -> str:
        return f"<hamr.hetero.Event {self.number} in stream {self.stream} on {self.place or 'cpu'}>"


class ModuleError(Error):
    """A module failed: ``__cause__`` is what it raised.

    ``module`` is its name. ``phase`` is "begin", "acquire", "completion", for an error of the
    device, or "produce". ``event`` is the number of the event, None for begin, and ``stream`` the
    number of its stream.
    """

    event: int | None
    module: str
    phase: str
    stream: int
    place: str | None

    def __init__(
        self,
        cause: BaseException,
        event: int | None,
        module: str,
        phase: str,
        stream: int,
        place: str | None,
    ) -> None:
        where = f"stream {stream} on {place or 'cpu'}" if event is None else f"event {event}"
        super().__init__(
            f"{where}: {module} failed in {phase}: {type(cause).__name__}: {_text(cause)}"
        )
        self.event, self.module, self.phase = event, module, phase
        self.stream, self.place = stream, place
        self.__cause__ = cause

    def __reduce__(self) -> tuple[Any, ...]:
        where = self.event, self.module, self.phase, self.stream, self.place
        return ModuleError, (self.__cause__, *where)


def _text(cause: BaseException) -> str:
    """The text of an exception. Its ``__str__`` is another program's code, and may fail."""
    try:
        return str(cause)
    except Exception:
        return "<its text cannot be had>"


class Result:
    """The result of an event: ``result["name"]`` is a product, ``values`` has all that are kept.

    ``errors`` has a ModuleError for each module that failed. Products that depend on such a module
    are not in ``values``: reading them raises the error.
    """

    __slots__ = ("errors", "number", "place", "stream", "values")

    def __init__(
        self,
        number: int,
        stream: int,
        place: str | None,
        values: Mapping[str, Any],
        errors: Sequence[ModuleError],
    ) -> None:
        self.number, self.stream, self.place = number, stream, place
        self.values, self.errors = values, tuple(errors)

    @property
    def error(self) -> ModuleError | None:
        """The error of the module that failed first, or None."""
        return self.errors[0] if self.errors else None

    def __getitem__(self, name: str) -> Any:
        if name not in self.values:
            if self.errors:
                raise self.errors[0]
            kept = ", ".join(map(repr, self.values)) or "none"
            raise KeyError(f"{name!r}: kept are {kept}; Pipeline(…, keep=[{name!r}]) keeps it")
        return self.values[name]

    def __repr__(self) -> str:
        told = f": {self.error}" if self.errors else f": {', '.join(self.values)}"
        return f"<hamr.hetero.Result of event {self.number}{told}>"
