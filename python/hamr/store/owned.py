"""What the core has for this process, by a number."""

from __future__ import annotations

from itertools import count

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Of calls, and of what they make.
numbers = count(1)


class Owned(_native.Owned):
    """Something of the core's that ends once, and is nothing in a child of its process.

    It has its number before the core makes it, and its end is C code: so it ends also where the
    handler of a signal raises, at whatever step of Python code that is.
    """

    __slots__ = ()

    def __init__(self, end: Callable[[int], object], keeps: object = None) -> None:
        """Have ``end(number)`` called at the end; ``keeps`` is not to go before that."""
        self._own(next(numbers), end, keeps)
