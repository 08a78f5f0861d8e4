"""Named integers like enum.IntEnum, at a twentieth of its import time.

Importing enum takes 3 ms. `import hamr` takes 3 ms without it, and may take 5 ms. Users see
what an IntEnum offers: members by name, value and iteration. Members print as their names,
which IntEnum's do not since Python 3.11.
"""

from __future__ import annotations

__all__ = ["Enumeration"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import EnumType, IntEnum
    from typing import Any, TypeVar

    _E = TypeVar("_E")

    class EnumerationType(EnumType):
        """Takes numbers only. For an IntEnum pyright would accept names as well."""

        def __call__(cls: type[_E], value: int) -> _E:  # type: ignore[override]
            ...

    class Enumeration(IntEnum, metaclass=EnumerationType):
        """What type checkers see."""

else:

    class EnumerationType(type):
        """The class of an enumeration: turns its integers into members."""

        _members: dict[str, Any]
        _values: dict[int, Any]

        def __new__(
            mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]
        ) -> EnumerationType:
            """Make the class and its members."""
            # Python 3.13 adds __firstlineno__.
            numbers = {k: v for k, v in body.items() if type(v) is int and not k.startswith("__")}
            rest = {key: value for key, value in body.items() if key not in numbers}
            cls = super().__new__(mcs, name, bases, rest)
            cls._members, cls._values = {}, {}
            for key, value in numbers.items():
                cls.append(key, value)
            return cls

        def append(cls, name: str, value: int) -> None:
            """Add a member of a table that is kept elsewhere."""
            member = int.__new__(cls, value)
            member._name = name
            cls._members[name] = cls._values[value] = member
            type.__setattr__(cls, name, member)

        def __call__(cls, value: int) -> Any:
            try:
                return cls._values[value]
            except (KeyError, TypeError):
                name = cls.__name__
                hint = f": {name}[{value!r}] is a member" if value in list(cls._members) else ""
                raise ValueError(f"{value!r} is not a valid {name}{hint}") from None

        def __getitem__(cls, name: str) -> Any:
            return cls._members[name]

        def __iter__(cls) -> Iterator[Any]:
            return iter(cls._members.values())

        def __len__(cls) -> int:
            return len(cls._members)

        def __contains__(cls, value: object) -> bool:
            return value in cls._values

        def __setattr__(cls, name: str, value: object) -> None:
            if name in getattr(cls, "_members", ()):
                raise AttributeError(f"cannot reassign member {name!r}")
            super().__setattr__(name, value)

    class Enumeration(int, metaclass=EnumerationType):
        """An integer with a name."""

        _name: str

        @property
        def name(self) -> str:
            """The member's name."""
            return self._name

        @property
        def value(self) -> int:
            """The member's number."""
            return int(self)

        def __repr__(self) -> str:
            return f"<{type(self).__name__}.{self._name}: {int(self)}>"

        def __str__(self) -> str:
            return self._name

        def __format__(self, form: str) -> str:
            numeric = form and form[-1] in "bcdeEfFgGnoxX%"
            return int.__format__(self, form) if numeric else format(self._name, form)

        def __reduce__(self) -> tuple[type, tuple[int]]:
            return type(self), (int(self),)
