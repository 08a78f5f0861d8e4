"""Random structures of arrays, and the comparison of what came back with them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import hamr

TYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "complex128")
VALUES = (None, True, False, "text", "", 0, -7, 2**70, 1.5, -0.0, float("inf"), "ä\n\0")
KEYS = ("w", "b", "layers", "a.b", "", "ключ", "0")


def array(choose: random.Random, device: int | None = None) -> Any:
    """An array of any type, shape and strides, some of them on a device."""
    shape = tuple(choose.randrange(4) for _ in range(choose.randrange(4)))
    numbers = np.random.default_rng(choose.randrange(1 << 30)).integers(0, 100, shape)
    kind = choose.choice(TYPES)
    values = numbers.astype(kind)
    how = choose.randrange(6)
    if how == 0 and shape:
        return values[::2]
    if how == 1:
        return values.T
    if how == 2:
        return hamr.array(numbers.astype("float32"), dtype="bfloat16")
    if how == 3 and device is not None:
        return hamr.array(values, device=device)
    return values


def tree(choose: random.Random, device: int | None = None, depth: int = 0) -> Any:
    """A dictionary, list or tuple of such arrays, values and further ones."""
    kind = choose.choice(("dict", "list", "tuple"))
    each = [leaf(choose, device, depth) for _ in range(choose.randrange(5))]
    if kind == "dict":
        return {f"{choose.choice(KEYS)}{i}": value for i, value in enumerate(each)}
    return each if kind == "list" else tuple(each)


def leaf(choose: random.Random, device: int | None, depth: int) -> Any:
    what = choose.randrange(8)
    if what < 2 and depth < 4:
        return tree(choose, device, depth + 1)
    return choose.choice(VALUES) if what == 2 else array(choose, device)


def numbers(value: Any) -> Any:
    """The elements, as NumPy has them."""
    shared = hamr.buffer(value)
    return (shared.astype("float32") if str(shared.dtype) == "bfloat16" else shared).get()


def same(found: Any, given: Any) -> bool:
    """Whether what came back is what was given, in kind, type, shape and elements."""
    if isinstance(given, (dict, list, tuple)):
        if type(found) is not type(given) or len(found) != len(given):
            return False
        if isinstance(given, dict):
            keys = list(given)
            return list(found) == keys and all(same(found[k], given[k]) for k in keys)
        return all(map(same, found, given))
    if given is None or isinstance(given, (bool, int, float, str)):
        return type(found) is type(given) and repr(found) == repr(given)
    shared = hamr.buffer(given)
    return (
        isinstance(found, hamr.Buffer)
        and (found.shape, str(found.dtype)) == (shared.shape, str(shared.dtype))
        and bool(np.array_equal(numbers(found), numbers(given)))
    )
