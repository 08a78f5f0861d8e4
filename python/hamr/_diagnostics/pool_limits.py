"""How much memory hamr may take, and keep for reuse."""

from __future__ import annotations

from .._base.allocator import Allocator, backend_of
from .._base.library import core
from .._base.place import device_and_backend
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
        host: int | None
        devices: dict[int, int | None]
        libraries: dict[str, dict[str, int]]


#: Whom memory can be for.
LIBRARIES = ("hamr", "cupy", "torch", "numba")

_NO_LIMIT = -1  # for the core
_DEFAULT = -2  # for the core: what a limit is at the start


def _bytes(name: str, value: Any) -> int:
    """A number of bytes as a user gave it; None is the limit of the start."""
    return _DEFAULT if value is None else size_of(name, value, "and None")


_UNSAID: Any = object()


def set_limit(
    *,
    pinned: Bytes = _UNSAID,
    host: Bytes = _UNSAID,
    device: Device | None = None,
    bytes: Bytes = _UNSAID,  # noqa: A002 -- as users call it
    library: str | None = None,
) -> None:
    """Limit how many bytes hamr takes: a number, a text such as "4GiB", or None.

    ``pinned`` is CUDA's page-locked memory in all. ``bytes`` is memory of ``device`` by the
    allocators ``cuda`` and ``cuda_async`` together or, of "hip:n", by ``hip`` and ``hip_async``;
    the latter's counts while it is in use, not what the driver's own pool has in reserve.
    ``host`` is how much freed ordinary memory is kept for reuse. None is what it was at the
    start. More than that raises OutOfMemory, or is ordinary memory instead of page-locked. What
    is kept beyond a limit is given back at once, which waits for the device.

    With ``library``, "hamr", "cupy", "torch" or "numba", ``bytes`` limits what that library has in
    use through hamr on ``device``, by any allocators, or without ``device`` on all devices
    together; None is no limit. What it has already stays.
    """
    if library is not None:
        _limit_library(library, device, bytes, pinned is _UNSAID and host is _UNSAID)
        return
    if (device is None) != (bytes is _UNSAID):
        given = "device" if bytes is _UNSAID else "bytes"
        raise ValueError(f"{given} is given alone: accepted are device and bytes together")
    wanted = []  # what may be refused first
    if device is not None:
        number, backend = device_and_backend(device)
        wanted.append((Allocator[backend], number, _bytes("bytes", bytes)))
    if pinned is not _UNSAID:
        wanted.append((Allocator.cuda_host, -1, _bytes("pinned", pinned)))
    if host is not _UNSAID:
        wanted.append((Allocator.malloc, -1, _bytes("host", host)))
    for allocator, number, count in wanted:
        core().LimitPool(int(allocator), number, count)


def _limit_library(library: Any, device: Any, count: Any, alone: bool) -> None:
    if not isinstance(library, str):
        raise TypeError(f"library is {library!r}: accepted is a str")
    if library not in LIBRARIES:
        raise ValueError(f"library is {library!r}: accepted are {', '.join(LIBRARIES)}")
    if count is _UNSAID:
        raise ValueError("library is given without bytes: accepted are both together")
    if not alone:
        raise ValueError("library is given with pinned or host: accepted are bytes and device")
    number, backend = (-1, "") if device is None else device_and_backend(device)
    most = _NO_LIMIT if count is None else _bytes("bytes", count)
    core().LimitLibrary(library, backend, number, most)


def library_limits() -> dict[str, dict[str, int]]:
    """The limits of libraries, by name and by device, as "cuda:0", or "all"."""
    found: dict[str, dict[str, int]] = {}
    for line in sorted(core().LibraryLimits().splitlines()):
        library, backend, device, limit, _ = line.split()
        place = "all" if backend == "-" else f"{backend}:{device}"
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

    Devices are CUDA's; the limits of others are among the figures of ``stats``. ``libraries`` has
    those of single libraries, by device, as "cuda:0", or "all".
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
        "host": found["host"]["limit"],
        "devices": devices,
        "libraries": library_limits(),
    }
