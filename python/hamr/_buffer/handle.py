"""Handle: a place where code in one space can touch a buffer's elements."""

from __future__ import annotations

import hamr._native as _native

from .._base.element import name_of
from .reading import Reading, count
from .views import shape_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Self

    from .._base.place import Device


class Handle(Reading, _native.Array):
    """What ``get_host_accessible()`` and its siblings return.

    A handle holds the memory, or a temporary copy of it, for as long as the handle or
    anything made from it lives: ``numpy.asarray(handle)`` shares the memory. It
    keeps its memory and shape, whatever happens to the buffer. Views of a handle are handles;
    copies and elements are buffers.

    A temporary on the host is read-only, since a write to it would not reach the buffer. To write,
    use ``with b.on_host("rw") as array:``.
    """

    __slots__ = ("__weakref__",)

    #: hamr.Buffer, which registers itself here.
    _buffer: ClassVar[Any] = None

    if TYPE_CHECKING:  # the stub of the extension knows no handles; elements are buffers

        def __getitem__(self, key: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...
        def get_host_accessible(self) -> Handle: ...
        def get_cuda_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_hip_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_openmp_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_opencl_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_sycl_accessible(self, device: Device | None = -1) -> Handle: ...

    @property
    def is_temporary(self) -> bool:
        """Whether the elements are a copy: the buffer does not see changes to them."""
        return self._temporary

    def reshape(self, *shape: int | tuple[int, ...], copy: bool | None = None) -> Self:
        """A view of the elements, in C order, in another shape; one size may be -1.

        ValueError if strides cannot describe the elements in that shape; ``copy()`` makes a buffer
        that can be reshaped.
        """
        if copy not in (None, False):
            raise ValueError(f"copy is {copy!r}: a handle's views share, handle.copy() is a copy")
        dimensions = tuple(count("shape", d) for d in shape_from(shape))
        source = self._snapshot(_native.Array)
        made, _ = _native.reshape(_native.Array, source, dimensions, 1)
        return self._part(source, 0, made.shape, made.strides)

    def _part(
        self,
        source: _native.Array,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        element: int = 0,
    ) -> Self:
        return _native.view(type(self), source, offset, shape, strides, element)

    def _finalized(self, made: Any) -> Any:
        return made

    def _new(self, allocator: int, device: int, element: int) -> Any:
        return _native.copy(self._buffer, self, allocator, device, element)

    @classmethod
    def _sharing(cls, obj: Any) -> Any:
        return cls._buffer._sharing(obj)

    def close(self) -> None:
        """Release the memory. Arrays made from the handle keep it. Closing twice is harmless."""
        self._close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a hamr.Handle is a place in this process's memory and cannot be pickled or copied: "
            "pickle the buffer, or hamr.buffer(handle).copy()"
        )

    def __repr__(self) -> str:
        if self._closed:
            return "<hamr.Handle closed>"
        kind = "temporary" if self._temporary else "in place"
        what = f"{self.shape} {name_of(self._element)} {self.allocator.name}"
        return f"<hamr.Handle {what} {kind} at {self.ptr:#x}>"


Handle.__module__ = "hamr"
_native.set_handle_type(Handle)
