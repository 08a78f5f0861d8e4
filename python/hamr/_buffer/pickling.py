"""How buffers are pickled: from protocol 5 on without a copy, if that is possible.

The elements are a ``pickle.PickleBuffer``. A pickler with a ``buffer_callback`` passes it
on instead of copying it, and what the receiver gives to ``pickle.loads(buffers=...)``
becomes the buffer's memory. ``base`` is hamr.Buffer, which passes itself.
"""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import (
    Allocator,
    Transfer,
    allocator_of,
    is_exportable,
    is_ordinary,
)
from .._base.element import element_of, name_of
from .._base.place import device_number
from .._protocols.dispatch import share
from .contents import Contents
from .views import adopted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)
    _B = TypeVar("_B", bound=Contents)


#: For memory that a process has from another one, such as a store's: a function that makes a
#: buffer of the same elements, and one that returns its arguments after the buffer's class, or
#: None for other memory.
elsewhere: list[tuple[Callable[..., Any], Callable[[_native.Array], tuple[Any, ...] | None]]] = []


def reduce(
    source: _B,
    protocol: int,
    base: type[_B],
    rebuild_copy: Callable[..., _B],
    rebuild: Callable[..., _B],
) -> tuple[Any, ...]:
    """What ``Buffer.__reduce_ex__`` returns: a function, what to call it with, and a state.

    Only for subclasses are there a class and, if they have one, a state.
    """
    kind, state = type(source), source.__getstate__()
    own = () if kind is base else (kind,)
    rest = () if state is None else (state,)
    source = plain(source, base)
    for build, where in elsewhere:
        found = where(source)
        if found is not None:
            return build, (kind, *found), *rest
    if source._count and is_exportable(source._allocator):
        from .exported import opened, place_of

        return opened, (kind, *place_of(source)), *rest
    if (single := once(base, source)) is not None:
        return repeated, (kind, single, source.shape), *rest
    place = name_of(source._element), source._allocator, source.device
    if protocol < 5:
        copied = source.copy(Allocator.malloc)._pin()
        return rebuild_copy, (_native.bytes_of(copied), source.shape, *place, *own), *rest
    from pickle import PickleBuffer

    elements: _native.Array = source.get_host_accessible()
    if not (elements.is_contiguous or elements.is_fortran_contiguous):
        elements = source.copy(Allocator.malloc)
    content = PickleBuffer(raw(base, elements))
    return rebuild, (content, elements.shape, *place, not elements.is_contiguous, *own), *rest


def plain(source: _native.Array, base: type[_B]) -> _B:
    """The elements as a plain buffer, whose shape nobody else changes."""
    frozen = source._snapshot(_native.Array)
    return _native.view(base, frozen, 0, frozen.shape, frozen.strides)


def once(base: type[_B], source: _native.Array) -> _B | None:
    """The elements with size 1 along the axes that repeat them; None without such axes."""
    pairs = list(zip(source.shape, source.strides, strict=True))
    if not source._count or all(stride or size == 1 for size, stride in pairs):
        return None
    shape = tuple([size if stride else 1 for size, stride in pairs])
    return _native.view(base, source, 0, shape, source.strides)


def repeated(kind: type[_A], single: Any, shape: tuple[int, ...]) -> _A:
    """A read-only array that repeats elements along axes; the reverse of ``once``."""
    if not isinstance(single, _native.Array):
        raise TypeError(f"single is {type(single).__name__}: accepted is a hamr.Buffer")
    sizes = single.shape
    pairs = list(zip(sizes, shape, strict=False))
    if len(sizes) != len(shape) or any(n not in (1, size) for n, size in pairs):
        raise ValueError(f"single is of shape {sizes}: accepted is one that repeats to {shape}")
    steps = zip(single.strides, pairs, strict=True)
    strides = tuple([stride if n == size else 0 for stride, (n, size) in steps])
    place = single._allocator, single.device, single.ptr
    made = adopted(kind, single._element, *place, shape, strides, True, single)
    protocol = getattr(single, "source_protocol", None)
    if protocol is not None:
        made._source = protocol
    return made


def raw(
    base: type[_B],
    elements: _native.Array,
    allocator: int = Allocator.malloc,
    device: int = -1,
) -> _B:
    """The bytes of elements without gaps, in the order of the memory, shared.

    bfloat16 and float8 have no format in the buffer protocol; bytes have one.
    """
    return _over(base, elements, (elements.nbytes,), "uint8", allocator, device)


def shaped(
    base: type[_B],
    given: _native.Array,
    shape: tuple[int, ...],
    dtype: str,
    fortran: bool,
    allocator: int,
    kind: type[_B] | None = None,
) -> _B:
    """A buffer over bytes that were received, which it keeps; the reverse of ``raw``."""
    lying = shape[::-1] if fortran else shape
    made = _over(base, given, lying, dtype, allocator_of(allocator), given.device)
    if made.nbytes != given.nbytes or not given.is_contiguous:
        order = "" if given.is_contiguous else " with gaps"
        raise ValueError(
            f"content has {given.nbytes} bytes{order}: accepted for {shape} {dtype} "
            f"are {made.nbytes} without"
        )
    kind = kind or base
    if fortran or kind is not base:
        strides = made.strides[::-1] if fortran else made.strides
        made = _native.view(kind, made, 0, shape, strides)
    made._source = given._source
    return made


def rebuild(
    base: type[_B],
    content: Any,
    shape: tuple[int, ...],
    dtype: str,
    allocator: int,
    device: int,
    fortran: bool,
    kind: type[_B] | None = None,
) -> _B:
    """The buffer that was pickled by protocol 5.

    In host memory it shares ``content``, an object with the buffer protocol, and is
    read-only if that is. For a device the elements are copied to the device of the same
    number: BackendUnavailable without a driver, ValueError without that device.
    """
    kind = _checked(kind, base)
    given = share(base, content)
    if is_ordinary(allocator):
        return shaped(base, given, shape, dtype, fortran, allocator, kind)
    elements = shaped(base, given, shape, dtype, fortran, Allocator.malloc)
    return _copied(elements, dtype, allocator, device, kind)


def rebuild_copy(
    base: type[_B],
    content: bytes,
    shape: tuple[int, ...],
    dtype: str,
    allocator: int,
    device: int,
    kind: type[_B] | None = None,
) -> _B:
    """The buffer that was pickled by a protocol below 5, in memory of its own."""
    kind = _checked(kind, base)
    elements = shaped(base, share(base, content), shape, dtype, False, Allocator.malloc)
    return _copied(elements, dtype, allocator, device, kind)


def _over(
    kind: type[_B],
    memory: _native.Array,
    shape: tuple[int, ...],
    dtype: str,
    allocator: int,
    device: int,
) -> _B:
    """A buffer over the memory of another array, which it keeps, without strides."""
    readonly = memory.readonly and not memory._own_copy
    place = allocator, device, memory.ptr
    return adopted(kind, element_of(dtype), *place, shape, None, readonly, memory)


def _copied(elements: _B, dtype: str, allocator: int, device: int, kind: type[_B]) -> _B:
    # A subclass may override construction and assignment.
    made = _native.create(
        kind,
        element_of(dtype),
        allocator_of(allocator),
        device_number(device),
        0,
        Transfer.sync_host,
        elements.shape,
        None,
    )
    Contents.__setitem__(made, ..., elements)
    return made


def _checked(kind: type[_B] | None, base: type[_B]) -> type[_B]:
    if kind is None:
        return base
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise TypeError(f"kind is {kind!r}: accepted is hamr.Buffer or a subclass")
    return kind
