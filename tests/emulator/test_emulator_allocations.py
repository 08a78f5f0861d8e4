"""Allocations that other processes open while their maker lives, and pools': what is refused."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.emulator.emulated_driver import (
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_VALUE,
    device,
    violation,
)
from tests.emulator.test_emulator_sharing import exported, shared_pool
from tests.support.paths import PATHS


class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_byte * 64),)


def handle_of(d, at):
    handle = Handle()
    d.do("cuIpcGetMemHandle", ctypes.byref(handle), at)
    return handle


#: Another process: it does a word after the other, and says what came of it.
OTHER = """
import socket
from tests.emulator.test_emulator_allocations import *
d = Driver(os.environ["LIBRARY"])
d.start()
connection = socket.socket(fileno=int(os.environ["SOCKET"]))
opened = []
def open_handle(data):
    at = ctypes.c_uint64()
    code = d.code("cuIpcOpenMemHandle_v2", ctypes.byref(at), Handle.from_buffer_copy(data), 1)
    opened.append(at.value)
    return code, at.value
def use(value):
    d.fill(opened[0], value, 100)
    d.finish()
    return d.peek(opened[0], 100)
def close(at):
    return d.code("cuIpcCloseMemHandle", at), [text.split(" ", 2)[-1] for text in d.violations()]
def free(at):
    return d.code("cuMemFree_v2", at), len(d.violations())
def pointer(data):
    _, (descriptor,), _, _ = socket.recv_fds(connection, 10, 1)
    pool = d.get("cuMemPoolImportFromShareableHandle", descriptor, 1, 0)
    opened.append(d.get("cuMemPoolImportPointer", pool, ctypes.create_string_buffer(data, 64)))
    return pool
def give_back(pool):
    d.do("cuMemFreeAsync", opened[0], 0)
    d.finish()
while told := connection.recv(4096):
    word, argument = eval(told)
    d.library.emulator_reset()
    connection.send(repr(globals()[word](argument)).encode())
"""


@pytest.fixture
def other(library):
    """Asks another process with the emulator."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    prologue = "from tests.emulator.emulated_driver import *\n"
    settings = {
        "SOCKET": str(theirs.fileno()),
        "LIBRARY": str(library),
        "HAMR_EMULATOR_DEVICES": "2",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", prologue + OTHER],
        env=os.environ | PATHS | settings,
        pass_fds=(theirs.fileno(),),
    )
    theirs.close()

    def ask(word, argument, descriptors=()):
        ours.send(repr((word, argument)).encode())
        if descriptors:
            socket.send_fds(ours, [b"."], descriptors)
        return eval(ours.recv(4096))

    ask.process = process
    yield ask
    ours.close()
    process.kill()
    process.wait()


@contextlib.contextmanager
def allocation(d):
    at = d.allocate(1000)
    d.fill(at, 1, 1000)
    d.finish()
    yield at, bytes(handle_of(d, at))
    d.do("cuMemFree_v2", at)


def test_another_process_opens_an_allocation_once(d, other):
    with allocation(d) as (at, handle):
        (code, first), (_, second) = other("open_handle", handle), other("open_handle", handle)
        assert (code, first) == (0, second)
        assert other("use", 5) == bytes([5]) * 100
        assert d.peek(at, 101) == bytes([5]) * 100 + bytes([1])
        assert bytes(handle_of(d, at)) == handle
        assert other("close", first) == other("close", first) == (0, [])
        code, (text,) = other("close", first)
        assert code == INVALID_VALUE
        assert "is not open" in text


def test_what_is_open_is_not_freed_otherwise(d, other):
    with allocation(d) as (_, handle):
        _, at = other("open_handle", handle)
        assert other("free", at) == (INVALID_VALUE, 1)
        assert other("close", at) == (0, [])


def test_an_allocation_is_not_freed_while_another_process_has_it(d, other):
    at = d.allocate(1000)
    _, there = other("open_handle", bytes(handle_of(d, at)))
    with violation(d, "which another process has imported"):
        d.do("cuMemFree_v2", at)
    assert other("close", there) == (0, [])


def test_who_is_killed_has_closed(d, other):
    with allocation(d) as (_, handle):
        assert other("open_handle", handle)[0] == 0
        other.process.send_signal(signal.SIGKILL)
        other.process.wait()


def test_an_allocation_of_a_pool_is_not_freed_while_another_process_has_it(d, other):
    pool, descriptor = shared_pool(d)
    held, at = (d.get("cuMemAllocFromPoolAsync", 1000, pool, 0) for _ in range(2))
    d.finish()
    imported = other("pointer", exported(d, at).raw, [descriptor])
    os.close(descriptor)
    d.do("cuMemFreeAsync", held, 0)
    d.finish()  # nobody has that one
    with violation(d, "which another process has imported"):
        d.do("cuMemFreeAsync", at, 0)
        d.finish()
    again = d.get("cuMemAllocFromPoolAsync", 1000, pool, 0)
    d.finish()
    other("give_back", imported)
    d.do("cuMemFreeAsync", again, 0)
    d.finish()
    d.do("cuMemPoolDestroy", pool)


def test_what_has_no_handle(d):
    handle, number = Handle(), ctypes.c_uint64()
    for call, free in (
        (("cuMemAllocManaged", 10, 1), "cuMemFree_v2"),
        (("cuMemHostAlloc", 10, 0), "cuMemFreeHost"),
    ):
        at = d.get(*call)
        assert d.code("cuIpcGetMemHandle", ctypes.byref(handle), at) == INVALID_VALUE
        d.do(free, at)
    with violation(d, "is no allocation"):
        assert d.code("cuIpcGetMemHandle", ctypes.byref(handle), 5) == INVALID_VALUE
    with allocation(d) as (_, own):
        opening = ctypes.byref(number), Handle.from_buffer_copy(own)
        assert d.code("cuIpcOpenMemHandle_v2", *opening, 1) == INVALID_CONTEXT, (
            "it is this process's"
        )
        assert d.code("cuIpcOpenMemHandle_v2", *opening, 0) == INVALID_VALUE
    assert d.code("cuIpcOpenMemHandle_v2", ctypes.byref(number), Handle(), 1) == INVALID_VALUE


def test_an_allocation_is_opened_on_its_device(d, other):
    with device(d, 1):
        at = d.allocate(100)
        assert other("open_handle", bytes(handle_of(d, at)))[0] == INVALID_DEVICE
        d.do("cuMemFree_v2", at)
