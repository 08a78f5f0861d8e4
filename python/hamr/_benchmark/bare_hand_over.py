"""What the driver and the kernel take by themselves for a hand-over of a pool's memory.

The sender asks the driver for what stands for the memory, and sends that; the receiver, which has
imported the pool before, asks the driver for the memory. In between both do what the rows of
hamr's do, so that as much is forgotten by the caches.
"""

from __future__ import annotations

import ctypes
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .children import answer, told
from .compiling import compiled
from .driver import Driver, Memory
from .share import FILL, between, check

_SOURCE = Path(__file__).with_name("bare_hand_over.c")
_TIMES = struct.Struct("2q")
_EXPORTED = 64
#: Hand-overs one right after the other, for which memory is taken before.
TOGETHER = 32
_BY_DESCRIPTOR, _PINNED, _DEVICE, _KEEP = 1, 1, 1, 4


class _PoolProperties(ctypes.Structure):
    """The driver's CUmemPoolProps."""

    _fields_ = (
        ("allocation", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", ctypes.c_int),
        ("device", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("largest", ctypes.c_size_t),
        ("rest", ctypes.c_char * 56),
    )


@contextmanager
def calls() -> Iterator[tuple[str, str]]:
    """How the calls are made, in words, and the library that makes them, "" where it is ctypes."""
    with compiled(_SOURCE) as library:
        yield "compiled C" if library else "ctypes", library


def rounds(nbytes: int, count: int, library: str) -> tuple[list[list[int]], list[list[int]]]:
    """Nanoseconds of the steps of single ones, and of those that come right after the other.

    The steps are the sender's call of the driver, the message, the receiver's call, and all.
    """
    found = between("bare_hand_over", (nbytes, count, library), {})
    steps = [[int(n) for n in text.split(":")] for text in found]
    return steps[1:count], steps[count + 1 :]


def rows(nbytes: int, count: int) -> list[dict[str, Any]]:
    """The medians, as rows in microseconds."""
    names = "cuMemPoolExportPointer", "sendmsg … recvmsg", "cuMemPoolImportPointer", "sum"
    made: list[dict[str, Any]] = []
    with calls() as (by, library):
        single, together = rounds(nbytes, count + 1, library)
    for how, each in ((f"by {by}", single), ("again at once", together)):
        for name, took in zip(names, zip(*each, strict=True), strict=True):
            value = round(statistics.median(took) / 1e3, 3)
            made.append({"operation": f"{name}, {how}", "value": value})
    return made


def took(nbytes: int, count: int, library: str, together: int) -> list[float]:
    """Microseconds that each took, all in all: single ones, or those that come after another."""
    single, at_once = rounds(nbytes, count, library)
    return [each[-1] / 1e3 for each in (single if together == 1 else at_once)]


def _steps(times: tuple[int, ...]) -> str:
    begun, asked, came, had = times
    return ":".join(map(str, (asked - begun, came - asked, had - came, had - begun)))


class _Compiled:
    """The C functions."""

    def __init__(self, driver: Driver, connection: socket.socket, library: str) -> None:
        self._functions, self._number = ctypes.CDLL(library), connection.fileno()
        self._export = ctypes.cast(driver.library.cuMemPoolExportPointer, ctypes.c_void_p)
        self._import = ctypes.cast(driver.library.cuMemPoolImportPointer, ctypes.c_void_p)
        self._times = (ctypes.c_int64 * 2)()

    def give(self, address: int) -> tuple[int, ...]:
        number = ctypes.c_uint64(address)
        _check(self._functions.give(self._export, self._number, number, self._times))
        return tuple(self._times)

    def take(self, pool: ctypes.c_void_p) -> tuple[int, tuple[int, ...]]:
        found = ctypes.c_uint64()
        into = ctypes.byref(found)
        _check(self._functions.take(self._import, self._number, pool, into, self._times))
        return found.value, tuple(self._times)

    def give_all(self, addresses: list[int]) -> list[tuple[int, ...]]:
        n = len(addresses)
        numbers, times = (ctypes.c_uint64 * n)(*addresses), (ctypes.c_int64 * (4 * n))()
        _check(self._functions.give_all(self._export, self._number, n, numbers, times))
        return [tuple(times[4 * i : 4 * i + 4]) for i in range(n)]

    def take_all(self, pool: ctypes.c_void_p, count: int) -> list[int]:
        found = (ctypes.c_uint64 * count)()
        _check(self._functions.take_all(self._import, self._number, count, pool, found))
        return [*found]


class _Called:
    """The same, where there is no compiler."""

    def __init__(self, driver: Driver, connection: socket.socket, library: str) -> None:
        self._driver, self._connection = driver.library, connection
        self._data = ctypes.create_string_buffer(_EXPORTED)

    def give(self, address: int) -> tuple[int, ...]:
        data, number, now = self._data, ctypes.c_uint64(address), time.perf_counter_ns
        begun = now()
        _check(self._driver.cuMemPoolExportPointer(data, number))
        asked = now()
        self._connection.send(data)
        return begun, asked

    def take(self, pool: ctypes.c_void_p) -> tuple[int, tuple[int, ...]]:
        found, now = ctypes.c_uint64(), time.perf_counter_ns
        into = ctypes.byref(found)
        self._connection.recv_into(self._data)
        came = now()
        _check(self._driver.cuMemPoolImportPointer(into, pool, self._data))
        return found.value, (came, now())

    def give_all(self, addresses: list[int]) -> list[tuple[int, ...]]:
        return [(*self.give(each), *_told_when(self._connection)) for each in addresses]

    def take_all(self, pool: ctypes.c_void_p, count: int) -> list[int]:
        found = []
        for _ in range(count):
            address, times = self.take(pool)
            self._connection.send(_TIMES.pack(*times))
            found.append(address)
        return found


def _check(code: int) -> None:
    if code:
        raise RuntimeError(f"the driver or the socket says {code}")


def _told_when(connection: socket.socket) -> tuple[int, ...]:
    return _TIMES.unpack(connection.recv(_TIMES.size))


def child_send(descriptor: str, nbytes: str, count: str, library: str) -> None:
    """Hand memory over, new each time, and some at once; answer what each step took."""
    driver, size = Driver(), int(nbytes)
    pool = _new_pool(driver)
    with socket.socket(fileno=int(descriptor)) as connection:
        by = (_Compiled if library else _Called)(driver, connection, library)
        exported = ctypes.c_int()
        into = ctypes.byref(exported)
        driver.call("cuMemPoolExportToShareableHandle", into, pool, _BY_DESCRIPTOR, _long(0))
        socket.send_fds(connection, [b"p"], [exported.value])
        answer("ready")
        for _ in told():
            steps = []
            for _ in range(int(count)):
                with _filled(driver, pool, size) as address:
                    times = by.give(address)
                    steps.append(_steps((*times, *_told_when(connection))))
                    connection.recv(1)  # it has let go
            with _filled_all(driver, pool, size) as addresses:
                connection.send(b".")  # the memory is there
                steps += map(_steps, by.give_all(addresses))
                connection.recv(1)
            answer(*steps)


def _new_pool(driver: Driver) -> ctypes.c_void_p:
    properties = _PoolProperties(_PINNED, _BY_DESCRIPTOR, _DEVICE, 0)
    pool, everything = ctypes.c_void_p(), ctypes.c_uint64(2**64 - 1)
    driver.call("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(properties))
    driver.call("cuMemPoolSetAttribute", pool, _KEEP, ctypes.byref(everything))
    return pool


def _long(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


@contextmanager
def _filled(driver: Driver, pool: ctypes.c_void_p, size: int) -> Iterator[int]:
    found = ctypes.c_uint64()
    into = ctypes.byref(found)
    driver.call("cuMemAllocFromPoolAsync", into, _long(size), pool, None)
    driver.call("cuMemsetD8Async", found, ctypes.c_ubyte(FILL), _long(size), None)
    driver.synchronize()
    try:
        yield found.value
    finally:
        driver.call("cuMemFreeAsync", found, None)


@contextmanager
def _filled_all(driver: Driver, pool: ctypes.c_void_p, size: int) -> Iterator[list[int]]:
    made = [_filled(driver, pool, size) for _ in range(TOGETHER)]
    try:
        yield [each.__enter__() for each in made]
    finally:
        for each in made:
            each.__exit__(None, None, None)


def child_receive(descriptor: str, nbytes: str, count: str, library: str) -> None:
    """Take what comes over a socket, and answer when each step was over."""
    driver, size = Driver(), int(nbytes)
    with socket.socket(fileno=int(descriptor)) as connection:
        by = (_Compiled if library else _Called)(driver, connection, library)
        _, (number,), _, _ = socket.recv_fds(connection, 1, 1)
        pool, file = ctypes.c_void_p(), ctypes.c_void_p(number)
        into = ctypes.byref(pool)
        driver.call("cuMemPoolImportFromShareableHandle", into, file, _BY_DESCRIPTOR, _long(0))
        answer("ready")
        for _ in range(int(count)):
            address, times = by.take(pool)
            _check_bytes(driver, address, size)
            connection.send(_TIMES.pack(*times))
            connection.send(b".")
        connection.recv(1)
        for address in by.take_all(pool, TOGETHER):
            _check_bytes(driver, address, size)
        connection.send(b".")


def _check_bytes(driver: Driver, address: int, size: int) -> None:
    """Read the memory, and give it back."""
    check(Memory(driver, address, size))
    driver.call("cuMemFreeAsync", ctypes.c_uint64(address), None)
    driver.synchronize()
