"""CuPy's memory from hamr's pool.

CuPy's hook for allocators in C gets no stream, neither for an allocation nor for a release. So
hamr's hook asks a C function of CuPy for the thread's current stream, and the Go library
remembers it with the memory. The hook, which holds Python's lock, hands out memory that is
there at once. An allocation that may have to wait is made here without the lock, and offered to
the hook.
"""

from __future__ import annotations

import os
from importlib import import_module
from threading import Lock, local

import hamr._native as _native

from .._base.errors import ForkError, OutOfMemory
from .._base.library import core
from .._base.parts import parts_of
from ._core import CUPY, address_of, allocate, free, hooks, refuse_rocm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from .._base.parts import Parts

_FEW_STREAMS = 64  # so many are kept without checking whether they are needed
_SIGNATURE = b"intptr_t (void)"
_LAST_OF_CUDA = 2  # handles up to it are the default streams
_TRIES = 8  # a finaliser may take what was offered

_made: _Allocator | None = None
_uses: list[CuPyUse] = []  # those that have not ended, in the order in which they began
_lock = Lock()


class CuPyUse:
    """CuPy's use of hamr's pool. The end of the ``with`` block, or ``end()``, ends it.

    If there are several, CuPy uses hamr's pool until the last one ends. They may end in any order.
    """

    def __init__(self, cupy: Any, allocator: Callable[[int], Any]) -> None:
        self._cupy, self._allocator, self._process = cupy, allocator, os.getpid()
        self._before: Any = cupy.cuda.get_allocator()
        cupy.cuda.set_allocator(allocator)
        _uses.append(self)
        core().KeepFreed(1)

    def end(self) -> None:
        """Restore CuPy's earlier allocator. Arrays stay valid. Twice is harmless."""
        with _lock:
            before, self._before = self._before, None
            if before is None:
                return
            later = _uses[_uses.index(self) + 1 :]
            _uses.remove(self)
            if not later:
                if self._cupy.cuda.get_allocator() is self._allocator:
                    self._cupy.cuda.set_allocator(before)
            elif later[0]._before is self._allocator:  # it would restore the one that ends now
                later[0]._before = before
            if os.getpid() == self._process:
                core().KeepFreed(-1)

    def __enter__(self) -> CuPyUse:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<hamr.allocators.CuPyUse{'' if self._before is not None else ', ended'}>"


class _Regions(local):
    """A thread's regions in memory of groups: each restores what CuPy used before it."""

    def __init__(self) -> None:
        self.open: list[_SpaceUse] = []

    def leave(self) -> None:
        """Leave those that have ended, unless a later one has not."""
        while self.open and self.open[-1]._before is None:
            self.open.pop()._region.__exit__(None, None, None)


_regions = _Regions()


class _SpaceUse(CuPyUse):
    """A region of one thread's code in which CuPy takes memory of a group."""

    def __init__(self, cupy: Any, parts: Parts) -> None:
        _regions.leave()
        self._parts, self._cupy = parts, cupy
        self._before = self._outer = cupy.cuda.get_allocator()
        region: AbstractContextManager[None] = cupy.cuda.using_allocator(self._malloc)
        self._region = region
        region.__enter__()
        _regions.open.append(self)

    def end(self) -> None:
        """Restore the thread's earlier allocator. Arrays stay valid. Twice is harmless.

        From another thread, and before regions that began later, CuPy calls ``_malloc`` on.
        """
        self._before = None
        _regions.leave()

    def _malloc(self, size: int) -> Any:
        cuda, parts = self._cupy.cuda, self._parts
        if not size or self._before is None or cuda.runtime.getDevice() != parts.device:
            return self._outer(size)
        try:
            part = parts.take(size)
        except OutOfMemory as error:
            raise cuda.memory.OutOfMemoryError(size, -1, 0) from error
        memory = cuda.UnownedMemory(part.address, size, part, parts.device)
        return cuda.MemoryPointer(memory, 0)


def use_in_cupy(space: Any = None) -> CuPyUse:
    """Make CuPy take its device memory from hamr's pool, on all threads and devices.

    With ``space``, which ``Client.build_group`` of the store returned for a device, it is for the
    calling thread and that device, and the memory is the group's. Each array's bytes are rounded up
    to 512, and nothing is taken beside them.

    Memory belongs to the stream that was current when it was allocated, as in CuPy's own pool.
    When memory runs out, CuPy's ``OutOfMemoryError`` is raised from ``hamr.OutOfMemory``.
    ImportError without CuPy; ``hamr.BackendUnavailable`` without CUDA; CuPy raises ValueError
    inside ``cupy.cuda.using_allocator``.
    """
    global _made
    cupy: Any = import_module("cupy")

    if space is not None:
        parts = parts_of(space)
        refuse_rocm("CuPy", bool(cupy.cuda.runtime.is_hip))
        if parts.device < 0:
            raise ValueError(f"{parts.said} is on the host: accepted is one of a device")
        return _SpaceUse(cupy, parts)
    with _lock:
        if _made is None:
            _made = _Allocator(cupy)
        return CuPyUse(cupy, _made.malloc)


class _Allocator:
    """``malloc`` is what CuPy calls."""

    def __init__(self, cupy: Any) -> None:
        runtime = cupy.cuda.runtime
        refuse_rocm("CuPy", bool(runtime.is_hip))
        _, library = hooks()
        core().AllocateFor(CUPY, runtime.getDevice(), 0, 0)  # raises where there is no CUDA
        offer = library.hamr_cupy_offer
        offer.argtypes, offer.restype = _offer_types()
        self.cupy = cupy
        self.offer: Callable[[int | None, int], int | None] = offer
        self.streams: dict[tuple[int, int], Any] = {}  # those that the pool may ask
        self.few = _FEW_STREAMS
        self.lock = Lock()
        self.process = os.getpid()
        hook = cupy.cuda.CFunctionAllocator(
            _current_stream(),
            address_of(library.hamr_cupy_alloc),
            address_of(library.hamr_cupy_free),
            library,
        )
        self.hook: Callable[[int], Any] = hook.malloc
        misses = core().KeepFreed(0)
        self.malloc = _native.granting(self.hook, self._malloc_slowly, misses)

    def _malloc_slowly(self, size: int) -> Any:
        """Allocate without Python's lock, and make the hook return that memory."""
        if os.getpid() != self.process:
            raise ForkError(
                "CuPy's memory is hamr's, which the process had used before it was forked: start "
                "processes by multiprocessing's spawn or forkserver"
            )
        device: int = self.cupy.cuda.runtime.getDevice()
        stream = self.cupy.cuda.get_current_stream()
        self._keep(device, stream)
        for _ in range(_TRIES):
            try:
                address = allocate(CUPY, device, size, stream.ptr)
            except OutOfMemory as error:
                raise self.cupy.cuda.memory.OutOfMemoryError(size, -1, 0) from error
            try:
                self.offer(address, size)
                pointer = self.hook(size)
            finally:
                left = self.offer(None, 0)
                if left:
                    free(left)
            if pointer.ptr:
                return pointer
        raise self.cupy.cuda.memory.OutOfMemoryError(size, -1, 0)

    def _keep(self, device: int, stream: Any) -> None:
        """Keep a stream as long as the pool may ask it, so that its handle is not reused.

        The owner of an external stream may end it at any time: the pool does not ask it.
        """
        if stream.ptr <= _LAST_OF_CUDA or isinstance(stream, self.cupy.cuda.ExternalStream):
            return
        with self.lock:
            if (device, stream.ptr) in self.streams:
                return
            if len(self.streams) >= self.few:
                for key in list(self.streams):
                    if core().DropStream(*key):
                        del self.streams[key]
                self.few = max(_FEW_STREAMS, 2 * len(self.streams))
            core().KeepStream(device, stream.ptr)
            self.streams[device, stream.ptr] = stream


def _after_fork() -> None:
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_after_fork)


def _offer_types() -> tuple[list[Any], Any]:
    import ctypes

    return [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p


def _current_stream() -> int:
    """CuPy's C function for the thread's current stream, as Cython exports it; 0 without it."""
    import ctypes

    stream = import_module("cupy_backends.cuda.stream")
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = getattr(stream, "__pyx_capi__", {}).get("get_current_stream_ptr")
    if capsule is None or api.PyCapsule_GetName(capsule) != _SIGNATURE:
        return 0  # each allocation is then slow
    found: int = api.PyCapsule_GetPointer(capsule, _SIGNATURE)
    return found
