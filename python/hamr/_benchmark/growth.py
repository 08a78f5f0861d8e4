"""What it costs to append to memory of a device, piece by piece, beside other libraries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .driver import Driver
from .groups import MIB, Libraries, Rows

if TYPE_CHECKING:
    from .._base.allocator import AllocatorName

GIB = 1 << 30


def appending(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """``rows()`` up to 8 GiB, or eight times the largest copy that is measured."""
    end = min(8 * GIB, 8 * lib.settings.largest)
    step = min(64 * MIB, end // 8)
    start = min(MIB, step)
    title = f"append {step // MIB or 1} MiB at a time, up to {end // MIB} MiB"
    yield Rows(title, "ms", lambda: rows(lib, driver.synchronize, start, end, step))


def rows(
    libraries: Libraries,
    synchronize: Callable[[], None],
    start: int = MIB,
    end: int = 8 * GIB,
    step: int = 64 * MIB,
    rounds: int = 3,
) -> list[dict[str, Any]]:
    """A row for each way to append pieces of ``step`` bytes to ``start`` bytes, up to ``end``.

    ``value`` is the milliseconds of all steps, each until the device is done with it,
    ``longest`` those of the longest step, ``taken`` the bytes of the device's memory that were
    gone at most, the result's included, ``ratio`` the value's to that of the first row, which
    has memory for all from the first. Times are the best of the rounds. A way that fails has
    ``error`` instead.
    """
    found: list[dict[str, Any]] = []
    for name, begin in _ways(libraries, start, end, step):
        try:
            row = _row(begin, synchronize, -(-(end - start) // step), rounds, libraries.trim)
        except Exception as error:
            found.append({"operation": name, "error": f"{type(error).__name__}: {error}"[:200]})
            libraries.trim()
            continue
        if found and "value" in found[0]:
            row["ratio"] = round(row["value"] / found[0]["value"], 3)
        found.append({"operation": name, **row})
    return found


def lines(table: list[dict[str, Any]]) -> list[str]:
    """What rows() returned, as lines of text."""
    text = [f"{'append in steps':44} {'ms':>10} {'longest':>10} {'MiB taken':>10} {'ratio':>8}"]
    for row in table:
        if "error" in row:
            text.append(f"  {row['operation']:42} {row['error']}")
            continue
        text.append(
            f"  {row['operation']:42} {row['value']:10.2f} {row['longest']:10.3f} "
            f"{row['taken'] // MIB:10} {row.get('ratio', 1):8.2f}"
        )
    return text


def _row(
    begin: Callable[[], Callable[[], Any]],
    synchronize: Callable[[], None],
    steps: int,
    rounds: int,
    trim: Callable[[], None],
) -> dict[str, Any]:
    import hamr

    totals, longest, taken = [], [], 0
    for _ in range(rounds):
        trim()
        synchronize()
        free, _total = hamr.memory_info(0)
        append = begin()
        synchronize()
        times = []
        for _ in range(steps):
            before = time.perf_counter()
            append()
            synchronize()
            times.append(1e3 * (time.perf_counter() - before))
            taken = max(taken, free - hamr.memory_info(0)[0])
        totals.append(sum(times))
        longest.append(max(times))
        del append
    return {"value": round(min(totals), 3), "longest": round(min(longest), 3), "taken": taken}


def _ways(
    libraries: Libraries, start: int, end: int, step: int
) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """Names, and functions that make what grows and return how a piece is added to it."""
    import hamr

    piece = hamr.Buffer(step, "uint8", "cuda", fill=1)

    def hamrs(allocator: AllocatorName, reserved: bool = False) -> Callable[[], Callable[[], Any]]:
        def begin() -> Callable[[], Any]:
            buffer = hamr.Buffer(start, "uint8", allocator, fill=0)
            if reserved:
                buffer.reserve(end + step)
            return lambda: buffer.append(piece)

        return begin

    yield "hamr: buf.append(piece), reserved before", hamrs("cuda", reserved=True)
    for allocator in ("cuda_vmm", "cuda", "cuda_async"):
        yield f"hamr: buf.append(piece), {allocator}", hamrs(allocator)
    cp, torch = libraries.cupy, libraries.torch
    if cp:

        def cupys() -> Callable[[], Any]:
            held = [cp.zeros(start, "u1")]
            more = cp.ones(step, "u1")

            def append() -> None:
                held[0] = cp.concatenate([held[0], more])

            return append

        yield "CuPy: x = cp.concatenate([x, piece])", cupys
    if torch:

        def torchs() -> Callable[[], Any]:
            held = [torch.zeros(start, dtype=torch.uint8, device="cuda")]
            more = torch.ones(step, dtype=torch.uint8, device="cuda")

            def append() -> None:
                held[0] = torch.cat([held[0], more])

            return append

        yield "torch: t = torch.cat([t, piece])", torchs
