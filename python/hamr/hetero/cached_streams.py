"""Streams of the cache. A stream returns to the cache when its last user ends."""

from __future__ import annotations

import hamr._native as _native

from .._base.library import core
from .._base.stream import Stream

_CACHED = 2  # the extension's number for the life of such a stream


def take(backend: str, device: int) -> Stream:
    """A stream of a device on which nothing is pending."""
    handle = core().TakeCachedStream(backend, device)
    stream = Stream.__new__(Stream)
    stream._backend, stream._device, stream._value = backend, device, handle
    stream._generation, stream._owner, stream._sure = _native.generation(), None, True
    stream._life = _native.stream_life(handle, device, backend, _CACHED, None)
    return stream
