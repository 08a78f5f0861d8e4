"""Moves that overlap, of random sizes, types, memory, streams and threads, beside NumPy.

Nothing is waited for but what the transfer mode says. What is read is compared by a checksum of
every byte, and in the end all is.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from typing import Any

import numpy as np

import hamr

#: Their elements are whole numbers below 100, which all of them hold.
TYPES = ("u1", "i2", "f4", "i4", "f8", "c16")
ANYWHERE = ("malloc", "cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm")
LARGEST = 6000  #: elements
KEPT = 10


def kinds() -> list[str]:
    """Those that this machine has."""
    found = []
    for kind in ANYWHERE:
        with contextlib.suppress(hamr.BackendUnavailable):
            hamr.Buffer(1, "u1", kind)
            found.append(kind)
    return found


def checksum(array: Any) -> int:
    """Of every byte, in C order."""
    return zlib.crc32(np.ascontiguousarray(array).view("u1").reshape(-1).data)


class Pair:
    """A buffer, and what it should hold."""

    def __init__(self, buffer: Any, model: np.ndarray) -> None:
        self.buffer, self.model = buffer, model

    def check(self, found: Any) -> None:
        found = np.asarray(found)
        assert found.dtype == self.model.dtype
        assert found.shape == self.model.shape
        assert checksum(found) == checksum(self.model), (self.buffer, found, self.model)


class Walk:
    """One thread's; what is shared, all threads read."""

    def __init__(self, seed: int, devices: int, shared: list[Pair], kinds: list[str]) -> None:
        self.choose, self.make = random.Random(seed), np.random.default_rng(seed)
        self.devices, self.shared, self.kinds = devices, shared, kinds
        self.streams = [hamr.Stream(device=d % devices) for d in range(2 * devices)]
        self.pairs: list[Pair] = []
        self.touched: list[Pair] = []

    def size(self) -> int:
        return self.choose.choice(
            (1, self.choose.randrange(1, 100), self.choose.randrange(1, LARGEST))
        )

    def values(self, n: int, dtype: str) -> np.ndarray:
        return self.make.integers(0, 100, n).astype(dtype)

    def stream(self, device: int) -> Any:
        return self.choose.choice([None, *(s for s in self.streams if s.device == device)])

    def pair(self) -> Pair:
        """A new one, in any memory; NumPy's is shared."""
        dtype, n = self.choose.choice(TYPES), self.size()
        model, kind = self.values(n, dtype), self.choose.choice([*self.kinds, "numpy"])
        if kind == "numpy":
            return Pair(hamr.buffer(model.copy()), model)
        device = self.choose.randrange(self.devices)
        transfer = self.choose.choice(("async", "sync_host", "sync"))
        stream = None if kind == "malloc" else self.stream(device)
        where = {} if kind == "malloc" else {"device": device}
        buffer = hamr.Buffer(n, dtype, kind, stream=stream, transfer=transfer, **where)
        buffer[...] = model
        return Pair(buffer, model)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.end()

    def step(self) -> None:
        """One move, or two that depend on one another."""
        self.touched = []
        if len(self.pairs) < KEPT or self.choose.random() < 0.05:
            if len(self.pairs) >= KEPT:
                self.pairs.pop(self.choose.randrange(KEPT)).buffer.close()
            self.pairs.append(self.pair())
            return
        target = self.choose.choice(self.pairs)
        self.touched = [target]
        self.choose.choice(self.STEPS)(self, target)

    def source(self, target: Pair) -> Pair:
        return self.choose.choice([p for p in [*self.pairs, *self.shared] if p is not target])

    def write(self, target: Pair) -> None:
        """Elements of one become elements of another, which is converted."""
        source = self.source(target)
        n = self.choose.randint(1, min(len(source.model), len(target.model)))
        to = self.choose.randint(0, len(target.model) - n)
        of = self.choose.randint(0, len(source.model) - n)
        step = self.choose.choice((1, 1, 1, 2, 3))
        values = source.model[of : of + n : step].real
        target.buffer[to : to + n : step] = (
            source.buffer[of : of + n : step]
            if (source.model.dtype.kind != "c" or target.model.dtype.kind == "c")
            else values.copy()
        )
        target.model[to : to + n : step] = values

    def write_array(self, target: Pair) -> None:
        """NumPy's memory has been read when the call returns."""
        n = self.choose.randint(1, len(target.model))
        values = self.values(n, target.model.dtype.str)
        source = values.copy()
        target.buffer[len(target.model) - n :] = source
        source[...] = 101
        target.model[len(target.model) - n :] = values

    def read(self, target: Pair) -> None:
        target.check(target.buffer.get())

    def read_into(self, target: Pair) -> None:
        out = np.full_like(target.model, 101)
        target.buffer.get(out)
        target.check(out)

    def read_access(self, target: Pair) -> None:
        target.check(target.buffer.get_host_accessible())

    def change_on_host(self, target: Pair) -> None:
        with target.buffer.on_host("rw") as array:
            np.subtract(99, array, out=array)
        target.model = np.subtract(99, target.model).astype(target.model.dtype)

    def move(self, target: Pair) -> None:
        device = self.choose.randrange(self.devices)
        kind = self.choose.choice(self.kinds)
        target.buffer.move(kind, **({} if kind == "malloc" else {"device": device}))

    def copy(self, target: Pair) -> None:
        kind = self.choose.choice(self.kinds)
        where = {} if kind == "malloc" else {"device": self.choose.randrange(self.devices)}
        copied = Pair(target.buffer.copy(kind, **where), target.model.copy())
        copied.check(copied.buffer.get())

    def change_stream(self, target: Pair) -> None:
        if target.buffer.allocator.name.startswith("cuda"):
            device = target.buffer.device if target.buffer.device >= 0 else 0
            target.buffer.set_stream(self.stream(device) or 0)

    def append(self, target: Pair) -> None:
        if len(target.model) < 2 * LARGEST:
            values = self.values(self.size(), target.model.dtype.str)
            target.buffer.append(values)
            target.model = np.concatenate([target.model, values])

    def several(self, target: Pair) -> None:
        """Many at once, of which some depend on one another."""
        pairs = self.choose.sample(self.pairs, 3)
        self.touched = pairs
        values = [self.values(len(p.model), p.model.dtype.str) for p in pairs]
        hamr.copy_many([p.buffer for p in pairs], values)
        for pair, content in zip(pairs, values, strict=True):
            pair.model[...] = content

    STEPS = (
        *(write, write, write, write, write_array, write_array, read, read_into, read_access),
        *(change_on_host, move, move, copy, change_stream, append, several),
    )

    def end(self) -> None:
        for pair in self.pairs:
            pair.check(pair.buffer.get())
            pair.buffer.close()
        self.pairs = []


def shared(seed: int, devices: int, kinds: list[str]) -> list[Pair]:
    """What no thread writes to."""
    walk = Walk(seed, devices, [], kinds)
    pairs = [walk.pair() for _ in range(KEPT)]
    for pair in pairs:
        pair.buffer.synchronize()
    return pairs
