"""Where memory comes from and how it moves: the two enumerations of the API."""

from __future__ import annotations

import hamr._native as _native

from .enumeration import Enumeration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    #: What users type for an allocator, and for a transfer mode.
    AllocatorName = Literal[
        "same", "cpp", "malloc", "cuda", "cuda_async", "cuda_uva", "cuda_host", "hip", "hip_uva",
        "openmp", "shared", "cuda_vmm", "opencl_device", "opencl_svm", "hip_async", "hip_host",
        "sycl_device", "sycl_shared", "sycl_host",
    ]  # fmt: skip
    TransferName = Literal["async", "async_", "sync_host", "sync"]


class Allocator(Enumeration):
    """A way of obtaining memory, with upstream HAMR's values up to ``openmp``.

    ``shared`` is host memory that processes share: with forked children, whose writes the parent
    sees, and with processes that get the buffer by pickle, which then carries no elements.
    ``cuda_vmm`` is device memory that grows in place. ``opencl_device`` is memory of OpenCL's
    devices; ``opencl_svm`` is memory that the host can use, too, while a handle lives.
    ``sycl_device``, ``sycl_shared`` and ``sycl_host`` are the three kinds of SYCL's unified
    shared memory.
    """

    same = -2
    none = -1
    cpp = 0
    malloc = 1
    cuda = 2
    cuda_async = 3
    cuda_uva = 4
    cuda_host = 5
    hip = 6
    hip_uva = 7
    openmp = 8
    shared = 9
    cuda_vmm = 10
    opencl_device = 11
    opencl_svm = 12
    hip_async = 13
    hip_host = 14
    sycl_device = 15
    sycl_shared = 16
    sycl_host = 17


#: Name, kind of memory, reach, order, DLPack's device type, backend, whether other processes can
#: open it, and the spaces of other runtimes that share it, of each allocator by number: the facts
#: of the Go core's backends/allocator.go.
FACTS = _native.allocator_table()

if not TYPE_CHECKING:
    for _number in range(len(Allocator) - 2, len(FACTS)):  # none and same have no facts
        Allocator.append(FACTS[_number][0], _number)

_PAGEABLE, _PINNED = 0, 1


def is_of_a_device(number: int) -> bool:
    """Whether an allocator's memory belongs to a device. Page-locked memory does not."""
    return number >= 0 and FACTS[number][1] > _PINNED


def is_ordinary(number: int) -> bool:
    """Whether an allocator hands out ordinary host memory."""
    return number >= 0 and FACTS[number][1] == _PAGEABLE


def is_pinned(number: int) -> bool:
    """Whether an allocator hands out page-locked host memory."""
    return number >= 0 and FACTS[number][1] == _PINNED


#: The allocators of ordinary host memory.
ORDINARY = [number for number in range(len(FACTS)) if is_ordinary(number)]


def is_exportable(number: int) -> bool:
    """Whether other processes can open an allocator's memory."""
    return number >= 0 and FACTS[number][6]


def is_shared(number: int, space: int) -> bool:
    """Whether code of another runtime that has the same device uses the memory in place."""
    return number >= 0 and bool(FACTS[number][7] >> space & 1)


def backend_of(number: int) -> str:
    """The name of the backend that serves an allocator."""
    return FACTS[number][5]


class Transfer(Enumeration):
    """Which movements a call waits for, with upstream HAMR's values.

    ``async_`` waits for none, ``sync_host`` for movements from a device to the host,
    ``sync`` for all.
    """

    async_ = 0
    sync_host = 1
    sync = 2


Allocator.__module__ = Transfer.__module__ = "hamr"  # where users find them

#: Bits of ``Array._reach``, in the order of the Go core's spaces.
SPACES = {name: number for number, name in enumerate(_native.space_names())}

#: What to write instead of a place, or of another library's name of memory.
_PLACES = (
    dict.fromkeys(("cpu", "host", "numpy"), "; the host's is malloc")
    | dict.fromkeys(("gpu", "device", "cupy"), "; a GPU's is cuda")
    | dict.fromkeys(("pinned", "page_locked", "pagelocked"), "; page-locked memory is cuda_host")
    | dict.fromkeys(("managed", "unified", "uvm"), "; managed memory is cuda_uva")
)
#: What to write instead of another library's name of a space.
_SPACES = {"cpu": "host", "gpu": "cuda", "device": "cuda", "malloc": "host", "numpy": "host"}

_BY_VALUE = {int(a): a for a in Allocator}
_BY_NAME = {a.name for a in Allocator}


def allocator_of(value: object) -> int:
    """The number of an allocator given as Allocator, int or name."""
    if type(value) is Allocator:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _BY_VALUE:
            return int(value)
        raise ValueError(f"allocator is {value!r}: accepted are {_names(Allocator)}")
    if isinstance(value, str):
        try:
            return int(Allocator[value])
        except KeyError:
            pass
        lower = value.lower()
        place = _PLACES.get(lower) or (f"; write {lower!r}" if lower in _BY_NAME else "")
        raise ValueError(f"allocator is {value!r}: accepted are {_names(Allocator)}{place}")
    raise TypeError(
        f"allocator is {value!r}: accepted is a hamr.Allocator, its value or its name, one of "
        f"{_names(Allocator)}"
    )


def allocator_from(number: int) -> Allocator:
    """The enumeration member of a number that came from the core."""
    return _BY_VALUE[number]


def transfer_of(value: object, argument: str = "transfer") -> int:
    """The number of a transfer mode given as Transfer, int or name."""
    if type(value) is Transfer:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value in (0, 1, 2):
            return int(value)
    elif isinstance(value, str):
        name = value.rstrip("_")
        for mode in Transfer:
            if mode.name.rstrip("_") == name:
                return int(mode)
    else:
        raise TypeError(
            f"{argument} is {value!r}: accepted is a hamr.Transfer, its value or its name: "
            "async, sync_host, sync"
        )
    raise ValueError(f"{argument} is {value!r}: accepted are async, sync_host, sync")


def space_number(space: object) -> int:
    """The number of a space given by name."""
    if isinstance(space, str) and space in SPACES:
        return SPACES[space]
    meant = ""
    if isinstance(space, str):
        lower = space.lower()
        meant = _SPACES.get(lower.partition(":")[0], lower)
        meant = f"; write {meant!r}" if meant in SPACES else ""
    kind = ValueError if isinstance(space, str) else TypeError
    raise kind(f"space is {space!r}: accepted are {', '.join(SPACES)}{meant}")


def _names(enumeration: type[Enumeration]) -> str:
    return ", ".join(member.name for member in enumeration if member >= 0)
