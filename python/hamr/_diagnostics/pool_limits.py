"""How much memory hamr may take, and keep for reuse."""

from __future__ import annotations

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
        """What is known of memory that is kept for reuse."""

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


#: Whom memory can be for.
LIBRARIES = ("hamr", "cupy", "torch", "numba")

#: Backends with pools, which libraries share with hamr.
_POOLED = ("cuda", "hip")

_NO_LIMIT = -1  # for the core
_HOST = "host"  # for the core: memory of the host
_DEFAULT = -2  # for the core: what a limit is at the start


def _bytes(name: str, value: Any) -> int:
    """A number of bytes as a user gave it; None is the limit of the start."""
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

    ``bytes`` is memory in use, of ``device`` or of ``library`` or of both. Of a device, as 0 or
    "hip:0", it is what hamr takes of it by its allocators together: what is kept for reuse makes
    room. Of "cpu", or -1, it is the host's memory. ``library`` is whose it is, "hamr", "cupy",
    "torch" or "numba", by any allocators; without ``device`` it is what that library has on the
    host and on all devices together. ``pinned`` is CUDA's page-locked memory, as ``bytes`` of a
    device. More than a limit raises OutOfMemory, or is ordinary memory instead of page-locked;
    what is in use already stays.

    ``kept`` is how much freed ordinary memory of the host is kept for reuse, which refuses nobody
    memory. What is kept beyond a limit is given back at once, which waits for the device.

    None is what it was at the start; of the host and of a library it is no limit. ``host`` is the
    older name of ``kept``, and deprecated.
    """
    if host is not _UNSAID:
        kept = _renamed(host, kept)
    wanted = []  # what may be refused first
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
    """What was given by the older name of ``kept``."""
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
    # Of other memory only hamr itself has any.
    most = _NO_LIMIT if count is None else most
    return core().LimitLibrary, library or "hamr", backend, number, most


def library_limits() -> dict[str, dict[str, int]]:
    """The limits of libraries, by name and by device, as "cuda:0", "cpu", or "all"."""
    found: dict[str, dict[str, int]] = {}
    for line in sorted(core().LibraryLimits().splitlines()):
        library, backend, device, limit, _ = line.split()
        place = {"-": "all", _HOST: "cpu"}.get(backend, f"{backend}:{device}")
        found.setdefault(library, {})[place] = int(limit)
    return found


def pools() -> dict[str, Pool]:
    """The figures of each pool that is in use, by name."""
    found: dict[str, Pool] = {}
    for line in core().Pools().splitlines():
        allocator, device, limit, *figures = map(int, line.split())
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
    """The limits of now, in bytes; None is no limit. Devices not yet used are absent.

    ``kept`` is of freed memory that is kept, which ``host`` is the older name of; all others are of
    memory in use. Devices are CUDA's; the limits of others are among the figures of ``stats``.
    ``libraries`` has those of single libraries, by device, as "cuda:0", "cpu", or "all"; the host's
    is hamr's own of "cpu".
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
