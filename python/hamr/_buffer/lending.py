"""Elements that are somebody's for reading or writing inside a ``with`` block, or kept for many."""

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


class Lending(_Base):
    """Access for writing: what is written inside the block, the buffer has after it.

    The mode says what the block does: ``"r"`` reads, ``"w"`` writes all elements and reads
    none that it has not written, ``"rw"`` reads and may write. Elements are used in place
    where the code reaches them, else in a temporary, which at the end of the block is
    written back; with ``"w"`` nothing is brought in before, and its elements are not
    initialised. What the block enqueued on the buffer's stream is done before that, and
    whoever uses the buffer afterwards waits for it. After an exception nothing is written
    back; what was written in place stays.

    Inside the block the elements are its own, wherever they are: another block for some of
    them, by a view or in another thread, raises InUse unless both read; and so does what
    would change or replace them, as ``fill`` or ``resize``, while a block writes. What the
    block was given may be shared and used in any way, by ``hamr.buffer(array)``, too.
    ``close()`` and ``free()`` go on, and views get what is written.

    Elements that lie on each other, as in sliding windows, are for ``"r"`` alone: other modes
    are a ValueError.
    """

    __slots__ = ()

    def on_host(self, mode: Mode) -> AbstractContextManager[HostElements]:
        """The elements for code on the host: ``with b.on_host("rw") as array: array += 1``.

        The array is NumPy's, of the buffer's shape and type, without NumPy a memoryview. With
        ``"r"`` it is read-only, and after the block in any case: it must not be kept.
        """
        return Access(self, _HOST, mode, -1)

    def on_cuda(self, mode: Mode, device: Device | None = None) -> AbstractContextManager[Handle]:
        """The elements for CUDA code: ``with b.on_cuda("rw") as h: cp.asarray(h)[...] += 1``.

        It is a Handle, which CuPy, PyTorch, Numba and JAX take by their protocols. ``device`` is
        by default the current one. The block enqueues its work on ``h``'s stream, the buffer's or
        else the default one, or waits for it.
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
        #: What the block has; whoever takes it out ends the access.
        self._open: list[tuple[Any, _native.Array, tuple[_native.Array, int, int]]] = []
        #: Whoever takes out what is in it begins the access. Threads may try at once.
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

    if not TYPE_CHECKING:  # who forgot the "with" tries what arrays have

        def __getattr__(self, name):
            if name in Access.__slots__:  # an object that was made without __init__
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
        if getattr(self, "_open", None):  # the block was left without its end
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
    """NumPy's array of elements that the host reaches, without NumPy a memoryview."""
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
            return  # something was made from it, and keeps the memory
    elif array is not None:
        array.setflags(write=False)
