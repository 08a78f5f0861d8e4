"""A walk at random over a buffer's views and contents, with NumPy's arrays beside them.

A walk is a list of steps, plain values, so that a failing one is cut to the steps that matter
and printed; ``replay(steps)`` runs it again. Each step does the same to a buffer or handle and
to an array, and compares what comes of it: another view, numbers, or an error. Where hamr
refuses on purpose what NumPy takes, or answers otherwise, ``DIFFERENCES`` says so.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from tests.support import random_choice, random_reading, random_steps
from tests.support.random_pairs import Differs, Pair

#: Steps that a walk has.
LENGTH = 40


class Walk:
    """Runs steps; ``pairs`` has what each made, by its number."""

    def __init__(self) -> None:
        self.pairs: dict[int, Pair] = {}

    def step(self, number: int, step: tuple[Any, ...]) -> None:
        """One step, which is left out if the views that it is about are not there."""
        name, which, *arguments = step
        if name == "make":
            self.pairs[number] = random_steps.make(which, *arguments)
            return
        if which not in self.pairs:
            return
        do = getattr(random_steps, "do_" + name, None) or getattr(random_reading, "do_" + name)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = do(self, self.pairs[which], *arguments)
        if made is not None:
            self.pairs[number] = made

    def check(self) -> None:
        """All that was made is still what NumPy's is."""
        for pair in self.pairs.values():
            pair.check()


def generate(seed: int, allocators: list[Any], length: int = LENGTH) -> None:
    """Run a walk that a seed chooses; a Differs has its steps, those that matter."""
    chance = random.Random(seed)
    walk = Walk()
    steps: list[Any] = []
    try:
        for number in range(length):
            steps.append(random_choice.choose(chance, walk.pairs, allocators))
            walk.step(number, steps[-1])
        walk.check()
    except Exception as error:
        raise Differs(told(shrunk(steps), seed)) from error


def replay(steps: list[Any]) -> None:
    """Run the steps again; those that are None are left out."""
    walk = Walk()
    for number, step in enumerate(steps):
        if step is not None:
            walk.step(number, step)
    walk.check()


def _failure(steps: list[Any]) -> Exception | None:
    try:
        replay(steps)
    except Exception as error:
        return error
    return None


def shrunk(steps: list[Any]) -> list[Any]:
    """The steps without which the walk does not fail."""
    found: list[Any] = list(steps)
    for k in reversed(range(len(found))):
        without = [*found[:k], None, *found[k + 1 :]]
        if _failure(without) is not None:
            found = without
    return found


def told(steps: list[Any], seed: int) -> str:
    """The steps, what comes of them, and the seed."""
    error = _failure(steps)
    lines = "\n".join(f"  {k}: {step!r}" for k, step in enumerate(steps) if step is not None)
    return f"seed {seed}:\n{lines}\n{type(error).__name__}: {error}"
