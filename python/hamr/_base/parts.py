"""Memory that is handed out in parts, to hamr's buffers and to other libraries."""

from __future__ import annotations

from .errors import ForkError, OutOfMemory
from .library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .. import _native

#: Bytes: what parts begin at multiples of, and what their sizes are rounded up to.
UNIT = 512


class Parts:
    """The beginning of an object's memory, which is handed out until ``close()``.

    ``lease`` is the builder's, which keeps the memory; None once it was closed. ``said`` is what
    errors call the memory.
    """

    __slots__ = ("_number", "device", "give_up", "lease", "pools", "said", "size")

    def __init__(self, lease: _native.Owned, size: int, device: int, said: str) -> None:
        self.lease: _native.Owned | None = lease
        self.size, self.device, self.said = size, device, said
        self.pools: list[Any] = []  #: what a library keeps of the memory, for ``give_up``
        self.give_up: Callable[[list[Any]], None] | None = None
        self._number: int = core().OpenParts(lease._token, size)

    def take(self, nbytes: int) -> Part:
        """A part of new memory. OutOfMemory if none is free that is large enough."""
        part = Part(self._open())
        try:
            part.address = core().TakePart(self._number, min(nbytes, 2**62))
        except OutOfMemory:
            error = OutOfMemory(f"{nbytes} bytes do not fit: {self.state()}")
            error.size = nbytes
            raise error from None
        return part

    def state(self) -> str:
        """How full it is, in words."""
        if self.lease is None:
            return f"{self.said}, which is finished"
        free, largest = self.free(), self.free(True)
        return f"{self.said} has {free} of its {self.size} bytes free, {largest} in one piece"

    def free(self, in_one_piece: bool = False) -> int:
        """The bytes that are free, or how many of them are in one piece."""
        free: int = core().FreeParts(self._number, in_one_piece)
        return free

    def enter(self) -> int:
        """Have torch take parts on the calling thread until ``leave`` of what is returned."""
        use: int = core().EnterParts(self._open()._number)
        return use

    def _open(self) -> Parts:
        if self.lease is None:
            raise ValueError(f"{self.said} is finished: accepted is one that is being built")
        if not self.lease._is_here():  # the number may be another one's there
            raise ForkError(f"{self.said} is the parent's to finish: it was made before fork()")
        return self

    def close(self) -> int:
        """Hand out no more; how many parts torch has, which keep the memory."""
        lease = self.lease
        if lease is None or not lease._is_here():
            self.lease = None
            return 0
        try:
            if self.give_up is not None:
                self.give_up(self.pools)
        finally:
            self.lease = None
            held: int = core().CloseParts(self._number)
        return held

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self.close()


class Part:
    """A part, which is given back when nothing keeps this object. It keeps the memory."""

    __slots__ = ("_lease", "_number", "address")

    def __init__(self, of: Parts) -> None:
        self._number, self._lease, self.address = of._number, of.lease, 0

    def __del__(self) -> None:
        if self.address and self._lease is not None and self._lease._is_here():
            core().GivePart(self._number, self.address)


def parts_of(space: Any) -> Parts:
    """The parts of what a user gave as the place of a group."""
    parts = getattr(space, "_parts", None)
    if not isinstance(parts, Parts):
        raise TypeError(f"space is {space!r}: accepted is what Client.build_group returns")
    return parts


def enter_none() -> int:
    """Have torch take memory as otherwise on the calling thread, until ``leave``."""
    use: int = core().EnterParts(0)
    return use


def leave(use: int) -> None:
    """End what ``enter`` began, from any thread; 0 is nothing."""
    if use:
        core().LeaveParts(use)
