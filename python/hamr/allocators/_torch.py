"""torch's memory from hamr's pool: the functions that torch calls are in the Go library."""

from __future__ import annotations

import atexit
import warnings
from importlib import import_module

from .._base.errors import BackendUnavailable
from .._base.library import core
from ._core import TORCH, address_of, hooks, refuse_rocm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

_TORCH_STREAMS = 32  # torch hands out so many in turn, for a device and a priority

_allocators: dict[str, Any] = {}  # torch may call them until the process ends
_everywhere = False
_open: list[TorchUse] = []  # regions that have not ended


class TorchUse:
    """A region of one thread's code in which torch takes memory from hamr's pool.

    ``pool`` is the ``torch.cuda.MemPool``, for ``torch.cuda.use_mem_pool`` on other threads; None
    once the region has ended. The end of the ``with`` block, or ``end()``, ends it.
    """

    def __init__(self, torch: Any, device: int) -> None:
        with torch.cuda.device(device):
            allocator = _torch_allocator(torch, "hamr_torch_alloc").allocator()
            self.pool: Any = torch.cuda.MemPool(allocator)
        region: AbstractContextManager[None] = torch.cuda.use_mem_pool(self.pool, device)
        region.__enter__()
        self._region: AbstractContextManager[None] | None = region
        _open.append(self)

    def end(self) -> None:
        """End the region: hamr gets back the memory that torch keeps and no tensor uses.

        Tensors stay valid. After they have ended, their memory returns at the next
        ``torch.cuda.empty_cache()``, or when torch runs out. Twice is harmless.
        """
        region, self._region = self._region, None
        if region is not None:
            _open.remove(self)
            region.__exit__(None, None, None)
            self.pool = None

    def __enter__(self) -> TorchUse:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<hamr.allocators.TorchUse{'' if self._region is not None else ', ended'}>"


def use_in_torch(*, everywhere: bool = False, device: int | None = None) -> TorchUse | None:
    """Make torch take its device memory from hamr's pool.

    By default it is a region, from the call to the end of the ``with`` block or ``end()``, for
    memory that the calling thread allocates on ``device``, a number, by default the current one.
    torch's caching allocator stays between, in a ``torch.cuda.MemPool``, with its statistics, its
    ``OutOfMemoryError`` and ``record_stream``. Other threads, such as those of a backward pass, are
    not part of the region.

    With ``everywhere`` it is for all threads and devices, until the process ends: torch's allocator
    is replaced, and None is returned. Call it before torch takes its first CUDA memory; later it is
    a RuntimeError. torch then has no statistics (``memory_stats`` raises), and captures no graphs.
    When memory runs out, torch's ``OutOfMemoryError`` is raised.

    ImportError without torch; ``hamr.BackendUnavailable`` without CUDA; RuntimeError for a region
    after ``everywhere``.
    """
    torch: Any = import_module("torch")

    if not isinstance(everywhere, bool):
        raise TypeError(f"everywhere is {everywhere!r}: accepted are True and False")
    if everywhere and device is not None:
        raise ValueError(f"device is {device!r}: with everywhere=True it is every one")
    refuse_rocm("torch", torch.version.hip is not None)
    core().AllocateFor(TORCH, device or 0, 0, 0)  # raises where there is no CUDA, or no such device
    if torch.version.cuda is None:
        raise BackendUnavailable("this torch was built without CUDA")
    if everywhere:
        _replace(torch)
        return None
    if _everywhere:
        raise RuntimeError("all of torch's memory is from hamr's pool already: no region is needed")
    return TorchUse(torch, device if device is not None else torch.cuda.current_device())


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


@atexit.register
def _end_all() -> None:
    """End all regions: torch would end the process if a pool were freed while it is in use."""
    for use in list(_open):
        use.end()
