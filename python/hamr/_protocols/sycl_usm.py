"""Reading and telling of __sycl_usm_array_interface__, version 1.

Unified shared memory (USM) of kind host or shared is memory that the host reaches:
hamr holds it as host memory with an owner. That of kind device waits for a SYCL
backend. The kind is not in the dictionary: SYCL is asked, through dpctl.

What is pending on the producer's queue (``syclobj``) is waited for once, when the
memory is adopted. A context or a filter string names no queue, so nothing is waited
for. hamr's own operations neither wait for the queue again nor enqueue on it: who
submits work on the memory later waits for it before hamr, or NumPy, looks.
"""

from __future__ import annotations

import sys
from importlib import import_module

import hamr._native as _native

from .._base.element import item_size
from .._base.errors import BackendUnavailable
from .fields import check, integer, pair_of, read, short
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

#: The allocator that memory of each kind of USM is held as, and new memory of the
#: buffer comes from; None: no backend reaches it.
_ALLOCATORS: dict[str, int | None] = {"host": _MALLOC, "shared": _MALLOC, "device": None}

_QUEUE, _CONTEXT = "SyclQueueRef", "SyclContextRef"


class Source:
    """Who owns USM: the producer, and the object that its SYCL context is found by."""

    __slots__ = ("obj", "syclobj")

    def __init__(self, obj: Any, syclobj: Any) -> None:
        self.obj, self.syclobj = obj, syclobj


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A:
    """An array of a class over the USM that the interface of ``obj`` describes.

    The work pending on its queue is waited for, unless ``wait`` is false. USM of kind
    device, or of a kind that cannot be told, is BackendUnavailable.
    """
    try:
        interface = getattr(obj, NAME)
    except Exception as error:
        raise TypeError(
            f"{type(obj).__name__} object cannot be shared: "
            f"its {NAME} raises {type(error).__name__}: {error}"
        ) from error
    fields, typestr, shape, steps, version = read(NAME, interface, _REQUIRED)
    if version != _VERSION:
        raise ValueError(f"version is {version}: accepted is {_VERSION}")
    data = fields["data"]
    if not isinstance(data, tuple):
        raise TypeError(f"data is {short(data)}: accepted is (address, read-only flag)")
    base, readonly = pair_of(data)
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
    kind = "host"
    if 0 not in shape:
        kind = _kind(obj, pointer, syclobj if queue is None else queue)
    allocator = _allocator(kind, obj)
    if waits and queue is not None:
        queue.wait()
    return _native.adopt_pointer(
        cls,
        element,
        allocator,
        _HOST,
        stream,
        transfer,
        pointer,
        shape,
        strides,
        _readonly(obj, readonly),
        Source(obj, syclobj),
        False,
    )


def describe(array: _native.Array) -> dict[str, Any]:
    """The interface of an array whose memory came by it; AttributeError for others."""
    if not isinstance(array._owner, Source):
        raise _not_usm()
    held = array._snapshot(_native.Array)
    source = held._owner
    if not isinstance(source, Source):  # the array changed meanwhile
        raise _not_usm()
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
        "syclobj": source.syclobj,
    }
    array._keep(held)  # the consumer keeps the array, not the memory that it has now
    return interface


def _not_usm() -> AttributeError:
    return AttributeError(f"{NAME}: this memory is not USM that came by that interface")


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


# Whose memory it is.


def _allocator(kind: str, obj: Any) -> int:
    """The allocator that USM of a kind is held as."""
    if kind not in _ALLOCATORS:
        raise ValueError(
            f"data is of USM kind {short(kind)}: accepted are {', '.join(_ALLOCATORS)}"
        )
    allocator = _ALLOCATORS[kind]
    if allocator is None:
        raise _unavailable(
            f"{type(obj).__name__} object has USM of kind {kind}, which hamr cannot reach "
            'without a SYCL backend: make it with usm_type="shared" or "host" '
            "(MemoryUSMShared, MemoryUSMHost), or copy it to the host: dpnp.asnumpy(x), "
            "x.copy_to_host()"
        )
    return allocator


def _kind(obj: Any, pointer: int, syclobj: Any) -> str:
    """The kind of USM: as SYCL says where dpctl is loaded, else as the object says."""
    memory = sys.modules.get("dpctl.memory")
    if memory is None:
        said = getattr(obj, "usm_type", None)
        if said is None:
            ask = getattr(obj, "get_usm_type", None)
            said = None if ask is None else ask()
        if said is not None:
            return said if isinstance(said, str) else short(said)
        memory = _dpctl(
            f"{type(obj).__name__} object has no usm_type, and the kind of its USM cannot be asked"
        ).memory
    elif _is_memory_of(memory, obj):
        return str(obj.get_usm_type())
    try:
        return str(memory.as_usm_memory(_Location(pointer, syclobj)).get_usm_type())
    except Exception as error:
        raise ValueError(
            f"data and syclobj: SYCL does not know {pointer:#x} as USM of the context of "
            f"{short(syclobj)} ({type(error).__name__}: {error})"
        ) from error


class _Location:
    """One byte of USM, to ask dpctl about: what was checked, not what the producer says next."""

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

    dpctl's memory sets the flag on all that it allocates, and reads it as "writable";
    its arrays, and everybody else, mean "read-only". Such memory exports a buffer,
    which says how it is.
    """
    memory = sys.modules.get("dpctl.memory")
    if flag and memory is not None and _is_memory_of(memory, obj):
        with memoryview(obj) as view:
            return view.readonly
    return flag


# What its work is ordered by.


def _order(syclobj: Any, waits: bool) -> tuple[Any, Any]:
    """What stands for a SYCL object from now on, and the queue that it is, or None.

    dpctl takes a capsule once. So one that was given as it is makes an object of
    dpctl's, which is used in its place; what makes capsules is kept.
    """
    if isinstance(syclobj, str):
        return str.__str__(syclobj), None
    if _has(syclobj, "wait"):
        return syclobj, syclobj
    if _is_capsule(syclobj):
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


def _is_capsule(value: Any) -> bool:
    return type(value).__name__ == "PyCapsule" and type(value).__module__ == "builtins"


def _from_capsule(capsule: Any, waits: bool) -> Any:
    """The queue or context of a capsule; without dpctl the capsule, if that will do."""
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
    if not _is_capsule(capsule):
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
        raise _unavailable(
            f"{purpose} without dpctl, which cannot be imported ({type(error).__name__}: {error})"
        ) from error


def _unavailable(message: str) -> BackendUnavailable:
    error = BackendUnavailable(message)
    error.backend = "sycl"
    return error
