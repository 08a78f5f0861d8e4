"""What the steps of a walk at random do to a buffer and an array: other views, and writing."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.support import random_numbers as numbers
from tests.support.producers import LAYOUTS
from tests.support.random_pairs import Differs, Pair, attempt, both, compare_errors


def make(layout: str, allocator: Any, dtype: str, shape: tuple[int, ...], seed: int) -> Pair:
    """A new buffer and its array: of hamr's memory, or of NumPy's in some layout."""
    first = np.random.default_rng(seed).integers(0, 101, shape).astype("f8").astype(dtype)
    if layout == "own":
        return Pair(hamr.Buffer(shape, dtype, allocator, data=first), first)
    name, _, readonly = layout.partition(", ")
    model, source = LAYOUTS[name](first.copy()), LAYOUTS[name](first.copy())
    if readonly:
        model.flags.writeable = source.flags.writeable = False
    return Pair(hamr.buffer(source), model)


def _view(pair: Pair, made: tuple[Any, Any] | None) -> Pair | None:
    return None if made is None else pair.view(*made)


def do_index(walk: Any, pair: Pair, key: Any) -> Pair | None:
    """A part of it, or the value of an element, of which NumPy makes a scalar."""

    def beside() -> Any:
        part = pair.model[key]
        if isinstance(part, np.ndarray):
            return part
        value = np.array(part, pair.model.dtype)
        value.flags.writeable = False
        return value

    return _view(pair, both(lambda: pair.array[key], beside))


def do_method(walk: Any, pair: Pair, name: str, *arguments: Any) -> Pair | None:
    """``transpose``, ``squeeze`` or ``ravel``, which is a view where reshape(-1) is one."""
    ours, theirs = getattr(pair.array, name), getattr(pair.model, name)
    excuses = []
    if name == "ravel":
        excuses = ["handle"] * (not isinstance(pair.array, hamr.Buffer))
        theirs = pair.model.reshape
        return _view(pair, both(ours, lambda: theirs(pair.model.size), excuses))
    return _view(pair, both(lambda: ours(*arguments), lambda: theirs(*arguments), excuses))


def do_turn(walk: Any, pair: Pair) -> Pair:
    """The other way around."""
    return pair.view(pair.array.T, pair.model.T)


def do_reshape(walk: Any, pair: Pair, shape: tuple[int, ...], copy: bool | None) -> Pair | None:
    """Another shape."""
    handle = not isinstance(pair.array, hamr.Buffer)
    return _view(
        pair,
        both(
            lambda: pair.array.reshape(shape, copy=copy),
            lambda: pair.model.reshape(shape, copy=copy),
            ["handle"] * handle + ["negative"] * any(n < -1 for n in shape),
        ),
    )


def do_view(walk: Any, pair: Pair, dtype: str) -> Pair | None:
    """The same bytes as another type."""
    return _view(
        pair,
        both(
            lambda: pair.array.view(dtype),
            lambda: pair.model.view(dtype),
            _about_types(pair),
        ),
    )


def _about_types(pair: Pair) -> list[str]:
    found = ["gaps"] if pair.model.ndim and pair.model.shape[-1] <= 1 else []
    return found + ["aligned"] * (not pair.array._host)


def do_handle(walk: Any, pair: Pair) -> Pair | None:
    """What ``get_host_accessible`` gives: in place, or a copy."""
    handle = pair.array.get_host_accessible()
    if pair.root.low <= handle.ptr < pair.root.high:  # a copy's handle is a copy's, too
        return Pair(handle, pair.model, pair.root)
    model = pair.model.copy()
    model.flags.writeable = not handle.readonly
    return Pair(handle, model)


def _leaves(nested: Any) -> Any:
    if isinstance(nested, list):
        for each in nested:
            yield from _leaves(each)
    else:
        yield nested


def _excuses(words: tuple[Any, ...], single: bool) -> list[str]:
    """The differences that hold where a value is written, to one element or to many."""
    kind, *rest = words
    if kind not in ("number", "list"):
        return ["number"] if kind == "scalar" else ["sequence"] * single
    leaves = [*_leaves(rest[0])]
    found = ["number", *(["sequence"] * single)]
    if not all(isinstance(leaf, (int, float, complex)) for leaf in leaves):
        found.append("nothing")
    return found


def _given(walk: Any, pair: Pair, words: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """What is written on either side; None if there is no such pair, or C leaves it open."""
    given = numbers.made(words, walk)
    if given is None or words[0] in ("number", "list"):
        return given
    return given if numbers.casts(np.asarray(given[1]), pair.model.dtype) else None


def do_write(walk: Any, pair: Pair, key: Any, words: tuple[Any, ...]) -> None:
    """Assignment to a part."""
    given = _given(walk, pair, words)
    if given is None:
        return
    if not isinstance(pair.array, hamr.Buffer):
        _, error = attempt(lambda: pair.array.__setitem__(key, given[0]))
        if not isinstance(error, AttributeError):
            raise Differs(f"a handle is assigned to: {error!r}")
        return

    def write() -> None:
        pair.array[key] = given[0]

    def beside() -> None:  # NumPy would take the truth of a list for an element
        kind = pair.model.dtype.kind
        pair.model[key] = np.asarray(given[1]) if kind == "b" else given[1]

    part, _ = attempt(lambda: pair.model[key])
    written(pair, write, beside, _excuses(words, np.ndim(part) == 0))


def do_fill(walk: Any, pair: Pair, words: tuple[Any, ...]) -> None:
    """All elements, the same."""
    given = _given(walk, pair, words)
    if given is not None and isinstance(pair.array, hamr.Buffer):
        ours, theirs = given
        written(
            pair,
            lambda: pair.array.fill(ours),
            lambda: pair.model.fill(theirs),
            _excuses(words, True),
        )


def do_set(walk: Any, pair: Pair, words: tuple[Any, ...], at: int, start: int, n: int) -> None:
    """Elements by their position in C order."""
    given = _given(walk, pair, words)
    if given is None or not isinstance(pair.array, hamr.Buffer):
        return
    ours, theirs = given

    def beside() -> None:
        flat = np.asarray(theirs, pair.model.dtype).ravel().copy()
        if not (0 <= at <= at + n <= pair.model.size and 0 <= start <= start + n <= flat.size):
            raise IndexError
        if n or not pair.model.flags.writeable:
            pair.model.flat[at : at + n] = flat[start : start + n]

    written(pair, lambda: pair.array.set(ours, at, start, n), beside, _excuses(words, False))


def written(pair: Pair, ours: Any, theirs: Any, excuses: list[str]) -> None:
    """Write on both sides; what is refused must leave everything as it was."""
    root = pair.root
    before = root.model.copy()
    _, error = attempt(ours)
    _, their_error = attempt(theirs)
    if "nothing" in excuses and error is None:
        their_error = their_error or ValueError()
    compare_errors(error, their_error, excuses)
    if error is not None and root.model.flags.writeable:
        root.model[...] = before  # NumPy may have written, some or all
    root.check_or_take(error is None and their_error is not None and pair.model.size > 0)
