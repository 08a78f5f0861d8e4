"""Element types, numbers and lists for walks at random, and when two arrays are the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.support.producers import ADDED, DTYPES

TYPES = [*DTYPES, *(["bfloat16"] if "bfloat16" in ADDED else [])]

#: Some of them in a few types only, some in none.
NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 100, 127, 128, 255, 256, 300, -128, -129, 2**15, 2**24 + 1, 2**31, -(2**31),
    2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30, 10**400,
    0.0, -0.0, 0.5, -1.5, 0.1, 3.0, 127.9, 255.5, 65504.0, 65519.0, 65520.0, 1e9, 3.5e38, 1e300,
    5e-324, float("inf"), float("-inf"), float("nan"), 1j, 1 + 2j, 0.1 + 0j, 1e300j, True, False,
]  # fmt: skip

#: What no number is.
OTHERS: list[Any] = [None, "a", "1", b"1", {}, {1}, Ellipsis, object]


def bits_of(array: np.ndarray) -> str:
    """The kind of a type: NumPy's letter, and f for bfloat16."""
    return "f" if array.dtype.kind == "V" else array.dtype.kind


def wide(array: np.ndarray) -> np.ndarray:
    """Elements of a type that NumPy itself calculates with."""
    return array.astype("f8") if array.dtype.kind == "V" else array


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether shape, type and all elements are the same; NaN is NaN, and 0.0 is not -0.0."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.tobytes() == other.tobytes():
        return True
    if bits_of(one) not in "fc":
        return False
    one, other = wide(one), wide(other)
    if one.dtype.kind == "c":
        return same(one.real, other.real) and same(one.imag, other.imag)
    known = ~np.isnan(one)
    return bool(
        np.array_equal(known, ~np.isnan(other)) and one[known].tobytes() == other[known].tobytes()
    )


def plain(array: np.ndarray) -> bool:
    """Whether C and Go read the same numbers: bytes of bool are 0 or 1."""
    return array.dtype.kind != "b" or not array.size or int(np.max(array.view("u1"))) <= 1


def casts(array: np.ndarray, dtype: Any) -> bool:
    """Whether C says what the elements become in another type.

    NaN has payloads, which are seen where the same bytes are looked at as another type.
    """
    target = np.dtype(dtype)
    if not plain(array):
        return False
    if target == array.dtype:
        return True
    if bits_of(array) not in "fc" or target.kind == "b":
        return True
    values = wide(array)
    parts = [values.real, values.imag] if values.dtype.kind == "c" else [values]
    if any(np.isnan(part).any() for part in parts):
        return False
    if target.kind not in "iu":
        return True
    limits = np.iinfo(target)
    return bool(
        ((parts[0] > float(limits.min) - 1) & (parts[0] < float(limits.max))).all()
        and (parts[0] >= limits.min).all()
    )


def number(chance: random.Random) -> Any:
    """A number, small ones often."""
    return chance.randrange(101) if chance.random() < 0.4 else chance.choice(NUMBERS)


def nested(chance: random.Random, shape: tuple[int, ...], tame: bool) -> Any:
    """A number or list, of a shape that need not fit."""
    if not shape:
        return chance.randrange(101) if tame else number(chance)
    return [nested(chance, shape[1:], tame) for _ in range(shape[0])]


def broadcastable(chance: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that goes to another, mostly."""
    chosen = [1 if chance.random() < 0.2 else n for n in shape]
    if chosen and chance.random() < 0.2:
        chosen = chosen[chance.randrange(len(chosen)) :]
    if chosen and chance.random() < 0.06:
        chosen[chance.randrange(len(chosen))] += 1
    if chance.random() < 0.06:
        chosen = [chance.choice([1, 1, 2]), *chosen]
    return tuple(chosen)


def value(chance: random.Random, shape: tuple[int, ...], others: list[int]) -> tuple[Any, ...]:
    """What is assigned, in words: a number, a list, an array or one of the pairs."""
    kind = chance.random()
    if kind < 0.3:
        return ("number", number(chance))
    if kind < 0.33:
        return ("number", chance.choice(OTHERS))
    if kind < 0.5:
        tame = chance.random() < 0.5
        return ("list", nested(chance, broadcastable(chance, shape), tame))
    if kind < 0.65:
        dtype = chance.choice(TYPES)
        return ("array", dtype, nested(chance, broadcastable(chance, shape), True))
    if kind < 0.7:
        return ("scalar", chance.choice(TYPES), chance.randrange(101))
    return ("pair", chance.choice(others))


def made(words: tuple[Any, ...], walk: Any) -> tuple[Any, Any] | None:
    """A value for hamr and one for NumPy; None if it is that of a pair that is not there."""
    kind, *rest = words
    if kind in ("number", "list"):
        return rest[0], rest[0]
    if kind == "array":
        array = np.array(rest[1], "f8").astype(rest[0])
        return array, array
    if kind == "scalar":
        scalar = np.dtype(rest[0]).type(rest[1])
        return scalar, scalar
    if rest[0] not in walk.pairs:
        return None
    other = walk.pairs[rest[0]]
    return other.array, other.model.copy()  # NumPy may read what it has overwritten
