"""The ids of objects in the store."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_digits = re.compile(r"[0-9a-f]{32}", re.ASCII)


class ObjectID(str):
    """A random number of 128 bits that names an object, as 32 hexadecimal digits.

    It is a str: it can be pickled, compared and sent, and given to tasks and processes.
    """

    __slots__ = ()

    def __new__(cls, text: Any) -> Self:
        """Take the digits as text; capital letters are accepted."""
        if not isinstance(text, str):
            raise TypeError(f"id is {text!r}: accepted is an ObjectID, or its text")
        digits = text.lower()
        if not _digits.fullmatch(digits):
            raise ValueError(
                f"id is {text!r}: accepted are 32 hexadecimal digits; for the object of a name "
                f"write client.get(name={text!r}), or client.get_name({text!r}) for its id"
            )
        return super().__new__(cls, digits)

    def __repr__(self) -> str:
        return f"ObjectID({str(self)!r})"


def is_id(value: Any) -> bool:
    """Whether a value is an id, or text in the form of one."""
    return isinstance(value, str) and _digits.fullmatch(value.lower()) is not None


def id_of(value: Any) -> ObjectID:
    """An id that a user gave."""
    return value if type(value) is ObjectID else ObjectID(value)
