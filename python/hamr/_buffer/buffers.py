"""Buffer: elements of one type in some memory, reachable from anywhere."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import (
    Allocator,
    Transfer,
    backend_of,
    is_shared,
    space_number,
    transfer_of,
)
from .._base.element import numbers
from .._base.library import core
from .._base.place import device_number
from .contents import SHOWN, Contents
from .handle import Handle
from .lending import Caching
from .mirroring import Mirroring
from .pointers import Pointers
from .sharing import Sharing
from .spelling import UpstreamSpelling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any, Self

    from .._base.allocator import AllocatorName, TransferName
    from .._base.place import Device
    from .._base.stream import Stream


class _Signature:
    """What ``inspect.signature`` and ``help`` show of a constructor that is in C."""

    def __get__(self, instance: Any, kind: type[Buffer]) -> Any:
        if instance is not None or kind.__new__ is not Buffer.__new__:
            raise AttributeError("__signature__")  # a subclass's own constructor has its own
        from inspect import signature

        from .constructing import construct

        found = signature(construct)
        shown = list(found.parameters.values())[1:]
        return found.replace(parameters=shown, return_annotation="Self")


class Buffer(Contents, Caching, Mirroring, Pointers, Sharing, UpstreamSpelling, _native.Array):
    """Elements of one type in memory of one allocator.

    ``Buffer(shape, dtype, allocator)`` takes new memory. It is filled with ``fill``, or holds a
    copy of ``data``, or is not initialised. ``shape`` is an int or a tuple of int. ``device`` is
    -1 or "cpu" for the host, and 0, "cuda:0" or a library's device object for a device. Without
    an allocator it chooses malloc or cuda. ValueError if the allocator has no memory there.

    The memory lives as long as the buffer or anything that shares it. Methods may
    be called from several threads; those that change the same buffer run one
    after the other.

    ``b[i]``, with an integer for each dimension, is the value of an element, in memory of its own.
    ``b[i, ...]`` and slices are views.

    Views and copies of a subclass are of the subclass, and have its attributes (see
    ``__array_finalize__``). Pickles, ``copy.copy`` and ``copy.deepcopy`` carry its state, as for
    other objects. ``hamr.buffer(b)`` is a plain buffer.
    """

    __slots__ = ("__weakref__",)

    if TYPE_CHECKING:

        def __new__(
            cls,
            shape: int | tuple[int, ...],
            dtype: Any = "float64",
            allocator: Allocator | int | AllocatorName | None = None,
            *,
            fill: Any = None,
            data: Any = None,
            device: Device | None = None,
            stream: Any = None,
            transfer: Transfer | int | TransferName = Transfer.sync_host,
        ) -> Self:
            """Take the memory."""

    else:  # C's is not known to checkers, nor inspect's to C
        __signature__ = _Signature()

    # What it is.

    @property
    def stream(self) -> Stream:
        """The stream that movements are enqueued on."""
        value, order = self._stream, self._order
        if order is not None and order._value == value:
            found: Stream = order
            return found
        from .._base.memory_stream import shared_stream, streams_of

        return shared_stream(value, streams_of(self._allocator))

    @property
    def transfer(self) -> Transfer:
        """Which movements are waited for."""
        return Transfer(self._transfer)

    @property
    def source_protocol(self) -> str | None:
        """The protocol that the memory was shared by; None for memory of hamr's own."""
        return getattr(self, "_source", None)

    def capacity(self) -> int:
        """How many elements fit without new memory."""
        return self._capacity

    # Where it is.

    def accessible(self, space: str) -> bool:
        """Whether code in a space, as "host" or "cuda", reaches the memory in place."""
        number = space_number(space)
        if is_shared(self._allocator, number):
            return core().Reaches(self._allocator, self.device, self._place, number)
        return bool(self._reach >> number & 1)

    def get_device_accessible(self, device: Device | None = -1) -> Handle:
        """The elements where code of the preferred kind of device reaches them.

        Without any device they are on the host. ``device`` is 1, "cuda:1" or a library's device
        object; -1, None and "cuda" are the current one.
        """
        device = device_number(device)
        space = backend_of(core().PreferredAllocator(False))
        if space == "host":
            return self.get_host_accessible()
        reached: Handle = getattr(self, f"get_{space}_accessible")(device)
        return reached

    # Its life.

    def synchronize(self) -> None:
        """Block until no movement touches the memory, and all work on the stream is over.

        Signals are handled meanwhile. An error of the device since the last wait is raised here, as
        DeviceError.
        """
        _native.settle(self)

    def ready(self) -> Awaitable[None]:
        """An awaitable, over when ``synchronize()`` would not wait: ``await b.ready()``."""
        from .._base.waiting import until

        source = self._pin()
        return until(lambda: _native.settled(source))

    def set_stream(
        self, stream: Any, transfer: Transfer | int | TransferName = Transfer.async_
    ) -> None:
        """Use another stream and, as upstream does, another transfer mode with it.

        The buffer keeps the stream object alive.
        """
        from .._base.memory_stream import streams_of
        from .._base.stream import as_stream

        runtime = streams_of(self._allocator)
        order, mode = as_stream(stream, self.device, runtime), transfer_of(transfer)
        self._set_order(order._value, mode, order)

    def set_transfer(self, transfer: Transfer | int | TransferName) -> None:
        """Change which movements are waited for."""
        mode = transfer_of(transfer)
        self._set_order(None, mode)

    def free(self) -> None:
        """Release the memory and become an empty buffer, which may grow again."""
        self._empty()

    def close(self) -> None:
        """Close the buffer. Arrays and handles made from it stay valid. Twice is harmless."""
        self._close()

    # Its copies, and what a subclass adds.

    def __array_finalize__(self, source: Buffer) -> None:
        """Called on a view or copy of a subclass, with the buffer that it was made from.

        The view or copy is of the same class; its constructor is not called. By default it gets
        the source's attributes, the same objects. A subclass may override that. Unlike NumPy's
        hook, this one is not called for new buffers.
        """
        from .copying import attributes_of, set_attributes

        set_attributes(self, attributes_of(source))

    def __getstate__(self) -> Any:
        if type(self) is Buffer:
            return None
        from .copying import attributes_of

        return attributes_of(self)

    def __copy__(self) -> Self:
        from .copying import copied

        return copied(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        from .copying import copied

        return copied(self, memo)

    def __reduce__(self) -> Any:
        from .pickling import reduce

        return reduce(self, 2, Buffer, _rebuild, _rebuild_shared)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if type(self).__reduce__ is not Buffer.__reduce__:
            return self.__reduce__()  # as object.__reduce_ex__ does
        from .pickling import reduce

        return reduce(self, protocol, Buffer, _rebuild, _rebuild_shared)

    # What Contents makes.

    def _finalized(self, made: Self) -> Self:
        if type(self) is not Buffer:
            made.__array_finalize__(self)
        return made

    def _new(self, allocator: int, device: int, element: int) -> Self:
        return self._finalized(_native.copy(type(self), self, allocator, device, element))

    def _part(
        self,
        source: _native.Array,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        element: int = 0,
    ) -> Self:
        kind = type(self)
        view = _native.view(kind, source, offset, shape, strides, element)
        view._source = getattr(self, "_source", None)
        if kind is not Buffer:
            view.__array_finalize__(self)
        return view

    @staticmethod
    def _sharing(obj: Any) -> Buffer:
        return buffer(obj)

    def __repr__(self) -> str:
        if self._closed:
            return "<hamr.Buffer closed>"
        from .text import shown

        return shown(self, SHOWN)


def _construct(*arguments: Any, **named: Any) -> Buffer:
    from .constructing import construct

    made: Buffer = construct(*arguments, **named)
    return made


_SYNC_HOST = Transfer.sync_host


def buffer(
    obj: Any,
    stream: Any = None,
    transfer: Transfer | int | TransferName = _SYNC_HOST,
    *,
    dtype: Any = None,
    sync: Transfer | int | TransferName = _SYNC_HOST,
    wait: bool | None = None,
) -> Buffer:
    """A buffer that shares the memory of ``obj``, without a copy.

    Accepted are, in this order of preference: objects with ``__cuda_array_interface__`` (CuPy,
    PyTorch, Numba and JAX arrays on a device), ``__sycl_usm_array_interface__`` (dpctl's memory
    and dpnp's arrays) or Arrow's C interfaces (pyarrow's arrays), objects that export the buffer
    protocol (NumPy arrays, bytes, bytearray, memoryview, array.array, mmap, …), objects with
    ``__dlpack__`` (PyTorch and JAX arrays anywhere) and DLPack capsules, objects with
    ``__array_interface__``, and hamr's own buffers and handles. Type, shape, strides and the
    read-only flag are kept. ``obj`` is kept alive as long as its memory is used.

    ``stream`` is the stream that the caller will use. By default it is that of a ``with stream:``
    block, else the default stream. ``transfer``, which upstream calls ``sync``, says which
    movements are waited for. The buffer's work runs after the work of a CUDA producer that names
    its stream. The queue of a SYCL producer is waited for in this call, and the buffer uses it if
    hamr's SYCL reaches the memory. ``wait=False``, or HAMR_CUDA_ARRAY_INTERFACE_SYNC=0 in the
    environment, leaves the order to the caller. ``dtype`` treats the bytes of ``obj``, which is
    bytes-like or multiprocessing's SharedMemory, as elements of that type.

    TypeError for an object without such a protocol, or with elements that hamr does not have;
    ValueError for a description that cannot be right; BackendUnavailable for device memory without
    a driver.
    """
    from .._base.stream import blocks
    from .._protocols.dispatch import share

    inside = stream is None and blocks() is not None
    plain = transfer is _SYNC_HOST and sync is _SYNC_HOST and not inside
    if plain and stream is None and dtype is None and wait is None:
        return share(Buffer, obj)
    from .._base.memory_stream import is_per_thread, streams_of
    from .._base.stream import as_stream
    from .._protocols.fields import is_capsule
    from .._protocols.location import runtime_of, stream_near

    mode = transfer_of(transfer)
    if sync is not _SYNC_HOST:
        if transfer is not _SYNC_HOST:
            raise TypeError("transfer and sync are both given: accepted is one of them")
        mode = transfer_of(sync, "sync")
    if inside or is_per_thread(stream):  # the stream then depends on the device
        stream = stream_near(stream, obj)
    order = None if stream is None else as_stream(stream, -1, runtime_of(obj, stream))
    value = 0 if order is None or is_capsule(obj) else order._value
    if dtype is None:
        from .._protocols.wait_setting import wait_of

        shared = share(Buffer, obj, value, mode, wait_of(wait))
    else:
        from .foreign import elements_in

        shared = elements_in(Buffer, obj, dtype, value, mode)
    runtime = streams_of(shared._allocator)
    if order is None:  # only now a capsule, or USM, in a block says where its memory is
        near = stream_near(None, shared) if inside else None
        order = shared._order if near is None else near
        if order is None:
            order = as_stream(None, -1, runtime)
    order._fitting(shared.device, runtime)
    shared._set_order(order._value, shared._transfer, order)
    return shared


if not TYPE_CHECKING:
    buffer = _native.sharing(
        buffer,
        "(obj, stream=None, transfer=Transfer.sync_host, *, dtype=None, "
        "sync=Transfer.sync_host, wait=None)",
        "hamr",
    )


def _rebuild(*pickled: Any) -> Buffer:
    """The buffer that was pickled by a protocol below 5."""
    from .pickling import rebuild_copy

    made: Buffer = rebuild_copy(Buffer, *pickled)
    return made


def _rebuild_shared(*pickled: Any) -> Buffer:
    """The buffer that was pickled by protocol 5."""
    from .pickling import rebuild

    made: Buffer = rebuild(Buffer, *pickled)
    return made


# The names in pickles and tracebacks. Pickles by protocols below 5 use version 0.2's name of
# _rebuild, so that it can read them, too. As an attribute hamr.buffer is the function.
Buffer.__module__ = _rebuild_shared.__module__ = "hamr"
_rebuild.__module__ = "hamr.buffer"
_native.set_buffer_type(Buffer)
_native.set_constructor(_construct, numbers, Allocator, {a.name: a for a in Allocator})
Handle._buffer = Buffer
for _base in (*Contents.__mro__, Caching, *Mirroring.__mro__, Pointers, UpstreamSpelling):
    for _name, _method in vars(_base).items():
        _method = getattr(_method, "__func__", _method)
        if type(_method) is type(_rebuild):
            _method.__qualname__ = _name  # what a call with too few arguments shows
del _base, _name, _method
