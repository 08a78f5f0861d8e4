"""A buffer with NumPy's array beside it, what must be the same, and what may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import hamr
from tests.support import random_numbers as numbers

#: Where hamr differs from NumPy on purpose, and why. Steps name those that hold for them.
DIFFERENCES = {
    "number": "a number that the type does not hold is refused, where NumPy makes infinity of "
    "it, or casts the array that it makes of a list first",
    "nothing": "None, texts and objects are no numbers, which NumPy makes NaN, parses, or takes",
    "sequence": "one element takes a list or array of one, whatever its dimensions",
    "one": "what has one element is a number, whatever its dimensions",
    "order": "complex numbers have no order, and are no real ones",
    "format": "an int has the formats of Python's, .3f too",
    "whole": "several elements do not compare with numbers, lists and buffers",
    "handle": "a handle has no copies of its own",
    "aligned": "elements on a device lie at multiples of their size",
    "device": "NumPy's arrays do not compare with memory of a device",
    "negative": "sizes below -1 are refused, which NumPy takes for -1",
    "large": "no comparison with an int is refused, however large it is",
    "gaps": "size 1 has no stride, so that other sizes of type lie without gaps",
}


class Differs(AssertionError):
    """What a buffer did, and what NumPy's array did."""


class Root:
    """Memory: the buffer that has it, and what NumPy has beside it."""

    def __init__(self, buffer: Any, model: np.ndarray) -> None:
        self.buffer, self.model = buffer, model
        spans = [s * (n - 1) for n, s in zip(buffer.shape, buffer.strides, strict=True) if n]
        self.low = buffer.ptr + sum(s for s in spans if s < 0)
        self.high = buffer.ptr + sum(s for s in spans if s > 0) + buffer.dtype.itemsize

    def check(self) -> None:
        """What NumPy's array holds, this does."""
        found = self.buffer.get()
        if not numbers.same(found, self.model):
            raise Differs(f"the memory holds {found!r}, NumPy's {self.model!r}")

    def check_or_take(self, taken: bool) -> None:
        """Check; what only hamr takes, NumPy's array gets."""
        if taken:
            self.model[...] = self.buffer.get()
        self.check()


class Pair:
    """A buffer or handle, the array that has the same elements, and the memory of both."""

    def __init__(self, array: Any, model: np.ndarray, root: Root | None = None) -> None:
        self.array, self.model = array, model
        self.root = root or Root(array, model)
        self.check()

    def check(self) -> None:
        """Shape, type, strides and elements are NumPy's."""
        array, model = self.array, self.model
        if array.shape != model.shape or str(array.dtype) != str(model.dtype):
            raise Differs(f"{array.shape} {array.dtype} beside {model.shape} {model.dtype}")
        if array.readonly is model.flags.writeable:
            raise Differs(f"readonly is {array.readonly}, writeable {model.flags.writeable}")
        if array.size() > 1 and (strides := seen(array)) != (wanted := seen(model)):
            raise Differs(f"strides {strides} beside {wanted}, of shape {model.shape}")
        if not numbers.same(found := array.get(), model):
            raise Differs(f"{found!r} beside {model!r}")

    def view(self, array: Any, model: np.ndarray) -> Pair:
        """What was made of both: it shares this memory if NumPy's does."""
        if not model.size:
            return Pair(array, model, self.root)
        shares = np.may_share_memory(model, self.root.model)
        if shares is not (self.root.low <= array.ptr < self.root.high):
            raise Differs(f"NumPy's shares the memory: {shares}, {array!r} does not agree")
        return Pair(array, model, self.root if shares else None)


def seen(array: Any) -> list[int]:
    """The strides that mean something."""
    return [s for n, s in zip(array.shape, array.strides, strict=True) if n > 1]


def attempt(action: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What an action returns, or its error."""
    try:
        return action(), None
    except Exception as error:
        return None, error


#: What hamr calls what NumPy calls otherwise.
_ALSO = {
    OverflowError: (ValueError,),
    IndexError: (ValueError, TypeError),
    ValueError: (TypeError, IndexError),
}


def compare_errors(
    error: Exception | None, their_error: Exception | None, excuses: Iterable[str] = ()
) -> None:
    """Whether both refuse or neither, and alike, or one of the differences says otherwise."""
    excused = [DIFFERENCES[name] for name in excuses]
    if error is None and (their_error is None or excused):
        return
    kinds = (ValueError, TypeError, IndexError, OverflowError, hamr.InUse)
    if error is None or not isinstance(error, kinds) or len(str(error)) < 10:
        raise Differs(f"hamr: {error!r}; NumPy: {their_error!r}") from error
    if their_error is not None:
        kind = type(their_error)
        alike = isinstance(error, kind) or isinstance(their_error, type(error))
        if alike or isinstance(error, _ALSO.get(kind, ())) or excused:
            return
    if not excused:
        raise Differs(f"hamr: {error!r}; NumPy: {their_error!r}") from error


def both(
    ours: Callable[[], Any], numpys: Callable[[], Any], excuses: Iterable[str] = ()
) -> tuple[Any, Any] | None:
    """What both return; None where one or both refuse, and may."""
    (mine, error), (theirs, their_error) = attempt(ours), attempt(numpys)
    compare_errors(error, their_error, excuses)
    return None if error or their_error else (mine, theirs)
