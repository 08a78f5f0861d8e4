"""A device's elements in page-locked host memory, inside a ``with`` block."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import FACTS, Transfer, backend_of, is_pinned
from .lending import Access, Lending, on_host_of, protect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .lending import HostElements


class Mirror:
    """What ``Buffer.mirror`` returns: a context manager, for one block at a time."""

    def __init__(self, mirrored: Any, initialize: bool) -> None:
        self._mode = "r" if mirrored.readonly else "rw" if initialize else "w"
        self._mirrored = mirrored
        self._begun: tuple[Access, Any, Any] | None = None

    def __enter__(self) -> HostElements:
        if self._begun is not None:
            raise RuntimeError("this mirror is in use: call mirror() once more")
        mirrored = self._mirrored
        pinned = _page_locked_beside(mirrored._allocator)
        if pinned is None or mirrored.host_accessible():
            access = mirrored.on_host(self._mode)
            given: HostElements = access.__enter__()
            self._begun = access, None, given
            return given
        # A block of the device's own, so that nobody else writes the elements meanwhile.
        access = mirrored.on(backend_of(mirrored._allocator), self._mode, mirrored.device)
        handle = access.__enter__()
        try:
            made = _native.create(
                _native.Array,
                mirrored._element,
                pinned,
                -1,
                0,
                Transfer.sync_host,
                mirrored.shape,
                None,
            )
            if self._mode != "w":
                _native.write_elements(made, handle)
            host: HostElements = on_host_of(made)
            if self._mode == "r":
                protect(host)
        except BaseException as error:
            access.__exit__(type(error), error, None)
            raise
        self._begun = access, (handle, made), host
        return host

    def __exit__(self, kind: object, exception: object, traceback: object) -> None:
        if self._begun is None:
            raise RuntimeError("this mirror has not begun")
        (access, mirror, given), self._begun = self._begun, None
        if mirror is None:
            access.__exit__(kind, exception, traceback)
            return
        failed = kind
        try:
            if kind is None and self._mode != "r":
                handle, made = mirror
                _native.write_elements(handle, made)
        except BaseException as error:
            failed = type(error)
            raise
        finally:
            protect(given)
            access.__exit__(failed, exception, traceback)


class Mirroring(Lending):
    """Buffers as Vineyard's ``CUDABufferMirror`` has them."""

    __slots__ = ()

    def mirror(self, initialize: bool = False) -> Mirror:
        """A NumPy array of all elements, to be written: ``with b.mirror() as a: a[:] = 1``.

        For elements on a device the array is in page-locked host memory. It has the elements only
        if ``initialize`` is true. At the end of the block it is copied back, but not after an
        exception. Elements that the host reaches are used in place. For a read-only buffer the
        array has the elements in any case, and is read-only. Inside the block the elements belong
        to it, as with ``on_host``. The array must not be kept.
        """
        return Mirror(self, initialize)


def _page_locked_beside(allocator: int) -> int | None:
    """The allocator of page-locked memory of the same runtime; None if it has none."""
    if allocator < 0:
        return None
    backend = backend_of(allocator)
    numbers = (n for n in range(len(FACTS)) if is_pinned(n) and backend_of(n) == backend)
    return next(numbers, None)
