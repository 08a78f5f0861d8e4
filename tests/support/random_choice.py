"""Which step a walk at random takes next, in plain values."""

from __future__ import annotations

import random
from typing import Any

from tests.support import random_numbers as numbers
from tests.support.random_reading import COMPARISONS, CONVERSIONS

SIDES = [0, 1, 1, 2, 3, 4, 7]
LAYOUTS = ["c", "fortran", "strided", "offset", "negative", "axes swapped"]


def choose(chance: random.Random, pairs: dict[int, Any], allocators: list[Any]) -> tuple[Any, ...]:
    """A step; ``allocators`` are those of new memory."""
    if not pairs or chance.random() < 0.04:
        return _make(chance, allocators)
    recent = list(pairs)[-8:]
    which = chance.choice(recent)
    name = chance.choices(list(_STEPS), [weight for weight, _ in _STEPS.values()])[0]
    arguments = _STEPS[name][1](chance, pairs[which].model, recent, allocators)
    return (name, which, *arguments)


def _make(chance: random.Random, allocators: list[Any]) -> tuple[Any, ...]:
    shape = tuple(chance.choice(SIDES) for _ in range(chance.choice([0, 1, 1, 2, 2, 3, 4])))
    layout = "own"
    if chance.random() < 0.5:
        layout = chance.choice(LAYOUTS) + chance.choice(["", "", "", ", readonly"])
    allocator = chance.choice(allocators)
    return ("make", layout, allocator, chance.choice(numbers.TYPES), shape, chance.randrange(2**30))


def _key(chance: random.Random, shape: tuple[int, ...]) -> Any:
    """Integers, slices, "..." and None, most of them inside."""
    keys: list[Any] = []
    for n in shape[: chance.randint(0, len(shape))]:
        kind = chance.random()
        if kind < 0.35:
            keys.append(chance.randint(-n, n - 1) if n and kind < 0.34 else chance.randint(-9, 9))
        else:
            keys.append(_slice(chance, n))
    if chance.random() < 0.02:
        keys.append(0)
    if chance.random() < 0.25:
        keys.insert(chance.randint(0, len(keys)), ...)
    while chance.random() < 0.15:
        keys.insert(chance.randint(0, len(keys)), None)
    if chance.random() < 0.01:
        keys.append(chance.choice([..., "a", 1.0, b"a", object]))
    return keys[0] if len(keys) == 1 and chance.random() < 0.7 else tuple(keys)


def _slice(chance: random.Random, n: int) -> slice:
    ends = [None, None, 0, 1, -1, n, n // 2, -n, n + 2, -n - 2, 2**70, -(2**70)]
    steps = [None, None, None, 1, 2, 3, -1, -1, -2, 2**64, -(2**70)]
    if chance.random() < 0.01:
        return slice(None, None, 0)
    return slice(chance.choice(ends), chance.choice(ends), chance.choice(steps))


def _method(chance: random.Random, model: Any, *_: Any) -> tuple[Any, ...]:
    name = chance.choice(["transpose", "transpose", "squeeze", "squeeze", "ravel"])
    axes = list(range(model.ndim))
    if name == "ravel" or chance.random() < 0.2:
        return (name,)
    if name == "transpose":
        chance.shuffle(axes)
        if chance.random() < 0.1:
            axes = [chance.randint(-5, 5) for _ in axes]
        axes = [k - model.ndim * chance.randrange(2) for k in axes]
        return (name, tuple(axes)) if chance.random() < 0.5 or not axes else (name, *axes)
    axes = [k for k in axes if model.shape[k] == 1 or chance.random() < 0.05]
    if axes and chance.random() < 0.5:
        return name, chance.choice(axes)
    if chance.random() < 0.05:
        axes.append(chance.randint(-4, 4))
    return name, tuple(k - model.ndim * chance.randrange(2) for k in axes)


def _shape(chance: random.Random, model: Any, *_: Any) -> tuple[Any, ...]:
    left, sizes = model.size, []
    while left > 1 and chance.random() < 0.7:
        size = chance.choice([k for k in range(1, left + 1) if left % k == 0])
        sizes.append(size)
        left //= size
    sizes.append(left)
    chance.shuffle(sizes)
    if chance.random() < 0.3:
        sizes[chance.randrange(len(sizes))] = -1
    if chance.random() < 0.04:
        sizes[chance.randrange(len(sizes))] = chance.choice([-1, -2, 0, 5, 2**40, 2**62])
    if model.size == 1 and chance.random() < 0.4:
        sizes = []
    return tuple(sizes), chance.choice([None, None, None, False, False, True])


def _set(chance: random.Random, model: Any, recent: list[int], *_: Any) -> tuple[Any, ...]:
    at = chance.randint(0, model.size)
    n = chance.randint(0, model.size - at) + (chance.random() < 0.1)
    words = numbers.value(chance, (at + n,), recent)
    return words, at, chance.randint(0, at), n


def _write(chance: random.Random, model: Any, recent: list[int], *_: Any) -> tuple[Any, ...]:
    key = _key(chance, model.shape)
    try:
        shape = model[key].shape
    except Exception:
        shape = ()
    return key, numbers.value(chance, shape, recent)


def _get(chance: random.Random, model: Any, *_: Any) -> tuple[Any, ...]:
    start = chance.randint(0, model.size)
    n = chance.choice([-1, chance.randint(0, model.size - start), 3])
    return chance.choice([*numbers.TYPES, *[str(model.dtype)] * 5]), n, start, chance.randrange(3)


_STEPS: dict[str, tuple[int, Any]] = {
    "index": (25, lambda c, m, *_: (_key(c, m.shape),)),
    "method": (10, _method),
    "turn": (5, lambda c, *_: ()),
    "reshape": (8, _shape),
    "view": (8, lambda c, *_: (c.choice(numbers.TYPES),)),
    "handle": (2, lambda c, *_: ()),
    "write": (25, _write),
    "fill": (3, lambda c, m, recent, _: (numbers.value(c, (), recent),)),
    "set": (4, _set),
    "compare": (
        6,
        lambda c, m, recent, _: (
            c.choice(COMPARISONS),
            numbers.value(c, m.shape, recent),
            c.random() < 0.4,
        ),
    ),
    "contains": (4, lambda c, m, recent, _: (numbers.value(c, (), recent),)),
    "convert": (4, lambda c, *_: (c.randrange(len(CONVERSIONS)),)),
    "item": (2, lambda c, *_: ()),
    "text": (2, lambda c, *_: ()),
    "get": (3, _get),
    "copy": (
        3,
        lambda c, m, _, places: (
            c.choice([None, *numbers.TYPES]),
            c.choice([None, *places]),
        ),
    ),
    "pickle": (1, lambda c, *_: (c.randint(2, 5),)),
    "export": (2, lambda c, *_: ()),
    "access": (
        5,
        lambda c, m, recent, _: (
            c.choice(["r", "w", "rw"]),
            c.choice(recent),
            c.choice(["r", "w", "rw"]),
            c.randrange(101),
            c.random() < 0.2,
        ),
    ),
}
