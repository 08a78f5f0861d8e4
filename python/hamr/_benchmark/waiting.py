"""How soon a wait ends after the work that it is for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

from .driver import Driver
from .groups import Case, Group, Libraries

MILLISECONDS = 0.1, 1, 10, 100

#: Turns round until the device's clock has gone on by so many nanoseconds.
_SPIN = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 nanoseconds) {
    .reg .u64 %r<5>;
    .reg .pred %p;
    ld.param.u64 %r1, [nanoseconds];
    mov.u64 %r2, %globaltimer;
again:
    mov.u64 %r3, %globaltimer;
    sub.u64 %r4, %r3, %r2;
    setp.lt.u64 %p, %r4, %r1;
    @%p bra again;
    ret;
}
"""


def waits(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """Work of known length, waited for; the floor asks the driver without a pause."""
    import asyncio

    import hamr

    stream = driver.stream()
    handle = int(stream.value or 0)
    ours = hamr.Stream(handle)
    buf = hamr.Buffer(256, "float32", "cuda", fill=1, stream=ours)
    buf.synchronize()
    loop = asyncio.new_event_loop()
    external = lib.torch.cuda.ExternalStream(handle) if lib.torch else None
    query = driver.library.cuStreamQuery

    async def awaited() -> None:
        await ours

    def ask() -> None:
        while query(stream):
            pass

    for milliseconds in MILLISECONDS:
        begin = spinner(driver, stream, int(milliseconds * 1e6))
        cases = [
            case("driver: cuStreamQuery, again and again", begin, ask),
            case(
                "driver: cuStreamSynchronize",
                begin,
                lambda: driver.call("cuStreamSynchronize", stream),
            ),
            case("hamr: stream.synchronize()", begin, ours.synchronize),
            case("hamr: buf.synchronize()", begin, buf.synchronize),
            case("hamr: await stream", begin, lambda: loop.run_until_complete(awaited())),
        ]
        cases[0].floor = True
        if external is not None:
            cases.append(case("torch: stream.synchronize()", begin, external.synchronize))
        yield Group(f"work of {milliseconds} ms and the wait for it", cases, rounds=5)
    loop.close()


def case(name: str, begin: Callable[[], None], wait: Callable[[], object]) -> Case:
    def run() -> None:
        begin()
        wait()

    return Case(name, run)


def spinner(driver: Driver, stream: ctypes.c_void_p, nanoseconds: int) -> Callable[[], None]:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuModuleLoadData", ctypes.byref(module), _SPIN)
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
    value = ctypes.c_uint64(nanoseconds)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(value), ctypes.c_void_p))
    keep = (value, arguments)

    def begin() -> None:
        driver.call(
            "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, keep[1], ctypes.c_void_p()
        )

    return begin
