"""Who has a device's memory: libraries by name, memory kept for reuse, and all others."""

from __future__ import annotations

import sys

import hamr._native as _native

from .allocator import Allocator, backend_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    class Held(TypedDict):
        """What is known of a device's memory, in bytes; None stands for what is not known."""

        used: int | None
        total: int | None
        libraries: dict[str, int]
        kept: int
        own_pools: dict[str, int]
        others: int | None


_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def text_of(count: int) -> str:
    """A number of bytes for people: "1.5 MiB"."""
    amount, unit = float(count), 0
    while abs(amount) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{count} bytes" if not unit else f"{amount:.1f} {_UNITS[unit]}"


def _check_loaded() -> None:
    if _native.library() is None:  # it has no memory then
        raise RuntimeError("hamr's library is not loaded")


def totals() -> list[tuple[str, Allocator, int, int, int]]:
    """Library, allocator, device, number of allocations and bytes in them."""
    _check_loaded()
    rows = sorted(_native.library_totals())
    return [(library, Allocator(allocator), *rest) for library, allocator, *rest in rows]


def held(backend: str, device: int) -> Held:
    """Who has the memory of a device; for -1, the host's memory of a backend's allocators."""
    libraries: dict[str, int] = {}
    pooled: dict[Allocator, int] = {}
    for library, allocator, number, _, size in totals():
        if number == device and backend_of(allocator) == backend:
            libraries[library] = libraries.get(library, 0) + size
            pooled[allocator] = pooled.get(allocator, 0) + size
    kept = 0
    for number_of, number, _, current, _, cached, *_ in _native.pools():
        allocator = Allocator(number_of)
        if number == device and backend_of(allocator) == backend:
            # For ordinary memory the figures count only what is kept.
            in_use = pooled.get(allocator, 0) if allocator != Allocator.malloc else 0
            kept += max(current + cached - in_use, 0)
    used = total = others = None
    own = _own_pools(device) if device >= 0 and backend == "cuda" else {}
    if device >= 0:
        try:
            free, total = _native.memory_info(backend, device)
        except (ValueError, RuntimeError, MemoryError):
            pass  # the runtime cannot tell, or not now
        else:
            used = total - free
            others = max(used - sum(libraries.values()) - kept - sum(own.values()), 0)
    return {
        "used": used,
        "total": total,
        "libraries": libraries,
        "kept": kept,
        "own_pools": own,
        "others": others,
    }


def _own_pools(device: int) -> dict[str, int]:
    """Bytes that imported libraries hold in pools of their own."""
    found: dict[str, int] = {}
    for name, ask in (("cupy", _of_cupy), ("torch", _of_torch)):
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            size = ask(module, device)
        except Exception:  # another library's code, of any version
            continue
        if size > 0:
            found[name] = size
    return found


def _of_cupy(cupy: Any, device: int) -> int:
    with cupy.cuda.Device(device):
        return int(cupy.get_default_memory_pool().total_bytes())


def _of_torch(torch: Any, device: int) -> int:
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return 0
    return int(cuda.memory_reserved(device))


def sentence(backend: str, device: int) -> str:
    """Who has the memory, for an error."""
    known = held(backend, device)
    who = [f"{name} {text_of(size)}" for name, size in known["libraries"].items()] or ["hamr none"]
    if known["kept"]:
        who.append(f"kept for reuse {text_of(known['kept'])}")
    who += [f"{name}'s own pool {text_of(size)}" for name, size in known["own_pools"].items()]
    if device < 0:
        return f"held on the host by allocators of {backend}: " + ", ".join(who)
    if known["used"] is None or known["total"] is None or known["others"] is None:
        return f"held on device {device}: {', '.join(who)}; others are not known"
    who.append(f"others {text_of(known['others'])}")
    of = f"{text_of(known['used'])} of {text_of(known['total'])}"
    return f"held on device {device}: {of}: " + ", ".join(who)
