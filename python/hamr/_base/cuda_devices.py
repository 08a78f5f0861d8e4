"""Where things are: the devices, which one is current, and whose memory an object is."""

from __future__ import annotations

import sys
from _operator import index
from _thread import get_ident

from .. import _native
from .._protocols import dlpack
from .._protocols.cuda_array_interface import NAME, unreadable
from .._protocols.dispatch import share
from .._protocols.fields import exact, short
from .allocator import device_number
from .errors import BackendUnavailable
from .event import Event
from .library import core
from .stream import BACKEND, Stream, is_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOST = -1

#: Interfaces whose place is known when they are read, and those of host memory alone.
_TELL_BY_SHARING = ("__sycl_usm_array_interface__", "__arrow_c_device_array__")
_OF_THE_HOST = ("__arrow_c_array__", "__arrow_c_stream__", "__array_interface__")


class device:  # noqa: N801
    """A CUDA device: ``with hamr.device(1): …`` makes it current for the calling thread.

    ``device()`` is the one that is current now. What was current before is so again
    at the end; blocks nest, and one object serves any number of them, on any thread.
    A number that is no device's is a ValueError, no driver BackendUnavailable.
    """

    __slots__ = ("_before", "_index")

    def __init__(self, index: int | None = None) -> None:
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
        """Bytes that there are."""
        return self[1]

    def __repr__(self) -> str:
        return f"MemoryInfo(free={self.free}, total={self.total})"


def current_device() -> int:
    """The calling thread's current CUDA device."""
    return core().CurrentDevice(BACKEND)


def set_current_device(number: Any) -> None:
    """Make a CUDA device current for the calling thread, until something else is made so."""
    core().Activate(BACKEND, device(number)._index)


def device_of(x: Any) -> int:
    """The device that owns a buffer, handle, array, address, stream or event; -1 is the host.

    An int is an address. Page-locked memory belongs to the host, and so does all
    that no device runtime knows. An object that is none of these is a TypeError.
    """
    if isinstance(x, _native.Array):
        return x.device
    if isinstance(x, (Stream, Event)):
        return x.device if x.device >= 0 else current_device()
    number = _address(x)
    if number is not None:
        return _owner(number)
    try:
        interface = getattr(x, NAME, None)
    except Exception as error:
        found = _owner_by_dlpack(x)
        if found is None:
            raise unreadable(x, error) from error
        return found
    if interface is not None and not isinstance(x, type):
        return _owner_by_interface(x, interface)
    found = _owner_by_dlpack(x)
    if found is not None:
        return found
    if is_stream(x):
        return device_of(Stream.from_any(x))
    if not isinstance(x, type):
        if any(getattr(x, name, None) is not None for name in _TELL_BY_SHARING):
            return share(_native.Array, x, wait=False)[0].device
        if any(getattr(x, name, None) is not None for name in _OF_THE_HOST):
            return _HOST
    try:
        memoryview(x)
    except (TypeError, ValueError, BufferError):
        raise TypeError(
            f"x is {short(x)}: accepted is a buffer, a handle, an array, an address, "
            "a stream or an event"
        ) from None
    return _HOST


def peer_access(a: Any, b: Any) -> bool:
    """Let two CUDA devices reach each other's memory where they can; whether both do now.

    A device reaches its own. Enabling what is enabled is harmless.
    """
    first, second = device(a)._index, device(b)._index
    if first == second:
        return True
    return enable_peer(first, second) & enable_peer(second, first)


def enable_peer(user: int, owner: int) -> bool:
    """Let a device reach another one's memory; whether it does."""
    if not core().CanAccess(BACKEND, user, owner):
        return False
    core().EnablePeer(BACKEND, user, owner)
    return True


def memory_info(device: Any = None) -> MemoryInfo:
    """Free and total memory of a CUDA device, by default the current one, in bytes."""
    return MemoryInfo(_native.memory_info(BACKEND, _number(device)))


def device_properties(device: Any = None) -> dict[str, str]:
    """What is known of a CUDA device, by default the current one, as names and texts."""
    return _native.describe(BACKEND, _number(device), True)


def _number(device: Any) -> int:
    return -1 if device is None else device_number(device)


def _address(x: Any) -> int | None:
    """The address that an int, or NumPy's kind of int, stands for."""
    numpy = sys.modules.get("numpy")
    if not isinstance(x, int) and (numpy is None or not isinstance(x, numpy.integer)):
        return None
    if isinstance(x, bool):
        raise TypeError(f"x is {x!r}: accepted as an address is an int")
    number = index(x)
    if not 0 <= number < 2**64:
        raise ValueError(f"x is {x!r}: accepted as an address are 0 ... 2**64-1")
    return number


def _owner(address: int) -> int:
    try:
        return _native.locate(address)[1]
    except BackendUnavailable:  # then there is no memory but the host's
        return _HOST


def _owner_by_interface(x: Any, interface: Any) -> int:
    data = interface.get("data") if isinstance(interface, dict) else None
    pointer = exact(data[0]) if isinstance(data, tuple) and len(data) == 2 else None
    if pointer is None or not 0 <= pointer < 2**64:
        raise TypeError(f"x is {short(x)}: its __cuda_array_interface__ has no address")
    return _owner(pointer)


def _owner_by_dlpack(x: Any) -> int | None:
    """The device that DLPack names for an object; None if it names none that hamr knows."""
    if isinstance(x, type) or getattr(x, "__dlpack_device__", None) is None:
        return None
    pair = x.__dlpack_device__()
    kind, number = map(exact, pair) if isinstance(pair, tuple) and len(pair) == 2 else (None, None)
    if kind in (dlpack.CPU, dlpack.CUDA_HOST, dlpack.ROCM_HOST):
        return _HOST
    if kind == dlpack.CUDA_MANAGED:  # whose number is always 0
        return dlpack.adopt(_native.Array, x, 0, 1, False).device
    return number if kind in (dlpack.CUDA, dlpack.ROCM) else None
