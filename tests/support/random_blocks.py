"""Random calls of copy_blocks, beside NumPy's assignments by lists of indices."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import hamr

from .random_many import DTYPES, Maker, foreign

ROWS, COLUMNS = 3, 8
MANY = 3000  # more than one launch checks in its own memory
INDEX_TYPES = "i8", "i4", "i8", "i4", "u1", "i2", "u8"


class Blocks:
    """Arrays of blocks, and NumPy's beside them."""

    def __init__(self, choose: random.Random, make: Maker, count: int = 4) -> None:
        self.choose, self.make = choose, make
        self.models: list[np.ndarray] = []
        self.buffers: list[Any] = []
        few = choose.sample(DTYPES, choose.choice((1, 2, len(DTYPES))))
        for i in range(count):
            blocks = choose.choices((5, 9, 16, MANY), (8, 8, 8, 1))[0]
            values = np.arange(blocks * ROWS * COLUMNS, dtype="i8").reshape(blocks, ROWS, COLUMNS)
            model = ((values + 17 * i) % 120).astype(choose.choice(few))
            self.models.append(model)
            self.buffers.append(foreign(choose, make(choose, model)))

    def _key(self) -> tuple[Any, ...]:
        """All of each block, or parts of it."""
        choose = self.choose
        return choose.choice(
            (
                (slice(None),),
                (slice(None), choose.randrange(ROWS)),
                (slice(None, None, -1),),
                (slice(None), slice(None), slice(None, None, 2)),
                (slice(1, None, 2), slice(0, 2)),
            )
        )

    def _like(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """What selects as large parts of each block."""
        choose, rest = self.choose, key[1:]
        first = choose.choice((slice(None), slice(None, None, -1), slice(1, None, 2)))
        if len(rest) == 1 and isinstance(rest[0], int):
            return first, choose.randrange(ROWS)
        if len(rest) == 1:
            start = choose.randrange(ROWS - 1)
            return first, slice(start, start + 2)
        if rest and choose.random() < 0.5:
            return first, slice(None), slice(1, None, 2)
        return (first, *rest)

    def _index(self, numbers: list[int]) -> Any:
        """The same numbers in some form."""
        choose = self.choose
        form = choose.choice(("list", "tuple", "numpy", "numpy", "buffer", "buffer"))
        if form == "list":
            return numbers
        if form == "tuple":
            return tuple(numbers)
        kind = choose.choice(INDEX_TYPES)
        fits = np.iinfo(kind)
        if not all(fits.min <= i <= fits.max for i in numbers):
            kind = "i8"
        array = np.array(numbers, kind)
        if choose.random() < 0.2:
            array = np.repeat(array, 2)[::2]
        return array if form == "numpy" else self.make(choose, array)

    def _numbers(self, count: int, extent: int) -> list[int]:
        choose = self.choose
        if count <= extent and choose.random() < 0.3:
            return choose.sample(range(extent), count)
        start = choose.randrange(extent)
        if choose.random() < 0.3:
            return [(start + k) % extent for k in range(count)]
        return [choose.randrange(-extent, extent) for _ in range(count)]

    def step(self) -> None:
        """One call, and NumPy's loop."""
        choose = self.choose
        to, given, loop = [], [], []
        extents = [2 * MANY, 2 * MANY]
        several = choose.random() < 0.5
        for _ in range(choose.randint(1, 3) if several else 1):
            i, j = choose.randrange(len(self.models)), choose.randrange(len(self.models))
            key = self._key()
            other = self._like(key)
            loop.append((self.models[i][key], self.models[j][other]))
            to.append(self.buffers[i][key])
            given.append(self.buffers[j][other])
            extents = [min(extents[k], len(loop[-1][k])) for k in (0, 1)]
        count = choose.choices((0, 1, 3, 12, MANY), (4, 4, 4, 4, 1))[0]
        numbers = [self._numbers(count, extent) for extent in extents]
        wrong = count > 0 and choose.random() < 0.1
        if wrong:
            numbers[choose.randrange(2)][choose.randrange(count)] = choose.choice(
                (2 * MANY, -2 * MANY)
            )
        indices = [self._index(n) for n in numbers]
        transfer = choose.choice((None, "async", "sync"))
        try:
            if several:
                hamr.copy_blocks(to, indices[0], given, indices[1], transfer=transfer)
            else:
                hamr.copy_blocks(to[0], indices[0], given[0], indices[1], transfer=transfer)
            if wrong:
                for buffer in to:
                    if isinstance(buffer, hamr.Buffer):
                        buffer.synchronize()
                self._next()
        except IndexError as error:
            if not wrong or "_index[" not in str(error):
                raise
            return
        assert not wrong, "an index out of range is no error"
        for target, source in loop:
            target[numbers[0]] = source[numbers[1]]

    def _next(self) -> None:
        """What nobody could be told, as of destinations that others own, the next call tells."""
        for buffer in self.buffers:
            buffer.get()
        nothing = np.zeros((1, 1))
        hamr.copy_blocks(nothing, [0], nothing.copy(), [0])

    def check(self) -> None:
        """The buffers hold what NumPy's arrays do."""
        for buffer, model in zip(self.buffers, self.models, strict=True):
            found = buffer.get()
            assert np.array_equal(found, model), (buffer, found, model)
