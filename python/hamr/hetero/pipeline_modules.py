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
#: Parameters by which functions ask for the context and the event. No product has these names.
RESERVED = ("ctx", "event")
_ATTRIBUTE = "__hamr_module__"


class Producer:
    """A module of a pipeline with a state. A subclass says its kind, inputs and outputs.

    ``kind`` is "cpu", "device" or "external". ``inputs`` are names of products, and ``outputs`` the
    names of those that it makes. ``name`` is by default the class's name, and the default of the
    only output. ``fallback`` is a module of the kind "cpu" that replaces it without a device. All
    of them may be set in the class, or in the instance before the pipeline is made.

    Each event in flight has a copy of the producer, made by ``copy.copy``, which serves one event
    after the other. So attributes of ``self`` need no lock, and live as long as the run.
    """

    kind: str = "cpu"
    name: str = ""
    inputs: Iterable[str] = ()
    outputs: Iterable[str] = ()
    fallback: Any = None

    def begin(self, place: str) -> None:
        """Called once before the first event of a run. Take memory here that lasts for the run.

        ``place`` is the device, such as "cuda:0", which is current; or "cpu".
        """

    def acquire(self, event: Event, ctx: ScopedContext) -> Any:
        """Enqueue what ``produce`` needs. Called for external modules, in the scope of a context.

        An event's products live until all of its work is over. Set other objects that the work
        uses, such as page-locked memory that is copied to, on ``self``.
        """

    def produce(self, event: Event, ctx: ScopedContext | None) -> Any:
        """Return the product; for several outputs a tuple or a dictionary.

        Device modules enqueue in the scope of a context, and wait for nothing. For external modules
        it is called when all work that ``acquire`` enqueued is over. It runs on a thread that may
        wait, as for cpu modules; for both ``ctx`` is None. An ``async def`` runs on the event loop.
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
    wants: tuple[str, ...] = ()  # of RESERVED, those that a function has a parameter for
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
    """Make a module of a function, which stays the same function: ``@module("device")``.

    The parameters without a default name the products that it reads. ``ctx`` is the ScopedContext
    of a module that is called in one, and ``event`` the Event. ``inputs`` gives other names for the
    same positions. By default the function's name is the name of the module and of its product;
    ``outputs`` gives others. For several outputs it returns a tuple or a dictionary.

    A function of the kind "external" enqueues work. What it returns is the product when the work is
    over. A coroutine may ``await ctx.done()`` itself, and return what it makes after that.
    ``fallback`` is a function or module for the processor. It replaces the module without a device,
    and makes the same outputs.
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
    """The declaration of a Producer or a function. An undeclared function is a cpu module."""
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
    except (TypeError, ValueError):  # some built-in functions have no signature
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
    """Names as a tuple; a str is one name."""
    names = (given,) if isinstance(given, str) else tuple(given)
    return tuple(_word(name, of) for name in names)


def _word(name: object, of: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{of}: {name!r} is no name")
    if not name or name in RESERVED:
        raise ValueError(f"{of}: {name!r} cannot be a name of products or modules")
    return name
