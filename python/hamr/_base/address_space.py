"""Address space for the Go library. Go ends a process that has no address space left.

The runtime reserves most of what it needs at once: summaries of the heap's pages and an
index for their release, 1097 MiB whatever the heap's size (runtime/mpagealloc_64bit.go of
Go 1.26), the map of the heap's arenas, 32 MiB, and the first arena, 64 MiB, for which it
may take as much again to align it. If it cannot reserve the index, it continues with one at
address zero. The heap begins at a random place in the first arena, so even a heap that small
may need a second arena. A thread's stack is as large as ``ulimit -s`` says, or 2 MiB, and
glibc reserves 64 MiB for each thread that allocates.
"""

from __future__ import annotations

import os

from .errors import OutOfMemory

_MIB = 1 << 20
_RUNTIME = 1344 * _MIB
_WRITABLE = 64 * _MIB  # the part that RLIMIT_DATA counts: one arena, if only data is limited
_ARENA = 64 * _MIB  # glibc's, of a thread
_STACK = 2 * _MIB  # without a limit: ARCH_STACK_DEFAULT_SIZE

#: How many threads start with the library: mostly 8, on a busy machine up to 11. The second
#: number is how many of them serve no processor.
_THREADS, _BESIDE_PROCESSORS = 12, 10

#: The smallest limit of the Go heap is one arena. With so little room the collector runs more
#: often. The heap holds records of memory, not the memory itself.
_LEAST_HEAP = 64 * _MIB


def room() -> tuple[int, int, int] | None:
    """The most bytes and processors that Go should use, and the bytes to reserve for its heap.

    None if no limit is set.

    OutOfMemory if the limits of the address space (RLIMIT_AS) or of private memory
    (RLIMIT_DATA) leave too little to start.
    """
    limits = _limits()
    space, data = limits.get(b"Max address space"), limits.get(b"Max data size")
    if space is None and data is None:
        return None
    stack = limits.get(b"Max stack size") or _STACK
    used = _used()
    thread = stack + _ARENA
    reserved = 0
    left = [1 << 62]
    if space is not None:
        need = _RUNTIME + _THREADS * thread
        left.append(_check(space, used[0], need, "address space", "ulimit -v, RLIMIT_AS"))
        reserved = _LEAST_HEAP
    if data is not None:
        need = _WRITABLE + reserved + _THREADS * stack  # reserved memory counts as writable
        left.append(_check(data, used[1], need, "data", "ulimit -d, RLIMIT_DATA"))
    spare = min(left) // 4
    return max(spare, _LEAST_HEAP), _THREADS - _BESIDE_PROCESSORS + spare // thread, reserved


def _check(limit: int, used: int, need: int, what: str, names: str) -> int:
    """The bytes that are left beyond need."""
    left = limit - used
    if left >= need:
        return left - need
    error = OutOfMemory(
        f"hamr's library needs {-(-need // _MIB)} MiB of {what}, and the limit of "
        f"{limit // _MIB} MiB ({names}) leaves {max(left, 0) // _MIB}: accepted is no limit, "
        f"or at least {-(-(used + need) // _MIB)} MiB"
    )
    error.size = need
    raise error


def _limits() -> dict[bytes, int]:
    """The soft limits that are set. Reading /proc needs no extension module."""
    try:
        with open("/proc/self/limits", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    found = {line[:26].rstrip(): line[26:].split() for line in lines[1:]}
    return {name: int(row[0]) for name, row in found.items() if row[0].isdigit()}


def _used() -> tuple[int, int]:
    """Bytes of address space, and of private memory."""
    with open("/proc/self/statm", "rb") as file:
        pages = file.read().split()
    size = os.sysconf("SC_PAGE_SIZE")
    return int(pages[0]) * size, int(pages[5]) * size
