"""Numbers that users give: of bytes, of times, of anything."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UNITS = {"": 1, "b": 1}
for _i, _letter in enumerate("kmgt", 1):
    _UNITS[_letter + "b"] = 1000**_i
    _UNITS[_letter + "ib"] = 1024**_i


def size_of(name: str, value: Any, also: str = "") -> int:
    """A number of bytes, given as a number or a text; ``also`` says what else is accepted."""
    comma = "," if also else " and"
    accepted = f"accepted are a number of bytes{comma} a text such as '512MiB' or '4GB'"
    accepted += f", {also}" if also else ""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value, re.ASCII)
        unit = _UNITS.get(found[2].lower()) if found else None
        if not found or unit is None:
            short = found and found[2].lower() in ("k", "m", "g", "t")
            meant = f"; write {value.strip() + 'iB'!r} or {value.strip() + 'B'!r}" if short else ""
            raise ValueError(f"{name} is {value!r}: {accepted}{meant}")
        whole, _, part = found[1].partition(".")
        count = int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)
    elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is {value!r}: {accepted}")
    else:
        count = value.__index__()
    if not 0 <= count < 2**63:
        raise ValueError(f"{name} is {value!r}: accepted are 0 ... 2**63-1 bytes")
    return count


def int_of(name: str, value: Any, accepted: str = "an int") -> int:
    """An argument as an int, by ``__index__``; a bool is a TypeError."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is {value!r}: accepted is {accepted}")
    return int(value.__index__())


def count_of(text: str) -> int:
    """A count that was given as an option of the command line."""
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        from argparse import ArgumentTypeError

        shown = text if len(text) < 40 else f"{text[:36]}..."
        raise ArgumentTypeError(f"{shown!r} is no count: accepted is an int from 1 on")
    return int(text)
