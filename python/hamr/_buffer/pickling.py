"""How buffers travel through pickle: from protocol 5 on without a copy, where that is possible.

The elements are a ``pickle.PickleBuffer``. A pickler with a ``buffer_callback`` hands it
out instead of copying it, and what the receiver passes to ``pickle.loads(buffers=...)``
becomes the buffer's memory.
"""

from __future__ import annotations

from .. import _native
from .._base.allocator import Allocator, is_ordinary
from .._base.element import name_of
from .buffers import Buffer, _rebuild, buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reduce(source: Buffer, protocol: int) -> tuple[Any, ...]:
    """What ``Buffer.__reduce_ex__`` returns: a function, what to call it with, and a state.

    The class is named for subclasses only, and a state is there only if they have one.
    """
    kind, state = type(source), source.__getstate__()
    own = () if kind is Buffer else (kind,)
    rest = () if state is None else (state,)
    source = plain(source)
    place = name_of(source._element), source._allocator, source.device
    if protocol < 5:
        copied = source.copy(Allocator.malloc)._pin()
        return _rebuild, (_native.bytes_of(copied), source.shape, *place, *own), *rest
    from pickle import PickleBuffer

    elements: _native.Array = source.get_host_accessible()
    if not (elements.is_contiguous or elements.is_fortran_contiguous):
        elements = source.copy(Allocator.malloc)
    content = PickleBuffer(raw(elements))
    return rebuild, (content, elements.shape, *place, not elements.is_contiguous, *own), *rest


def plain(source: Buffer) -> Buffer:
    """The elements as a plain buffer of its own, which nobody else changes the shape of."""
    frozen = source._snapshot(_native.Array)
    return _native.view(Buffer, frozen, 0, frozen.shape, frozen.strides)


def raw(elements: _native.Array, allocator: int = Allocator.malloc, device: int = -1) -> Buffer:
    """The bytes of elements without gaps, in the order in which they lie, shared.

    bfloat16 and float8 have no format in the buffer protocol; bytes have.
    """
    return Buffer.from_pointer(
        elements.ptr,
        elements.nbytes,
        "uint8",
        allocator,
        readonly=elements.readonly,
        owner=elements,
        device=device,
    )


def shaped(
    given: Buffer,
    shape: tuple[int, ...],
    dtype: str,
    fortran: bool,
    allocator: int,
    kind: type[Buffer] = Buffer,
) -> Buffer:
    """A buffer over bytes that were received, which it keeps; the reverse of ``raw``."""
    made = Buffer.from_pointer(
        given.ptr,
        shape[::-1] if fortran else shape,
        dtype,
        allocator,
        readonly=given.readonly,
        owner=given,
        device=given.device,
    )
    if made.nbytes != given.nbytes or not given.is_contiguous:
        order = "" if given.is_contiguous else " with gaps"
        raise ValueError(
            f"content has {given.nbytes} bytes{order}: accepted for {shape} {dtype} "
            f"are {made.nbytes} without"
        )
    if fortran or kind is not Buffer:
        strides = made.strides[::-1] if fortran else made.strides
        made = _native.view(kind, made, 0, shape, strides)
    made._source = given.source_protocol
    return made


def rebuild(
    content: Any,
    shape: tuple[int, ...],
    dtype: str,
    allocator: int,
    device: int,
    fortran: bool,
    kind: type[Buffer] = Buffer,
) -> Buffer:
    """The buffer that was pickled: the name is in pickles.

    In host memory it shares ``content``, whatever has the buffer protocol, and is
    read-only if that is. For a device the elements are copied to the device of the same
    number; without a driver for it that is BackendUnavailable, without that device a
    ValueError.
    """
    _check(kind)
    given = buffer(content)
    if is_ordinary(allocator):
        return shaped(given, shape, dtype, fortran, allocator, kind)
    elements = shaped(given, shape, dtype, fortran, Allocator.malloc)
    return _copied(elements, dtype, allocator, device, kind)


def rebuild_copy(
    content: bytes,
    shape: tuple[int, ...],
    dtype: str,
    allocator: int,
    device: int,
    kind: type[Buffer],
) -> Buffer:
    """The buffer that was pickled by a protocol below 5, in memory of its own."""
    _check(kind)
    elements = shaped(buffer(content), shape, dtype, False, Allocator.malloc)
    return _copied(elements, dtype, allocator, device, kind)


def _copied(
    elements: Buffer, dtype: str, allocator: int, device: int, kind: type[Buffer]
) -> Buffer:
    # Not by what the subclass makes of construction and assignment.
    made = Buffer.__new__(kind, elements.shape, dtype, allocator, device=device)
    Buffer.__setitem__(made, ..., elements)
    return made


def _check(kind: object) -> None:
    if not isinstance(kind, type) or not issubclass(kind, Buffer):
        raise TypeError(f"kind is {kind!r}: accepted is hamr.Buffer or a subclass")
