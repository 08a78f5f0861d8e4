"""Pointers as Python objects: PybindGPU's ``ptr_wrapper_<dtype>``, and handles of the runtime."""

from __future__ import annotations

import hamr._native as _native

from .._base.size import int_of
from .._buffer.buffers import Buffer
from .types import MORE, NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


def count_from(n: Any, accepted: str = "an int") -> int:
    """A number of elements that a user gave."""
    number = int_of("n", n, accepted)
    if number < 0:
        raise ValueError(f"n is {n!r}: accepted are counts of 0 and more")
    return number


class Pointer:
    """An address, and what keeps the memory there alive.

    ``int(p)`` is the address. As an argument of a ctypes function a wrapper is a ``c_void_p``.
    Memory of the host is "safe": ``get()`` reads and writes it. Wrappers are equal to other
    wrappers, and to ints, of the same address.
    """

    __slots__ = ("__weakref__", "_address", "_owner", "_safe")

    _label: ClassVar[str] = "void"

    def __init__(self, address: int = 0, is_safe: bool = False, owner: Any = None) -> None:
        number = int_of("address", address)
        if not 0 <= number < 2**64:
            raise ValueError(f"address is {address!r}: accepted are 0 ... 2**64-1")
        self._address, self._safe, self._owner = number, bool(is_safe), owner

    def is_safe(self) -> bool:
        """Whether the host may use the memory: host pointers are safe, device pointers are not."""
        return self._safe

    def print_address(self) -> None:
        """Print the address, in hexadecimal."""
        print(hex(self._address))

    @property
    def value(self) -> int:
        """The address."""
        return self._address

    @property
    def _as_parameter_(self) -> Any:
        from ctypes import c_void_p

        parameter = c_void_p(self._address)
        parameter.keep = self  # type: ignore[attr-defined]
        return parameter

    def __int__(self) -> int:
        return self._address

    __index__ = __int__

    def __bool__(self) -> bool:
        return self._address != 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pointer):
            return self._address == other._address
        return isinstance(other, int) and self._address == other

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        safe = int(self._safe)
        return f"<ptr_wrapper<{self._label}>, is_safe={safe}, addr={self._address}>"


class TypedPointer(Pointer):
    """A pointer to elements of one type: the base of ``ptr_wrapper_<dtype>``."""

    __slots__ = ()

    _dtype: ClassVar[str]

    def create(self, n: int) -> None:
        """Take host memory for ``n`` elements, not initialised, and point there."""
        self._owner = Buffer(count_from(n), self._dtype)
        self._address, self._safe = self._owner.ptr, True

    def destroy(self) -> None:
        """Release the memory and become a null pointer. Arrays of ``get()`` keep the memory."""
        self._address, self._safe, self._owner = 0, False, None

    def get(self) -> Any:
        """The elements as a NumPy array, or a memoryview without NumPy. Writes go to the memory.

        ValueError if the pointer is not safe, or its number of elements is not known.
        """
        if not self._safe:
            raise ValueError(f"{self!r} is not safe: accepted are pointers to memory of the host")
        owner = self._owner
        if owner is None:
            raise ValueError(f"{self!r} points to an unknown number of elements")
        if not isinstance(owner, _native.Array):
            return owner
        owner = owner._snapshot(_native.Array)
        try:
            import numpy
        except ImportError:
            return memoryview(owner.get_host_accessible())
        return numpy.asarray(owner.get_host_accessible())


#: The classes by the names of element types.
POINTERS: dict[str, type[TypedPointer]] = {}

for _name in NAMES + MORE:
    POINTERS[_name] = type(
        f"ptr_wrapper_{_name}",
        (TypedPointer,),
        {
            "__slots__": (),
            "__module__": "hamr.pygpu",
            "__doc__": f"A pointer to {_name} elements, see ``TypedPointer``.",
            "_dtype": _name,
            "_label": _name,
        },
    )
del _name


class StreamPointer(Pointer):
    """The handle of a stream. It keeps the stream."""

    __slots__ = ()
    _label = "CUstream_st"


class EventPointer(Pointer):
    """The handle of an event. It keeps the event."""

    __slots__ = ()
    _label = "CUevent_st"


class OpaquePointer:
    """An address that a library gave, or of a struct for a library: ``int(pointer)``."""

    __slots__ = ("_address", "_owner")

    def __init__(self, address: int, owner: object = None) -> None:
        self._address = address
        self._owner = owner

    def __int__(self) -> int:
        return self._address

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._address:#x}>"
