"""What the driver and the kernel take by themselves for a hand-over of an object of a store.

Its maker takes the right to write from the memory, tells the server that it is sealed, and tells
the receiver, which asks the server for the memory and has the driver map it: five messages, and
the calls of the driver that each library needs. In between all do what the rows of hamr's do, so
that as much is forgotten by the caches.
"""

from __future__ import annotations

import ctypes
import os
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from .children import Child, answer, told
from .compiling import compiled
from .driver import Driver, Memory
from .share import FILL, check

_SOURCE = Path(__file__).with_name("bare_object.c")
_TIMES = struct.Struct("4q")
_PINNED, _BY_DESCRIPTOR, _DEVICE, _READ, _WRITE = 1, 1, 1, 1, 3
_STEPS = (
    "cuMemSetAccess, for reading",
    "the server is told, and answers",
    "the receiver is told",
    "the server is asked, and answers",
    "cuMemImportFromShareableHandle",
    "cuMemAddressReserve, cuMemMap, cuMemSetAccess",
    "sum",
)


class _Properties(ctypes.Structure):
    """The driver's CUmemAllocationProp."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", ctypes.c_int),
        ("device", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """The driver's CUmemAccessDesc."""

    _fields_ = (("kind", ctypes.c_int), ("device", ctypes.c_int), ("access", ctypes.c_int))


def rows(nbytes: int, count: int) -> list[dict[str, Any]]:
    """The medians, as rows in microseconds."""
    return [
        {"operation": f"{name}, by compiled C", "value": round(statistics.median(each) / 1e3, 3)}
        for name, each in zip(_STEPS, zip(*steps(nbytes, count + 1)[1:], strict=True), strict=True)
    ]


def took(nbytes: int, rounds: int, together: int) -> list[float]:
    """Microseconds that each took, all in all."""
    return [each[-1] / 1e3 for each in steps(nbytes, rounds, together)]


def steps(nbytes: int, rounds: int, together: int = 1) -> list[list[int]]:
    """Nanoseconds of the steps of each; a RuntimeError where there is no compiler."""
    with compiled(_SOURCE) as library, ExitStack() as stack:
        if not library:
            raise RuntimeError("no C compiler is there for what stands for a server")
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
        made, asked, other = [[stack.enter_context(end) for end in pair] for pair in pairs]
        ends = {
            "serve": (made[1], asked[1]),
            "get": (asked[0], other[1]),
            "seal": (made[0], other[0]),
        }
        children = []
        for name, those in ends.items():
            numbers = [end.fileno() for end in those]
            told_it = library, rounds, together, nbytes, *numbers
            child = Child.of(f"bare_object.child_{name}", *told_it, sockets=numbers)
            stack.callback(child.end)
            children.append(child)
        for child in children:
            child.line()
        for ending in (*made, *asked, *other):
            ending.close()  # so that a process is not waited for that has ended
        children[-1].tell("go")
        return [[int(n) for n in text.split(":")] for text in children[-1].line().split()]


def together(nbytes: int, count: int, times: int) -> list[float]:
    """Microseconds until a process has so many objects, whose descriptors it has, each time."""
    driver = Driver()
    size = _whole_units(driver, nbytes)
    with ExitStack() as stack:
        made = [stack.enter_context(_filled(driver, size)) for _ in range(count)]
        numbers = [number for _, number in made]
        child = Child.of("bare_object.child_map", nbytes, times, *numbers, sockets=numbers)
        stack.callback(child.end)
        return [float(each) for each in child.line().split()]


def child_map(nbytes: str, times: str, *numbers: str) -> None:
    """Have the driver map all objects, again and again; answer what each time took."""
    driver, reading = Driver(), ctypes.byref(_access(_READ))
    size, none, one = _whole_units(driver, int(nbytes)), ctypes.c_uint64(0), ctypes.c_size_t(1)
    took = []
    for _ in range(int(times)):
        found = [(ctypes.c_uint64(), ctypes.c_uint64()) for _ in numbers]
        start = time.perf_counter_ns()
        for (handle, address), number in zip(found, numbers, strict=True):
            descriptor = ctypes.c_void_p(int(number))
            into = ctypes.byref(handle)
            driver.call("cuMemImportFromShareableHandle", into, descriptor, _BY_DESCRIPTOR)
            driver.call("cuMemAddressReserve", ctypes.byref(address), size, none, none, none)
            driver.call("cuMemMap", address, size, none, handle, none)
            driver.call("cuMemSetAccess", address, size, reading, one)
        took.append((time.perf_counter_ns() - start) / 1e3)
        check(Memory(driver, found[-1][1].value, int(nbytes)))
        for handle, address in found:
            _unmap(driver, handle.value, address.value, size)
    answer(*took)


def child_serve(
    library: str, rounds: str, together: str, nbytes: str, maker: str, getter: str
) -> None:
    """Be the server."""
    answer("ready")
    ends = int(maker), int(getter)
    _check(ctypes.CDLL(library).serve(*ends, int(rounds), int(together)))
    for _ in told():
        pass


def child_seal(
    library: str, rounds: str, together: str, nbytes: str, server: str, other: str
) -> None:
    """Make objects and hand them over; answer what each step took."""
    driver, functions, times = Driver(), ctypes.CDLL(library), (ctypes.c_int64 * 3)()
    open_it = ctypes.cast(driver.library.cuMemSetAccess, ctypes.c_void_p)
    reading, size = ctypes.byref(_access(_READ)), _whole_units(driver, int(nbytes))
    with socket.socket(fileno=int(other)) as connection:
        at = connection.fileno()
        answer("ready")
        for _ in told():
            found = []
            for _ in range(int(rounds)):
                with ExitStack() as stack:
                    made = [
                        stack.enter_context(_filled(driver, size)) for _ in range(int(together))
                    ]
                    for _, descriptor in made:
                        _check(functions.give(int(server), descriptor))
                    for address, _ in made:
                        where = open_it, int(server), at, address, size, reading
                        _check(functions.seal(*where, times))
                        found.append(_steps(*times, *_TIMES.unpack(connection.recv(_TIMES.size))))
                    connection.recv(1)  # it has let go
            answer(*found)


def _steps(begun: int, shut: int, sealed: int, *times: int) -> str:
    all_times = begun, shut, sealed, *times
    steps = [then - before for before, then in pairwise(all_times)]
    return ":".join(map(str, (*steps, times[-1] - begun)))


def child_get(
    library: str, rounds: str, together: str, nbytes: str, server: str, other: str
) -> None:
    """Have each object that it is told of, and answer when each step was over."""
    driver, functions, times = Driver(), ctypes.CDLL(library), (ctypes.c_int64 * 4)()
    names = "cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"
    calls = [ctypes.cast(getattr(driver.library, name), ctypes.c_void_p) for name in names]
    ways = (ctypes.c_void_p * 4)(*[call.value for call in calls])
    reading, size = ctypes.byref(_access(_READ)), _whole_units(driver, int(nbytes))
    with socket.socket(fileno=int(other)) as connection:
        at = connection.fileno()
        answer("ready")
        for _ in range(int(rounds)):
            all_found = [(ctypes.c_uint64 * 2)() for _ in range(int(together))]
            for found in all_found:
                _check(functions.get(ways, int(server), at, size, reading, found, times))
                connection.send(_TIMES.pack(*times))
            for handle, address in all_found:
                check(Memory(driver, address, int(nbytes)))
                _unmap(driver, handle, address, size)
            connection.send(b".")


def _access(access: int) -> _Access:
    return _Access(_DEVICE, 0, access)


def _whole_units(driver: Driver, nbytes: int) -> ctypes.c_size_t:
    """As many bytes, rounded up to what sizes of such memory are multiples of."""
    found, properties = ctypes.c_size_t(), _Properties(_PINNED, _BY_DESCRIPTOR, _DEVICE, 0)
    into = ctypes.byref(found)
    driver.call("cuMemGetAllocationGranularity", into, ctypes.byref(properties), 0)
    return ctypes.c_size_t(-(-nbytes // found.value) * found.value)


@contextmanager
def _filled(driver: Driver, size: ctypes.c_size_t) -> Iterator[tuple[ctypes.c_uint64, int]]:
    properties, none = _Properties(_PINNED, _BY_DESCRIPTOR, _DEVICE, 0), ctypes.c_uint64(0)
    handle, address, number = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int()
    driver.call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(properties), none)
    into = ctypes.byref(number)
    driver.call("cuMemExportToShareableHandle", into, handle, _BY_DESCRIPTOR, none)
    driver.call("cuMemAddressReserve", ctypes.byref(address), size, none, none, none)
    driver.call("cuMemMap", address, size, none, handle, none)
    driver.call("cuMemSetAccess", address, size, ctypes.byref(_access(_WRITE)), ctypes.c_size_t(1))
    driver.call("cuMemsetD8Async", address, ctypes.c_ubyte(FILL), size, None)
    driver.synchronize()
    try:
        yield address, number.value
    finally:
        os.close(number.value)
        _unmap(driver, handle.value, address.value, size)


def _unmap(driver: Driver, handle: int, address: int, size: ctypes.c_size_t) -> None:
    driver.call("cuMemUnmap", ctypes.c_uint64(address), size)
    driver.call("cuMemAddressFree", ctypes.c_uint64(address), size)
    driver.call("cuMemRelease", ctypes.c_uint64(handle))


def _check(code: int) -> None:
    if code:
        raise RuntimeError(f"the driver or a socket says {code}")
