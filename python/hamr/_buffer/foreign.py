"""Memory that comes from C or goes there: pointers of ctypes and cffi, and who frees it.

Imported when first needed. This module never imports ctypes or cffi to look at an object: an
object of theirs means that they are imported already.
"""

from __future__ import annotations

import sys

import hamr._native as _native

from .._base.allocator import allocator_from
from .._base.element import element_of, item_size, name_of
from .._protocols.dispatch import share
from .views import extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

_ACCEPTED = (
    "accepted are an int, a pointer, array or struct of ctypes, and a pointer or array of cffi"
)


def address_of(pointer: Any) -> int:
    """The address that a pointer holds, or the address of an array or struct."""
    if isinstance(pointer, int) and not isinstance(pointer, bool):
        return int(pointer)
    ctypes, cffi = sys.modules.get("ctypes"), sys.modules.get("_cffi_backend")
    if ctypes is not None:
        pointers = ctypes.c_void_p, ctypes._Pointer, ctypes.c_char_p, ctypes.c_wchar_p
        if isinstance(pointer, pointers):
            return int(ctypes.cast(pointer, ctypes.c_void_p).value or 0)
        if isinstance(pointer, (ctypes.Array, ctypes.Structure, ctypes.Union)):
            return int(ctypes.addressof(pointer))
    if cffi is not None and isinstance(pointer, cffi.FFI.CData):
        ffi = cffi.FFI()
        if ffi.typeof(pointer).kind in ("pointer", "array"):
            return int(ffi.cast("uintptr_t", pointer))
    raise TypeError(f"pointer is {pointer!r}: {_ACCEPTED}")


def owned(
    pointer: Any, owner: Any, free: Callable[[Any], Any] | None, take: bool
) -> tuple[int, Any, Freed | None]:
    """The address, the memory's owner, and a Freed to be armed once the memory is taken."""
    address, freed = address_of(pointer), None
    if not isinstance(pointer, int) and not take:
        owner = (owner, pointer)
    if free is not None:
        owner = freed = Freed(free, pointer, owner)
    return address, owner, freed


def check_room(pointer: Any, array: _native.Array) -> None:
    """ValueError if elements lie outside an array of ctypes or cffi."""
    ctypes, cffi = sys.modules.get("ctypes"), sys.modules.get("_cffi_backend")
    if ctypes is not None and isinstance(pointer, ctypes.Array):
        room = ctypes.sizeof(pointer)
    elif cffi is not None and isinstance(pointer, cffi.FFI.CData):
        ffi = cffi.FFI()
        if ffi.typeof(pointer).kind != "array":
            return
        room = ffi.sizeof(pointer)
    else:
        return
    if not array._count:
        return
    first, end = extent(array.shape, array.strides, array.itemsize)
    if first < 0 or end > room:
        raise ValueError(
            f"pointer is an array of {room} bytes: shape {array.shape} of "
            f"{name_of(array._element)} is at bytes {first} ... {end - 1} of it"
        )


class Freed:
    """The owner of memory that a function frees: once, when the owner ends."""

    __slots__ = ("_free", "_owner", "_pointer", "armed")

    def __init__(self, free: Callable[[Any], Any], pointer: Any, owner: Any) -> None:
        if not callable(free):
            raise TypeError(f"free is {free!r}: accepted is a function that takes the pointer")
        ctypes = sys.modules.get("ctypes")
        if ctypes is not None and type(pointer) is int and isinstance(free, ctypes._CFuncPtr):
            pointer = ctypes.c_void_p(pointer)  # ctypes would pass 32 bits of an int
        self._free, self._pointer, self._owner = free, pointer, owner
        self.armed = False  # until the memory is taken it is the caller's

    def __del__(self) -> None:
        if getattr(self, "armed", False):
            self.armed = False
            self._free(self._pointer)


def parameter_of(array: _native.Array) -> Any:
    """A pointer of ctypes to an array's elements, which it keeps. Waits for work on them."""
    if not array._host:
        raise TypeError(
            f"the host does not reach {allocator_from(array._allocator).name} memory: pass "
            "b.get_host_accessible(), or to a function that takes device pointers "
            "ctypes.c_void_p(b.ptr)"
        )
    import ctypes

    kept = array.get_host_accessible()
    kind = getattr(ctypes, _C_TYPES.get(name_of(kept._element), ""), None)
    if kind is None:
        pointer: Any = ctypes.c_void_p(kept.ptr)
    else:
        pointer = ctypes.cast(kept.ptr, ctypes.POINTER(kind))
    pointer.keep = kept._snapshot(_native.Array)
    return pointer


#: The names of element types in ctypes. Arguments may be declared as pointers to these.
_C_TYPES = {
    "bool": "c_bool",
    **{f"{u}int{n}": f"c_{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
    "float32": "c_float",
    "float64": "c_double",
}


def elements_in(kind: type[_A], obj: Any, dtype: Any, stream: int, transfer: int) -> _A:
    """An array over the bytes of an object, as elements of a type.

    The object is bytes-like, or has a ``buf`` that is: SharedMemory of multiprocessing.
    """
    element = element_of(dtype)
    content = obj.buf if is_shared_memory(obj) else obj
    given = share(_native.Array, content)
    if given.itemsize != 1 or given.ndim != 1 or not given.is_contiguous or not given._host:
        raise TypeError(
            f"dtype is {name_of(element)} and the object has {given.ndim} dimensions of "
            f"{name_of(given._element)}: accepted are bytes without gaps; "
            "hamr.buffer(obj).astype(dtype) converts elements"
        )
    count, rest = divmod(given.nbytes, item_size(element))
    if rest:
        raise ValueError(
            f"dtype is {name_of(element)}, of {item_size(element)} bytes, and the object has "
            f"{given.nbytes}: accepted is a multiple"
        )
    # The last item is dropped first: SharedMemory must not end while a memoryview exists.
    owner = given if content is obj else (obj, memoryview(content))
    place = given._allocator, given.device, stream, transfer, given.ptr
    made = _native.adopt_pointer(
        kind, element, *place, (count,), None, given.readonly, owner, False
    )
    made._source = given._source
    if content is not obj:
        given._close()
    return made


def is_shared_memory(obj: Any) -> bool:
    """Whether an object is multiprocessing's SharedMemory, which has no buffer protocol itself."""
    module = sys.modules.get("multiprocessing.shared_memory")
    return module is not None and isinstance(obj, module.SharedMemory)
