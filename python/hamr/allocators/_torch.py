"""torch's memory from hamr's pool: the functions that torch calls are in the Go library."""

from __future__ import annotations

import atexit
import os
import warnings
from contextlib import nullcontext
from importlib import import_module
from threading import RLock

from .._base.errors import BackendUnavailable
from .._base.library import core
from .._base.parts import enter_none, leave, parts_of
from ._core import TORCH, address_of, hooks, refuse_rocm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from .._base.parts import Parts

_TORCH_STREAMS = 32  # torch hands out so many in turn, for a device and a priority

_allocators: dict[str, Any] = {}  # torch may call them until the process ends
_everywhere = False
_open: list[TorchUse] = []  # regions that have not ended
_ended: list[Any] = []  # pools that torch must not end while a region is open
_lock = RLock()


class TorchUse:
    """A region of one thread's code in which torch takes memory from hamr's pool, or a group's.

    ``pool`` is the ``torch.cuda.MemPool``, for ``torch.cuda.use_mem_pool`` on other threads; None
    once the region has ended. The end of the ``with`` block, or ``end()``, ends it.
    """

    def __init__(self, torch: Any, device: int, parts: Parts | None) -> None:
        self.pool: Any = None
        self._parts, self._use = parts, 0
        region: AbstractContextManager[None] = nullcontext()
        with _lock:
            try:
                if not _everywhere:
                    self.pool = _pool_for(torch, device, parts)
                    region = torch.cuda.use_mem_pool(self.pool, device)
                self._use = enter_none() if parts is None else parts.enter()
                _open.append(self)
                region.__enter__()
            except BaseException:
                leave(self._use)
                self._over()
                raise
            self._region: AbstractContextManager[None] | None = region

    def end(self) -> None:
        """End the region: hamr gets back the memory that torch keeps and no tensor uses.

        It gets that back when no other region is open, and memory of a group when the group is
        finished. Tensors stay valid. After they have ended, their memory returns at the next
        ``torch.cuda.empty_cache()``, or when torch runs out. Twice is harmless.
        """
        with _lock:
            region, self._region = self._region, None
            if region is None:
                return
            try:
                leave(self._use)
                region.__exit__(None, None, None)
            finally:
                self._over()

    def _over(self) -> None:
        """Nothing of the region is open any more: until now no pool might end."""
        if self in _open:
            _open.remove(self)
        pool, self.pool = self.pool, None
        _keep(pool, self._parts)

    def __enter__(self) -> TorchUse:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # torch's error says how much of the device is free.
        if self._parts is not None and type(error).__name__ == "OutOfMemoryError":
            error.add_note(f"hamr: {self._parts.state()}")  # type: ignore[union-attr]
        self.end()

    def __repr__(self) -> str:
        return f"<hamr.allocators.TorchUse{'' if self._region is not None else ', ended'}>"


def _pool_for(torch: Any, device: int, parts: Parts | None) -> Any:
    """A pool that no other region uses, as torch wants it: of the group's, or a new one."""
    if parts is not None and parts.pools:
        return parts.pools.pop()
    with torch.cuda.device(device):
        return torch.cuda.MemPool(_torch_allocator(torch, "hamr_torch_alloc").allocator())


def _keep(pool: Any, parts: Parts | None) -> None:
    """Keep a pool whose region has ended for the group's next one, or end it."""
    ended = [] if pool is None else [pool]
    # In some releases of torch a pool ends with its region.
    if ended and parts is not None and parts.lease and getattr(pool, "use_count", int)() > 0:
        parts.pools.append(ended.pop())
        parts.give_up = _end_pools
    _end_pools(ended)


def _end_pools(pools: list[Any]) -> None:
    """End pools, now or once no region is open: torch ends the process if one ends before."""
    with _lock:
        _ended.extend(pools)
        pools.clear()
        while _ended and not _open:
            _ended.pop()


def use_in_torch(
    space: Any = None, *, everywhere: bool = False, device: int | None = None
) -> TorchUse | None:
    """Make torch take its device memory from hamr's pool, or from the memory of a group.

    By default it is a region, from the call to the end of the ``with`` block or ``end()``, for
    memory that the calling thread allocates on ``device``, a number, by default the current one.
    torch's caching allocator stays between, in a ``torch.cuda.MemPool``, with its statistics, its
    ``OutOfMemoryError`` and ``record_stream``. Other threads, such as those of a backward pass, are
    not part of the region.

    With ``space``, which ``Client.build_group`` of the store returned for a device, the region's
    memory is that of the group. torch asks for 2 MiB for tensors of up to 1 MiB together, for 20
    MiB for those of up to 10 MiB, and for a larger one by itself, rounded up to 2 MiB: on each
    stream, and for each thread. Other threads begin regions of their own.

    With ``everywhere`` it is for all threads and devices, until the process ends: torch's allocator
    is replaced, and None is returned. Call it before torch takes its first CUDA memory; later it is
    a RuntimeError. torch then has no statistics (``memory_stats`` raises), and captures no graphs.
    When memory runs out, torch's ``OutOfMemoryError`` is raised.

    ImportError without torch; ``hamr.BackendUnavailable`` without CUDA; RuntimeError for a region
    without ``space`` after ``everywhere``.
    """
    torch: Any = import_module("torch")

    if not isinstance(everywhere, bool):
        raise TypeError(f"everywhere is {everywhere!r}: accepted are True and False")
    if everywhere and device is not None:
        raise ValueError(f"device is {device!r}: with everywhere=True it is every one")
    parts = None
    if space is not None:
        parts = parts_of(space)
        if everywhere:
            raise ValueError("everywhere is True: with a space it is a region")
        device = _device_of(parts, device)
    refuse_rocm("torch", torch.version.hip is not None)
    core().AllocateFor(TORCH, device or 0, 0, 0)  # raises where there is no CUDA, or no such device
    if torch.version.cuda is None:
        raise BackendUnavailable("this torch was built without CUDA")
    if everywhere:
        _replace(torch)
        return None
    if _everywhere and parts is None:
        raise RuntimeError("all of torch's memory is from hamr's pool already: no region is needed")
    return TorchUse(torch, device if device is not None else torch.cuda.current_device(), parts)


def _device_of(parts: Parts, device: int | None) -> int:
    if parts.device < 0:
        raise ValueError(
            f"{parts.said} is on the host: accepted is one of a device; torch.from_numpy("
            "np.asarray(space.empty(...))) is a tensor on the host"
        )
    if device not in (None, parts.device):
        raise ValueError(f"device is {device!r}: {parts.said} is on device {parts.device}")
    return parts.device


def _replace(torch: Any) -> None:
    """Replace torch's allocator by hamr's."""
    global _everywhere
    if _everywhere:
        return
    wrapper = _torch_allocator(torch, "hamr_torch_alloc_or_throw")
    inner = wrapper.allocator()
    record = getattr(inner, "set_record_stream_fn", None)
    if record is None:
        warnings.warn(
            "this torch has no set_record_stream_fn: Tensor.record_stream does nothing, and memory "
            "used on several streams must be kept until they are done",
            RuntimeWarning,
            stacklevel=3,
        )
    else:
        record(address_of(hooks()[1].hamr_torch_record_stream))
    try:
        torch.cuda.memory.change_current_allocator(wrapper)
    except RuntimeError as error:
        raise RuntimeError(
            "torch has CUDA memory already: call use_in_torch(everywhere=True) before its first "
            "use of CUDA, or use_in_torch() for a region"
        ) from error
    _everywhere = True
    # torch's own streams never end. It makes all streams of a device with the first one.
    for _ in range(_TORCH_STREAMS):
        stream = torch.cuda.Stream()
        core().KeepStream(stream.device.index, stream.cuda_stream)
    core().KeepFreed(1)


def _torch_allocator(torch: Any, function: str) -> Any:
    """The process's allocator that calls a function of the library."""
    if function not in _allocators:
        path, _ = hooks()
        _allocators[function] = torch.cuda.memory.CUDAPluggableAllocator(
            path, function, "hamr_torch_free"
        )
    return _allocators[function]


def _after_fork() -> None:
    global _lock
    _lock = RLock()
    for use in _open:
        use._use = 0  # the child's numbers are others


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end_all() -> None:
    """End all regions: torch would end the process if a pool were freed while it is in use."""
    for use in list(_open):
        use.end()
