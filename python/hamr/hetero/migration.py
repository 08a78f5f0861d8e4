"""Copying the contents of a product to another device."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, is_dataclass
from enum import Enum

from .._base.allocator import FACTS, SPACES, allocator_from, backend_of, is_of_a_device
from .._buffer.buffers import Buffer, buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from typing import Any, TypeAlias

    from .._base.allocator import Allocator
    from .._native import Product, ScopedContext

    _Making: TypeAlias = Generator[Any, Any, Any]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, memoryview, range, Enum)
_IN_STREAM_ORDER = 1
_DEVICES_OWN = 3


def moved(product: Product, context: ScopedContext) -> Any:
    """The contents of a product, with buffers on the context's device instead of on another one.

    Buffers and other libraries' arrays are copied if their memory belongs to a device, managed
    memory included, and code on the context's device cannot use it in place. Arrays that are there
    already, arrays of the host, also page-locked ones, and plain values stay the same objects.
    Lists, tuples, sets, dictionaries and dataclasses are rebuilt with all their attributes; their
    constructors are not called, and keys of dictionaries stay. An object that occurs twice is
    copied once, and an object may contain itself. Views become buffers of their own elements.
    TypeError for anything else.
    """
    return _Move(product, context).of(context._content(product))


class _Move:
    def __init__(self, product: Product, context: ScopedContext) -> None:
        self._product, self._context = product, context
        #: The new object by the old one's id. The old one is kept, so that its id is not reused.
        self._memo: dict[int, tuple[Any, Any]] = {}

    def of(self, content: Any) -> Any:
        """Without recursion: containers may be nested deeper than Python's stack."""
        waiting: list[tuple[Any, _Making]] = []
        done, answer = self._known(content)
        while not done:
            waiting.append((content, self._made(content)))
            answer = None
            while waiting:
                try:
                    content = waiting[-1][1].send(answer)
                except StopIteration as made:
                    old, _ = waiting.pop()
                    answer = self._memo.setdefault(id(old), (old, made.value))[1]
                    done = not waiting
                else:
                    known, answer = self._known(content)
                    if not known:
                        break
        return answer

    def _known(self, content: Any) -> tuple[bool, Any]:
        if isinstance(content, _PLAIN):
            return True, content
        known = self._memo.get(id(content))
        return (False, None) if known is None else (True, known[1])

    def _made(self, content: Any) -> _Making:
        """A generator: it yields old objects, is sent the new ones, returns the new content."""
        if isinstance(content, Buffer):
            return content if self._is_home(content) else self._copied(content)
        if isinstance(content, (list, dict)):
            return (yield from self._rebuilt(content))
        if isinstance(content, (tuple, set, frozenset)):
            return (yield from self._of_elements(content))
        if is_dataclass(content) and not isinstance(content, type):
            return (yield from self._rebuilt(content))
        if getattr(getattr(content, "dtype", None), "hasobject", False):
            raise self._refusal(content)
        if hasattr(content, "__array_interface__") and not _says_device(content):
            return content
        try:
            shared = buffer(content)
        except TypeError as error:
            raise self._refusal(content) from error
        if self._is_home(shared):
            return content
        self._product._keep(shared)  # its end would wait for the copy, which is over by then
        return self._copied(shared)

    def _rebuilt(self, content: Any) -> _Making:
        """A list, dictionary or dataclass, noted before it is filled: it may contain itself."""
        made = self._another(content)
        self._memo[id(content)] = content, made
        if isinstance(content, list):
            elements = []
            for element in content:
                elements.append((yield element))
            made[:] = elements
        elif isinstance(content, dict):
            for key, value in content.items():
                made[key] = yield value
        names = dict.fromkeys(getattr(content, "__dict__", ()))
        if is_dataclass(content):
            names |= dict.fromkeys(f.name for f in fields(content) if hasattr(content, f.name))
        yield from self._set_attributes(content, made, names)
        return made

    def _another(self, content: Any) -> Any:
        """A new one, to be filled. It must not share attributes: others read the original."""
        made = copy(content)
        if type(made) is type(content) and not _share_attributes(made, content):
            return made
        reduced = object.__reduce_ex__(content, 4)
        if isinstance(reduced, str):
            raise self._refusal(content)
        function, arguments, state = (*reduced, None)[:3]
        made = function(*arguments)
        if type(made) is not type(content) or _share_attributes(made, content):
            raise self._refusal(content)
        if isinstance(state, tuple):
            for name, value in state[1].items():  # its slots
                object.__setattr__(made, name, value)
        return made

    def _of_elements(self, content: Any) -> _Making:
        elements = []
        for element in content:
            elements.append((yield element))
        if id(content) in self._memo:  # it contains itself
            return self._memo[id(content)][1]
        names = getattr(content, "__dict__", ())
        if not names and all(new is old for new, old in zip(elements, content, strict=True)):
            return content
        base: Any = next(base for base in (tuple, set, frozenset) if isinstance(content, base))
        made: Any = base.__new__(type(content), elements)
        if base is set:
            made.update(elements)
        yield from self._set_attributes(content, made, names)
        return made

    def _set_attributes(self, content: Any, made: Any, names: Iterable[str]) -> _Making:
        for name in names:
            value = yield getattr(content, name)
            object.__setattr__(made, name, value)  # frozen or not

    def _is_home(self, content: Buffer) -> bool:
        if not is_of_a_device(content.allocator):
            return True
        context = self._context
        if content.device != context.device:
            return False
        if backend_of(content.allocator) == context.backend:
            return True
        return context.backend in SPACES and content.accessible(context.backend)

    def _copied(self, content: Buffer) -> Buffer:
        """A copy on the context's stream, which runs after the work that makes the content."""
        context, allocator = self._context, content.allocator
        made = Buffer(
            content.shape,
            content.dtype,
            allocator if backend_of(allocator) == context.backend else _memory_of(context.backend),
            device=context.device,
            stream=context.stream,
            transfer="async",
        )
        made[...] = content
        return made

    def _refusal(self, content: Any) -> TypeError:
        return TypeError(
            f"a product has {content!r}, which migrate=True cannot copy to {self._context.place}: "
            "accepted are what hamr.buffer accepts, and lists, tuples, sets, dictionaries and "
            "dataclasses of that"
        )


def _share_attributes(made: Any, content: Any) -> bool:
    """Whether the two objects share their attributes."""
    if made is content:
        return True
    attributes = getattr(content, "__dict__", None)
    return attributes is not None and getattr(made, "__dict__", None) is attributes


def _says_device(content: Any) -> bool:
    return hasattr(content, "__cuda_array_interface__")


def _memory_of(backend: str) -> Allocator:
    """The allocator for a backend's devices; a stream-ordered one if there is one."""
    found = [n for n, f in enumerate(FACTS) if f[5] == backend and f[1] == _DEVICES_OWN]
    in_order = [n for n in found if FACTS[n][3] == _IN_STREAM_ORDER]
    return allocator_from((in_order or found)[0])
