"""Copies of buffers, and the attributes of subclasses. Imported when first needed."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

#: Buffer's own slots, which are not copied.
_OWN = ("_lock", "_source")


def copied(source: _A, memo: dict[int, Any] | None = None) -> _A:
    """What ``copy.copy`` makes of a buffer, and with ``memo`` what ``copy.deepcopy`` does."""
    made = _native.copy(type(source), source, Allocator.same, -1, source._element)
    state = source.__getstate__()
    if state is not None:
        if memo is not None:
            from copy import deepcopy

            memo[id(source)] = made  # attributes may refer to the buffer
            state = deepcopy(state, memo)
        _set_state(made, state)
    return made


def attributes_of(buffer: _native.Array) -> Any:
    """A subclass's attributes and slots, in the form of ``object.__getstate__``; None without."""
    found = object.__getstate__(buffer)
    entries, slots = found if isinstance(found, tuple) else (found, {})
    slots = {name: value for name, value in slots.items() if name not in _OWN}
    return (entries, slots) if slots else entries or None


def set_attributes(buffer: _native.Array, attributes: Any) -> None:
    """Give a buffer what ``attributes_of`` found, as unpickling does."""
    entries, slots = attributes if isinstance(attributes, tuple) else (attributes, None)
    if entries:
        vars(buffer).update(entries)
    for name, value in (slots or {}).items():
        setattr(buffer, name, value)


def _set_state(buffer: _native.Array, state: Any) -> None:
    """Give a buffer what ``__getstate__`` returned, as ``copy.copy`` does."""
    setter = getattr(buffer, "__setstate__", None)
    if setter is None:
        set_attributes(buffer, state)
    else:
        setter(state)
