"""What a module of a pipeline is: a Producer, or a function, with what it reads and makes."""

from __future__ import annotations

import inspect
from functools import partial
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from .._native import ScopedContext
    from .pipeline_events import Event

    _F = TypeVar("_F", bound=Callable[..., Any])

KINDS = ("cpu", "device", "external")
#: What functions may ask for by these parameters: they are no products' names.
RESERVED = ("ctx", "event")
_ATTRIBUTE = "__hamr_module__"


class Producer:
    """A module of a pipeline with a state. A subclass says what it is, reads and makes.

    ``kind`` is "cpu", "device" or "external"; ``inputs`` are names of products, ``outputs`` of
    those that it makes; ``name`` is the class's, unless it is set, and the only output's, unless
    there are others. ``fallback`` is a module of the kind "cpu" that takes its place where there
    is no device. All of them may be set in the class, or in the instance before the pipeline is
    made.

    Each event in flight has a copy of the producer, by ``copy.copy``, which serves one event after
    the other: what is set on ``self`` needs no lock, and lives as long as the run.
    """

    kind: str = "cpu"
    name: str = ""
    inputs: Iterable[str] = ()
    outputs: Iterable[str] = ()
    fallback: Any = None

    def begin(self, place: str) -> None:
        """Called once before the first event of a run: the place for memory that lasts for the run.

        ``place`` is the device, as "cuda:0", which is current, or "cpu".
        """

    def acquire(self, event: Event, ctx: ScopedContext) -> Any:
        """Enqueue what ``produce`` needs: of external modules, in the scope of a context.

        The objects of an event's products live until all of its work is over. What else the work
        uses, as page-locked memory that is copied to, is to be set on ``self``.
        """

    def produce(self, event: Event, ctx: ScopedContext | None) -> Any:
        """Return the product, or of several outputs a tuple or dictionary of them.

        Device modules enqueue in the scope of a context, and wait for nothing. Of external ones
        this is called once all that ``acquire`` enqueued is over, on a thread that may wait, as
        cpu modules are; for both ``ctx`` is None. ``async def`` makes a coroutine of the loop.
        """
        raise NotImplementedError(f"{type(self).__name__} has no produce")


class Declaration(NamedTuple):
    """A module as the pipeline knows it."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fallback: Declaration | None
    target: Any  # the Producer, or the function
    wants: tuple[str, ...] = ()  # of a function: those of RESERVED that it has a parameter for
    by_name: bool = False  # its inputs are passed by their names

    @property
    def is_function(self) -> bool:
        """Whether it is no Producer."""
        return not isinstance(self.target, Producer)


class _Options(NamedTuple):
    kind: str
    name: str | None
    inputs: tuple[str, ...] | None
    outputs: tuple[str, ...] | None
    fallback: Any


def module(
    kind: str = "cpu",
    *,
    name: str | None = None,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    fallback: Any = None,
) -> Callable[[_F], _F]:
    """Make a module of a function, which stays the function that it is: ``@module("device")``.

    The parameters that have no default name the products that it reads; ``ctx`` is the
    ScopedContext of a module that is called in one, and ``event`` the Event. ``inputs`` names
    others for the same positions. Its name is the function's, as is that of what it makes, unless
    ``outputs`` says otherwise; of several outputs it returns a tuple or a dictionary.

    A function of the kind "external" is called to enqueue; what it returns is the product, once all
    of that is over. A coroutine may ``await ctx.done()`` itself, and return what it then made.
    ``fallback`` is a function or module for the processor, which takes its place where there is no
    device, and makes the same outputs.
    """
    _check_kind(kind, f"module({kind!r})")
    options = _Options(
        kind,
        name,
        None if inputs is None else _names(inputs, "inputs"),
        None if outputs is None else _names(outputs, "outputs"),
        fallback,
    )

    def declare(function: _F) -> _F:
        if not callable(function) or isinstance(function, Producer):
            raise TypeError(f"module({kind!r}) of {function!r}: accepted is a function")
        declared: Any = function
        if hasattr(function, _ATTRIBUTE):
            declared = partial(function)
        try:
            setattr(declared, _ATTRIBUTE, options)
        except AttributeError:  # a method, or one that is built in
            declared = partial(function)
            setattr(declared, _ATTRIBUTE, options)
        return declared  # type: ignore[no-any-return]

    return declare


def declaration_of(item: Any) -> Declaration:
    """How the pipeline knows a Producer or a function; one that is not declared is a cpu module."""
    if isinstance(item, Producer):
        return _of_producer(item)
    if inspect.isclass(item) and issubclass(item, Producer):
        raise TypeError(f"module {item!r} is a class: accepted is {item.__name__}(…), an instance")
    if not callable(item):
        raise TypeError(f"module {item!r}: accepted are instances of Producer, and functions")
    return _of_function(item, getattr(item, _ATTRIBUTE, _Options("cpu", None, None, None, None)))


def _of_producer(item: Producer) -> Declaration:
    name = item.name or type(item).__name__
    _check_kind(item.kind, f"module {name!r}")
    if type(item).produce is Producer.produce:
        raise TypeError(f"module {name!r}: {type(item).__name__} has no method produce")
    if item.kind != "external" and type(item).acquire is not Producer.acquire:
        raise ValueError(f"module {name!r} is of the kind {item.kind!r}: acquire is of 'external'")
    return Declaration(
        _word(name, "name"),
        item.kind,
        _names(item.inputs, f"module {name!r}: inputs"),
        _names(item.outputs, f"module {name!r}: outputs") or (name,),
        _fallback(item.fallback, name, item.kind),
        item,
    )


def _of_function(function: Any, options: _Options) -> Declaration:
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    name = options.name or str(getattr(inner, "__name__", type(inner).__name__))
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some that are built in
        if options.inputs is None:
            raise TypeError(
                f"module {name!r}: {function!r} has no signature: name inputs="
            ) from None
        parameters = []
    in_context = options.kind != "cpu"
    wants = tuple(
        p.name
        for p in parameters
        if p.name in RESERVED and (in_context or p.name != "ctx" or p.default is p.empty)
    )
    inputs, by_name = options.inputs, False
    if inputs is None:
        starred = [p.name for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if starred:
            raise TypeError(f"module {name!r} takes *{starred[0]}: name inputs=")
        asked = [p for p in parameters if p.default is p.empty and p.name not in RESERVED]
        inputs = tuple(p.name for p in asked)
        leading = tuple(p.name for p in parameters[: len(asked)] if p.kind != p.KEYWORD_ONLY)
        by_name = leading != inputs
    if "ctx" in wants and not in_context:
        raise ValueError(f"module {name!r} is of the kind 'cpu', which has no context: ctx")
    return Declaration(
        _word(name, "name"),
        options.kind,
        inputs,
        options.outputs or (name,),
        _fallback(options.fallback, name, options.kind),
        function,
        wants,
        by_name,
    )


def _fallback(item: Any, name: str, kind: str) -> Declaration | None:
    if item is None:
        return None
    if kind == "cpu":
        raise ValueError(f"module {name!r} is of the kind 'cpu', which needs no fallback")
    declared = declaration_of(item)
    if declared.kind != "cpu":
        raise ValueError(
            f"fallback {declared.name!r} of module {name!r} is of the kind {declared.kind!r}: "
            "accepted is 'cpu'"
        )
    return declared


def _check_kind(kind: object, of: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"{of}: kind is {kind!r}: accepted are {', '.join(map(repr, KINDS))}")


def _names(given: Iterable[str], of: str) -> tuple[str, ...]:
    """Names as a tuple; one alone is taken for what it is."""
    names = (given,) if isinstance(given, str) else tuple(given)
    return tuple(_word(name, of) for name in names)


def _word(name: object, of: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{of}: {name!r} is no name")
    if not name or name in RESERVED:
        raise ValueError(f"{of}: {name!r} cannot be a name of products or modules")
    return name
