"""What hamr.hetero costs: products, scopes, and how soon a coroutine goes on."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from .driver import Driver
from .groups import Group, Libraries, Rows
from .waiting import MILLISECONDS, case, spinner

#: So many products at once, of which the stream has not come to any.
_CALLS = 50
_ROUNDS = 41
#: Longer than so many calls take.
_BUSY_NANOSECONDS = 10_000_000


def overheads(lib: Libraries, driver: Driver) -> Iterator[Group | Rows]:
    """Products and scopes, in microseconds a call, and waits."""
    from hamr import hetero

    chooser = hetero.DeviceChooser(among="cuda:0")
    token = chooser.choose(0)
    other = chooser.choose(0)
    if token is None or other is None:
        return
    ours, theirs = hetero.ScopedContext(token), hetero.ScopedContext(other)
    streams = token.stream.ptr, other.stream.ptr

    def same() -> None:
        ours.get(ours.wrap(None))

    def across() -> None:
        theirs.get(ours.wrap(None))

    def scope() -> None:
        with hetero.ScopedContext(token):
            pass

    busy = spinner(driver, ctypes.c_void_p(streams[0]), _BUSY_NANOSECONDS)
    idle = _nothing
    yield _rows("wrap and get, one stream", driver, busy, [("hamr: ctx.get(ctx.wrap(x))", same, 1)])
    for title, begin in (("a busy stream's", busy), ("an idle stream's", idle)):
        cases = [("hamr: other.get(ctx.wrap(x))", across, 3.0), *_events(lib, streams)]
        yield _rows(f"wrap and get on another stream, {title}", driver, begin, cases)
    yield _rows(
        "a scope with a device and a stream",
        driver,
        idle,
        [("hamr: with ScopedContext(token)", scope, 0.5), *_scopes(lib, streams[0])],
    )
    yield from _waits(lib, driver, token)


def _nothing() -> None:
    """Leave the stream idle."""


def _events(lib: Libraries, streams: tuple[int, int]) -> list[tuple[str, Callable[[], Any], None]]:
    found: list[tuple[str, Callable[[], Any], None]] = []
    if lib.cupy:
        cuda = lib.cupy.cuda
        one, two = (cuda.ExternalStream(s) for s in streams)

        def by_cupy() -> None:
            event = cuda.Event(disable_timing=True)
            event.record(one)
            two.wait_event(event)

        found.append(("cupy: event.record, wait_event", by_cupy, None))
    if lib.torch:
        first, second = (lib.torch.cuda.ExternalStream(s) for s in streams)
        torch = lib.torch

        def by_torch() -> None:
            event = torch.cuda.Event()
            event.record(first)
            second.wait_event(event)

        found.append(("torch: event.record, wait_event", by_torch, None))
    return found


def _scopes(lib: Libraries, handle: int) -> list[tuple[str, Callable[[], Any], None]]:
    found: list[tuple[str, Callable[[], Any], None]] = []
    if lib.cupy:
        device, stream = lib.cupy.cuda.Device(0), lib.cupy.cuda.ExternalStream(handle)

        def by_cupy() -> None:
            with device, stream:
                pass

        found.append(("cupy: with device, stream", by_cupy, None))
    if lib.torch:
        torch = lib.torch
        external = torch.cuda.ExternalStream(handle)

        def by_torch() -> None:
            with torch.cuda.stream(external):
                pass

        found.append(("torch: with torch.cuda.stream(s)", by_torch, None))
    return found


def _rows(
    title: str,
    driver: Driver,
    begin: Callable[[], None],
    cases: list[tuple[str, Callable[[], Any], Any]],
) -> Rows:
    def run() -> list[dict[str, Any]]:
        return [_row(name, operation, limit, begin, driver) for name, operation, limit in cases]

    return Rows(title, "us", run)


def _row(
    name: str,
    operation: Callable[[], Any],
    limit: float | None,
    begin: Callable[[], None],
    driver: Driver,
) -> dict[str, Any]:
    took = []
    for _ in range(_ROUNDS + 1):
        driver.call("cuCtxSynchronize")
        begin()
        start = perf_counter()
        for _ in range(_CALLS):
            operation()
        took.append((perf_counter() - start) / _CALLS * 1e6)
    driver.call("cuCtxSynchronize")
    value = round(statistics.median(took[1:]), 3)
    row = {"operation": name, "value": value}
    return row if limit is None else {**row, "limit": limit, "met": value <= limit}


def _waits(lib: Libraries, driver: Driver, token: Any) -> Iterator[Group]:
    """How soon a coroutine goes on when the work is over that it waits for."""
    import asyncio

    from hamr import hetero

    stream = ctypes.c_void_p(token.stream.ptr)
    query = driver.library.cuStreamQuery
    loop = asyncio.new_event_loop()
    context = hetero.ScopedContext(token)

    def ask() -> None:
        while query(stream):
            pass

    for milliseconds in MILLISECONDS:
        begin = spinner(driver, stream, int(milliseconds * 1e6))
        cases = [
            case("driver: cuStreamQuery, again and again", begin, ask),
            case("hamr: await ctx.done()", begin, lambda: loop.run_until_complete(context.done())),
        ]
        cases[0].floor = True
        yield Group(f"work of {milliseconds} ms and await ctx.done()", cases, rounds=5)
    loop.close()
