"""Random lists for copy_many, beside a loop of NumPy's assignments."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import hamr

DTYPES = "i1", "u1", "i2", "i4", "u4", "i8", "f2", "f4", "f8"
ROWS, COLUMNS = 6, 11

#: How a buffer is made of an array's elements.
Maker = Callable[[random.Random, np.ndarray], Any]


class Interface:
    """An object whose only protocol is one of two that are attributes."""

    def __init__(self, array: Any, name: str) -> None:
        self.array = array
        setattr(self, name, getattr(array, name))


class Tensor:
    """An object whose only protocol is DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Foreign:
    """An array, or a buffer, whose views are another library's."""

    def __init__(self, array: Any, share: Callable[[Any], Any]) -> None:
        self.array, self.share = array, share

    def __getitem__(self, key: Any) -> Any:
        return self.share(self.array[key])

    def get(self) -> np.ndarray:
        """The elements."""
        return self.array.get() if isinstance(self.array, hamr.Buffer) else self.array


def foreign(choose: random.Random, buffer: Any) -> Any:
    """The buffer, or its elements as another library has them."""
    if choose.random() < 0.6:
        return buffer
    if hasattr(buffer, "__cuda_array_interface__"):
        by_attribute = partial(Interface, name="__cuda_array_interface__")
        return Foreign(buffer, choose.choice((by_attribute, Tensor)))
    values = buffer.get().copy()
    array = np.frombuffer(bytearray(values.tobytes()), values.dtype).reshape(values.shape)
    by_attribute = partial(Interface, name="__array_interface__")
    return Foreign(array, choose.choice((np.asarray, memoryview, by_attribute, Tensor)))


def _slice(choose: random.Random, room: int, count: int) -> slice:
    """So many places in a row or column, in some order and at some distance."""
    step = choose.randint(1, max((room - 1) // max(count - 1, 1), 1))
    start = choose.randint(0, room - (count - 1) * step - 1)
    forwards = slice(start, start + (count - 1) * step + 1, step)
    if choose.random() < 0.8:
        return forwards
    end = start - 1
    return slice(start + (count - 1) * step, end if end >= 0 else None, -step)


def _key(choose: random.Random, shape: tuple[int, int]) -> tuple[slice, slice]:
    if choose.random() < 0.4 and shape[1] == COLUMNS:  # whole rows
        start = choose.randint(0, ROWS - shape[0])
        return slice(start, start + shape[0]), slice(0, COLUMNS)
    return _slice(choose, ROWS, shape[0]), _slice(choose, COLUMNS, shape[1])


def _source_key(choose: random.Random, shape: tuple[int, int]) -> tuple[Any, ...]:
    """Of the same shape, or of one that is broadcast to it."""
    rows, columns = (1 if choose.random() < 0.15 else n for n in shape)
    key: tuple[Any, ...] = _key(choose, (rows, columns))
    if rows == 1 and choose.random() < 0.5:
        key = (choose.randrange(ROWS), *key[1:])
    return key


class Lists:
    """Buffers, NumPy's arrays beside them, and lists of views of both."""

    def __init__(self, choose: random.Random, make: Maker, count: int = 5) -> None:
        self.choose, self.make = choose, make
        self.models: list[np.ndarray] = []
        self.buffers: list[Any] = []
        few = choose.sample(DTYPES, choose.choice((1, 2, len(DTYPES))))
        for i in range(count):
            values = np.arange(ROWS * COLUMNS, dtype="i8").reshape(ROWS, COLUMNS)
            model = ((values + 17 * i) % 120).astype(choose.choice(few))
            self.models.append(model)
            self.buffers.append(foreign(choose, make(choose, model)))

    def step(self) -> None:
        """One call, and the loop."""
        choose = self.choose
        to, given, loop = [], [], []
        for _ in range(choose.choice((0, 1, 2, 5, 20))):
            i, j = choose.randrange(len(self.models)), choose.randrange(len(self.models))
            shape = choose.choice(
                ((1, COLUMNS), (2, COLUMNS), (choose.randint(1, ROWS), choose.randint(1, COLUMNS)))
            )
            target, source = _key(choose, shape), _source_key(choose, shape)
            to.append(self.buffers[i][target])
            if choose.random() < 0.2:  # not what the loop finds when its turn has come
                given.append(self.models[j][source].copy())
                loop.append((self.models[i][target], given[-1]))
            else:
                given.append(self.buffers[j][source])
                loop.append((self.models[i][target], self.models[j][source]))
        hamr.copy_many(to, given, transfer=choose.choice((None, "async", "sync")))
        for model, read in loop:
            model[...] = read

    def check(self) -> None:
        """The buffers hold what NumPy's arrays do."""
        for buffer, model in zip(self.buffers, self.models, strict=True):
            found = buffer.get()
            assert np.array_equal(found, model), (buffer, found, model)
