"""Sharing a buffer's memory with other processes."""

from __future__ import annotations

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shares import SharedHandle

    _Base = _native.Array
else:
    _Base = object


class Sharing(_Base):
    """Sharing with other processes without a server; ``hamr.store`` has one."""

    __slots__ = ()

    def share(self, *, copy: bool | None = None, readonly: bool = False) -> SharedHandle:
        """A handle by which another process opens the same memory: see ``hamr.open_shared``.

        Shared in place is memory that was opened or is from ``hamr.store``, memory of the
        allocators shared, cuda, and cuda_async if HAMR_CUDA_POOL_SHARED is 1, and memory that other
        libraries have from CUDA's ordinary allocation. All other memory is copied once, to memory
        of the same device or the host; the handle's ``copied`` says so. ``copy=False`` makes that a
        ValueError, ``copy=True`` always copies. With ``readonly=True`` receivers map the memory for
        reading, so that writes fail; a ValueError if that takes a copy, unless ``copy=True``. A
        receiver that intends to write can still map memory that is in place anew; a copy on the
        host cannot be mapped for writing.

        The call waits for the work that hamr knows of, and for the buffer's stream. Both processes
        see what is written later, and have to agree about that. The memory stays allocated until
        the handle and all that was opened by it are gone. The end of a process counts as well.
        """
        return _shared(self, copy, readonly)


def _shared(source: _native.Array, copy: bool | None, readonly: bool) -> SharedHandle:
    """Import the function, and call it. Later calls call it directly, since imports take time."""
    global _shared
    from .shares import shared

    _shared = shared
    return shared(source, copy, readonly)
