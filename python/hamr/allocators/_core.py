"""Calls of the Go library that the hooks of all libraries use."""

from __future__ import annotations

import hamr._native as _native

from .._base.errors import BackendUnavailable, OutOfMemory
from .._base.library import core, library_path
from .._base.out_of_memory import relieve

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

CUPY, TORCH, NUMBA = 1, 2, 3  # gobuffer.Library
ANY_STREAM = 2**64 - 1  # backends.EveryStream

_GIVE_UP, _COLLECTED = 0, 3  # what relieve() answers


def allocate(library: int, device: int, size: int, stream: int) -> int:
    """The address of new memory. Others are asked for memory before OutOfMemory is raised."""
    asked = 0
    while True:
        try:
            return _allocate(library, device, size, stream)
        except OutOfMemory:
            answer, *_ = relieve(device, size, "cuda", asked, 0)
            if answer == _GIVE_UP:
                raise
            asked = 2 if answer == _COLLECTED else 1


def _allocate(library: int, device: int, size: int, stream: int) -> int:
    address: int = _native.with_stack(core().AllocateFor, library, device, size, stream)
    return address


def free(address: int) -> None:
    """Free memory, in the order of its stream."""
    _native.with_stack(core().FreeFor, address)


def hooks() -> tuple[str, ctypes.CDLL]:
    """The file of this process's copy of the library, and its functions for C."""
    import ctypes

    core()
    file = library_path()
    path = _native.path_in_process(file) or file
    return path, ctypes.CDLL(path)


def address_of(function: object) -> int:
    """The address of a function of ``hooks()``."""
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def refuse_rocm(library: str, is_rocm: bool) -> None:
    """Raise BackendUnavailable for a library that was built for AMD: it has no CUDA memory."""
    if is_rocm:
        raise BackendUnavailable(f"{library} was built for ROCm: hamr serves CUDA's memory to it")
