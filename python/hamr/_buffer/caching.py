"""Temporaries that a buffer keeps for whoever asks for them next."""

from __future__ import annotations

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    _Base = _native.Array
else:
    _Base = object


class Caching(_Base):
    """What a user promises of a buffer, so that the same elements are not copied twice."""

    __slots__ = ()

    def cached(self, on: bool = True) -> Self:
        """Keep temporaries: whoever writes the elements without hamr calls ``changed()``.

        Without it each ``get_cuda_accessible()`` of host memory, and each
        ``get_host_accessible()`` of a device's, is a copy of its own. With it the copy for a space
        and device is kept and handed out again, the same memory, until the elements change. hamr
        sees changes of its own: ``fill``, ``set``, ``b[...] = x``, ``resize``, ``move``,
        ``on_host("rw")`` and the like, by this buffer or another one of the same memory. It does
        not see what is written to ``numpy.asarray(b)``, to a handle in place or by a pointer.

        What is handed out is others', too, and must not be written to; it says that it is
        read-only. Libraries that refuse such arrays get it by ``with b.on_cuda("r") as h``.

        Kept memory goes at a change, at ``cached(False)``, ``free()`` and ``close()``, with the
        buffer, at ``hamr.trim()`` and when memory of its kind runs out; ``hamr.stats()`` counts
        it. Views and copies keep nothing unless they are asked to. Returns the buffer.
        """
        self._cache(on)
        return self

    @property
    def is_cached(self) -> bool:
        """Whether temporaries are kept, see ``cached``."""
        return self._cached

    def changed(self) -> None:
        """Say that the elements were written by NumPy, C, a kernel or anybody but hamr.

        What buffers of the same memory keep of them, see ``cached``, is not handed out any more;
        handles keep what they have. Work that writes on a stream need not be over: it is ordered
        as for any access.
        """
        self._changed()
