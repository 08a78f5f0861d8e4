"""Memory that is kept for reuse between pieces of work."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple
from weakref import finalize

import hamr._native as _native

from .._base.allocator import (
    Allocator,
    allocator_from,
    allocator_of,
    backend_of,
    is_ordinary,
    is_pinned,
    transfer_of,
)
from .._base.element import element_of
from .._base.errors import BackendUnavailable, Error, FreedBuffer, before_fork
from .._base.library import core
from .._base.memory_stream import stream_for_memory
from .._base.place import device_and_backend
from .._base.size import size_of
from .._base.stream import blocks
from .._buffer.buffers import Buffer
from .._buffer.pointers import dimensions_of
from .._native import ScopedContext
from .choosing import accelerators
from .context import DeviceMismatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from .._base.allocator import AllocatorName, Transfer, TransferName
    from .._base.place import Device
    from .._base.stream import Stream

_UNLIMITED = -1  # the core's number for no limit
_KINDS = ("device", "pinned")


class AllocatorStatistics(NamedTuple):
    """What a CachingAllocator has. Memory that waits for its release is neither live nor cached."""

    #: Blocks that buffers have.
    live: int
    #: Their bytes.
    live_bytes: int
    #: The bytes that were asked for, of those blocks.
    requested_bytes: int
    #: Blocks that are kept for reuse.
    cached: int
    #: Their bytes.
    cached_bytes: int
    #: The most bytes that are kept; None is no limit.
    limit: int | None
    #: How often a kept block was handed out.
    hits: int
    #: How often new memory was taken.
    misses: int


class CachingAllocator:
    """Memory of a device, or page-locked memory, that is kept for reuse by CMSSW's rule.

    Requests are rounded up to powers of two, from 256 bytes to 1 GiB. Larger memory is not kept. A
    block whose buffer has ended is handed out again at once on the stream of its last work, and on
    other streams when that work is over. Nobody waits, and the driver is not asked for memory.

    ``device`` is "cuda:1", or the number of a CUDA device or of a device of ``allocator``'s
    runtime. By default it is that of the ScopedContext that the caller is in, else the first
    accelerator. ``kind`` is "device" or "pinned", page-locked host memory, which any device of the
    runtime can use; ``allocator`` says exactly which memory. ``limit`` is how many bytes are kept
    at most: 0 is CMSSW's rule, 0.8 of the memory that is free now on the device that has least;
    None is no limit.

    ``close()``, the end of a ``with`` block or the end of the object releases what is kept, and
    later what buffers still have. Any thread may use it. In a forked child the parent's allocator
    raises ForkError. BackendUnavailable if there is no such device.
    """

    __slots__ = ("__weakref__", "_close", "_generation", "_number", "allocator", "device")

    #: The allocator of the memory.
    allocator: Allocator
    #: The device's number; -1 for page-locked memory.
    device: int

    def __init__(
        self,
        device: Device | None = None,
        kind: str = "device",
        *,
        allocator: Allocator | int | AllocatorName | None = None,
        limit: int | str | None = 0,
    ) -> None:
        if kind not in _KINDS:
            raise ValueError(f"kind is {kind!r}: accepted are 'device' and 'pinned'")
        most = _UNLIMITED
        if limit is not None:
            most = size_of("limit", limit, "0 for the rule, and None")
        given = -1 if allocator is None else allocator_of(allocator)
        if is_ordinary(given):
            raise ValueError(
                f"allocator is {allocator_from(given).name}: accepted are those of devices' memory "
                "and of page-locked memory"
            )
        backend, number = _place(device, given)
        self._generation = _native.generation()
        pinned = kind == "pinned"
        [(made, of)] = _native.new_caching_allocator(given, backend, number, pinned, most)
        self._number: int = made
        self.allocator = allocator_from(of)
        self.device = -1 if is_pinned(of) else number
        self._close = finalize(self, _close, self._generation, self._number)

    def allocate(
        self,
        shape: int | tuple[int, ...],
        dtype: Any = "float64",
        stream: Any = None,
        *,
        transfer: Transfer | int | TransferName = "sync_host",
    ) -> Buffer:
        """A new buffer, not initialised, that a stream can use at once.

        ``stream`` is a ScopedContext or a stream. By default it is that of the ScopedContext or
        ``with stream:`` block that the caller is in, else the default stream. The buffer is like
        any other. Its memory returns when it ends: after the work of its stream, and all work on
        other streams that hamr knows of. DeviceMismatch for a stream of another device. OutOfMemory
        if there is no memory even after what is kept and not in use was released.
        """
        if isinstance(stream, ScopedContext):
            if stream.backend != backend_of(self.allocator) or -1 < self.device != stream.device:
                raise DeviceMismatch(f"stream is {stream!r}: {self!r} serves another device")
            stream = stream.stream
        try:
            order = stream_for_memory(stream, self.allocator, self.device)
        except ValueError as error:
            if isinstance(stream, int):
                raise
            raise DeviceMismatch(f"{error}: {self!r} serves another device") from None
        if order is None and stream is None:
            self._refuse_elsewhere()
        made = _native.create_cached(
            Buffer,
            element_of(dtype),
            self.allocator,
            self.device,
            0 if order is None else order._value,
            transfer_of(transfer),
            shape if type(shape) is int else dimensions_of(shape),
            self._usable(),
            self._generation,
        )
        if order is not None:
            made._set_order(order._value, made._transfer, order)
        return made

    def _refuse_elsewhere(self) -> None:
        """Raise DeviceMismatch if the caller is in a scope of another device."""
        scope = _innermost(backend_of(self.allocator))
        if scope is not None:
            raise DeviceMismatch(f"the scope is on {scope!r}: {self!r} serves another device")

    def stats(self) -> AllocatorStatistics:
        """The present figures."""
        [numbers] = _native.caching_statistics(self._usable())
        found = AllocatorStatistics(*numbers)
        return found._replace(limit=None) if found.limit == _UNLIMITED else found

    def trim(self) -> None:
        """Release what is kept and not in use. ``hamr.trim()`` does so for all allocators."""
        core().TrimCachingAllocator(self._usable())

    def close(self) -> None:
        """Stop keeping and handing out memory. Twice is harmless."""
        self._close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._close.alive

    def _usable(self) -> int:
        if self._generation != _native.generation():
            raise before_fork("caching allocator")
        if self.closed:
            raise FreedBuffer(f"{self!r} was closed")
        return self._number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError("a hamr.hetero.CachingAllocator cannot be pickled")

    def __repr__(self) -> str:
        where = f" on device {self.device}" if self.device >= 0 else ""
        return f"<hamr.hetero.CachingAllocator of {self.allocator.name}{where}>"


def _close(generation: int, number: int) -> None:
    """Close an allocator. An object may end at any time, also in a forked child."""
    if generation == _native.generation():
        core().CloseCachingAllocator(number)


def _place(device: Device | None, allocator: int) -> tuple[str, int]:
    """A runtime's name, and a device's number."""
    backend = None if allocator < 0 else backend_of(allocator)
    if device is None:
        scope = _innermost(backend)
        if scope is not None:
            return scope._backend, scope._device
        if backend is not None:
            return backend, _current(backend)
        found = accelerators()
        if not found:
            raise BackendUnavailable("there is no accelerator whose memory could be kept")
        name, _, number = found[0].partition(":")
        return name, int(number)
    number_of, named = device_and_backend(device)
    if backend is not None and named != backend:
        if isinstance(device, str):
            raise ValueError(
                f"device is {device!r}: accepted for {allocator_from(allocator).name} memory are "
                f"devices of {backend}"
            )
        named = backend
    return named, _current(named) if number_of < 0 else number_of


def _current(backend: str) -> int:
    with suppress(Error):
        return core().CurrentDevice(backend)
    return 0


def _innermost(backend: str | None) -> Stream | None:
    """The stream of the innermost scope of a runtime, or of any runtime, whose device is known."""
    around = blocks()
    while around is not None:
        stream, around = around[0], around[1]
        if stream._device >= 0 and backend in (None, stream._backend):
            return stream  # type: ignore[no-any-return]
    return None
