"""Elements that a ``with`` block borrows for reading or writing, and temporaries that are kept."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import SPACES, space_number
from .._base.errors import FreedBuffer
from .._base.place import device_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, Literal, NoReturn, Self, overload

    import numpy

    from .._base.place import Device
    from .handle import Handle

    Mode = Literal["r", "w", "rw"]
    HostElements = numpy.ndarray[Any, numpy.dtype[Any]]

    _Base = _native.Array
else:
    _Base = object

_MODES = {"r": 0, "w": 1, "rw": 2}
_HOST = 0


class Caching(_Base):
    """A promise about a buffer, so that hamr does not copy the same elements twice."""

    __slots__ = ()

    def cached(self, on: bool = True) -> Self:
        """Keep temporaries. Whoever writes the elements without hamr must call ``changed()``.

        Without it each ``get_cuda_accessible()`` of host memory, and each
        ``get_host_accessible()`` of a device's memory, makes a copy of its own. With it the copy
        for a space and device is kept and handed out again, until the elements change. hamr sees
        its own changes: ``fill``, ``set``, ``b[...] = x``, ``resize``, ``move``, ``on_host("rw")``
        and the like, by this buffer or another one of the same memory. It does not see writes to
        ``numpy.asarray(b)``, to a handle in place or by a pointer.

        Several users may have the same temporary. It must not be written to, and its protocols say
        that it is read-only. Libraries that refuse read-only arrays get it by
        ``with b.on_cuda("r") as h``.

        A kept temporary is released at a change, at ``cached(False)``, ``free()`` and ``close()``,
        with the buffer, at ``hamr.trim()`` and when memory of its kind runs out. ``hamr.stats()``
        counts it. Views and copies keep nothing unless ``cached`` is called for them. Returns the
        buffer.
        """
        self._cache(on)
        return self

    @property
    def is_cached(self) -> bool:
        """Whether temporaries are kept, see ``cached``."""
        return self._cached

    def changed(self) -> None:
        """Tell hamr that NumPy, C, a kernel or anybody else has written the elements.

        Temporaries that buffers of the same memory keep, see ``cached``, are not handed out any
        more. Handles keep theirs. Work that writes on a stream need not be over: it is ordered as
        for any access.
        """
        self._changed()


class Lending(_Base):
    """Access for writing: after the block the buffer has what the block has written.

    The mode says what the block does: ``"r"`` reads; ``"w"`` writes all elements, and reads none
    before it has written them; ``"rw"`` reads and may write. The block uses elements in place if
    its code reaches them, else in a temporary, which is written back at the end of the block.
    With ``"w"`` nothing is copied into the temporary, and its elements are not initialised. Work
    that the block enqueued on the buffer's stream is done before the elements are written back,
    and later uses of the buffer wait for that. After an exception nothing is written back; what
    was written in place stays.

    Inside the block the elements belong to it, wherever they are. Another block for some of them,
    by a view or in another thread, raises InUse unless both read. While a block writes,
    operations that would change or replace the elements, such as ``fill`` or ``resize``, raise
    InUse as well. What the block got may be shared and used in any way, also by
    ``hamr.buffer(array)``. ``close()`` and ``free()`` still work, and views get what is written.

    Elements that overlap, as in sliding windows, are for ``"r"`` alone: other modes are a
    ValueError.
    """

    __slots__ = ()

    def on_host(self, mode: Mode) -> AbstractContextManager[HostElements]:
        """The elements for code on the host: ``with b.on_host("rw") as array: array += 1``.

        It is a NumPy array of the buffer's shape and type, or a memoryview without NumPy. It is
        read-only with ``"r"``, and in any mode after the block: it must not be kept.
        """
        return Access(self, _HOST, mode, -1)

    def on_cuda(self, mode: Mode, device: Device | None = None) -> AbstractContextManager[Handle]:
        """The elements for CUDA code: ``with b.on_cuda("rw") as h: cp.asarray(h)[...] += 1``.

        It is a Handle, which CuPy, PyTorch, Numba and JAX accept by their protocols. ``device`` is
        by default the current one. The block enqueues its work on ``h``'s stream, which is the
        buffer's or else the default stream, or waits for its work.
        """
        return Access(self, space_number("cuda"), mode, device_number(device))

    if TYPE_CHECKING:

        @overload
        def on(
            self, space: Literal["host"], mode: Mode, device: None = None
        ) -> AbstractContextManager[HostElements]: ...
        @overload
        def on(
            self,
            space: Literal["cuda", "hip", "openmp", "opencl", "sycl"],
            mode: Mode,
            device: Device | None = None,
        ) -> AbstractContextManager[Handle]: ...

    def on(self, space: str, mode: Any = None, device: Device | None = None) -> Any:
        """The elements for code in a space: ``on_host`` for "host", else as ``on_cuda``.

        Spaces are "host", "cuda", "hip", "openmp", "opencl" and "sycl"; the host has no devices.
        """
        number, place = space_number(space), device_number(device)
        if number == _HOST and place != -1:
            raise ValueError(f"device is {device!r}: accepted is None, since the host has none")
        return Access(self, number, mode, place)


class Access:
    """What ``on_host()`` and its siblings return: a context manager, for one block at a time."""

    __slots__ = ("_buffer", "_device", "_free", "_mode", "_open", "_space")

    def __init__(self, buffer: Any, space: int, mode: str, device: int) -> None:
        #: What the block has. Taking it out ends the access.
        self._open: list[tuple[Any, _native.Array, tuple[_native.Array, int, int]]] = []
        #: Taking out the item begins the access. Several threads may try at once.
        self._free = [True]
        if not isinstance(mode, str):
            raise TypeError(f"mode is {mode!r}: accepted are 'r', 'w' and 'rw'")
        if mode not in _MODES:
            raise ValueError(f"mode is {mode!r}: accepted are 'r', 'w' and 'rw'")
        if buffer._closed:
            raise FreedBuffer("the buffer was closed")
        self._buffer, self._space, self._device = buffer, space, device
        self._mode = _MODES[mode]

    def __repr__(self) -> str:
        return f"<hamr access for a with block: {self._line()}>"

    def _line(self) -> str:
        name = next(name for name, number in SPACES.items() if number == self._space)
        mode = next(mode for mode, number in _MODES.items() if number == self._mode)
        if name in ("host", "cuda"):
            return f'with b.on_{name}("{mode}") as x: ...'
        return f'with b.on("{name}", "{mode}") as x: ...'

    if not TYPE_CHECKING:  # help users who forgot the "with"

        def __getattr__(self, name):
            if name in Access.__slots__:  # in an object that was made without __init__
                raise AttributeError(f"the access has no {name} yet", name=name, obj=self)
            raise AttributeError(
                f"an access has no {name}: write {self._line()}", name=name, obj=self
            )

        def __getitem__(self, key):
            raise TypeError(f"an access has no elements: write {self._line()}")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"{self!r} is of one place and process and cannot be pickled or copied: pickle the "
            "buffer, and call on_host() or on_cuda() of what is loaded"
        )

    def __enter__(self) -> Any:
        try:
            self._free.pop()
        except IndexError:
            raise RuntimeError(
                "this access is in use: call on_host() or on_cuda() once more"
            ) from None
        try:
            handle, opened = _native.open_access(
                self._buffer, self._space, self._device, self._mode
            )
        except BaseException:
            self._free.append(True)
            raise
        self._open.append((handle, handle, opened))
        if self._space != _HOST:
            return handle
        try:
            given = on_host_of(handle)
        except BaseException:
            self._end(False)
            raise
        self._open[0] = given, handle, opened
        return given

    def __exit__(self, kind: object, exception: object, traceback: object) -> None:
        self._end(kind is None)

    def __del__(self) -> None:
        if getattr(self, "_open", None):  # the block was never ended
            self._end(False)

    def _end(self, commit: bool) -> None:
        try:
            given, handle, opened = self._open.pop()
        except IndexError:
            raise RuntimeError("this access has not begun") from None
        try:
            if given is not handle:
                protect(given)
        finally:
            try:
                _native.end_access(handle, opened, commit)
            finally:
                self._free.append(True)
                handle._close()


def on_host_of(handle: _native.Array) -> Any:
    """A NumPy array of elements that the host reaches; a memoryview without NumPy."""
    try:
        import numpy
    except ImportError:
        return memoryview(handle)
    return numpy.asarray(handle)


def protect(array: Any) -> None:
    """Make later writes fail instead of being lost."""
    if isinstance(array, memoryview):
        try:
            array.release()
        except BufferError:
            return  # something that was made from it keeps the memory
    elif array is not None:
        array.setflags(write=False)
