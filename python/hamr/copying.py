"""What copy and pickle ask of buffers, and what views and copies of subclasses carry."""

from __future__ import annotations

from . import _native
from ._library import call
from .allocator import Allocator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from .buffer import Buffer

    _Base = _native.Array
else:
    _Base = object

#: Buffer's own slots, which every buffer has for itself.
_OWN = ("_lock", "_source")


class Copying(_Base):
    """Buffer's methods for copy, pickle and subclasses."""

    __slots__ = ()

    def __array_finalize__(self, source: Buffer) -> None:
        """What a view or copy of a subclass is told of: the buffer that it was made from.

        It is of the same class, made without calling the constructor. By default it gets
        the attributes of the source, the same objects; a subclass may do otherwise.
        Unlike NumPy's hook it is not called for new buffers.
        """
        _set_attributes(self, _attributes_of(source))

    def __getstate__(self) -> Any:
        return _attributes_of(self)

    def __copy__(self) -> Self:
        made = self._bare_copy()
        if _is_of_subclass(self):
            _set_state(made, self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = self._bare_copy()
        if _is_of_subclass(self):
            from copy import deepcopy

            memo[id(self)] = made  # attributes may refer to the buffer
            _set_state(made, deepcopy(self.__getstate__(), memo))
        return made

    def _bare_copy(self) -> Self:
        """A copy of the same class without its attributes."""
        source, result = self._pin(), _native.result(None)
        call("Copy", source._address, Allocator.same, -1, self._element, result._address)
        return _native.from_result(type(self), result, source, False)

    def __reduce__(self) -> Any:
        from .pickling import reduce

        return reduce(self, 2)  # type: ignore[arg-type]

    def __reduce_ex__(self, protocol: Any) -> Any:
        if type(self).__reduce__ is not Copying.__reduce__:
            return self.__reduce__()  # as object's does
        from .pickling import reduce

        return reduce(self, protocol)  # type: ignore[arg-type]


def _is_of_subclass(buffer: Copying) -> bool:
    from .buffer import Buffer

    return type(buffer) is not Buffer


def _attributes_of(buffer: Copying) -> Any:
    """A subclass's attributes and slots, in the form of ``object.__getstate__``; None without."""
    if not _is_of_subclass(buffer):
        return None
    found = object.__getstate__(buffer)
    entries, slots = found if isinstance(found, tuple) else (found, {})
    slots = {name: value for name, value in slots.items() if name not in _OWN}
    return (entries, slots) if slots else entries or None


def _set_attributes(buffer: Copying, attributes: Any) -> None:
    """Give a buffer what ``_attributes_of`` found, as unpickling does."""
    entries, slots = attributes if isinstance(attributes, tuple) else (attributes, None)
    if entries:
        vars(buffer).update(entries)
    for name, value in (slots or {}).items():
        setattr(buffer, name, value)


def _set_state(buffer: Copying, state: Any) -> None:
    """Give a buffer what ``__getstate__`` returned, as ``copy.copy`` does."""
    if state is None:
        return
    setter = getattr(buffer, "__setstate__", None)
    if setter is None:
        _set_attributes(buffer, state)
    else:
        setter(state)
