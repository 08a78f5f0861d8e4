"""Blocks scattered through pools: by one call of hamr's, and by what else there is.

A copy between a device and page-locked memory, or within devices, is enqueued again and again,
and waited for at the end of a turn, as is the one copy of as many bytes that is the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .curves import Point
from .driver import Driver
from .groups import Libraries, Settings
from .scattered import BlockWay, Pool, Scattered, batch_of, counts, loop_of

#: The paths, as records and plots name them.
TO_PINNED = "blocks: CUDA to page-locked memory"
FROM_PINNED = "blocks: page-locked memory to CUDA"
TO_ARRAY = "blocks: CUDA to ordinary memory"
FROM_ARRAY = "blocks: ordinary memory to CUDA"
WITHIN = "blocks: CUDA to CUDA, one device"
ACROSS = "blocks: CUDA to CUDA, two devices"
ON_HOST = "blocks: host to host"
PATHS = TO_PINNED, FROM_PINNED, TO_ARRAY, FROM_ARRAY, WITHIN, ACROSS, ON_HOST

Run = Callable[[], Any]


class Side:
    """An end of copies: a pool, and the memory as hamr is given it."""

    def __init__(self, pool: Pool, memory: Any = None, device: int | None = None) -> None:
        self.pool, self.device = pool, device
        self.memory = pool.memory if memory is None else memory

    def blocks(self, scattered: Scattered) -> Any:
        """What hamr copies from or into."""
        count, size = scattered.pool, scattered.size
        return self.memory[: count * size // 4].reshape((count, size // 4))

    def by_torch(self, torch: Any, scattered: Scattered) -> Any:
        """The same memory as a tensor."""
        if self.device is None:
            return torch.from_numpy(self.pool.blocks(scattered.pool, scattered.size))
        return torch.as_tensor(self.blocks(scattered), device=f"cuda:{self.device}")

    def by_cupy(self, cupy: Any, scattered: Scattered) -> Any:
        """The same memory as CuPy's array."""
        return cupy.asarray(self.blocks(scattered))


class Bed:
    """The memory that all sizes use."""

    def __init__(self, lib: Libraries, driver: Driver) -> None:
        import numpy as np

        import hamr

        self.lib, self.driver, self.stream = lib, driver, driver.stream()
        self.sizes = counts(lib.settings.largest, lib.settings.quick)
        self.words = max(2 * count * size for count, size in self.sizes) // 4
        self.master = np.ones(self.words, "i4")
        pinned = hamr.Buffer(self.words, "i4", "cuda_host", fill=1)
        pinned.synchronize()
        self.device, self.other = self.on_device(0), self.on_device(0)
        self.pinned = Side(Pool(np.asarray(pinned)), pinned)
        self.array = Side(Pool(np.ones(self.words, "i4")))

    def on_device(self, device: int) -> Side:
        """A pool of a device's."""
        import hamr

        memory = hamr.Buffer(self.words, "i4", "cuda", fill=1, device=device)
        memory.synchronize()
        return Side(Pool(memory, self.driver, device), device=device)


class BlockPoint(Point):
    """A point whose ways may use several devices."""

    def __init__(
        self, path: str, direction: str, scattered: Scattered, ways: list[BlockWay], wait: Run
    ) -> None:
        size, count = scattered.size, scattered.count
        super().__init__(path, direction, scattered, size, ways, count)
        self._wait = wait

    def measure(self, synchronize: Callable[[], None], settings: Settings) -> dict[str, Any]:
        """As a ``Point`` does, waiting for all devices."""
        return super().measure(self._wait, settings)


def on_device(bed: Bed) -> Iterator[Point]:
    """All paths that a device is at an end of."""
    import hamr

    paths = [
        (TO_PINNED, bed.pinned, bed.device),
        (FROM_PINNED, bed.device, bed.pinned),
        (TO_ARRAY, bed.array, bed.device),
        (FROM_ARRAY, bed.device, bed.array),
        (WITHIN, bed.other, bed.device),
    ]
    if bed.driver.count > 1:
        hamr.peer_access(0, 1)
        paths.append((ACROSS, bed.on_device(1), bed.device))
    for path, target, source in paths:
        yield from _points(bed, path, target, source)


def _points(bed: Bed, path: str, target: Side, source: Side) -> Iterator[Point]:
    """A path at each size."""
    for count, size in bed.sizes:
        scattered = Scattered(count, size, bed.master)
        ways = of_hamr(scattered, target, source) + of_driver(bed, scattered, target, source)
        ways += _of_libraries(bed, scattered, target, source)
        ways.append(limit_of(bed, scattered, target, source))
        yield BlockPoint(path, "blocks", scattered, ways, bed.driver.synchronize_all)
        del ways
        bed.lib.trim()


def _way(
    library: str,
    operation: str,
    build: Callable[[], Run],
    scattered: Scattered,
    ends: tuple[Side, Side],
    role: str = "peer",
) -> BlockWay:
    """A way; what cannot be made of it is its error."""
    try:
        run = build()
    except Exception as error:
        reason = error

        def run() -> None:
            raise reason

    pools = ends[0].pool, ends[1].pool
    return BlockWay(library, operation, run, scattered, pools, role)


def of_hamr(scattered: Scattered, target: Side, source: Side) -> list[BlockWay]:
    """By indices on the device that has one of the ends, by lists, and by pairs of views."""
    import hamr

    ends = target, source
    to, of = target.blocks(scattered), source.blocks(scattered)
    device = source.device if target.device is None else target.device

    def copy(di: Any, si: Any) -> Run:
        return partial(hamr.copy_blocks, to, di, of, si, transfer="async")

    def by_arrays() -> Run:
        if device is None:
            return copy(*scattered.indices)
        return copy(*(hamr.array(i, device=f"cuda:{device}") for i in scattered.indices))

    def by_lists() -> Run:
        return copy(*scattered.lists)

    def by_pairs() -> Run:
        di, si = scattered.lists
        return partial(hamr.copy_many, [to[i] for i in di], [of[j] for j in si], transfer="async")

    where = "NumPy's" if device is None else "device's"
    return [
        _way("hamr", f"copy_blocks, {where} indices", by_arrays, scattered, ends, "hamr"),
        _way("hamr: lists", "copy_blocks, lists", by_lists, scattered, ends, "hamr"),
        _way("hamr: copy_many", "copy_many of views, kept", by_pairs, scattered, ends, "hamr"),
    ]


def of_driver(bed: Bed, scattered: Scattered, target: Side, source: Side) -> list[BlockWay]:
    """By a call for each block, and by one for all."""
    ends, size = (target, source), scattered.size
    pairs = scattered.pairs(target.pool.address, source.pool.address)
    loop = partial(loop_of, bed.driver, pairs, size, bed.stream)
    batch = partial(batch_of, bed.driver, pairs, size, bed.stream)
    return [
        _way("driver", "a loop of cuMemcpyAsync", loop, scattered, ends, "driver"),
        _way("driver: batch", "cuMemcpyBatchAsync", batch, scattered, ends),
    ]


def _of_libraries(bed: Bed, scattered: Scattered, target: Side, source: Side) -> list[BlockWay]:
    """By gathering, one copy, and scattering."""
    torch, cupy = bed.lib.torch, bed.lib.cupy
    ends, within = (target, source), target.device == source.device
    ways = []
    if torch:
        build = partial(by_torch, torch, scattered, target, source)
        ways.append(_way("PyTorch", "gather, copy, scatter", build, scattered, ends))
    if cupy and within:
        build = partial(by_cupy, cupy, scattered, target, source)
        ways.append(_way("CuPy", "d[di] = s[si]", build, scattered, ends))
    return ways


def by_torch(torch: Any, scattered: Scattered, target: Side, source: Side) -> Run:
    """PyTorch's way; what is staged on the host is page-locked, and waited for."""
    t, u = target.by_torch(torch, scattered), source.by_torch(torch, scattered)
    di, si = (
        torch.from_numpy(i).to(x.device) for i, x in zip(scattered.indices, (t, u), strict=True)
    )
    if t.device == u.device:
        return lambda: t.index_copy_(0, di, u.index_select(0, si))
    shape = scattered.count, scattered.size // 4
    on_host = t.device.type != u.device.type
    gathered, arrived = (
        torch.empty(shape, dtype=x.dtype, device=x.device, pin_memory=x.device.type == "cpu")
        for x in (u, t)
    )

    def run() -> None:
        torch.index_select(u, 0, si, out=gathered)
        arrived.copy_(gathered, non_blocking=True)
        if on_host:
            torch.cuda.synchronize()
        t.index_copy_(0, di, arrived)

    return run


def by_cupy(cupy: Any, scattered: Scattered, target: Side, source: Side) -> Run:
    """CuPy's way, within a device."""
    to, of = target.by_cupy(cupy, scattered), source.by_cupy(cupy, scattered)
    return partial(_by_index, to, of, *(cupy.asarray(i) for i in scattered.indices))


def _by_index(to: Any, of: Any, di: Any, si: Any) -> None:
    to[di] = of[si]


def limit_of(bed: Bed, scattered: Scattered, target: Side, source: Side) -> BlockWay:
    """One copy of as many bytes; ordinary memory is page-locked there."""
    driver, nbytes = bed.driver, scattered.count * scattered.size
    to, of = (bed.pinned if side is bed.array else side for side in (target, source))
    addresses = to.pool.address, of.pool.address
    name = "cuMemcpyAsync"
    arguments: tuple[Any, ...] = (*addresses, nbytes, bed.stream)
    if None not in (to.device, of.device) and to.device != of.device:
        there, here = (driver.contexts[side.device or 0] for side in (to, of))
        name = "cuMemcpyPeerAsync"
        arguments = (addresses[0], there, addresses[1], here, nbytes, bed.stream)
    run = partial(driver.call, name, *arguments)
    return _way("driver", f"one {name}", lambda: run, scattered, (target, source), "limit")


def on_host(lib: Libraries, driver: Driver | None) -> Iterator[Point]:
    """Between two pools of ordinary memory, beside NumPy's indices."""
    import numpy as np

    from .dlpack import torch_if_there

    torch: Any = torch_if_there()
    sizes = counts(lib.settings.largest // 4, lib.settings.quick)
    words = max(2 * count * size for count, size in sizes) // 4
    master, out = np.ones(words, "i4"), np.ones(words, "i4")
    target, source = ends = Side(Pool(out)), Side(Pool(master))
    for count, size in sizes:
        scattered = Scattered(count, size, master)
        to, of, half = target.blocks(scattered), source.blocks(scattered), count * size // 4
        by_numpy = partial(partial, _by_index, to, of, *scattered.indices)
        ways = of_hamr(scattered, *ends)
        ways.append(_way("NumPy", "d[di] = s[si]", by_numpy, scattered, ends, "driver"))
        if torch:
            build = partial(by_torch, torch, scattered, *ends)
            ways.append(_way("PyTorch", "t.index_copy_(0, di, u[si])", build, scattered, ends))
        one = partial(partial, np.copyto, out[:half], master[:half])
        ways.append(_way("NumPy", "np.copyto of as much", one, scattered, ends, "limit"))
        yield BlockPoint(ON_HOST, "host", scattered, ways, lambda: None)
        del ways
        lib.trim()
