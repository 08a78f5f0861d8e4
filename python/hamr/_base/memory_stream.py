"""Which stream memory is used on: the one that was given, or that of a block."""

from __future__ import annotations

from .allocator import backend_of, is_of_a_device, is_ordinary
from .library import core
from .stream import BACKEND, PER_THREAD, Stream, as_stream, blocks, handle_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shared_stream(handle: int, backend: str) -> Stream:
    """A Stream for a handle that is known to be a backend's: the driver is not asked."""
    made = Stream.__new__(Stream)
    made._share(handle, -1, -1, backend)
    return made


def stream_for_memory(
    stream: Any, allocator: int, device: int, pointer: int | None = None
) -> Stream | None:
    """The stream that was given for memory of an allocator: new memory, or memory at an address.

    ``device`` is the number of the memory's device; -1 is the current device, or the one of the
    address. If no stream was given, it is that of a block, or None.
    """
    on_a_device = is_of_a_device(allocator)
    backend = streams_of(allocator)
    if stream is None:
        from .stream_blocks import fitting

        place = (lambda: _place_of(backend, device, pointer)) if on_a_device else None
        found: Stream | None = fitting(blocks(), backend, place)
        return found
    order = as_stream(stream, device if on_a_device or is_per_thread(stream) else -1, backend)
    if on_a_device and device < 0 <= order._device:
        order._fitting(_place_of(backend, device, pointer), backend)
    return order


def streams_of(allocator: int) -> str:
    """The backend whose streams an allocator's memory is used on; CUDA for ordinary memory."""
    return BACKEND if allocator < 0 or is_ordinary(allocator) else backend_of(allocator)


def _place_of(backend: str, device: int, pointer: int | None) -> int:
    """The device of new memory, or of memory at an address. A ``device`` of -1 is not known yet."""
    if device >= 0:
        return device
    if pointer is None:
        return core().CurrentDevice(backend)
    from .location import device_of_address

    return device_of_address(pointer)


def is_per_thread(stream: Any) -> bool:
    """Whether the stream depends on the calling thread and the device."""
    return not isinstance(stream, Stream) and handle_of(stream) == PER_THREAD
