"""Element types: from what users write to the core's numbers, and back."""

from __future__ import annotations

import sys

import hamr._native as _native

from .library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PYTHON_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}

_numbers: dict[object, int] = {}

#: Name, typestr, format of the buffer protocol, bytes and DLPack's code, by number.
TABLE: list[tuple[str, str, str | None, int, int]] = [
    ("invalid", "", None, 0, 0),
    *_native.element_table(),
]


class ElementType(str):
    """A NumPy name of an element type, such as "float32", where NumPy is not loaded."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"dtype({str.__str__(self)!r})"


def element_of(dtype: Any) -> int:
    """The number of an element type given as NumPy dtype, name, typestr or class."""
    try:
        return _numbers[dtype]
    except KeyError:
        pass
    except TypeError:
        raise TypeError(
            f"dtype is {dtype!r}: accepted is an element type such as 'float32'"
        ) from None
    number = _parse(dtype)
    if len(_numbers) < 1000:
        _numbers[dtype] = number
    return number


def _parse(dtype: Any) -> int:
    if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        name = _PYTHON_TYPES[dtype]
    elif isinstance(dtype, str):
        name = str(dtype)
    elif dtype is None:  # float64 to NumPy
        raise TypeError("dtype is None: accepted is an element type such as 'float32'")
    else:
        name = _name_by_numpy(dtype)
    if not name.isprintable() or not name.isascii():
        raise TypeError(f"dtype is {dtype!r}: accepted is an element type such as 'float32'")
    return core().ParseElement(name)


def _name_by_numpy(dtype: Any) -> str:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        try:
            resolved = numpy.dtype(dtype)
        except TypeError:
            pass
        else:
            if resolved.isbuiltin != 2:
                return str(resolved.str)
            # The typestrs of types that ml_dtypes adds to NumPy do not say what they are.
            if resolved.itemsize > 1 and not resolved.isnative:
                raise TypeError(
                    f"dtype is {resolved!r}: big-endian elements are not supported; "
                    "convert with .astype(a.dtype.newbyteorder('='))"
                )
            return str(resolved.name)
    raise TypeError(f"dtype is {dtype!r}: accepted is an element type such as 'float32'")


def name_of(number: int) -> str:
    """The NumPy name of an element type."""
    return TABLE[number][0]


def dtype_of(number: int) -> Any:
    """The NumPy dtype where NumPy is loaded, else an ElementType."""
    name = name_of(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        try:
            return numpy.dtype(name)
        except TypeError:
            pass
    return ElementType(name)


def item_size(number: int) -> int:
    """The bytes of one element."""
    return TABLE[number][3]


def has_format(number: int) -> bool:
    """Whether the buffer protocol has a format for an element type."""
    return TABLE[number][2] is not None


def held_large(value: Any, number: int) -> float | bool | None:
    """What elements of a type hold of an int beyond 64 bits, as NumPy's do.

    None if integers are meant, or value is no such int; a ValueError beyond all floats.
    """
    kind = TABLE[number][1][1]
    if kind in "iu" or not isinstance(value, int) or -(2**63) <= value < 2**64:
        return None
    if kind == "b":
        return True
    try:
        return int.__float__(value)
    except OverflowError:
        raise ValueError(
            f"value is an int of {value.bit_length()} bits: accepted for {name_of(number)} "
            "are those that a float64 holds, of at most 1024"
        ) from None


def item_from_bytes(number: int, raw: bytes) -> Any:
    """One element's bytes as a Python number. Its type has a format in the buffer protocol."""
    import struct

    text = TABLE[number][2]
    assert text is not None
    values = struct.unpack("<" + (text[1] * 2 if text[0] == "Z" else text), raw)
    return complex(*values) if len(values) == 2 else values[0]
