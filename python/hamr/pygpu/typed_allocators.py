"""Memory for elements of one type: ``HostAllocator_<dtype>`` and the other two kinds."""

from __future__ import annotations

from .._base.allocator import Allocator as _Kinds, allocator_from
from .._buffer.buffers import Buffer
from .pointers import POINTERS, TypedPointer, count_from
from .runtime import device_allocator, pagelocked_allocator
from .status import call, cudaError_t
from .types import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class TypedAllocator:
    """The base of the three kinds: memory for elements of one type, taken by ``allocate``.

    Pointers from ``ptr()``, and arrays made of them, keep the memory. The allocator keeps it until
    the next ``allocate()``.
    """

    __slots__ = ("__weakref__", "_memory")

    _dtype: ClassVar[str]
    _pointer: ClassVar[type[TypedPointer]]
    _safe: ClassVar[bool]

    def __init__(self) -> None:
        self._memory: Buffer | None = None

    def _kind(self) -> int:
        return int(_Kinds.malloc)

    def _take(self, n: Any) -> None:
        count = count_from(n, "an int, a count of elements")
        self._memory = None  # as upstream, the old memory goes first
        self._memory = Buffer(count, self._dtype, allocator_from(self._kind()))

    def ptr(self) -> TypedPointer:
        """A pointer to the memory; a null pointer before ``allocate``."""
        if self._memory is None:
            return self._pointer()
        return self._pointer(self._memory.ptr, self._safe, self._memory)

    def __repr__(self) -> str:
        n = 0 if self._memory is None else self._memory._count
        return f"<{type(self).__name__} of {n} elements>"


class HostAllocator(TypedAllocator):
    """Ordinary host memory; ``allocate`` raises OutOfMemory where there is none."""

    __slots__ = ()
    _safe = True

    def allocate(self, n: int) -> None:
        """Take new memory for ``n`` elements, not initialised; the old memory is released."""
        self._take(n)


class _OfRuntime(TypedAllocator):
    """Memory of the runtime. ``allocate`` returns the status."""

    __slots__ = ()

    def allocate(self, n: int) -> cudaError_t:
        """Take new memory for ``n`` elements, not initialised; the old memory is released."""
        with call() as c:
            self._take(n)
        return c.status


class DeviceAllocator(_OfRuntime):
    """Memory of the device that is current at ``allocate``; its pointers are not safe."""

    __slots__ = ()
    _safe = False

    def _kind(self) -> int:
        return device_allocator()


class PagelockedAllocator(_OfRuntime):
    """Page-locked host memory."""

    __slots__ = ()
    _safe = True

    def _kind(self) -> int:
        return pagelocked_allocator()


def _classes(base: type[Any]) -> dict[str, type[Any]]:
    return {
        name: type(
            f"{base.__name__}_{name}",
            (base,),
            {
                "__slots__": (),
                "__module__": "hamr.pygpu",
                "__doc__": f"{base.__doc__} For {name} elements.",
                "_dtype": name,
                "_pointer": POINTERS[name],
            },
        )
        for name in NAMES
    }


#: The classes by the names of element types.
HOST_ALLOCATORS: dict[str, type[HostAllocator]] = _classes(HostAllocator)
DEVICE_ALLOCATORS: dict[str, type[DeviceAllocator]] = _classes(DeviceAllocator)
PAGELOCKED_ALLOCATORS: dict[str, type[PagelockedAllocator]] = _classes(PagelockedAllocator)
