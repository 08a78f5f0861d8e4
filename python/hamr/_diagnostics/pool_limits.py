"""How much memory hamr may take, and keep for reuse."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, backend_of
from .._base.library import core
from .._base.place import host_or_device
from .._base.size import size_of
from .._base.stream import BACKEND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex, TypedDict

    from .._base.place import Device

    Bytes = SupportsIndex | str | None

    class Pool(TypedDict):
        """The figures of a pool, which keeps memory for reuse."""

        limit: int | None
        current: int
        peak: int
        cached: int
        largest_free: int
        hits: int
        misses: int

    class Limits(TypedDict):
        """What ``limits`` returns."""

        pinned: int | None
        kept: int | None
        host: int | None
        devices: dict[int, int | None]
        libraries: dict[str, dict[str, int]]


#: The libraries that memory can belong to.
LIBRARIES = ("hamr", "cupy", "torch", "numba")

#: Backends with pools, which libraries share with hamr.
_POOLED = ("cuda", "hip")

_NO_LIMIT = -1  # for the core
_HOST = "host"  # for the core: memory of the host
_DEFAULT = -2  # for the core: what a limit is at the start


def _bytes(name: str, value: Any) -> int:
    """A number of bytes that a user gave; None is the initial limit."""
    return _DEFAULT if value is None else size_of(name, value, "and None")


_UNSAID: Any = object()


def set_limit(
    *,
    bytes: Bytes = _UNSAID,  # noqa: A002 -- as users call it
    device: Device | None = None,
    library: str | None = None,
    pinned: Bytes = _UNSAID,
    kept: Bytes = _UNSAID,
    host: Bytes = _UNSAID,
) -> None:
    """Limit memory in use, or memory that is kept: a number of bytes, a text as "4GiB", or None.

    ``bytes`` limits memory in use on ``device``, of ``library``, or of both. For a device, such as
    0 or "hip:0", it limits what hamr takes of it by all allocators together; memory that is kept
    for reuse is released to make room. "cpu", or -1, is the host's memory. ``library`` is the owner
    of the memory, "hamr", "cupy", "torch" or "numba", by any allocators; without ``device`` the
    limit is for the host and all devices together. ``pinned`` limits CUDA's page-locked memory, as
    ``bytes`` does a device's. A request beyond a limit raises OutOfMemory; for page-locked memory
    ordinary memory is used instead. Memory that is in use already stays.

    ``kept`` limits how much freed ordinary host memory is kept for reuse. It never refuses memory.
    Memory that is kept beyond a limit is released at once, which waits for the device.

    None restores the initial limit; for the host and for a library that is no limit. ``host`` is
    the older name of ``kept``, and deprecated.
    """
    if host is not _UNSAID:
        kept = _renamed(host, kept)
    wanted = []  # arguments that may be wrong are read before any limit is set
    if library is not None and not (pinned is _UNSAID and kept is _UNSAID):
        raise ValueError("library is given with pinned or kept: accepted are bytes and device")
    if bytes is _UNSAID:
        given = "device" if device is not None else "library"
        if device is not None or library is not None:
            raise ValueError(f"{given} is given without bytes: accepted are {given} and bytes")
    elif device is None and library is None:
        raise ValueError(
            "bytes is given alone: accepted are device and bytes, as device=0 or device='cpu', "
            "or library and bytes"
        )
    else:
        wanted.append(_in_use(library, device, bytes))
    if pinned is not _UNSAID:
        wanted.append((core().LimitPool, int(Allocator.cuda_host), -1, _bytes("pinned", pinned)))
    if kept is not _UNSAID:
        wanted.append((core().LimitPool, int(Allocator.malloc), -1, _bytes("kept", kept)))
    for function, *arguments in wanted:
        function(*arguments)


def _renamed(host: Any, kept: Any) -> Any:
    """The value that was given by the older name of ``kept``."""
    from warnings import warn

    if kept is not _UNSAID:
        raise TypeError(f"host is {host!r} and kept is {kept!r}: accepted is kept alone")
    _bytes("host", host)
    warn("host is now called kept: write hamr.set_limit(kept=...)", DeprecationWarning, 3)
    return host


def _in_use(library: Any, device: Any, count: Any) -> tuple[Any, ...]:
    """The call that limits memory in use."""
    if library is not None and not isinstance(library, str):
        raise TypeError(f"library is {library!r}: accepted are {', '.join(LIBRARIES)}")
    if library is not None and library not in LIBRARIES:
        meant = f"; write {library.lower()!r}" if library.lower() in LIBRARIES else ""
        raise ValueError(f"library is {library!r}: accepted are {', '.join(LIBRARIES)}{meant}")
    number, backend = (-1, "") if device is None else host_or_device(device)
    most = _bytes("bytes", count)
    if library is None and backend in _POOLED:
        return core().LimitPool, int(Allocator[backend]), number, most
    # Only hamr itself has other memory.
    most = _NO_LIMIT if count is None else most
    return core().LimitLibrary, library or "hamr", backend, number, most


def library_limits() -> dict[str, dict[str, int]]:
    """The limits of libraries, by name and by device, such as "cuda:0", "cpu", or "all"."""
    found: dict[str, dict[str, int]] = {}
    for library, backend, device, limit in sorted(_native.library_limits()):
        place = {"": "all", _HOST: "cpu"}.get(backend, f"{backend}:{device}")
        found.setdefault(library, {})[place] = limit
    return found


def pools() -> dict[str, Pool]:
    """The figures of each pool that is in use, by name."""
    found: dict[str, Pool] = {}
    for allocator, device, limit, *figures in _native.pools():
        current, peak, cached, largest, hits, misses = figures
        found[_name(Allocator(allocator), device)] = {
            "limit": None if limit < 0 else limit,
            "current": current,
            "peak": peak,
            "cached": cached,
            "largest_free": largest,
            "hits": hits,
            "misses": misses,
        }
    return found


def _name(allocator: Allocator, device: int) -> str:
    if device >= 0:
        return f"{allocator.name}:{device}"
    names = {Allocator.malloc: "host", Allocator.cuda_host: "pinned"}
    return names.get(allocator, allocator.name)


def limits() -> Limits:
    """The present limits, in bytes; None is no limit. Devices that were not used are absent.

    ``kept`` limits freed memory that is kept; ``host`` is its older name. All others limit memory
    in use. Devices are CUDA's; the limits of other devices are among the figures of ``stats``.
    ``libraries`` has the limits of single libraries, by device, such as "cuda:0", "cpu", or "all".
    The host's limit is that of "hamr" and "cpu".
    """
    found = pools()
    devices: dict[int, int | None] = {}
    for name, pool in found.items():
        allocator, colon, number = name.partition(":")
        if (
            colon
            and backend_of(Allocator[allocator]) == BACKEND
            and devices.get(int(number)) is None
        ):
            devices[int(number)] = pool["limit"]
    return {
        "pinned": found["pinned"]["limit"] if "pinned" in found else None,
        "kept": found["host"]["limit"],
        "host": found["host"]["limit"],
        "devices": devices,
        "libraries": library_limits(),
    }
