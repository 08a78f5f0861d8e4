"""Reading __array_interface__, version 3, without trusting it.

NumPy checks little of it: here types are checked first (TypeError), then the Go
core checks the values (ValueError). Every refusal names the key. What a subclass
of dict, tuple, int or str overrides is not asked, so that no value differs from
the one that was checked.
"""

from __future__ import annotations

from _operator import index

from . import _native
from ._library import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

_REQUIRED = ("shape", "typestr", "version")
_HOST = -1
_MALLOC = 1


def adopt_array_interface(
    cls: type[_A], obj: Any, interface: Any, stream: int, transfer: int
) -> _A:
    """An array of a class over the memory that an interface dictionary of ``obj`` describes."""
    if not isinstance(interface, dict):
        raise TypeError(f"__array_interface__ is {_short(interface)}: accepted is a dict")
    interface = dict.copy(interface)
    for key in _REQUIRED:
        if key not in interface:
            raise ValueError(
                f"__array_interface__ has no {key!r}: required are {', '.join(_REQUIRED)}"
            )
    typestr = _text(interface)
    shape = _integers("shape", interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        strides = _integers("strides", strides)
    version = _integer("version", interface["version"])
    offset = _integer("offset", interface.get("offset", 0))
    masked = interface.get("mask") is not None
    pointer, readonly, length, owner = _data(obj, interface.get("data"))
    element = call(
        "CheckInterface", typestr, _joined(shape), "-" if strides is None else _joined(strides),
        pointer, offset, length, masked, version,
    )  # fmt: skip
    if length >= 0:
        pointer += offset
    return _native.adopt_pointer(
        cls,
        element,
        _MALLOC,
        _HOST,
        stream,
        transfer,
        pointer,
        shape,
        strides,
        readonly,
        (obj, owner),
        False,
    )


def _text(interface: dict[str, Any]) -> str:
    typestr = interface["typestr"]
    if not isinstance(typestr, str):
        raise TypeError(f"typestr is {_short(typestr)}: accepted is a str such as '<f8'")
    text = str.__str__(typestr)
    if not (text.isascii() and text.isprintable()):
        raise TypeError(f"typestr is {_short(text)}: accepted is a str such as '<f8'")
    return text


def _integer(key: str, value: Any) -> int:
    number = _exact(value)
    if number is None:
        raise TypeError(f"{key} is {_short(value)}: accepted is an int")
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{key} is {_short(value)}: accepted are integers that fit in 64 bits")
    return number


def _exact(value: Any) -> int | None:
    """The plain int that a value stands for, or None if it stands for none."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        return index(value)
    except Exception:
        return None


def _integers(key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise TypeError(f"{key} is {_short(value)}: accepted is a tuple of int")
    return tuple([_integer(key, v) for v in tuple.__iter__(value)])


def _data(obj: Any, data: Any) -> tuple[int, bool, int, Any]:
    """Address, read-only flag, length (-1 if unknown) and what keeps the memory alive."""
    if isinstance(data, tuple):
        pair = list(tuple.__iter__(data))
        if len(pair) != 2:
            raise ValueError(f"data is {_short(data)}: accepted is (address, read-only flag)")
        address, readonly = _exact(pair[0]), pair[1]
        if address is None:
            raise TypeError(f"data is {_short(data)}: accepted as the address is an int")
        if not 0 <= address < 2**64:
            raise ValueError(f"data is {_short(data)}: accepted as the address are 0 ... 2**64-1")
        try:
            return address, bool(readonly), -1, None
        except Exception as error:
            raise TypeError(
                f"data is {_short(data)}: accepted as the read-only flag is a bool"
            ) from error
    source = obj if data is None else data
    try:
        # The array interface takes any bytes, whatever their type and shape.
        view = memoryview(source).cast("B")
    except (TypeError, ValueError, BufferError) as error:
        raise TypeError(
            f"data is {_short(data)}: accepted is (address, read-only flag), "
            f"or a contiguous buffer: {error}"
        ) from None
    held = _native.adopt_buffer(_native.Array, view, 0, 0)
    assert held is not None
    return held.ptr, held.readonly, held.nbytes, held


def _joined(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
