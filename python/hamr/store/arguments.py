"""Arguments of the store's methods, checked before anything is done."""

from __future__ import annotations

import json
import os
from math import isnan

from .._base.allocator import Allocator, allocator_of
from .._base.library import core, tell_settings
from .._base.place import new_place
from .._buffer.buffers import Buffer, buffer
from .._buffer.operands import refuse_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._base.allocator import AllocatorName
    from .._base.place import Device


def elements_of(array: Any) -> Buffer:
    """A buffer of an array that a user gave."""
    try:
        return buffer(array)
    except TypeError:
        refuse_value(array, "array")
        raise


def flag_of(name: str, value: Any) -> bool:
    """True or False, also NumPy's."""
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} is {value!r}: accepted are True and False")


def metadata_of(value: Any) -> str:
    """An object's metadata as JSON; "" for None."""
    return "" if value is None else json_of("metadata", value)


def json_of(name: str, value: Any) -> str:
    """What a user gave, as JSON."""
    try:
        _check_keys(value)
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply for JSON") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} is {value!r}: accepted is what JSON has: {error}") from None


def _check_keys(value: Any) -> None:
    """Refuse keys that JSON would change, as 1 to "1"."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is no text: write {str(key)!r}")
            _check_keys(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check_keys(each)


def seconds_of(name: str, value: Any) -> float:
    """A number of seconds. A time below 0 has passed."""
    if isinstance(value, (str, bool)) or not hasattr(type(value), "__float__"):
        raise TypeError(f"{name} is {value!r}: accepted is a number of seconds")
    seconds = float(value)
    if isnan(seconds):
        raise ValueError(f"{name} is {value!r}: accepted is a number of seconds")
    return seconds


def timeout_of(value: Any) -> float | None:
    """A number of seconds, or None: without a limit."""
    return None if value is None else seconds_of("timeout", value)


def text_of(name: str, value: Any) -> str:
    """Text that UTF-8 can encode."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}: accepted is a text")
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError(f"{name} is {value!r}: accepted is text without half surrogates")
    return value


def name_of_object(value: Any) -> str:
    """A name for an object."""
    name = text_of("name", value)
    if not 0 < len(name.encode()) <= 255:
        shown = f"{name[:40]!r}, of {len(name.encode())} bytes"
        raise ValueError(f"name is {shown}: accepted are 1 to 255 bytes of UTF-8")
    return name


def lasting_of(name: str | None, replace: Any, session: Any) -> bool | None:
    """None for an object that replaces none; else whether it stays when its session ends.

    One that replaces another ends with the session until it has the name: if its maker dies before,
    it is gone.
    """
    if not flag_of("replace", replace):
        return None
    if name is None:
        raise TypeError("replace is True: accepted is that with name=")
    return not flag_of("session", session)


def path_of(name: str, value: Any) -> str:
    """A path as text; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} is {value!r}: accepted is a path, as text or of pathlib")
    path = os.fspath(value)
    if not isinstance(path, str) or "\0" in path:
        raise ValueError(f"{name} is {value!r}: accepted is a path, as text without NUL")
    return text_of(name, path)


def socket_of(path: Any) -> str:
    """A socket's path; "" is the default, by the present environment."""
    text = path_of("path", path)
    if not text:
        tell_settings(core(), "HAMR_STORE", "XDG_RUNTIME_DIR")
    return text


def place_of(
    allocator: Allocator | int | AllocatorName | None, device: Device | None
) -> tuple[int, int]:
    """The allocator and device that a user gave, for memory that can be shared."""
    if allocator is None and device is None:
        return Allocator.shared, -1
    if device is None:
        return allocator_of(allocator), -1
    number, place = new_place(allocator, device)
    return (core().StoreAllocator(number, place) if allocator is None else number), place


def place_or_beside(
    allocator: Allocator | int | AllocatorName | None, device: Device | None
) -> tuple[int, int]:
    """As ``place_of``; (-1, -1), beside the array, where nothing is given."""
    beside = -1, -1
    if allocator is None and device is None:
        return beside
    if (place := place_of(allocator, device)) == beside:
        raise ValueError(
            "allocator is none: accepted is one of the host's or of a device whose memory can "
            "be shared"
        )
    return place
