"""Taking memory and giving it back: each allocator, other libraries, the driver, and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .driver import Driver
from .groups import KIB, MIB, Case, Group, Libraries, size_text

SIZES = KIB, MIB, 64 * MIB
LIMIT = 1.2  # microseconds, for memory that is kept for reuse
PAIRS, THREADS, THREADS_TARGET = 16_000, 8, 1.5


def allocation(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """Each allocator of the device, beside the driver and other libraries."""
    for nbytes in SIZES:
        if nbytes <= lib.settings.largest:
            yield from _of_device(lib, driver, nbytes)
            lib.trim()


def _of_device(lib: Libraries, driver: Driver, n: int) -> Iterator[Group]:
    import hamr

    plain, ordered = hamr.Allocator.cuda, hamr.Allocator.cuda_async
    raw, raw_ordered = driver.allocate_and_free(n), driver.allocate_and_free_in_order(n)
    first = [
        Case("cuMemAlloc, cuMemFree (ctypes)", raw, floor=True),
        Case("hamr.Buffer(n, 'u1', cuda)", lambda: hamr.Buffer(n, "u1", plain), limit=LIMIT),
    ]
    second = [
        Case("cuMemAllocAsync, cuMemFreeAsync (ctypes)", raw_ordered, floor=True),
        Case(
            "hamr.Buffer(n, 'u1', cuda_async)", lambda: hamr.Buffer(n, "u1", ordered), limit=LIMIT
        ),
    ]
    cp, torch, numba = lib.cupy, lib.torch, lib.numba
    if cp:
        pool, in_order = cp.get_default_memory_pool(), cp.cuda.MemoryAsyncPool()
        second += [
            Case("CuPy's MemoryPool.malloc(n)", lambda: pool.malloc(n)),
            Case("CuPy's MemoryAsyncPool.malloc(n)", lambda: in_order.malloc(n)),
            Case("cp.empty(n, 'u1')", lambda: cp.empty(n, "u1")),
        ]
    if torch:
        kind = torch.uint8
        second.append(Case("torch.empty(n)", lambda: torch.empty(n, dtype=kind, device="cuda")))
    if numba:
        first.append(Case("numba.device_array(n)", lambda: numba.device_array(n, "u1")))
    if lib.core:
        second.append(Case("cuda.core: allocate(n), close()", _of_core(lib.core, n)))
    size = size_text(n)
    yield Group(f"take and give back {size}, device memory", first)
    yield Group(f"take and give back {size}, from a pool", second)
    others: list[Any] = [
        a for a in hamr.backends()["cuda"]["allocators"] if a not in ("cuda", "cuda_async")
    ]
    cases = [Case(f"hamr.Buffer(n, 'u1', {a})", partial(hamr.Buffer, n, "u1", a)) for a in others]
    yield Group(f"take and give back {size}, other memory of CUDA's", cases, rounds=5)


def _of_core(core: Any, n: int) -> Callable[[], None]:
    device = core.Device()
    stream, resource = device.create_stream(), device.memory_resource
    return lambda: resource.allocate(n, stream=stream).close()


def on_host(lib: Libraries, driver: Driver | None) -> Iterator[Group]:
    """Each allocator of the host, beside NumPy."""
    import numpy as np

    import hamr

    for n in (size for size in SIZES if size <= lib.settings.largest):
        allocators: list[Any] = hamr.backends()["host"]["allocators"]
        cases = [Case("np.empty(n, 'u1')", partial(np.empty, n, "u1"), floor=True)]
        cases += [
            Case(f"hamr.Buffer(n, 'u1', {a})", partial(hamr.Buffer, n, "u1", a)) for a in allocators
        ]
        yield Group(f"take and give back {size_text(n)}, memory of the host", cases, rounds=5)
    yield from _with_threads(_hamrs("malloc"))


def from_threads(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """1 KiB taken and given back on one thread and on eight."""
    cp, torch = lib.cupy, lib.torch
    makers = _hamrs("cuda") | _hamrs("cuda_async")
    if cp:
        makers["cp.empty(n, 'u1')"] = partial(cp.empty, KIB, "u1")
    if torch:
        makers["torch.empty(n)"] = partial(torch.empty, KIB, dtype=torch.uint8, device="cuda")
    yield from _with_threads(makers)


def _hamrs(allocator: str) -> dict[str, Callable[[], Any]]:
    import hamr

    member = hamr.Allocator[allocator]
    return {f"hamr.Buffer(n, 'u1', {allocator})": lambda: hamr.Buffer(KIB, "u1", member)}


def _with_threads(makers: dict[str, Callable[[], Any]]) -> Iterator[Group]:
    for name, make in makers.items():
        target = THREADS_TARGET if name.startswith("hamr") else None
        cases = [
            Case("1 thread", partial(in_threads, make, 1), floor=True, times=PAIRS),
            Case(
                f"{THREADS} threads",
                partial(in_threads, make, THREADS),
                target=target,
                times=PAIRS,
            ),
        ]
        yield Group(f"take and give back 1 KiB from threads, a pair: {name}", cases, rounds=5)


def in_threads(make: Callable[[], Any], count: int) -> None:
    """All pairs, shared out among so many threads; what one of them raises is raised here."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(PAIRS // count):
                make()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
