"""The steps of a walk at random that read: numbers, texts, copies, comparison, accesses."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import numpy as np

import hamr
from tests.support import random_numbers as numbers
from tests.support.random_pairs import Differs, Pair, attempt, both, compare_errors

COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
CONVERSIONS = [int, float, complex, bool, operator.index, len, list, format, hash]


def do_compare(walk: Any, pair: Pair, name: str, words: tuple[Any, ...], swapped: bool) -> None:
    """An element with a number; several are a TypeError, unless NumPy compares."""
    given = numbers.made(words, walk)
    if given is None or not numbers.plain(pair.model):
        return
    compare = getattr(operator, name)
    (ours, theirs), model = given, pair.model
    if swapped and words[0] in ("array", "scalar") and not pair.array._host:
        return  # NumPy's to say
    left = (lambda: compare(ours, pair.array)) if swapped else (lambda: compare(pair.array, ours))
    right = (lambda: compare(theirs, model)) if swapped else (lambda: compare(model, theirs))
    kind = "list" if words[0] == "list" and isinstance(ours, list) else "number"
    kind = kind if words[0] == "list" else words[0]
    excuses = ["order"] if "c" in (model.dtype.kind, np.asarray(theirs).dtype.kind) else []
    if pair.array is ours:
        return
    several = model.ndim or (kind == "pair" and theirs.ndim) or kind == "list"
    if (kind == "array" or (kind == "scalar" and several)) and not pair.array._host:
        excuses.append("device")
    if several and kind in ("number", "list", "pair"):
        excuses.append("whole")
    if kind == "number" and (theirs is None or not isinstance(theirs, (int, float, complex))):
        excuses.append("nothing")
    if isinstance(theirs, int) and abs(theirs) >= 2**63:
        excuses.append("large")
    made = both(left, right, excuses)
    if made is None or "nothing" in excuses:
        return
    mine, expected = made
    if several and kind in ("number", "list", "pair"):
        raise Differs(f"{name} of several elements is {mine!r}")
    if np.array_equal(mine, expected):
        return
    if kind == "pair":
        theirs = theirs.item()
    if not several and (_large(model.item()) or _large(theirs)):
        expected = _exactly(compare, model.item(), theirs, swapped)
    if not np.array_equal(mine, expected):
        raise Differs(f"{name} is {mine!r}, NumPy's {expected!r}")


def _large(number: Any) -> bool:
    """Whether NumPy's rounding of a number to compare it may matter."""
    return not isinstance(number, complex) and not abs(number) <= 2**11


def _exactly(compare: Any, element: Any, other: Any, swapped: bool) -> bool:
    other = other.item() if isinstance(other, np.generic) else other
    return bool(compare(other, element) if swapped else compare(element, other))


def do_contains(walk: Any, pair: Pair, words: tuple[Any, ...]) -> None:
    """Whether a number is among the elements."""
    given = numbers.made(words, walk)
    if given is None or not numbers.plain(pair.model):
        return
    ours, theirs = given
    excuses = []
    if words[0] != "scalar" and not isinstance(theirs, (int, float, complex)):
        excuses = ["nothing"]
    if isinstance(theirs, int) and abs(theirs) >= 2**63:
        excuses.append("large")
    made = both(lambda: ours in pair.array, lambda: theirs in pair.model, excuses)
    if made and made[0] is not made[1] and not (_large(theirs) and made[0] is False):
        raise Differs(f"{ours!r} in {pair.model!r}: {made}")


def do_convert(walk: Any, pair: Pair, which: int) -> None:
    """What Python's functions make of it."""
    if not numbers.plain(pair.model):
        return
    convert = CONVERSIONS[which]
    array, model = pair.array, pair.model
    excuses = ["one"] if model.ndim and convert is not hash else []
    if convert is list:
        made = both(lambda: list(array), lambda: list(model))
        if made is not None:
            for mine, expected in zip(*made, strict=True):
                if not numbers.same(mine.get(), np.asarray(expected)):
                    raise Differs(f"iterated: {mine!r}, {expected!r}")
        return
    if convert is format:
        made = both(
            lambda: format(array, ".3f"),
            lambda: format(numbers.wide(model) if model.ndim else model.item(), ".3f"),
            [*excuses, *(["format"] if model.dtype.kind in "iub" else [])],
        )
    else:
        if not model.ndim and numbers.bits_of(model) == "c":
            excuses.append("order")  # NumPy warns, and leaves out the imaginary part
        made = both(lambda: convert(array), lambda: convert(model), excuses)
    if made is not None and made[0] != made[1] and made[0] == made[0]:
        raise Differs(f"{convert.__name__}: {made}")


def do_item(walk: Any, pair: Pair) -> None:
    """The number that it is."""
    if not numbers.plain(pair.model):
        return
    made = both(pair.array.item, pair.model.item)
    if made is not None and not (
        (made[0] == made[1] and type(made[0]) is type(made[1])) or made[0] != made[0]
    ):
        raise Differs(f"item: {made}")


def do_text(walk: Any, pair: Pair) -> None:
    """Each number of str() is the element, and repr() tells the values, or the shape and type."""
    array, model = pair.array, pair.model
    shown = repr(array)
    values = np.array2string(model, separator=", ", prefix="hamr.Buffer(")
    inside = isinstance(array, hamr.Buffer) and array.device < 0
    told = shown.startswith(f"hamr.Buffer({values}, ") if inside else str(model.shape) in shown
    if not told or str(model.dtype) not in shown:
        raise Differs(shown)
    if not isinstance(array, hamr.Buffer) or not numbers.plain(model) or model.size > 1000:
        return
    text = str(array)
    words = text.translate(str.maketrans("{}\n", "   ")).replace(" ", "").split(",")
    words = [w for w in words if w]
    kind = model.dtype.kind
    if len(words) != model.size or text.count("{") != text.count("}"):
        raise Differs(f"{text} of {model!r}")
    for word, element in zip(words, model.ravel(), strict=True):
        number = word == "True" if kind == "b" else (int if kind in "iu" else complex)(word)
        with np.errstate(all="ignore"):
            found = np.array(number.real if kind not in "cbiu" else number).astype(model.dtype)
        if not (found == element or (found != found and element != element)):
            raise Differs(f"{word} of {element!r} in {text}")


def do_get(walk: Any, pair: Pair, dtype: str, n: int, start: int, at: int) -> None:
    """Elements copied to an array of another type; all, or some."""
    if not numbers.casts(pair.model, dtype):
        return
    model = pair.model
    if n < 0:
        out = np.zeros(model.shape, dtype)
        pair.array.get(out)
        expected = model.astype(dtype)
    else:
        out = np.zeros(n + at, dtype)
        expected = out.copy()
        _, error = attempt(lambda: pair.array.get(out, at=at, start=start, n=n))
        fits = start + n <= model.size
        if (error is None) is not fits:
            raise Differs(f"get({n}, {start}) of {model.size}: {error!r}")
        if fits:
            expected[at : at + n] = model.ravel()[start : start + n].astype(dtype)
    if not numbers.same(out, expected):
        raise Differs(f"get gave {out!r}, expected {expected!r}")


def do_copy(walk: Any, pair: Pair, dtype: str | None, allocator: Any) -> Pair | None:
    """New memory, in C order."""
    if dtype is not None and not numbers.casts(pair.model, dtype):
        return None
    model = pair.model.astype(dtype or pair.model.dtype, order="C")
    if allocator is None:
        return Pair(pair.array.copy() if dtype is None else pair.array.astype(dtype), model)
    return Pair(pair.array.copy(allocator, dtype=dtype), model)


def do_pickle(walk: Any, pair: Pair, protocol: int) -> Pair | None:
    """There and back."""
    if not isinstance(pair.array, hamr.Buffer):
        _, error = attempt(lambda: pickle.dumps(pair.array, protocol))
        compare_errors(error, TypeError())
        return None
    made = pickle.loads(pickle.dumps(pair.array, protocol))
    order = "C" if made.is_contiguous else "F"
    model = pair.model.copy(order)
    model.flags.writeable = not made.readonly
    return Pair(made, model)


def do_export(walk: Any, pair: Pair) -> None:
    """What memoryview shows."""
    array, model = pair.array, pair.model
    made, error = attempt(lambda: memoryview(array))
    if error is not None:
        if array._host and model.dtype.kind != "V":
            raise Differs(repr(error)) from error
        return
    if not numbers.same(np.asarray(made), model) or made.readonly is model.flags.writeable:
        raise Differs(f"{made!r}: {np.asarray(made)!r}")


class Left(Exception):
    """What ends a block."""


def do_access(
    walk: Any, pair: Pair, mode: str, other: int, other_mode: str, number: int, leave: bool
) -> None:
    """``on_host``: who else may use the elements meanwhile, and what is written."""
    if not isinstance(pair.array, hamr.Buffer) or other not in walk.pairs:
        return
    array, model = pair.array, pair.model
    writes = mode != "r"
    if writes and not model.flags.writeable:
        _, error = attempt(array.on_host(mode).__enter__)
        compare_errors(error, ValueError())
        return
    second = walk.pairs[other]
    given = None
    try:
        with array.on_host(mode) as given:
            _inside(pair, second, given, mode, other_mode)
            if writes:
                given[...] = number
            if leave:
                raise Left
    except Left:
        pass
    if given.flags.writeable:
        raise Differs("it may be written after the block")
    in_place = given.size and pair.root.low <= given.ctypes.data < pair.root.high
    if writes and (in_place or not leave):
        model[...] = number
    pair.root.check()


def _inside(pair: Pair, second: Pair, given: np.ndarray, mode: str, other_mode: str) -> None:
    writes = mode != "r"
    known = mode != "w" or pair.array._host
    if known and not numbers.same(np.asarray(given), pair.model):
        raise Differs(f"{given!r} is given for {pair.model!r}")
    if given.flags.writeable is not writes:
        raise Differs(f"{mode}: writeable is {given.flags.writeable}")
    if isinstance(second.array, hamr.Buffer) and (
        other_mode == "r" or second.model.flags.writeable
    ):
        access = second.array.on_host(other_mode)
        _, error = attempt(access.__enter__)
        if error is None:
            access.__exit__(Left, None, None)  # nothing is written
        if (writes or other_mode != "r") and second.root is pair.root:
            if np.shares_memory(pair.model, second.model):
                compare_errors(error, hamr.InUse())
            elif np.may_share_memory(pair.model, second.model):
                return
        elif error is not None:
            raise Differs(repr(error)) from error
    if writes and pair.model.size:
        _, error = attempt(lambda: pair.array.fill(1))
        compare_errors(error, hamr.InUse())
