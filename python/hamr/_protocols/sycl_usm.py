"""Reading and writing __sycl_usm_array_interface__, version 1.

The kind of unified shared memory (USM) is not in the dictionary: SYCL is asked, through
dpctl. Memory in the context that hamr's SYCL uses on its device is memory of that device, and
hamr enqueues its work on the producer's queue (``syclobj``). Memory of another context, or of
any context if hamr finds no SYCL, is held as host memory with an owner if the host reaches it:
this holds for the kinds host and shared. The kind device is refused.

Pending work on the producer's queue is waited for once, when the memory is adopted. A context
or a filter string names no queue, so nothing is waited for. On host memory hamr's own operations
neither wait for the queue again nor enqueue on it. Whoever submits work on the memory later must
wait for it before hamr, or NumPy, reads the memory.
"""

from __future__ import annotations

import sys
from importlib import import_module

import hamr._native as _native

from .._base.allocator import Allocator, backend_of
from .._base.element import item_size
from .._base.errors import BackendUnavailable
from .._base.foreign_handles import backend_of_stream, handle_of_stream
from .._base.library import core
from .._base.memory_stream import shared_stream
from .._base.stream import Stream
from .._base.sycl_queues import unavailable
from .fields import check, integer, is_capsule, pair_of, read, short, unreadable
from .wait_setting import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__sycl_usm_array_interface__"

_REQUIRED = ("shape", "typestr", "data", "syclobj", "version")
_VERSION = 1
_HOST = -1
_MALLOC = 1

#: For each kind of USM, the allocator of the buffer, which new memory comes from, too.
_ALLOCATORS = {
    "host": Allocator.sycl_host,
    "shared": Allocator.sycl_shared,
    "device": Allocator.sycl_device,
}
#: The same if hamr holds it as host memory; None: the host does not reach it.
_ON_HOST = {"host": _MALLOC, "shared": _MALLOC, "device": None}
_BACKEND = "sycl"

_QUEUE, _CONTEXT = "SyclQueueRef", "SyclContextRef"


class Source:
    """The owner of USM: the producer, and the object that gives its SYCL context."""

    __slots__ = ("obj", "syclobj")

    def __init__(self, obj: Any, syclobj: Any) -> None:
        self.obj, self.syclobj = obj, syclobj


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A:
    """An array of a class over the USM that the interface of ``obj`` describes.

    The pending work of its queue is waited for, unless ``wait`` is false. BackendUnavailable
    for USM of kind device if hamr finds no SYCL, or if the kind cannot be found out; DeviceError
    for USM of kind device in another context.
    """
    try:
        interface = getattr(obj, NAME)
    except Exception as error:
        raise unreadable(obj, NAME, error) from error
    fields, typestr, shape, steps, version = read(NAME, interface, _REQUIRED)
    if version != _VERSION:
        raise ValueError(f"version is {version}: accepted is {_VERSION}")
    base, readonly = pair_of(fields["data"])
    offset = integer("offset", fields.get("offset", 0))
    if typestr[:1] == "|" and typestr[1:2] in "biufc":
        # dpctl and dpnp write "|f8" for the machine's own byte order.
        typestr = "=" + typestr[1:]
    element = check(obj, typestr, (), None, 1, 0, -1, fields.get("mask"), _VERSION)
    size = item_size(element)
    strides = None if steps is None else _bytes(steps, shape, size)
    pointer = _moved(base, offset, size)
    check(obj, typestr, shape, strides, pointer, 0, -1, None, _VERSION)
    waits = wait_of(wait)
    syclobj, queue = _order(fields["syclobj"], waits)
    allocator, device, order = _MALLOC, _HOST, None
    if 0 not in shape:
        kind, near = _kind(obj, pointer, syclobj if queue is None else queue)
        allocator, device = _place(kind, obj, near)
        if device != _HOST and queue is not None and not stream:
            theirs = queue if backend_of_stream(queue) == _BACKEND else near
            order = Stream(theirs, device=f"{_BACKEND}:{device}")
            stream = order._value
    if waits and queue is not None:
        queue.wait()
    shared = _native.adopt_pointer(
        cls,
        element,
        allocator,
        device,
        stream,
        transfer,
        pointer,
        shape,
        strides,
        _readonly(obj, readonly),
        Source(obj, syclobj),
        False,
    )
    if order is not None:
        shared._set_order(stream, transfer, order)
    return shared


def describe(array: _native.Array) -> dict[str, Any]:
    """The interface of an array whose memory is USM; AttributeError for others.

    hamr's work on it is over. If ``syclobj`` is the queue of the array's stream, later work of
    hamr is enqueued on it.
    """
    held = array._snapshot(_native.Array)
    source, of_sycl = held._owner, is_of_sycl(held)
    if isinstance(source, Source):
        syclobj = source.syclobj
    elif of_sycl:
        syclobj = _queue_of(held)
    else:
        raise AttributeError(f"{NAME}: this memory is not USM")
    if of_sycl:
        _native.settle(held)
    strides = None
    if not held.is_contiguous:
        size = held.itemsize
        if any(stride % size for stride in held.strides):
            raise AttributeError(
                f"{NAME}: strides are {held.strides} bytes, no multiples of the "
                f"{size}-byte elements that this interface counts in"
            )
        strides = tuple([stride // size for stride in held.strides])
    interface = {
        "shape": held.shape,
        "typestr": held.typestr,
        "data": (held.ptr, held.readonly),
        "strides": strides,
        "offset": 0,
        "version": _VERSION,
        "syclobj": syclobj,
    }
    array._keep(held)  # the consumer keeps the array, not the memory that it has now
    return interface


def is_of_sycl(array: _native.Array) -> bool:
    """Whether an array's memory is USM of one of hamr's own contexts."""
    number = array._allocator
    return number >= 0 and backend_of(number) == _BACKEND


def _queue_of(array: _native.Array) -> Any:
    """The queue of an array's stream, as an object of dpctl."""
    handle = array._stream or core().ResolveStream(_BACKEND, array.device, 0)
    try:
        return shared_stream(handle, _BACKEND).sycl_queue
    except BackendUnavailable as error:
        raise AttributeError(f"{NAME}: {error}") from error


def _bytes(steps: tuple[int, ...], shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    if len(steps) != len(shape):
        raise ValueError(
            f"strides is {short(steps)}: it must have one entry for each of the "
            f"{len(shape)} dimensions"
        )
    strides = tuple([step * size for step in steps])
    if any(not -(2**63) <= stride < 2**63 for stride in strides):
        raise ValueError(
            f"strides is {short(steps)}: as bytes, of {size}-byte elements, "
            "they must fit in 64 bits"
        )
    return strides


def _moved(base: int, offset: int, size: int) -> int:
    """Where element zero is; 0 where there is no memory."""
    if not base:
        return 0
    pointer = base + offset * size
    if not 0 < pointer < 2**64:
        raise ValueError(
            f"offset is {offset}: so many {size}-byte elements from {base:#x} "
            "lie outside the address space"
        )
    return pointer


# The kind of memory, and its device.


def _place(kind: str, obj: Any, queue: Any) -> tuple[int, int]:
    """The allocator and device for USM of a kind, by a queue of its context."""
    if kind not in _ALLOCATORS:
        raise ValueError(
            f"data is of USM kind {short(kind)}: accepted are {', '.join(_ALLOCATORS)}"
        )
    told = backend_of_stream(queue) == _BACKEND
    handle = handle_of_stream(queue) if told else 0
    device = core().StreamDevice(_BACKEND, handle) if told else _HOST
    if device >= 0:
        return _ALLOCATORS[kind], device
    on_host = _ON_HOST[kind]
    if on_host is not None:
        return on_host, _HOST
    reason: Any = "its queue is not known"
    try:
        if told:
            core().ResolveStream(_BACKEND, 0, handle)  # raises the reason
    except BackendUnavailable as error:
        reason = error
    except Exception as error:
        error.add_note(f"The memory cannot be shared: {_HINT}")
        raise
    raise unavailable(
        f"{type(obj).__name__} object has USM of kind {kind}, which hamr cannot reach ({reason}): "
        f"{_HINT}"
    )


_HINT = (
    'make it with usm_type="shared" or "host" (MemoryUSMShared, MemoryUSMHost), or copy it to '
    "the host: dpnp.asnumpy(x), x.copy_to_host()"
)


def _kind(obj: Any, pointer: int, syclobj: Any) -> tuple[str, Any]:
    """The kind of USM, and a queue in its context or None.

    SYCL is asked if dpctl is loaded, else the object.
    """
    memory = sys.modules.get("dpctl.memory")
    if memory is None:
        said = getattr(obj, "usm_type", None)
        if said is None:
            ask = getattr(obj, "get_usm_type", None)
            said = None if ask is None else ask()
        if said is not None:
            return said if isinstance(said, str) else short(said), None
        memory = _dpctl(
            f"{type(obj).__name__} object has no usm_type, and the kind of its USM cannot be asked"
        ).memory
    elif _is_memory_of(memory, obj):
        return str(obj.get_usm_type()), getattr(obj, "sycl_queue", None)
    try:
        found = memory.as_usm_memory(_Location(pointer, syclobj))
        return str(found.get_usm_type()), getattr(found, "sycl_queue", None)
    except Exception as error:
        raise ValueError(
            f"data and syclobj: SYCL does not know {pointer:#x} as USM of the context of "
            f"{short(syclobj)} ({type(error).__name__}: {error})"
        ) from error


class _Location:
    """One byte of USM, to ask dpctl about: with the values that were checked."""

    __slots__ = (NAME,)

    def __init__(self, pointer: int, syclobj: Any) -> None:
        interface = {
            "shape": (1,),
            "typestr": "|u1",
            "data": (pointer, False),
            "strides": None,
            "version": _VERSION,
            "syclobj": syclobj,
        }
        setattr(self, NAME, interface)


def _is_memory_of(memory: Any, obj: Any) -> bool:
    """Whether an object's interface is the one that dpctl's own memory has."""
    own = getattr(memory.MemoryUSMShared, NAME)
    return getattr(type(obj), NAME, None) is own


def _readonly(obj: Any, flag: bool) -> bool:
    """Whether memory must not be written.

    dpctl's memory always sets the flag, and means "writable" by it; its arrays, and
    all other libraries, mean "read-only". dpctl's memory exports a buffer, whose flag is
    right.
    """
    memory = sys.modules.get("dpctl.memory")
    if flag and memory is not None and _is_memory_of(memory, obj):
        try:
            with memoryview(obj) as view:
                return view.readonly
        except TypeError:  # memory of kind device exports no buffer
            return False
    return flag


# The order of its work.


def _order(syclobj: Any, waits: bool) -> tuple[Any, Any]:
    """The object to keep for a SYCL object, and its queue or None.

    dpctl takes a capsule only once. So a capsule is replaced by an object of dpctl. An object that
    makes capsules is kept.
    """
    if isinstance(syclobj, str):
        return str.__str__(syclobj), None
    if _has(syclobj, "wait"):
        return syclobj, syclobj
    if is_capsule(syclobj):
        made = _from_capsule(syclobj, waits)
        return made, made if _has(made, "wait") else None
    if _has(syclobj, "_get_capsule"):
        made = _from_capsule(syclobj._get_capsule(), waits)
        return syclobj, made if _has(made, "wait") else None
    raise TypeError(
        f"syclobj is {short(syclobj)}: accepted are a queue, a context, a filter string, "
        f"a capsule of name {_QUEUE} or {_CONTEXT}, and what has _get_capsule()"
    )


def _has(value: Any, method: str) -> bool:
    return not isinstance(value, type) and callable(getattr(value, method, None))


def _from_capsule(capsule: Any, waits: bool) -> Any:
    """The queue or context of a capsule; without dpctl the capsule, if that is enough."""
    names = [name for name in (_QUEUE, _CONTEXT) if _is_named(capsule, name)]
    if not names:
        raise ValueError(
            f"syclobj has the capsule {short(capsule)}: accepted is a capsule of name "
            f"{_QUEUE} or {_CONTEXT} that was not used before"
        )
    queue = names[0] == _QUEUE
    try:
        dpctl = _dpctl("syclobj is a capsule of a queue, which cannot be waited for")
    except BackendUnavailable:
        if queue and waits:
            raise
        return capsule
    try:
        return dpctl.SyclQueue(capsule) if queue else dpctl.SyclContext(capsule)
    except Exception as error:
        raise ValueError(
            f"syclobj has the capsule {short(capsule)}, which dpctl refuses "
            f"({type(error).__name__}: {error})"
        ) from error


def _is_named(capsule: Any, name: str) -> bool:
    if not is_capsule(capsule):
        return False
    import ctypes

    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes, valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    return bool(valid(capsule, name.encode()))


def _dpctl(purpose: str) -> Any:
    """dpctl, with its memory; BackendUnavailable where it cannot be imported."""
    try:
        import_module("dpctl.memory")
        return sys.modules["dpctl"]
    except Exception as error:
        raise unavailable(
            f"{purpose} without dpctl, which cannot be imported ({type(error).__name__}: {error})"
        ) from error
