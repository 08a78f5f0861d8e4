"""Copying what a product has to another device."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, is_dataclass
from enum import Enum

from .._base.allocator import FACTS, SPACES, allocator_from, backend_of, is_of_a_device
from .._buffer.buffers import Buffer, buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .._base.allocator import Allocator
    from .._native import ScopedContext

_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, memoryview, range, Enum)
_IN_STREAM_ORDER = 1
_DEVICES_OWN = 3


def moved(content: Any, context: ScopedContext) -> Any:
    """The same with buffers of the context's device in place of those of another one.

    Buffers and arrays of other libraries become buffers if their memory is a device's, managed
    memory too, and neither of the context's device nor such that its runtime's code uses it there
    in place. What is at home, arrays of the host, page-locked ones too, and plain values stay the
    objects that they are. Lists, tuples, sets, dictionaries and dataclasses are rebuilt without a
    call of their constructors, with all their attributes; keys of dictionaries stay. What is there
    twice is one object afterwards, too, and what holds itself does; views become buffers of their
    own elements. Anything else is a TypeError.
    """
    return _Move(context).of(content)


class _Move:
    def __init__(self, context: ScopedContext) -> None:
        self._context = context
        #: What became of an object by its id, beside the object, so that nobody else gets the id.
        self._memo: dict[int, tuple[Any, Any]] = {}

    def of(self, content: Any) -> Any:
        if isinstance(content, _PLAIN):
            return content
        known = self._memo.get(id(content))
        if known is None:
            made = self._made(content)
            known = self._memo.setdefault(id(content), (content, made))
        return known[1]

    def _made(self, content: Any) -> Any:
        if isinstance(content, Buffer):
            return content if self._is_home(content) else self._copied(content)
        if isinstance(content, (list, dict)):
            return self._rebuilt(content)
        if isinstance(content, (tuple, set, frozenset)):
            return self._of_elements(content)
        if is_dataclass(content) and not isinstance(content, type):
            return self._rebuilt(content)
        if getattr(getattr(content, "dtype", None), "hasobject", False):
            raise self._refusal(content)
        if hasattr(content, "__array_interface__") and not _says_device(content):
            return content
        try:
            shared = buffer(content)
        except TypeError as error:
            raise self._refusal(content) from error
        return content if self._is_home(shared) else self._copied(shared)

    def _rebuilt(self, content: Any) -> Any:
        """A list, dictionary or dataclass: noted before it is filled, since it may hold itself."""
        made = copy(content)
        self._memo[id(content)] = content, made
        if isinstance(content, list):
            made[:] = map(self.of, content)
        elif isinstance(content, dict):
            for key, value in content.items():
                made[key] = self.of(value)
        names = dict.fromkeys(getattr(content, "__dict__", ()))
        if is_dataclass(content):
            names |= dict.fromkeys(f.name for f in fields(content) if hasattr(content, f.name))
        self._set_attributes(content, made, names)
        return made

    def _of_elements(self, content: Any) -> Any:
        elements = [*map(self.of, content)]
        if id(content) in self._memo:  # it holds itself
            return self._memo[id(content)][1]
        names = getattr(content, "__dict__", ())
        if not names and all(new is old for new, old in zip(elements, content, strict=True)):
            return content
        base: Any = next(base for base in (tuple, set, frozenset) if isinstance(content, base))
        made: Any = base.__new__(type(content), elements)
        if base is set:
            made.update(elements)
        self._set_attributes(content, made, names)
        return made

    def _set_attributes(self, content: Any, made: Any, names: Iterable[str]) -> None:
        for name in names:
            object.__setattr__(made, name, self.of(getattr(content, name)))  # frozen or not

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
        """A copy in the order of the context's stream, which comes after what makes the content."""
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


def _says_device(content: Any) -> bool:
    return hasattr(content, "__cuda_array_interface__")


def _memory_of(backend: str) -> Allocator:
    """The allocator for a backend's devices, in the order of streams if there is such a one."""
    found = [n for n, f in enumerate(FACTS) if f[5] == backend and f[1] == _DEVICES_OWN]
    in_order = [n for n in found if FACTS[n][3] == _IN_STREAM_ORDER]
    return allocator_from((in_order or found)[0])
