"""Numba's memory from hamr's pool, by Numba's interface for other memory managers (EMM).

Numba gives no streams: memory that it frees waits for all work on the device, as with cuMemFree,
and nobody uses memory that it gets.
"""

from __future__ import annotations

from importlib import import_module

from .._base.errors import OutOfMemory
from .._base.library import core
from ._core import ANY_STREAM, NUMBA, allocate, free

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_INTERFACE = 1  # version of Numba's interface
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY

_manager: Any = None


def use_in_numba() -> None:
    """Make Numba take its device memory from hamr's pool, until the process ends.

    Call it before Numba's first use of a device, which makes its context; later it is a
    RuntimeError. Handles for other processes, ``defer_cleanup`` and pinned memory work as before.
    When memory runs out, Numba's ``CudaAPIError`` with code 2 is raised from ``hamr.OutOfMemory``.
    ImportError without Numba; ``hamr.BackendUnavailable`` without CUDA.
    """
    global _manager
    cuda: Any = import_module("numba.cuda")

    if _manager is None:
        core().AllocateFor(NUMBA, 0, 0, 0)  # raises where there is no CUDA
        _refuse_contexts()
        made = _manager_of(cuda)
        cuda.set_memory_manager(made)
        _manager = made


def _refuse_contexts() -> None:
    """Raise RuntimeError if there are contexts, since these keep their memory manager."""
    if not import_module("numba.cuda.cudadrv.driver").driver.is_initialized:
        return  # asking for devices would load a driver
    devices = import_module("numba.cuda.cudadrv.devices").gpus.lst
    if any(device.primary_context is not None for device in devices):
        raise RuntimeError(
            "Numba has used a device already, and its memory manager stays: call use_in_numba() "
            "before its first use of CUDA"
        )


def _number_of(device: Any) -> int:
    """The number of a device of Numba, or of the driver's binding below it."""
    number = getattr(device, "id", None)
    return int(device if number is None else number)


def _manager_of(cuda: Any) -> Any:
    """The class of the memory manager, whose bases are Numba's."""
    failure: Any = import_module("numba.cuda.cudadrv.driver").CudaAPIError
    bases: Any = type("Bases", (cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager), {})

    class HamrMemoryManager(bases):  # type: ignore[misc]
        """Device memory of hamr's, page-locked memory of Numba's."""

        def initialize(self) -> None:
            """Let as many releases wait as Numba's own manager does."""
            if not self.deallocations.memory_capacity:
                self.deallocations.memory_capacity = self.get_memory_info().total

        def memalloc(self, size: int) -> Any:
            """Memory that nobody uses, on the device of the context."""
            from ctypes import c_void_p
            from weakref import proxy

            device = _number_of(self.context.device)

            def taken() -> int:
                try:
                    return allocate(NUMBA, device, size, ANY_STREAM)
                except OutOfMemory as error:
                    raise failure(_OUT_OF_MEMORY, str(error)) from error

            address = self._attempt_allocation(taken)
            later = self.deallocations

            def finalizer() -> None:
                later.add_item(free, address, size)

            return cuda.MemoryPointer(
                proxy(self.context), c_void_p(address), size, finalizer=finalizer
            )

        def get_memory_info(self) -> Any:
            """The device's memory, free and in all. Memory that hamr keeps is not free."""
            from .._base.cuda_devices import memory_info

            there = memory_info(_number_of(self.context.device))
            return cuda.MemoryInfo(free=there.free, total=there.total)

        @property
        def interface_version(self) -> int:
            """The version of Numba's interface."""
            return _INTERFACE

    return HamrMemoryManager
