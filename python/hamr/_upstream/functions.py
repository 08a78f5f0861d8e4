"""Upstream HAMR's module-level names: scripts with ``from hamr import *`` run."""

from __future__ import annotations

from _operator import index

import hamr._native as _native

from .._base.allocator import Allocator, Transfer, allocator_of
from .._base.element import name_of
from .._base.foreign_handles import is_stream
from .._base.library import core
from .._base.stream import Stream, blocks, entered
from .._buffer.buffers import Buffer, buffer
from .._buffer.handle import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .._base.allocator import AllocatorName
    from .._base.cuda_devices import device

buffer_allocator_same = Allocator.same
buffer_allocator_none = Allocator.none
buffer_allocator_cpp = Allocator.cpp
buffer_allocator_malloc = Allocator.malloc
buffer_allocator_cuda = Allocator.cuda
buffer_allocator_cuda_async = Allocator.cuda_async
buffer_allocator_cuda_uva = Allocator.cuda_uva
buffer_allocator_cuda_host = Allocator.cuda_host
buffer_allocator_hip = Allocator.hip
buffer_allocator_hip_uva = Allocator.hip_uva
buffer_allocator_openmp = Allocator.openmp

buffer_transfer_async = Transfer.async_
buffer_transfer_sync_host = Transfer.sync_host
buffer_transfer_sync = Transfer.sync

buffer_handle = Handle
stream = Stream


class _HandleType(type(Handle)):  # type: ignore[misc]
    """The class of upstream's types of handle. A Handle is an instance by its element type."""

    _element: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Handle) and (
            instance._element == core().ParseUpstreamElement(cls._element)
        )

    def __call__(cls, *arguments: object, **named: object) -> NoReturn:
        raise TypeError(
            f"{cls.__name__} cannot be called: get_host_accessible() and its siblings make handles"
        )


def _handle(name: str) -> type[Handle]:
    return _HandleType(
        "buffer_handle_" + name,
        (Handle,),
        {
            "__doc__": f"Handles of elements of upstream's type {name}, for isinstance.",
            "__slots__": (),
            "__module__": __name__,
            "_element": name,
        },
    )


buffer_handle_float = _handle("float")
buffer_handle_double = _handle("double")
buffer_handle_char = _handle("char")
buffer_handle_short = _handle("short")
buffer_handle_int = _handle("int")
buffer_handle_long = _handle("long")
buffer_handle_long_long = _handle("long_long")
buffer_handle_unsigned_char = _handle("unsigned_char")
buffer_handle_unsigned_short = _handle("unsigned_short")
buffer_handle_unsigned_int = _handle("unsigned_int")
buffer_handle_unsigned_long = _handle("unsigned_long")
buffer_handle_unsigned_long_long = _handle("unsigned_long_long")


_NOTHING = object()


def _typed(name: str) -> Callable[..., Buffer]:
    element = 0
    create = _native.create

    def make(
        allocator: Any = _NOTHING, n: Any = _NOTHING, value: Any = _NOTHING, *more: Any
    ) -> Buffer:
        nonlocal element
        if not element:
            element = core().ParseUpstreamElement(name)
        # The common form, allocator, count, value, takes the short way.
        simple = type(value) is float or type(value) is int or value is _NOTHING
        if entered and blocks() is not None:
            simple = False
        if simple and type(n) is int and type(allocator) is Allocator and not more:
            number = None if value is _NOTHING else value
            return create(Buffer, element, allocator, -1, 0, 1, n, number)
        given = [a for a in (allocator, n, value) if a is not _NOTHING]
        return _from_arguments(name, name_of(element), (*given, *more))

    make.__name__ = make.__qualname__ = "buffer_" + name
    make.__doc__ = f"""A buffer of upstream's type {name}, with upstream's argument orders.

    ``(allocator[, stream[, transfer]][, n[, value or array]])``; ``n`` alone leaves
    the memory uninitialised. ``([allocator[, stream[, transfer]],] other)`` copies
    and converts another buffer or array.
    """
    return make


def _from_arguments(name: str, element: str, arguments: tuple[Any, ...]) -> Buffer:
    rest = list(arguments)
    allocator: Any = None
    if rest and isinstance(rest[0], int):
        allocator = rest.pop(0)
    place: dict[str, Any] = {}
    if rest and (rest[0] is None or is_stream(rest[0])):
        place["stream"] = rest.pop(0)
        if rest and isinstance(rest[0], Transfer):
            place["transfer"] = rest.pop(0)
    if len(rest) == 1 and not _is_count(rest[0]):
        return _converted(element, allocator, rest[0], place)
    if allocator is None or len(rest) > 2:
        raise TypeError(
            f"buffer_{name}{arguments!r}: accepted is "
            "(allocator[, stream[, transfer]][, n[, value or array]]) or (other)"
        )
    count = rest[0] if rest else 0
    if len(rest) < 2:
        return Buffer(count, element, allocator, **place)
    value = rest[1]
    if isinstance(value, (int, float, complex)) or getattr(value, "shape", None) == ():
        return Buffer(count, element, allocator, fill=value, **place)
    made = Buffer(count, element, allocator, **place)
    made.set(value, n=count)
    return made


def _converted(element: str, allocator: Any, other: Any, place: dict[str, Any]) -> Buffer:
    source = buffer(other)
    copied = source.copy(Allocator.same if allocator is None else allocator, dtype=element)
    if place:
        copied.set_stream(place["stream"], place.get("transfer", Transfer.sync_host))
    return copied


def _is_count(value: Any) -> bool:
    """Whether a value is an int, or NumPy's kind of int."""
    if isinstance(value, _native.Array) or getattr(value, "shape", ()) != ():
        return False
    try:
        index(value)
    except TypeError:
        return False
    return True


buffer_float = _typed("float")
buffer_double = _typed("double")
buffer_char = _typed("char")
buffer_signed_char = _typed("signed_char")
buffer_short = _typed("short")
buffer_int = _typed("int")
buffer_long = _typed("long")
buffer_long_long = _typed("long_long")
buffer_unsigned_char = _typed("unsigned_char")
buffer_unsigned_short = _typed("unsigned_short")
buffer_unsigned_int = _typed("unsigned_int")
buffer_unsigned_long = _typed("unsigned_long")
buffer_unsigned_long_long = _typed("unsigned_long_long")

_BY_TYPE = {int: "int64", float: "float64", bool: "bool", complex: "complex128"}


def make_buffer(allocator: Allocator | int | AllocatorName, n: int, value: Any = 0.0) -> Buffer:
    """A buffer of ``n`` elements that hold ``value``, of the value's type."""
    dtype = _BY_TYPE.get(type(value)) or getattr(value, "dtype", None)
    if dtype is None:
        raise TypeError(f"value is {value!r}: accepted is a number")
    return Buffer(n, dtype, allocator, fill=value)


def _all(method: str) -> Callable[..., Any]:
    def get(*buffers: Buffer) -> Any:
        handles = tuple(getattr(b, method)() for b in buffers)
        return handles[0] if len(handles) == 1 else handles

    get.__name__ = get.__qualname__ = method
    get.__doc__ = f"``{method}()`` of each buffer: one handle, or a tuple of them."
    return get


get_host_accessible = _all("get_host_accessible")
get_cuda_accessible = _all("get_cuda_accessible")
get_hip_accessible = _all("get_hip_accessible")
get_openmp_accessible = _all("get_openmp_accessible")
get_device_accessible = _all("get_device_accessible")


def data(*buffers: Buffer) -> Any:
    """The address of each buffer's element zero."""
    addresses = tuple(b.ptr for b in buffers)
    return addresses[0] if len(addresses) == 1 else addresses


pointer = _all("pointer")


def synchronize(*buffers: Buffer) -> None:
    """Wait until no movement touches the buffers' memory any more."""
    for b in buffers:
        b.synchronize()


def get_device_allocator() -> Allocator:
    """The preferred allocator of the devices present; malloc without any."""
    return Allocator(core().PreferredAllocator(False))


def get_host_allocator() -> Allocator:
    """The allocator of host memory that moves fastest to the devices present."""
    return Allocator(core().PreferredAllocator(True))


def get_allocator_name(allocator: Allocator | int) -> str:
    """Upstream's name of an allocator."""
    return Allocator(allocator_of(allocator)).name


# The module of devices is imported late: most programs do not need it.


def activate_cuda_device(i: int) -> device:
    """``hamr.device(i)``, which makes a device current inside a with statement."""
    from .._base.cuda_devices import device

    return device(i)


def get_active_cuda_device() -> int:
    """``hamr.current_device()``: the calling thread's current device."""
    from .._base.cuda_devices import current_device

    return current_device()


def set_active_cuda_device(i: int) -> None:
    """Make a device current for the calling thread, until another one is made current."""
    from .._base.cuda_devices import set_current_device

    set_current_device(i)


def get_cuda_device(pointer: int) -> int:
    """The device that owns the memory at an address; -1 is the host."""
    from .._protocols.location import device_of

    return device_of(pointer)


class access_cuda_peer:  # noqa: N801
    """Access of devices to each other's memory."""

    @staticmethod
    def enable(dest: int, src: int, symmetric: bool = True) -> bool:
        """Let device ``dest`` reach the memory of ``src``, and the reverse if symmetric.

        Returns whether they do now: devices without a link do not.
        """
        from .._base.cuda_devices import device, enable_peer, peer_access

        if symmetric:
            return peer_access(dest, src)
        user, owner = device(dest).index, device(src).index
        return user == owner or enable_peer(user, owner)
