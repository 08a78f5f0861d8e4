"""The element types: PybindGPU's enumeration ``dtype``, and reading the types that users give."""

from __future__ import annotations

import sys

from .._base.element import TABLE, element_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

#: The types that PybindGPU has, in the order of the enumeration's values.
NAMES = (
    *("int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)

#: More types of arrays, and of allocators with a shape: those of images and masks.
MORE = ("bool", "int8", "uint8", "float16")

#: Second names, of C's types, by what they stand for.
_ALIASES = {
    "int16": ("short",),
    "int32": ("int",),
    "int64": ("long",),
    "uint16": ("unsigned_short",),
    "uint32": ("unsigned", "unsigned_int"),
    "uint64": ("unsigned_long",),
    "float32": ("float",),
    "float64": ("double",),
    "complex64": ("complex64",),
    "complex128": ("complex128",),
}


class UnsupportedDataType(TypeError):
    """An element type that the arrays of this module do not have.

    GPUArray and the allocators of a shape have those of ``SUPPORTED_DTYPES``, bool, int8, uint8 and
    float16; the classes of one type each have those of ``SUPPORTED_DTYPES``; hamr.Buffer has more.
    """


class _Members(type):
    """Makes ``dtype`` look like an enumeration: iteration, ``len``, ``dtype["int16"]``."""

    __members__: dict[str, dtype]

    def __iter__(cls) -> Iterator[dtype]:
        return iter(cls.__members__.values())

    def __len__(cls) -> int:
        return len(cls.__members__)

    def __getitem__(cls, name: str) -> dtype:
        return cls.__members__[name]


class dtype(metaclass=_Members):  # noqa: N801
    """The element types, as numbers from 0 on: ``dtype.float64``, ``dtype(7)``.

    ``__members__`` has them by name. Its last member, ``__size__``, is their number. Second
    names end in ``_alias`` and stand for the same member: ``dtype.double_alias`` is
    ``dtype.float64``.
    """

    __slots__ = ("_name", "_value")

    _name: str
    _value: int

    __members__: ClassVar[dict[str, dtype]] = {}
    _by_value: ClassVar[dict[int, dtype]] = {}

    if TYPE_CHECKING:
        int16: ClassVar[dtype]
        int32: ClassVar[dtype]
        int64: ClassVar[dtype]
        uint16: ClassVar[dtype]
        uint32: ClassVar[dtype]
        uint64: ClassVar[dtype]
        float32: ClassVar[dtype]
        float64: ClassVar[dtype]
        complex64: ClassVar[dtype]
        complex128: ClassVar[dtype]
        __size__: ClassVar[dtype]

    def __new__(cls, value: int) -> dtype:
        """The member of a number."""
        try:
            return cls._by_value[value.__index__()]
        except AttributeError:
            raise TypeError(f"value is {value!r}: accepted is an int") from None
        except KeyError:
            raise ValueError(
                f"value is {value!r}: accepted are 0 ... {len(NAMES)}, where the last one counts"
            ) from None

    @property
    def name(self) -> str:
        """The NumPy name, such as "float32"."""
        return self._name

    @property
    def value(self) -> int:
        """The number."""
        return self._value

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.value)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self.value,)

    def __repr__(self) -> str:
        return f"<dtype.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"dtype.{self.name}"


def _add(name: str, value: int, *aliases: str) -> None:
    member = object.__new__(dtype)
    member._name, member._value = name, value
    dtype._by_value[value] = member
    for known in (name, *(f"{alias}_alias" for alias in aliases)):
        dtype.__members__[known] = member
        setattr(dtype, known, member)


for _value, _name in enumerate(NAMES):
    _add(_name, _value, *_ALIASES[_name])
_add("__size__", len(NAMES))
del _name, _value

SUPPORTED_DTYPES = tuple(dtype(i).name for i in range(len(NAMES)))

#: hamr's numbers of the element types, by name, and back.
ELEMENTS = {row[0]: number for number, row in enumerate(TABLE) if row[0] in NAMES + MORE}
NAME_OF = {element: name for name, element in ELEMENTS.items()}

#: A cache: the name of an element type by what users gave for it.
known: dict[Any, str] = {}


def name_for(given: Any) -> str:
    """The name of an element type that a user gave: as name, class, NumPy dtype or member.

    UnsupportedDataType if it is no element type of these arrays, or none at all.
    """
    try:
        return known[given]
    except (KeyError, TypeError):
        pass
    if isinstance(given, dtype):
        found = ELEMENTS.get(given.name, 0)
    else:
        if "numpy" not in sys.modules and not isinstance(given, (str, type)):
            given = getattr(given, "name", given)
        try:
            found = element_of(given)
        except (TypeError, ValueError) as error:
            raise UnsupportedDataType(f"dtype is {given!r}: {_accepted()}") from error
    name = NAME_OF.get(found)
    if name is None:
        raise UnsupportedDataType(f"dtype is {given!r}: {_accepted()}")
    if len(known) < 1000:
        known[given] = name
    return name


def supported(element: int) -> str:
    """The name of an element type of hamr's; UnsupportedDataType if these arrays lack it."""
    try:
        return NAME_OF[element]
    except KeyError:
        raise UnsupportedDataType(f"elements are {name_of(element)}: {_accepted()}") from None


def _accepted() -> str:
    return f"accepted are {', '.join(NAMES + MORE)}; hamr.Buffer has more types"
