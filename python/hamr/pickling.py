"""How buffers travel through pickle: from protocol 5 on without a copy, where that is possible.

The elements are a ``pickle.PickleBuffer``. A pickler with a ``buffer_callback`` hands it
out instead of copying it, and what the receiver passes to ``pickle.loads(buffers=...)``
becomes the buffer's memory.
"""

from __future__ import annotations

from . import _native
from .allocator import Allocator, is_ordinary
from .buffer import Buffer, _rebuild, buffer
from .element import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reduce(source: Buffer, protocol: int) -> tuple[Any, ...]:
    """What ``Buffer.__reduce_ex__`` returns: a function, and what to call it with."""
    source = source[...]  # nobody else's to change
    place = name_of(source._element), source._allocator, source.device
    if protocol < 5:
        copied = source.copy(Allocator.malloc)._pin()
        return _rebuild, (_native.bytes_of(copied), source.shape, *place)
    from pickle import PickleBuffer

    elements: _native.Array = source.get_host_accessible()
    if not (elements.is_contiguous or elements.is_fortran_contiguous):
        elements = source.copy(Allocator.malloc)
    content = PickleBuffer(raw(elements))
    return rebuild, (content, elements.shape, *place, not elements.is_contiguous)


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
    given: Buffer, shape: tuple[int, ...], dtype: str, fortran: bool, allocator: int
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
    if fortran:
        made = _native.view(Buffer, made, 0, shape, made.strides[::-1])
    made._source = given.source_protocol
    return made


def rebuild(
    content: Any, shape: tuple[int, ...], dtype: str, allocator: int, device: int, fortran: bool
) -> Buffer:
    """The buffer that was pickled: the name is in pickles.

    In host memory it shares ``content``, whatever has the buffer protocol, and is
    read-only if that is. For a device the elements are copied to the device of the same
    number; without a driver for it that is BackendUnavailable, without that device a
    ValueError.
    """
    given = buffer(content)
    if is_ordinary(allocator):
        return shaped(given, shape, dtype, fortran, allocator)
    made = Buffer(shape, dtype, allocator, device=device)
    made[...] = shaped(given, shape, dtype, fortran, Allocator.malloc)
    return made
