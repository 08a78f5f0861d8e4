"""How much memory hamr may take, and keep for reuse."""

from __future__ import annotations

import re

from .._base.allocator import Allocator
from .._base.library import core
from .._base.place import device_number

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
_UNITS = {"": 1, "b": 1}
for _i, _letter in enumerate("kmgt", 1):
    _UNITS[_letter + "b"] = 1000**_i
    _UNITS[_letter + "ib"] = 1024**_i
_ACCEPTED = "accepted are a number of bytes, a text such as '512MiB' or '4GB', and None"


def _bytes(name: str, value: Any) -> int:
    """A number of bytes as a user gave it; None is the limit of the start."""
    if value is None:
        return _DEFAULT
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value, re.ASCII)
        unit = _UNITS.get(found[2].lower()) if found else None
        if not found or unit is None:
            raise ValueError(f"{name} is {value!r}: {_ACCEPTED}")
        whole, _, part = found[1].partition(".")
        count = int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)
    elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is {value!r}: {_ACCEPTED}")
    else:
        count = value.__index__()
    if not 0 <= count < 2**63:
        raise ValueError(f"{name} is {value!r}: accepted are 0 ... 2**63-1 bytes")
    return count


_UNSAID: Any = object()


def set_limit(
    *,
    pinned: Bytes = _UNSAID,
    host: Bytes = _UNSAID,
    device: Device | None = None,
    bytes: Bytes = _UNSAID,  # noqa: A002 -- as users call it
) -> None:
    """Limit how many bytes hamr takes: a number, a text such as "4GiB", or None.

    ``pinned`` is page-locked memory in all. ``bytes`` is memory of ``device`` by the allocators
    ``cuda`` and ``cuda_async`` together, of which the latter's counts while it is in use, not what
    the driver's own pool has in reserve. ``host`` is how much freed ordinary memory is kept for
    reuse. None is what it was at the start. More than that raises OutOfMemory, or is ordinary
    memory instead of page-locked. What is kept beyond a limit is given back at once, which waits
    for the device.
    """
    if (device is None) != (bytes is _UNSAID):
        given = "device" if bytes is _UNSAID else "bytes"
        raise ValueError(f"{given} is given alone: accepted are device and bytes together")
    wanted = []  # what may be refused first
    if device is not None:
        wanted.append((Allocator.cuda, device_number(device), _bytes("bytes", bytes)))
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
    return "host" if allocator == Allocator.malloc else "pinned"


def limits() -> Limits:
    """The limits of now, in bytes; None is no limit. Devices not yet used are absent."""
    found = pools()
    devices: dict[int, int | None] = {}
    for name, pool in found.items():
        _, colon, number = name.partition(":")
        if colon and devices.get(int(number)) is None:
            devices[int(number)] = pool["limit"]
    return {
        "pinned": found["pinned"]["limit"] if "pinned" in found else None,
        "host": found["host"]["limit"],
        "devices": devices,
    }
