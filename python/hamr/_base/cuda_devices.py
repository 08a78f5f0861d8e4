"""CUDA's devices: which one is current, what they are, and whose memory they reach."""

from __future__ import annotations

from _thread import get_ident

import hamr._native as _native

from .library import core
from .place import device_and_backend, device_number
from .stream import BACKEND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .place import Device


class device:  # noqa: N801
    """A CUDA device: ``with hamr.device(1): …`` makes it current for the calling thread.

    ``device()`` is the device that is current now. The end of the block restores the device that
    was current before. Blocks nest, and one object serves any number of them, on any thread.
    ValueError if there is no device of that number, BackendUnavailable without a driver.
    """

    __slots__ = ("_before", "_index")

    def __init__(self, index: Device | None = None) -> None:
        number = -1 if index is None else device_number(index)
        if number < 0:
            number = current_device()
        else:
            count = core().DeviceCount(BACKEND)
            if number >= count:
                raise ValueError(f"device is {number}: accepted are 0 ... {count - 1}")
        self._index = number
        self._before: dict[int, list[tuple[int, int]]] = {}  # by thread, the innermost block last

    @property
    def index(self) -> int:
        """The device's number."""
        return self._index

    def __enter__(self) -> device:
        before = core().Activate(BACKEND, self._index)
        self._before.setdefault(get_ident(), []).append((_native.generation(), before))
        return self

    def __exit__(self, *exception: object) -> None:
        thread = get_ident()
        blocks = self._before.get(thread)
        if not blocks:
            raise RuntimeError(f"{self!r}: the block ends on another thread than it began on")
        generation, before = blocks.pop()
        if not blocks:
            del self._before[thread]
        if generation == _native.generation():  # the driver does not survive a fork
            core().Restore(BACKEND, before)

    def __index__(self) -> int:
        return self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and other._index == self._index

    def __hash__(self) -> int:
        return hash(self._index)

    def __repr__(self) -> str:
        return f"hamr.device({self._index})"


class MemoryInfo(tuple[int, int]):
    """How full a device's memory is, in bytes: ``(free, total)``."""

    __slots__ = ()

    @property
    def free(self) -> int:
        """Bytes that are free."""
        return self[0]

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self[1]

    def __repr__(self) -> str:
        return f"MemoryInfo(free={self.free}, total={self.total})"


def current_device() -> int:
    """The calling thread's current CUDA device."""
    return core().CurrentDevice(BACKEND)


def set_current_device(number: Any) -> None:
    """Make a CUDA device current for the calling thread, until another one is made current."""
    core().Activate(BACKEND, device(number)._index)


def peer_access(a: Any, b: Any) -> bool:
    """Let two CUDA devices reach each other's memory if they can. Returns whether both do now.

    A device always reaches its own memory. Calling this twice is harmless.
    """
    first, second = device(a)._index, device(b)._index
    if first == second:
        return True
    return enable_peer(first, second) & enable_peer(second, first)


def enable_peer(user: int, owner: int) -> bool:
    """Let a device reach another one's memory. Returns whether it does now."""
    if not core().CanAccess(BACKEND, user, owner):
        return False
    core().EnablePeer(BACKEND, user, owner)
    return True


def memory_info(device: Device | None = None) -> MemoryInfo:
    """Free and total memory in bytes of a CUDA device, by default the current one, or "hip:0"."""
    number, backend = _named(device)
    return MemoryInfo(_native.memory_info(backend, number))


def device_properties(device: Device | None = None) -> dict[str, str]:
    """The properties of a CUDA device, by default the current one, or of "hip:0", as texts."""
    number, backend = _named(device)
    return _native.describe(backend, number, True)


def _named(device: Any) -> tuple[int, str]:
    return (-1, BACKEND) if device is None else device_and_backend(device)
