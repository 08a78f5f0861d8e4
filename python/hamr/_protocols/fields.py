"""What reading __array_interface__ and __cuda_array_interface__ have in common.

The dictionaries are not trusted, and NumPy checks little of them. Here types are checked
first (TypeError), then the Go core checks the values (ValueError). Each error names
the key. Methods that a subclass of dict, tuple, int or str overrides are not called, so that
the value that is used is the one that was checked.
"""

from __future__ import annotations

import sys
from _operator import index

import hamr._native as _native

from .._base.element import element_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: The version of an interface without one. NumPy does not require it.
_NEWEST = 3


def read(
    name: str, interface: Any, required: tuple[str, ...]
) -> tuple[dict[str, Any], str, tuple[int, ...], tuple[int, ...] | None, int]:
    """A copy of an interface dictionary; its typestr, shape, strides and version, type-checked."""
    if not isinstance(interface, dict):
        raise TypeError(f"{name} is {short(interface)}: accepted is a dict")
    fields: dict[str, Any] = dict.copy(interface)
    for key in required:
        if key not in fields:
            raise ValueError(f"{name} has no {key!r}: required are {', '.join(required)}")
    typestr = _text(fields["typestr"])
    shape = _integers("shape", fields["shape"])
    strides = fields.get("strides")
    if strides is not None:
        strides = _integers("strides", strides)
    return fields, typestr, shape, strides, integer("version", fields.get("version", _NEWEST))


def check(
    obj: Any,
    typestr: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    pointer: int,
    offset: int,
    length: int,
    mask: Any,
    version: int,
) -> int:
    """Check all values. Returns the number of the element type of ``obj``."""
    added = _added_type(obj, typestr)
    if added is not None:
        typestr = {"1": "|u1", "2": "<u2"}[typestr[2:]]
    element = _native.check_interface(
        typestr, shape, strides, pointer, offset, length, mask is not None, version
    )
    return element if added is None else added


def _added_type(obj: Any, typestr: str) -> int | None:
    """The number of an element type that another library, such as ml_dtypes, adds to NumPy.

    Its typestr has only the size, so the dtype is used. None for other types; TypeError for a
    type that hamr does not have.
    """
    if typestr[1:2] != "V" and typestr[1:] != "f1":
        return None
    numpy = sys.modules.get("numpy")
    dtype = getattr(obj, "dtype", None)
    if numpy is None or not isinstance(dtype, numpy.dtype):
        return None
    return element_of(dtype) if dtype.isbuiltin == 2 and dtype.str == typestr else None


def integer(key: str, value: Any) -> int:
    """An entry as a plain int of 64 bits."""
    number = exact(value)
    if number is None:
        raise TypeError(f"{key} is {short(value)}: accepted is an int")
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{key} is {short(value)}: accepted are integers that fit in 64 bits")
    return number


def pair_of(data: Any) -> tuple[int, bool]:
    """Address and read-only flag in the entry ``data``."""
    if not isinstance(data, tuple):
        raise TypeError(f"data is {short(data)}: accepted is (address, read-only flag)")
    pair = list(tuple.__iter__(data))
    if len(pair) != 2:
        raise ValueError(f"data is {short(data)}: accepted is (address, read-only flag)")
    pointer = exact(pair[0])
    if pointer is None:
        raise TypeError(f"data is {short(data)}: accepted as the address is an int")
    if not 0 <= pointer < 2**64:
        raise ValueError(f"data is {short(data)}: accepted as the address are 0 ... 2**64-1")
    try:
        return pointer, bool(pair[1])
    except Exception as error:
        raise TypeError(
            f"data is {short(data)}: accepted as the read-only flag is a bool"
        ) from error


def exact(value: Any) -> int | None:
    """A value as a plain int; None if it is no int."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        return index(value)
    except Exception:
        return None


def is_capsule(value: Any) -> bool:
    """Whether a value is a capsule. Capsules have no attribute that says what is in them."""
    return type(value).__name__ == "PyCapsule" and type(value).__module__ == "builtins"


def unreadable(obj: Any, name: str, error: Exception) -> TypeError:
    """The error for an object whose interface raises, as torch's does if it requires grad."""
    return TypeError(
        f"{type(obj).__name__} object cannot be shared: "
        f"its {name} raises {type(error).__name__}: {error}"
    )


def short(value: Any) -> str:
    """A short text of a value, for an error message."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def _text(typestr: Any) -> str:
    if not isinstance(typestr, str):
        raise TypeError(f"typestr is {short(typestr)}: accepted is a str such as '<f8'")
    text = str.__str__(typestr)
    if not (text.isascii() and text.isprintable()):
        raise TypeError(f"typestr is {short(text)}: accepted is a str such as '<f8'")
    return text


def _integers(key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise TypeError(f"{key} is {short(value)}: accepted is a tuple of int")
    return tuple([integer(key, v) for v in tuple.__iter__(value)])
