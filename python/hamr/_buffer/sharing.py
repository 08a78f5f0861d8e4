"""Memory of a buffer that other processes are to have."""

from __future__ import annotations

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shares import SharedHandle

    _Base = _native.Array
else:
    _Base = object


class Sharing(_Base):
    """Sharing with other processes, without a server: see ``hamr.store`` for one with."""

    __slots__ = ()

    def share(self, *, copy: bool | None = None, readonly: bool = False) -> SharedHandle:
        """A handle by which another process opens the same memory: see ``hamr.open_shared``.

        In place is what other processes can have: memory that was opened or is of ``hamr.store``,
        allocator shared, cuda, and cuda_async where HAMR_CUDA_POOL_SHARED is 1, and what other
        libraries have of CUDA's ordinary allocation. All else is copied once, to memory of the same
        device or the host; the handle's ``copied`` tells. ``copy=False`` is a ValueError there,
        ``copy=True`` always copies. With ``readonly=True`` receivers have it mapped for reading, so
        that writes fail; a ValueError where that takes a copy, unless ``copy=True``. Who means to
        can map what is in place anew, and write; not so a copy on the host.

        It waits for the work that hamr knows of, and what the buffer's stream holds. What is
        written later both processes see, and have to agree about. The memory stays allocated until
        the handle and all that was opened by it are gone, also by the end of their processes.
        """
        return _shared(self, copy, readonly)


def _shared(source: _native.Array, copy: bool | None, readonly: bool) -> SharedHandle:
    """What is in its place after the first call, since each import takes its time."""
    global _shared
    from .shares import shared

    _shared = shared
    return shared(source, copy, readonly)
