"""What the core has for this process, by a number."""

from __future__ import annotations

import hamr._native as _native


class Owned:
    """Something of the core's that ends once, and is nothing in a child of its process."""

    __slots__ = ("_generation", "_token")

    def __init__(self, token: int = 0) -> None:
        self._token, self._generation = token, _native.generation()

    def _is_here(self) -> bool:
        """Whether it is this process's own, and not its parent's."""
        return self._generation == _native.generation()

    def _taken(self) -> int:
        """The number, for the one call that ends it; 0 where there is nothing to end."""
        # Nothing is set yet where the arguments of __init__ were wrong.
        token, self._token = getattr(self, "_token", 0), 0
        return token if token and self._is_here() else 0
