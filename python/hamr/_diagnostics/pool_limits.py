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
) -> None:
    """Limit how many bytes hamr takes: a number, a text such as "4GiB", or None.

    ``pinned`` is CUDA's page-locked memory in all. ``bytes`` is memory of ``device`` by the
    allocators ``cuda`` and ``cuda_async`` together or, of "hip:n", by ``hip`` and ``hip_async``;
    the latter's counts while it is in use, not what the driver's own pool has in reserve.
    ``host`` is how much freed ordinary memory is kept for reuse. None is what it was at the
    start. More than that raises OutOfMemory, or is ordinary memory instead of page-locked. What
    is kept beyond a limit is given back at once, which waits for the device.
    """
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

    Devices are CUDA's; the limits of others are among the figures of ``stats``.
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
    }
