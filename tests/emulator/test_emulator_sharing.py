"""Memory that processes share by a descriptor: what the emulator does, and what it refuses."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.emulator.emulated_driver import (
    ILLEGAL_ADDRESS,
    INVALID_VALUE,
    NOT_SUPPORTED,
    Access,
    Properties,
    device,
    run_script,
    streams,
    violation,
)  # fmt: skip
from tests.support.paths import PATHS

UNIT = 2 << 20
BY_DESCRIPTOR, READ, READ_WRITE = 1, 1, 3


def create(d, handles=BY_DESCRIPTOR, on=0):
    return d.get("cuMemCreate", UNIT, ctypes.byref(Properties(1, handles, 1, on)), 0)


def export(d, handle):
    return d.get("cuMemExportToShareableHandle", handle, BY_DESCRIPTOR, 0, kind=ctypes.c_int)


def imported(d, descriptor):
    return d.get("cuMemImportFromShareableHandle", descriptor, BY_DESCRIPTOR)


def import_code(d, descriptor, kind=BY_DESCRIPTOR):
    return d.code(
        "cuMemImportFromShareableHandle", ctypes.byref(ctypes.c_uint64()), descriptor, kind
    )


def open_to(d, at, flags, to=0):
    d.do("cuMemSetAccess", at, UNIT, ctypes.byref(Access(1, to, flags)), 1)


def map_handle(d, handle, flags=READ_WRITE):
    """Where the memory is, whose handle is given back."""
    at = d.get("cuMemAddressReserve", UNIT, 0, 0, 0)
    d.do("cuMemMap", at, UNIT, 0, handle, 0)
    d.do("cuMemRelease", handle)
    open_to(d, at, flags)
    return at


def unmap(d, at):
    d.finish()
    d.do("cuMemUnmap", at, UNIT)
    d.do("cuMemAddressFree", at, UNIT)


@contextlib.contextmanager
def shared(d):
    """Memory that is mapped for reading and writing, and a descriptor of it."""
    handle = create(d)
    descriptor = export(d, handle)
    at = map_handle(d, handle)
    yield at, descriptor
    os.close(descriptor)
    unmap(d, at)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_two_mappings_of_one_memory(d):
    files, live = open_files(), d.live("memory")
    with shared(d) as (at, descriptor):
        other = map_handle(d, imported(d, descriptor))
        d.fill(other, 5, 100)
        d.finish()
        assert d.peek(at, 101)[:100] == bytes([5]) * 100
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        d.do("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        assert total.value - free.value == UNIT, "it is counted once"
        unmap(d, other)
    assert (open_files(), d.live("memory")) == (files, live)


def test_memory_lasts_while_there_is_a_descriptor(d):
    with shared(d) as (at, descriptor):
        d.fill(at, 6, UNIT)
        kept = os.dup(descriptor)
    again = map_handle(d, imported(d, kept), READ)
    os.close(kept)
    assert d.peek(again, UNIT) == bytes([6]) * UNIT
    unmap(d, again)


def test_the_handle_tells_of_which_device_the_memory_is(d):
    with device(d, 1):
        handle = create(d, on=1)
        descriptor = export(d, handle)
        d.do("cuMemRelease", handle)
        again, found = imported(d, descriptor), Properties()
        d.do("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(found), again)
        assert (found.allocation, found.handles, found.kind, found.device) == (1, 1, 1, 1)
        d.do("cuMemRelease", again)
        os.close(descriptor)


OTHER = """
import os, signal, socket
from tests.emulator.test_emulator_sharing import *
d.start()
s = socket.socket(fileno=int(os.environ["SOCKET"]))
_, (descriptor,), _, _ = socket.recv_fds(s, 10, 1)
at = map_handle(d, imported(d, descriptor))
assert d.peek(at, 3) == b"abc"
d.poke(at, b"def")
s.send(b"written")
s.recv(10)
assert d.peek(at, 3) == b"ghi"
own = create(d)
socket.send_fds(s, [b"own"], [export(d, own)])
d.poke(map_handle(d, own), b"jkl")
s.send(b"written")
signal.pause()
"""


def test_memory_of_two_processes_outlives_the_one_that_is_killed(d, library):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    prologue = f"from tests.emulator.emulated_driver import *; d = Driver({os.fspath(library)!r})\n"
    with (
        ours,
        theirs,
        subprocess.Popen(
            [sys.executable, "-c", prologue + OTHER],
            env=os.environ | PATHS | {"SOCKET": str(theirs.fileno())},
            pass_fds=(theirs.fileno(),),
        ) as other,
    ):
        try:
            theirs.close()
            with shared(d) as (at, descriptor):
                d.poke(at, b"abc")
                socket.send_fds(ours, [b"abc"], [descriptor])
                assert ours.recv(10) == b"written"
                assert d.peek(at, 3) == b"def"
                d.poke(at, b"ghi")
            ours.send(b"go on")
            _, (descriptor,), _, _ = socket.recv_fds(ours, 10, 1)
            assert ours.recv(10) == b"written"
        finally:
            other.send_signal(signal.SIGKILL)
            other.wait()
        at = map_handle(d, imported(d, descriptor))
        os.close(descriptor)
        assert d.peek(at, 3) == b"jkl"
        unmap(d, at)


def test_copies_and_fills_of_read_only_memory_are_refused(d):
    source = d.get("cuMemAlloc_v2", 100)
    with shared(d) as (at, descriptor):
        reader = map_handle(d, imported(d, descriptor), READ)
        d.fill(at, 1, 200)
        host = ctypes.create_string_buffer(100)
        for call in (
            ("cuMemsetD8Async", reader, 1, 10, 0),
            ("cuMemsetD2D8Async", reader, 20, 1, 10, 2, 0),
            ("cuMemcpyHtoDAsync_v2", reader, host, 100, 0),
            ("cuMemcpyDtoDAsync_v2", reader, source, 100, 0),
            ("cuMemcpyAsync", reader, source, 100, 0),
        ):
            assert d.code(*call) == INVALID_VALUE, call
        d.do("cuMemcpyDtoH_v2", host, reader, 100)
        assert host.raw == bytes([1]) * 100
        open_to(d, at, READ)
        assert d.code("cuMemsetD8Async", at, 1, 10, 0) == INVALID_VALUE
        open_to(d, at, READ_WRITE)
        d.fill(at, 2, 200)
        unmap(d, reader)
    d.do("cuMemFree_v2", source)


def test_a_kernel_that_writes_to_read_only_memory(d):
    with shared(d) as (at, descriptor), streams(d, 1) as (stream,):
        reader = map_handle(d, imported(d, descriptor), READ)
        d.fill(at, 0, 100)
        d.finish()
        assert d.scale(stream, at, reader, 10, 1, 1) == 0
        d.do("cuStreamSynchronize", stream)
        assert d.scale(stream, reader, at, 10, 1, 1) == 0
        with violation(d, "a write to memory that is read-only"):
            assert d.code("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS
        unmap(d, reader)


def test_what_is_no_memory_is_refused(d, tmp_path):
    with (tmp_path / "file").open("wb") as file:
        assert import_code(d, file.fileno()) == INVALID_VALUE
    assert import_code(d, 999) == INVALID_VALUE
    descriptor = os.memfd_create("something else")
    assert import_code(d, descriptor) == INVALID_VALUE
    os.close(descriptor)
    with shared(d) as (_, descriptor):
        assert import_code(d, descriptor, 2) == NOT_SUPPORTED
        handle, at = imported(d, descriptor), d.get("cuMemAddressReserve", 2 * UNIT, 0, 0, 0)
        assert d.code("cuMemMap", at, 2 * UNIT, 0, handle, 0) == INVALID_VALUE
        d.do("cuMemRelease", handle)
        d.do("cuMemAddressFree", at, 2 * UNIT)


@pytest.mark.parametrize(("handles", "kind"), [(0, BY_DESCRIPTOR), (BY_DESCRIPTOR, 2)])
def test_what_was_not_made_to_be_shared_so(d, handles, kind):
    handle, out = create(d, handles), ctypes.c_int()
    with violation(d, "export as type"):
        code = d.code("cuMemExportToShareableHandle", ctypes.byref(out), handle, kind, 0)
    assert code == INVALID_VALUE
    d.do("cuMemRelease", handle)


def test_a_device_without(library):
    script = """
from tests.emulator.test_emulator_sharing import *
d.start()
out = ctypes.c_uint64()
print(d.get("cuDeviceGetAttribute", 103, 0, kind=ctypes.c_int),
      d.code("cuMemCreate", ctypes.byref(out), UNIT, ctypes.byref(Properties(1, 1, 1, 0)), 0),
      import_code(d, 0))
"""
    assert (
        run_script(library, script, HAMR_EMULATOR_SHARES="0")
        == f"0 {NOT_SUPPORTED} {NOT_SUPPORTED}"
    )


def shared_pool(d):
    pool = d.get("cuMemPoolCreate", ctypes.byref(PoolProperties(1, BY_DESCRIPTOR, 1, 0)))
    descriptor = d.get(
        "cuMemPoolExportToShareableHandle", pool, BY_DESCRIPTOR, 0, kind=ctypes.c_int
    )
    return pool, descriptor


class PoolProperties(ctypes.Structure):
    _fields_ = (
        ("allocation", ctypes.c_int), ("handles", ctypes.c_int), ("kind", ctypes.c_int),
        ("device", ctypes.c_int), ("unused", ctypes.c_byte * 72),
    )  # fmt: skip


def exported(d, at):
    data = ctypes.create_string_buffer(64)
    d.do("cuMemPoolExportPointer", data, at)
    return data


def test_allocations_of_a_pool_are_imported_one_by_one(d):
    files = open_files()
    with streams(d, 1) as (stream,):
        pool, descriptor = shared_pool(d)
        first, second = (d.get("cuMemAllocFromPoolAsync", 1000, pool, stream) for _ in range(2))
        d.fill(first, 1, 1000, stream)
        d.fill(second, 2, 1000, stream)
        d.finish()
        foreign = d.get("cuMemPoolImportFromShareableHandle", descriptor, BY_DESCRIPTOR, 0)
        os.close(descriptor)
        again = d.get("cuMemPoolImportPointer", foreign, exported(d, second))
        assert d.get("cuPointerGetAttribute", 12, again) == 1000
        assert d.get("cuPointerGetAttribute", 17, again) == foreign
        assert d.peek(again, 1000) == bytes([2]) * 1000
        d.fill(again, 3, 10, stream)
        d.finish()
        assert d.peek(second, 11) == bytes([3] * 10 + [2])
        assert d.peek(first, 1000) == bytes([1]) * 1000
        d.do("cuMemFreeAsync", again, stream)
        d.finish()
        d.do("cuMemPoolDestroy", foreign)
        for at in (first, second):
            d.do("cuMemFreeAsync", at, stream)
        d.finish()
        d.do("cuMemPoolDestroy", pool)
    assert open_files() == files


def test_misuse_of_shared_pools(d):
    pool, descriptor = shared_pool(d)
    foreign = d.get("cuMemPoolImportFromShareableHandle", descriptor, BY_DESCRIPTOR, 0)
    own = d.get("cuMemPoolCreate", ctypes.byref(PoolProperties(1, 0, 1, 0)))
    at, number, data = (
        d.get("cuMemAlloc_v2", 10),
        ctypes.c_uint64(),
        ctypes.create_string_buffer(64),
    )
    for call in (
        ("cuMemAllocFromPoolAsync", ctypes.byref(number), 10, foreign, 0),
        ("cuMemPoolExportToShareableHandle", ctypes.byref(number), own, BY_DESCRIPTOR, 0),
        ("cuMemPoolExportToShareableHandle", ctypes.byref(number), foreign, BY_DESCRIPTOR, 0),
        ("cuMemPoolExportPointer", data, at),
        ("cuMemPoolImportPointer", ctypes.byref(number), own, data),
    ):
        with violation(d, ""):
            assert d.code(*call) == INVALID_VALUE, call
    for call in (
        ("cuMemPoolImportPointer", ctypes.byref(number), foreign, data),
        ("cuMemPoolImportFromShareableHandle", ctypes.byref(number), 999, BY_DESCRIPTOR, 0),
    ):
        assert d.code(*call) == INVALID_VALUE, call
    os.close(descriptor)
    d.do("cuMemFree_v2", at)
    for each in (own, foreign, pool):
        d.do("cuMemPoolDestroy", each)
