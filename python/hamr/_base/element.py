"""Element types: from what users write to the core's numbers, and back."""

from __future__ import annotations

import sys

import hamr._native as _native

from .allocator import Allocator
from .errors import OutOfRange
from .library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PYTHON_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}

#: NumPy's one-letter codes, which array.array has as well, names of Python's types, and names
#: of NumPy's that mean something else in C, or on systems other than Linux.
_SPELLINGS = {kind.__name__: name for kind, name in _PYTHON_TYPES.items()} | {
    "b": "int8", "h": "int16", "i": "int32", "l": "int64", "q": "int64",
    "B": "uint8", "H": "uint16", "I": "uint32", "L": "uint64", "Q": "uint64",
    "e": "float16", "f": "float32", "d": "float64", "F": "complex64", "D": "complex128",
    "bool_": "bool", "byte": "int8", "ubyte": "uint8", "int_": "int64", "uint": "uint64",
    "long": "int64", "ulong": "uint64",
}  # fmt: skip
_WITH_T = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: What other libraries and compilers call element types.
_OTHERS = {
    "fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "float_": "float64", "complex_": "complex128",
    "boolean": "bool", "real": "float64", "integer": "int64", "uchar": "uint8",
} | {f"{name}_t": name for name in _WITH_T}  # fmt: skip

#: A cache: the number of an element type by what users gave for it.
numbers: dict[object, int] = {}

#: Name, typestr, format of the buffer protocol, bytes and DLPack's code, by number.
TABLE: list[tuple[str, str, str | None, int, int]] = [
    ("invalid", "", None, 0, 0),
    *_native.element_table(),
]


class ElementType(str):
    """The NumPy name of an element type, such as "float32". It is used if NumPy is not loaded."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"dtype({str.__str__(self)!r})"


def element_of(dtype: Any) -> int:
    """The number of an element type given as NumPy dtype, name, typestr or class."""
    try:
        return numbers[dtype]
    except KeyError:
        pass
    except TypeError:
        raise TypeError(
            f"dtype is {dtype!r}: accepted is an element type such as 'float32'"
        ) from None
    number = _parse(dtype)
    if len(numbers) < 1000:
        numbers[dtype] = number
    return number


def _parse(dtype: Any) -> int:
    if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        name = _PYTHON_TYPES[dtype]
    elif isinstance(dtype, str):
        name = _SPELLINGS.get(dtype) or str(dtype)
    elif dtype is None:  # float64 to NumPy
        raise TypeError("dtype is None: accepted is an element type such as 'float32'")
    else:
        name = _name_by_numpy(dtype)
    if not name.isprintable() or not name.isascii():
        raise TypeError(f"dtype is {dtype!r}: accepted is an element type such as 'float32'")
    try:
        return core().ParseElement(name)
    except TypeError as error:
        if isinstance(dtype, str):
            words = {"cpu": "device", "gpu": "device"} | {a.name: "allocator" for a in Allocator}
            if name not in words:
                meant = _meant(name)
                raise TypeError(f"{error}; write {meant!r}") if meant else error from None
            raise TypeError(
                f"dtype {name!r}: accepted is an element type such as 'float32'; "
                f"write {words[name]}={name!r} for a place"
            ) from None
        raise TypeError(str(error).replace(f"dtype '{name}'", f"dtype is {dtype!r}", 1)) from None


def as_elsewhere(name: str) -> str:
    """The name in hamr for another library's name of an element type; other names stay the same."""
    name = name.strip().rpartition(".")[2].lower()
    return _OTHERS.get(name) or _SPELLINGS.get(name, name)


def _meant(name: str) -> str:
    """The name in hamr for another library's name of an element type; "" if there is none."""
    name = as_elsewhere(name)
    try:
        core().ParseElement(name)
    except TypeError:
        return ""
    return name


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
            # The typestrs of types that ml_dtypes adds to NumPy are not unique.
            if resolved.itemsize > 1 and not resolved.isnative:
                raise TypeError(
                    f"dtype is {resolved!r}: big-endian elements are not supported; "
                    "convert with .astype(a.dtype.newbyteorder('='))"
                )
            return str(resolved.name)
    module, _, name = str(dtype).rpartition(".")
    if module == "torch" == type(dtype).__module__:  # torch.float32
        return name
    hint = "; a shape of several dimensions is a tuple, (2, 3)" if isinstance(dtype, int) else ""
    raise TypeError(f"dtype is {dtype!r}: accepted is an element type such as 'float32'{hint}")


def name_of(number: int) -> str:
    """The NumPy name of an element type."""
    return TABLE[number][0]


def dtype_of(number: int) -> Any:
    """The NumPy dtype if NumPy is loaded, else an ElementType.

    For a type that ml_dtypes adds to NumPy, ml_dtypes is imported if it is installed.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        try:
            return numpy.dtype(name_of(number))
        except TypeError:
            if _ml_dtypes_adds(name_of(number)):
                return numpy.dtype(name_of(number))
    return ElementType(name_of(number))


def numpy_dtype(number: int) -> Any:
    """The NumPy dtype; imports NumPy. TypeError if NumPy has no such type."""
    import numpy

    named = dtype_of(number)
    if isinstance(named, numpy.dtype):
        return named
    raise TypeError(
        f"NumPy has no {named}: ml_dtypes adds it (pip install ml_dtypes), or b.astype('float32')"
    )


def _ml_dtypes_adds(name: str) -> bool:
    """Import ml_dtypes, which few programs need. Returns whether it has the type."""
    global _without_ml_dtypes
    if _without_ml_dtypes:
        return False
    from importlib import import_module

    try:
        ml_dtypes = import_module("ml_dtypes")
    except Exception:  # built for another NumPy, for one
        _without_ml_dtypes = True
        return False
    return hasattr(ml_dtypes, name)


_without_ml_dtypes = False


def item_size(number: int) -> int:
    """The bytes of one element."""
    return TABLE[number][3]


def has_format(number: int) -> bool:
    """Whether the buffer protocol has a format for an element type."""
    return TABLE[number][2] is not None


def held_large(value: Any, number: int) -> float | bool | None:
    """What an element stores for an int beyond 64 bits, by NumPy's rules.

    None if ``value`` is no such int. OutOfRange for integer types, and for an int beyond float64.
    """
    kind = TABLE[number][1][1]
    if not isinstance(value, int) or -(2**63) <= value < 2**64:
        return None
    if kind in "iu":
        raise OutOfRange(
            f"value {value!r} does not fit any integer type: accepted are -2**63 ... 2**64-1"
            if value.bit_length() <= 1024
            else f"value is an int of {value.bit_length()} bits: accepted for {name_of(number)} "
            "are those of its range"
        )
    if kind == "b":
        return True
    try:
        return int.__float__(value)
    except OverflowError:
        raise OutOfRange(
            f"value is an int of {value.bit_length()} bits: accepted for {name_of(number)} "
            "are those that a float64 holds, of at most 1024"
        ) from None


def item_of(array: _native.Array) -> Any:
    """The only element of an array in any memory, as a Python number."""
    host = _native.copy(_native.Array, array, Allocator.malloc, -1, array._element)
    if not has_format(host._element):  # Python cannot read bfloat16 and float8
        host = _native.copy(_native.Array, host, Allocator.malloc, -1, element_of("float64"))
    return item_from_bytes(host._element, _native.bytes_of(host._pin()))


def number_as(number: Any, element: int) -> _native.Array:
    """A Python number as the one element of a new array; ValueError if its type cannot hold it."""
    return _native.create(_native.Array, element, Allocator.malloc, -1, 0, 1, (), number)


def item_from_bytes(number: int, raw: bytes) -> Any:
    """One element's bytes as a Python number. Its type has a format in the buffer protocol."""
    import struct

    text = TABLE[number][2]
    assert text is not None
    values = struct.unpack(text[1] * 2 if text[0] == "Z" else text, raw)
    return complex(*values) if len(values) == 2 else values[0]
