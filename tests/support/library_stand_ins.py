"""Stand-ins for CuPy, torch and Numba as far as hamr.allocators uses them, over a driver by ctypes.

Their signatures and rules are those of CuPy 14.2's, torch 2.15's and numba-cuda 0.30's sources.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import types
import weakref
from collections import deque, namedtuple
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

_current_type = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)
_cupy_alloc = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_cupy_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


class CuPyStream:
    """What ``cupy.cuda.get_current_stream()`` returns; 0 is the default stream."""

    def __init__(self, ptr: int, owner: object = None) -> None:
        self.ptr, self.owner = ptr, owner


class CuPyExternalStream(CuPyStream):
    """One that CuPy does not own."""


class _CuPyPointer:
    def __init__(self, hook: CuPyHook, size: int) -> None:
        self.hook, self.size = hook, size
        self.ptr = hook.alloc(hook.parameter, size, 0) or 0 if size else 0

    def __del__(self) -> None:
        if self.ptr:
            self.hook.free(self.hook.parameter, self.ptr, 0)


class CuPyHook:
    """``cupy.cuda.CFunctionAllocator``, which calls C with Python's lock and checks nothing."""

    def __init__(self, parameter: int, alloc: int, free: int, owner: object) -> None:
        self.parameter, self.owner = parameter, owner
        self.alloc, self.free = _cupy_alloc(alloc), _cupy_free(free)

    def malloc(self, size: int) -> _CuPyPointer:
        return _CuPyPointer(self, size)


class _CuPyMemory:
    """``cupy.cuda.UnownedMemory``, and its ``MemoryPointer``."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class CuPyOutOfMemory(MemoryError):
    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        self.size, self.total, self.limit = size, total, limit
        super().__init__(f"Out of memory allocating {size:,} bytes")


class CuPy:
    """Modules to be put into sys.modules; ``stream`` is the current one."""

    def __init__(self, signature: bytes = b"intptr_t (void)") -> None:
        self.stream = CuPyStream(0)
        self._function = _current_type(lambda: self.stream.ptr)
        self._allocator: Callable[[int], Any] = lambda size: ("own", size)
        self._here = threading.local()  # what using_allocator has set
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        self._signature = signature
        capsule = new(ctypes.cast(self._function, ctypes.c_void_p), self._signature, None)

        def set_allocator(allocator: Callable[[int], Any]) -> None:
            self._allocator = allocator

        @contextlib.contextmanager
        def using_allocator(allocator: Callable[[int], Any]) -> Iterator[None]:
            before, self._here.allocator = getattr(self._here, "allocator", None), allocator
            try:
                yield
            finally:
                self._here.allocator = before

        cuda = types.SimpleNamespace(
            using_allocator=using_allocator,
            UnownedMemory=_CuPyMemory,
            MemoryPointer=lambda memory, offset: memory,
            runtime=types.SimpleNamespace(is_hip=False, getDevice=lambda: 0),
            CFunctionAllocator=CuPyHook,
            ExternalStream=CuPyExternalStream,
            Device=contextlib.nullcontext,
            get_current_stream=lambda: self.stream,
            set_allocator=set_allocator,
            get_allocator=self._current,
            memory=types.SimpleNamespace(OutOfMemoryError=CuPyOutOfMemory),
        )
        cupy: Any = types.ModuleType("cupy")
        cupy.cuda = cuda
        cupy.get_default_memory_pool = lambda: types.SimpleNamespace(
            free_bytes=lambda: 0, free_all_blocks=lambda: None
        )
        backends: Any = types.ModuleType("cupy_backends")
        backends.cuda = types.ModuleType("cupy_backends.cuda")
        backends.cuda.stream = types.SimpleNamespace(
            __pyx_capi__={"get_current_stream_ptr": capsule}
        )
        self.cuda = cuda
        self.modules = {
            "cupy": cupy,
            "cupy_backends": backends,
            "cupy_backends.cuda": backends.cuda,
            "cupy_backends.cuda.stream": backends.cuda.stream,
        }

    def alloc(self, size: int) -> Any:
        """``cupy.cuda.alloc``."""
        return self._current()(size)

    def _current(self) -> Callable[[int], Any]:
        return getattr(self._here, "allocator", None) or self._allocator


_torch_alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_torch_free = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
)


class _TorchInner:
    """``torch._C._cuda_CUDAAllocator``."""

    record_stream = 0

    def __init__(self, alloc: int, free: int) -> None:
        self.alloc, self.free = _torch_alloc(alloc), _torch_free(free)

    def set_record_stream_fn(self, function: int) -> None:
        self.record_stream = function


class _TorchPluggable:
    """``torch.cuda.memory.CUDAPluggableAllocator``."""

    def __init__(self, path: str, alloc_name: str, free_name: str) -> None:
        library = ctypes.CDLL(path)
        self._allocator = _TorchInner(
            *(
                ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                for name in (alloc_name, free_name)
            )
        )

    def allocator(self) -> _TorchInner:
        return self._allocator


class TorchPool:
    """``torch.cuda.MemPool``: memory by its allocator, kept until the pool goes.

    One that goes while a region is open ends torch's process: that is told in ``broken``.
    """

    underway: ClassVar[list[TorchPool]] = []  # those of regions
    broken: ClassVar[list[str]] = []

    def __init__(self, allocator: _TorchInner) -> None:
        self.inner, self.cached, self.active = allocator, [], 0
        self._finalizer = weakref.finalize(self, TorchPool._empty, allocator, self.cached)

    def use_count(self) -> int:
        return 1 + self.active

    @staticmethod
    def _empty(inner: _TorchInner, cached: list[tuple[int, int, int]]) -> None:
        if TorchPool.underway:
            TorchPool.broken.append("a pool ended while a region was open")
        while cached:
            inner.free(cached[-1][0], cached[-1][1], 0, cached.pop()[2])


class Torch:
    """Modules to be put into sys.modules."""

    def __init__(
        self, used: bool = False, can_record: bool = True, streams: Sequence[int] = (0,)
    ) -> None:
        self.streams = deque(streams)
        self.current: Any = None  # after change_current_allocator
        self.regions: list[TorchPool] = []

        @contextlib.contextmanager
        def use_mem_pool(pool: TorchPool, device: int) -> Iterator[None]:
            if pool in TorchPool.underway:
                raise RuntimeError("already recording to mempool_id")
            self.regions.append(pool)
            TorchPool.underway.append(pool)
            pool.active += 1
            try:
                yield
            finally:
                pool.active -= 1
                self.regions.remove(pool)
                TorchPool.underway.remove(pool)

        def change(wrapper: _TorchPluggable) -> None:
            if used or self.current:
                raise RuntimeError("Can't swap an already initialized allocator")
            self.current = wrapper.allocator()

        class Pluggable(_TorchPluggable):
            if not can_record:

                def allocator(self) -> Any:
                    inner = super().allocator()
                    return types.SimpleNamespace(alloc=inner.alloc, free=inner.free)

        torch: Any = types.ModuleType("torch")
        torch.version = types.SimpleNamespace(hip=None, cuda="13.0")
        torch.cuda = types.SimpleNamespace(
            current_device=lambda: 0,
            device=lambda number: contextlib.nullcontext(),
            MemPool=TorchPool,
            use_mem_pool=use_mem_pool,
            Stream=self._stream,
            memory=types.SimpleNamespace(
                CUDAPluggableAllocator=Pluggable, change_current_allocator=change
            ),
            is_initialized=lambda: False,
        )
        self.modules = {"torch": torch}

    def _stream(self) -> Any:
        """torch.cuda.Stream: the next one of the device's."""
        self.streams.rotate(-1)
        return types.SimpleNamespace(
            device=types.SimpleNamespace(index=0), cuda_stream=self.streams[0]
        )

    def alloc(self, size: int, stream: int) -> int | None:
        """A segment, as torch's caching allocator takes it in the region: perhaps a kept one."""
        for kept in self.regions[-1].cached:
            if kept[1:] == (size, stream):
                self.regions[-1].cached.remove(kept)
                return kept[0]
        return self.regions[-1].inner.alloc(size, 0, stream)

    def free(self, address: int, size: int, stream: int) -> None:
        """Have the pool of the region keep it."""
        self.regions[-1].cached.append((address, size, stream))


class CudaAPIError(Exception):
    def __init__(self, code: int, msg: str) -> None:
        self.code, self.msg = code, msg
        super().__init__(code, msg)


class _Deallocations:
    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.memory_capacity = 0
        self.disabled = 0

    def add_item(self, dtor: Callable[[int], object], handle: int, size: int) -> None:
        assert dtor.__name__  # Numba logs it
        self.waiting.append((dtor, handle))
        if len(self.waiting) > 10:
            self.clear()

    def clear(self) -> None:
        while self.waiting and not self.disabled:
            dtor, handle = self.waiting.popleft()
            dtor(handle)


class _HostOnly:
    def __init__(self, *, context: Any) -> None:
        self.context = context
        self.deallocations = _Deallocations()

    def _attempt_allocation(self, allocator: Callable[[], int]) -> int:
        try:
            return allocator()
        except CudaAPIError as error:
            if error.code != 2:
                raise
            self.deallocations.clear()
            return allocator()


class _NumbaPointer:
    def __init__(
        self, context: Any, pointer: ctypes.c_void_p, size: int, *, finalizer: Callable[[], None]
    ) -> None:
        self.address, self.size = pointer.value, size
        weakref.finalize(self, finalizer)


class Numba:
    """Modules to be put into sys.modules; ``manager`` is the class that was set."""

    def __init__(self, used: bool = False) -> None:
        self.manager: Any = None
        cuda: Any = types.ModuleType("numba.cuda")
        cuda.GetIpcHandleMixin = type("GetIpcHandleMixin", (), {})
        cuda.HostOnlyCUDAMemoryManager = _HostOnly
        cuda.MemoryPointer = _NumbaPointer
        cuda.MemoryInfo = namedtuple("MemoryInfo", "free,total")
        context = object() if used else None
        gpus = types.SimpleNamespace(lst=[types.SimpleNamespace(primary_context=context)])

        def set_memory_manager(manager: Any) -> None:
            assert manager(context=None).interface_version == 1
            self.manager = manager

        cuda.set_memory_manager = set_memory_manager
        driver: Any = types.ModuleType("numba.cuda.cudadrv.driver")
        driver.CudaAPIError = CudaAPIError
        driver.driver = types.SimpleNamespace(is_initialized=used)
        cudadrv: Any = types.ModuleType("numba.cuda.cudadrv")
        cudadrv.driver, cudadrv.devices = driver, types.SimpleNamespace(gpus=gpus)
        cuda.cudadrv = cudadrv
        numba: Any = types.ModuleType("numba")
        numba.cuda = cuda
        self.modules = {
            "numba": numba,
            "numba.cuda": cuda,
            "numba.cuda.cudadrv": cudadrv,
            "numba.cuda.cudadrv.driver": driver,
            "numba.cuda.cudadrv.devices": cudadrv.devices,
        }

    def context(self, given: Any = None) -> Any:
        """One whose manager is the one that was set, of a device that is Numba's by default."""

        class Context:
            device = types.SimpleNamespace(id=0) if given is None else given

        context = Context()
        context.manager = self.manager(context=context)  # type: ignore[attr-defined]
        context.manager.initialize()  # type: ignore[attr-defined]
        return context
