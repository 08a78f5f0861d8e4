"""Programs of elements at random, the same on a buffer and on NumPy's array."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import hamr

#: Element types, and how many a program has.
DTYPES = ["f8", "i4", "u1", "f2", "c16", "?", "bfloat16", "float8_e4m3fn"]
LENGTH = 7


def swap(a: Any, chance: random.Random) -> None:
    i, j = chance.randrange(LENGTH), chance.randrange(LENGTH)
    a[i], a[j] = a[j], a[i]


def rotate(a: Any, chance: random.Random) -> None:
    first = a[0]
    for i in range(LENGTH - 1):
        a[i] = a[i + 1]
    a[-1] = first


def shuffle(a: Any, chance: random.Random) -> None:
    chance.shuffle(a)


def insertion_sort(a: Any, chance: random.Random) -> None:
    for i in range(1, LENGTH):
        inserted, j = a[i], i
        while j and abs(complex(a[j - 1])) > abs(complex(inserted)):
            a[j] = a[j - 1]
            j -= 1
        a[j] = inserted


def insert(a: Any, chance: random.Random) -> None:
    at, new = chance.randrange(LENGTH), a[chance.randrange(LENGTH)]
    for i in reversed(range(at + 1, LENGTH)):
        a[i] = a[i - 1]
    a[at] = new


def through_a_view(a: Any, chance: random.Random) -> None:
    view = a[chance.randrange(LENGTH), ...]
    view[...] = a[chance.randrange(LENGTH)]


def iterate(a: Any, chance: random.Random) -> None:
    for i, element in enumerate(a):
        a[LENGTH - 1 - i] = element


PROGRAMS = [swap, rotate, shuffle, insertion_sort, insert, through_a_view, iterate]


def layouts(made: hamr.Buffer) -> Any:
    """Views of LENGTH elements of the 3 times 3 * LENGTH that a buffer has."""
    return [made[0, :LENGTH], made[1, ::3], made[2, ::-3], made.T[: 2 * LENGTH : 2, 1]]


def plain(b: Any) -> Any:
    return np.array(b.get_host_accessible())


def walk(seed: int, allocator: Any, steps: int = 12) -> None:
    """Run programs that a seed chooses. Elements that were kept stay what they were."""
    chance = random.Random(seed)
    dtype = chance.choice(DTYPES)
    numbers = [chance.randrange(2 if dtype == "?" else 120) for _ in range(9 * LENGTH)]
    whole = hamr.Buffer((3, 3 * LENGTH), dtype, allocator)
    whole[...] = np.reshape(numbers, whole.shape)
    ours = chance.choice(layouts(whole))
    theirs = plain(ours)
    kept = []
    for _ in range(steps):
        program, again = chance.choice(PROGRAMS), chance.random()
        program(ours, random.Random(again))
        program(theirs, random.Random(again))
        at = chance.randrange(LENGTH)
        kept.append((ours[at], theirs[at]))
        got = plain(ours)
        assert got.tobytes() == theirs.tobytes(), (seed, program.__name__, got, theirs)
    for element, wanted in kept:
        assert element.item() == wanted.item(), (seed, element, wanted)
