"""Random operations on host memory of which any part may be page-locked, beside NumPy's."""

from __future__ import annotations

import random

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import PORTABLE, finish, register, unregister
from tests.cuda.test_cuda_locked import READERS
from tests.support.processes import scaled

ROWS, COLUMNS, ARRAYS = 6, 24, 4
MODES = "async", "sync_host", "sync"
KINDS = "cuda", "cuda_async", "cuda_host"

pytestmark = pytest.mark.skipif(
    driver.library is None or not hasattr(driver.library, "cuMemHostRegister_v2"),
    reason="the driver does not page-lock memory of others",
)


class Walk:
    """Arrays here, which adopt memory of the host's, and there, each with its model."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.memory = np.zeros((ARRAYS, ROWS, COLUMNS), "i4")
        self.locks: dict[int, np.ndarray] = {}
        self.here = [self.adopt(i) for i in range(ARRAYS)]
        self.there = [self.made(i) for i in range(ARRAYS)]
        self.models = [*self.memory.copy()]
        self.models += [np.full((ROWS, COLUMNS), i, b.dtype) for i, b in enumerate(self.there)]
        self.steps: list[str] = []

    def adopt(self, i: int) -> hamr.Buffer:
        return hamr.buffer(self.memory[i], transfer=self.random.choice(MODES))

    def made(self, i: int) -> hamr.Buffer:
        device, dtype = i % driver.DEVICES, self.random.choice(("i4", "i4", "f8"))
        stream = hamr.Stream(device=device) if self.random.random() < 0.7 else None
        kind, mode = self.random.choice(KINDS), self.random.choice(MODES)
        shape = ROWS, COLUMNS
        return hamr.Buffer(shape, dtype, kind, fill=i, device=device, stream=stream, transfer=mode)

    def some(self) -> tuple[hamr.Buffer, np.ndarray]:
        i = self.random.randrange(2 * ARRAYS)
        return [*self.here, *self.there][i], self.models[i]

    def range(self, n: int) -> slice:
        start, stop = sorted(self.random.randrange(n + 1) for _ in range(2))
        step = self.random.choice((1, 1, 2, -1))
        if step > 0:
            return slice(start, stop, step)
        return slice(stop - 1 if stop else None, start - 1 if start else None, step)

    def key(self) -> tuple[slice, slice]:
        """Of all elements, of rows, or of any."""
        kind = self.random.randrange(3)
        rows = self.range(ROWS) if kind else slice(None)
        return rows, self.range(COLUMNS) if kind > 1 else slice(None)

    def parts(self) -> list[tuple[hamr.Buffer, np.ndarray]]:
        """Of two arrays, as large as one another, and perhaps of the same."""
        key = other = self.key()
        if self.random.random() < 0.3:
            sizes = [len(range(n)[k]) for k, n in zip(key, (ROWS, COLUMNS), strict=True)]
            at = [
                self.random.randrange(n - s + 1)
                for n, s in zip((ROWS, COLUMNS), sizes, strict=True)
            ]
            other = slice(at[0], at[0] + sizes[0]), slice(at[1], at[1] + sizes[1])
        (a, x), (b, y) = self.some(), self.some()
        return [(a[key], x[key]), (b[other], y[other])]

    def assign(self) -> None:
        (a, x), (b, y) = self.parts()
        a[...] = b
        x[...] = y.copy()

    def many(self) -> None:
        pairs = [self.parts() for _ in range(self.random.randrange(5))]
        to, of = [p[0][0] for p in pairs], [p[1][0] for p in pairs]
        hamr.copy_many(to, of, transfer=self.random.choice((None, *MODES)))
        for (_, x), (_, y) in pairs:
            x[...] = y.copy()

    def index(self, values: list[int], kinds: int):
        """As a list or an array: of the host's, of a device's, or pending in memory here."""
        kind = self.random.randrange(kinds)
        if kind == 0:
            return values
        if kind == 1:
            return np.array(values, "i4")
        there = hamr.Buffer(len(values), "i4", "cuda", device=self.random.randrange(driver.DEVICES))
        there[...] = np.array(values, "i4")
        if kind == 2:
            return there
        i, row = self.random.randrange(ARRAYS), self.random.randrange(ROWS)
        part = self.here[i][row, : len(values)]
        part[...] = there
        self.models[i][row, : len(values)] = values
        return part

    def blocks(self) -> None:
        n = self.random.randrange(5)
        to = [self.random.randrange(ROWS) for _ in range(n)]
        of = [self.random.randrange(-ROWS, ROWS) for _ in range(n)]
        named = self.index(to, 3), self.index(of, 4)
        pairs = [(self.some(), self.some()) for _ in range(self.random.randrange(1, 4))]
        ends = [p[0][0] for p in pairs], [p[1][0] for p in pairs]
        mode = self.random.choice((None, *MODES))
        hamr.copy_blocks(ends[0], named[0], ends[1], named[1], transfer=mode)
        for (_, x), (_, y) in pairs:
            gathered = y[of].copy()
            for k, i in enumerate(to):
                x[i] = gathered[k]

    def fill(self) -> None:
        a, x = self.some()
        key, value = self.key(), self.random.randrange(100)
        a[key].fill(value)
        x[key] = value

    def read(self) -> None:
        a, x = self.some()
        key = self.key()
        ways = ["handle", "get", "copy", *(("numpy", "dlpack", "pickle") if a.device < 0 else ())]
        assert np.array_equal(READERS[self.random.choice(ways)](a[key]), x[key])
        with a[key].on_host("r") as array:
            assert np.array_equal(array, x[key])
        assert np.array_equal(a.copy(self.random.choice(("malloc", *KINDS)), dtype="f4").get(), x)

    def read_there(self) -> None:
        a, x = self.some()
        h = a.get_cuda_accessible(self.random.randrange(driver.DEVICES))
        assert np.array_equal(driver.content(h), x)

    def append(self) -> None:
        (a, x), (b, y) = self.some(), self.some()
        made = a.copy()
        made.append(b)
        assert np.array_equal(made.get(), np.append(x, y.astype(x.dtype)))

    def turn(self) -> None:
        b = self.random.choice(self.there)
        stream = hamr.Stream(device=b.device) if b.device >= 0 else None
        b.set_stream(stream, transfer=self.random.choice(MODES))

    def operand(self) -> None:
        """An array itself, which is its owner's again at the return."""
        i = self.random.randrange(ARRAYS)
        self.here[i].synchronize()
        j = self.random.randrange(ARRAYS)
        if self.random.random() < 0.5:
            hamr.copy_many([self.memory[i]], [self.there[j]])
            self.models[i][...] = self.memory[i]
            assert np.array_equal(self.models[i], self.models[ARRAYS + j])
        else:
            self.there[j][...] = self.memory[i]
            self.models[ARRAYS + j][...] = self.models[i]
            self.models[i][...] = self.memory[i] = self.random.randrange(100)

    def end(self) -> None:
        """The owner has the memory again when its last buffer has ended."""
        i = self.random.randrange(ARRAYS)
        self.here[i].close()
        assert np.array_equal(self.memory[i], self.models[i])
        self.here[i] = self.adopt(i)

    def lock(self) -> None:
        count, size = self.memory.size, self.memory[0].size
        first = self.random.choice((0, size, self.random.randrange(count - 1)))
        last = self.random.choice(
            (count, first + size, self.random.randrange(first + 1, count + 1))
        )
        part = self.memory.reshape(-1)[first:last]
        low, high = part.ctypes.data, part.ctypes.data + part.nbytes
        if all(high <= at or at + other.nbytes <= low for at, other in self.locks.items()):
            register(part, self.random.randrange(driver.DEVICES), self.random.choice((0, PORTABLE)))
            self.locks[low] = part

    def unlock(self) -> None:
        if self.locks:
            finish()  # as whoever ends a lock must
            unregister(self.locks.pop(self.random.choice(list(self.locks))))

    def step(self) -> None:
        often = self.assign, self.many, self.blocks, self.lock
        seldom = self.fill, self.read, self.read_there, self.append, self.turn, self.operand
        step = self.random.choice((*often, *often, *seldom, self.end, self.unlock))
        self.steps.append(step.__name__)
        step()


@pytest.mark.parametrize("seed", range(scaled(600, 100)))
def test_random_walk(seed):
    walk = Walk(seed)
    for _ in range(40):
        walk.step()
    for b, x in zip([*walk.here, *walk.there], walk.models, strict=True):
        assert np.array_equal(b.get(), x)
    walk.here.clear()
    assert np.array_equal(walk.memory, walk.models[:ARRAYS])
    finish()
    for part in walk.locks.values():
        unregister(part)
