"""Blocks scattered through pools: which, whether they arrived, and bare copies of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .curves import Pattern, Way
from .driver import Driver
from .groups import KIB, MIB

BLOCKS = 2048  # copied at once, out of twice as many
SIZES = 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 2 * MIB
LARGEST = 1024 * MIB  # bytes copied at once: what more would show takes minutes

WHOLE = 64 * MIB  # larger pools are checked in part
SAMPLED, EDGE = 256, 64  # so many of their blocks, and so many bytes at three places of each
SLOW = 0.25  # seconds: what takes longer is timed once, not in each round

_FACTOR = 2654435761  # by which neighbours get unlike bytes
_IN_STREAM_ORDER = 1


class Pool:
    """Memory that blocks lie in. NumPy reads and writes it, or the driver does."""

    def __init__(self, memory: Any, driver: Driver | None = None, device: int = 0) -> None:
        self.memory, self._driver, self._device = memory, driver, device
        self.address = int(memory.ptr) if driver else int(memory.ctypes.data)

    def blocks(self, count: int, size: int) -> Any:
        """Its first bytes as so many blocks, of int32."""
        return self.memory[: count * size // 4].reshape((count, size // 4))

    def put(self, start: int, values: Any) -> None:
        """Write bytes."""
        if self._driver is None:
            self.memory.view("u1")[start : start + len(values)] = values
        else:
            with self._driver.on(self._device):
                self._driver.upload(self.address + start, values.ctypes.data, len(values))

    def get(self, start: int, stop: int) -> Any:
        """Read bytes."""
        import numpy as np

        if self._driver is None:
            return self.memory.view("u1")[start:stop]
        found = np.empty(stop - start, "u1")
        with self._driver.on(self._device):
            self._driver.download(found.ctypes.data, self.address + start, len(found))
        return found


class Scattered(Pattern):
    """Which blocks of one pool become which of another, and bytes to tell by.

    ``master`` is bytes on the host that the pool of a way's sources gets; they are changed.
    """

    def __init__(self, count: int, size: int, master: Any) -> None:
        import numpy as np

        chance = np.random.default_rng(39)
        self.count, self.size, self.pool = count, size, 2 * count
        self.to, self.of = (chance.permutation(self.pool)[:count] for _ in range(2))
        self.indices = self.to, self.of
        self.lists: tuple[list[int], list[int]] = self.to.tolist(), self.of.tolist()
        self.array = master.view("u1")[: self.pool * size]
        self.address = self.array.ctypes.data
        self._rows = self.array.reshape(self.pool, size)
        self._sampled: list[int] | None = None
        self._turn = 0
        if self.array.nbytes > WHOLE:
            self._sampled = chance.permutation(self.pool)[:SAMPLED].tolist()
        self._source_of = dict(zip(*self.lists, strict=True))
        self.expected: list[tuple[int, Any]] = []
        self.given: list[tuple[int, int]] = []
        self.refresh(self.array.nbytes)

    def refresh(self, nbytes: int) -> None:
        """Make each checked byte another one, and work out what is to arrive where."""
        import numpy as np

        self._turn += 1
        if self._sampled is None:
            words = self.array.view("u4")
            words[:] = np.arange(len(words), dtype="u4") * np.uint32(_FACTOR) + self._turn
            arrived = np.zeros_like(self._rows)
            arrived[self.to] = self._rows[self.of]
            self.given, self.expected = [(0, nbytes)], [(0, arrived.reshape(-1))]
            return
        self.given, self.expected = [], []
        for row in self._sampled:
            source = self._source_of.get(row)
            for begin in (0, self.size // 2, self.size - EDGE):
                values = np.zeros(EDGE, "u1")
                if source is not None:
                    start = source * self.size + begin
                    self.given.append((start, start + EDGE))
                    values = self.array[start : start + EDGE]
                    values[:] = (
                        source * 3 + begin // EDGE + np.arange(EDGE) + self._turn
                    ) % 251 + 1
                self.expected.append((row * self.size + begin, values))

    def pairs(self, target: int, source: int) -> list[tuple[int, int]]:
        """The addresses of all blocks in pools at two addresses."""
        size = self.size
        return [(target + i * size, source + j * size) for i, j in zip(*self.lists, strict=True)]


class BlockWay(Way):
    """A way of copying blocks between pools, or as many bytes at once (``role`` "limit")."""

    def __init__(
        self,
        library: str,
        operation: str,
        run: Callable[[], Any],
        scattered: Scattered,
        pools: tuple[Pool, Pool],
        role: str = "peer",
    ) -> None:
        super().__init__(library, operation, run, take=lambda result, i, j: None, role=role)
        self._once: float | None = None
        self._scattered, (self._to, self._of) = scattered, pools

    def check(self, pattern: Pattern, nbytes: int, synchronize: Callable[[], None]) -> None:
        """Copy, and compare the bytes of blocks that are copied and of blocks that are not."""
        import numpy as np

        if self.role == "limit":
            return
        scattered = self._scattered
        for start, stop in scattered.given:
            self._of.put(start, scattered.array[start:stop])
        for start, values in scattered.expected:
            self._to.put(start, np.zeros_like(values))
        self.run()
        synchronize()
        for start, values in scattered.expected:
            wrong = (self._to.get(start, start + len(values)) != values).nonzero()[0]
            if len(wrong):
                block, at = divmod(start + int(wrong[0]), scattered.size)
                raise RuntimeError(f"wrong bytes: {len(wrong)} from byte {at} of block {block} on")

    def calibrate(self, synchronize: Callable[[], None]) -> None:
        """Find how many calls make a slice; what takes long is timed here, for all rounds."""
        seconds = self.time(synchronize)
        if seconds > SLOW:
            self._once = seconds
        else:
            super().calibrate(synchronize)

    def time(self, synchronize: Callable[[], None]) -> float:
        """Seconds that one copy takes."""
        return super().time(synchronize) if self._once is None else self._once

    def warm(self, synchronize: Callable[[], None]) -> None:
        """The check and the calibration are enough."""


def loop_of(
    driver: Driver, pairs: list[tuple[int, int]], size: int, stream: ctypes.c_void_p
) -> Callable[[], None]:
    """A loop that has no more to do than call the driver for each block."""
    function, nbytes = driver.library.cuMemcpyAsync, ctypes.c_size_t(size)
    calls = [(ctypes.c_uint64(t), ctypes.c_uint64(s), nbytes, stream) for t, s in pairs]

    def run() -> None:
        for call in calls:
            function(*call)

    return run


class _Attributes(ctypes.Structure):
    _fields_ = [("order", ctypes.c_uint), ("hints", ctypes.c_int * 4), ("flags", ctypes.c_uint)]


def batch_of(
    driver: Driver, pairs: list[tuple[int, int]], size: int, stream: ctypes.c_void_p
) -> Callable[[], None]:
    """One call of the driver for all blocks; an AttributeError where it has no such function."""
    library, count = driver.library, len(pairs)
    name = "cuMemcpyBatchAsync_v2" if hasattr(library, "cuMemcpyBatchAsync_v2") else ""
    function = getattr(library, name or "cuMemcpyBatchAsync")
    targets, sources = ((ctypes.c_uint64 * count)(*side) for side in zip(*pairs, strict=True))
    sizes = (ctypes.c_size_t * count)(*[size] * count)
    attributes, first = _Attributes(order=_IN_STREAM_ORDER), ctypes.c_size_t(0)
    failed = () if name else (ctypes.byref(ctypes.c_size_t()),)
    about = ctypes.byref(attributes), ctypes.byref(first), ctypes.c_size_t(1)
    arguments = (targets, sources, sizes, ctypes.c_size_t(count), *about, *failed, stream)

    def run() -> None:
        code = function(*arguments)
        if code:
            raise RuntimeError(f"{name or 'cuMemcpyBatchAsync'}: code {code}")

    return run


def counts(largest: int, quick: bool = False) -> list[tuple[int, int]]:
    """How many blocks are copied, and the bytes of one, for each size that there is room for."""
    most = min(largest, LARGEST)
    blocks = 64 if quick else BLOCKS
    found = [(min(blocks, most // size), size) for size in SIZES if most // size >= 2]
    return found or [(2, max(256, most // 2 // 256 * 256))]
