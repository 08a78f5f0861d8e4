"""The emulator has devices, contexts, streams and events as the driver has, and is late."""

import ctypes
import errno
import os
import threading
from contextlib import nullcontext

import pytest

from tests.emulator.emulated_driver import (
    CONTEXT_IS_DESTROYED,
    GARBAGE,
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_HANDLE,
    INVALID_VALUE,
    NOT_FOUND,
    NOT_READY,
    device,
    event,
    memory,
    seen,
    streams,
    violation,
)


def test_devices(d):
    assert d.get("cuDeviceGetCount", kind=ctypes.c_int) == 2
    assert d.get("cuDriverGetVersion", kind=ctypes.c_int) == 13000
    name = ctypes.create_string_buffer(64)
    d.do("cuDeviceGetName", name, 64, 1)
    assert name.value == b"Emulated CUDA device 1"
    d.do("cuDeviceGetPCIBusId", name, 64, 1)
    assert name.value == b"0000:02:00.0"
    uuids = []
    for number in range(2):
        d.do("cuDeviceGetUuid_v2", name, number)
        uuids.append(name.raw[:16])
    assert uuids[0] != uuids[1]
    assert d.get("cuDeviceTotalMem_v2", 0) == 256 << 20
    for attribute, value in {75: 7, 76: 5, 41: 1, 83: 1, 115: 1, 16: 8, 1: 1024, 88: 0}.items():
        assert d.get("cuDeviceGetAttribute", attribute, 0, kind=ctypes.c_int) == value
    assert d.code("cuDeviceTotalMem_v2", name, 2) == INVALID_DEVICE


def test_error_names(d):
    text = ctypes.c_char_p()
    d.do("cuGetErrorName", 2, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_OUT_OF_MEMORY"
    d.do("cuGetErrorString", 2, ctypes.byref(text))
    assert text.value == b"out of memory"
    assert d.code("cuGetErrorName", 12345, ctypes.byref(text)) == INVALID_VALUE


def test_procedures_are_found_by_name(d):
    version, missing = ctypes.c_void_p(), ctypes.c_void_p()
    status = ctypes.c_int()
    found = d.code("cuGetProcAddress_v2", b"cuMemAlloc", ctypes.byref(version), 12000, 0, None)
    assert found == 0
    latest = ctypes.cast(d.library.cuMemAlloc_v2, ctypes.c_void_p).value
    assert version.value == latest
    code = d.code(
        "cuGetProcAddress_v2", b"cuNone", ctypes.byref(missing), 12000, 0, ctypes.byref(status)
    )
    assert (code, missing.value, status.value) == (NOT_FOUND, None, 1)


def test_contexts_are_a_stack_of_each_thread(d):
    first = d.get("cuCtxGetCurrent")
    second = d.get("cuDevicePrimaryCtxRetain", 1)
    d.do("cuCtxPushCurrent_v2", second)
    assert d.get("cuCtxGetDevice", kind=ctypes.c_int) == 1
    elsewhere = []

    def other_thread():
        elsewhere.append(d.get("cuCtxGetCurrent"))
        elsewhere.append(d.code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 1))
        elsewhere.append(d.code("cuCtxPopCurrent_v2", None))

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert elsewhere == [0, INVALID_CONTEXT, INVALID_CONTEXT]
    assert d.get("cuCtxPopCurrent_v2") == second
    assert d.get("cuCtxGetCurrent") == first
    d.do("cuCtxSetCurrent", 0)
    assert d.get("cuCtxGetCurrent") == 0
    assert d.code("cuCtxSynchronize") == INVALID_CONTEXT
    d.do("cuCtxSetCurrent", first)
    d.do("cuDevicePrimaryCtxRelease_v2", 1)


def test_destroyed_context_takes_all_with_it(d):
    before = d.live("contexts")
    own = d.get("cuCtxCreate_v2", 0, 0)
    stream, at = d.stream(), d.allocate(4)
    d.event()
    assert d.live("contexts") == before + 1
    d.do("cuCtxPushCurrent_v2", own)
    with violation(d, "4 bytes"):
        d.do("cuCtxDestroy_v2", own)
    assert d.live("contexts") == before
    assert d.code("cuCtxSynchronize") == CONTEXT_IS_DESTROYED
    d.do("cuCtxPopCurrent_v2", None)
    with violation(d, "unknown context"):
        assert d.code("cuCtxSetCurrent", own) == INVALID_CONTEXT
    d.do("cuCtxSetCurrent", d.get("cuDevicePrimaryCtxRetain", 0))
    d.do("cuDevicePrimaryCtxRelease_v2", 0)
    with violation(d, "unknown stream"):
        assert d.code("cuStreamSynchronize", stream) == INVALID_HANDLE
    assert d.code("cuPointerGetAttribute", ctypes.byref(ctypes.c_int()), 2, at) == INVALID_VALUE


def test_streams_and_events_belong_to_contexts(d):
    with streams(d, 1) as [stream], event(d) as mine, memory(d, 8) as at:
        owner = ctypes.c_uint64()
        with device(d, 1):
            assert d.code("cuMemsetD8Async", at, 1, 8, stream) == INVALID_HANDLE
            assert d.code("cuMemAllocAsync", ctypes.byref(owner), 8, stream) == INVALID_HANDLE
            assert d.code("cuEventRecord", mine, 0) == INVALID_HANDLE
            assert d.code("cuEventRecord", mine, stream) == INVALID_HANDLE
            d.do("cuStreamGetCtx", stream, ctypes.byref(owner))
            d.do("cuStreamSynchronize", stream)
            d.do("cuStreamQuery", stream)
            d.do("cuStreamWaitEvent", stream, mine, 0)
            d.do("cuEventSynchronize", mine)
        assert owner.value == d.get("cuCtxGetCurrent")


def test_device_memory_is_out_of_the_hosts_reach(d):
    with memory(d, 1000) as at:
        assert at % 256 == 0
        assert d.peek(at, 1000) == bytes([GARBAGE]) * 1000
        reader, writer = os.pipe()
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.write(writer, ctypes.c_void_p(at), ctypes.c_size_t(1)) == -1
        assert ctypes.get_errno() == errno.EFAULT
        os.close(reader)
        os.close(writer)


def test_work_is_late(d):
    with memory(d, 4, "cuMemAllocManaged", 1) as at, streams(d, 2) as [first, second]:
        d.fill(at, 1, 4, first)
        assert d.pending() == 1
        d.do("cuStreamSynchronize", second)
        assert seen(at, 4) == bytes([GARBAGE]) * 4
        d.do("cuStreamSynchronize", first)
        assert seen(at, 4) == b"\1\1\1\1"
        assert d.pending() == 0


def test_polling_ends(d):
    with memory(d, 4) as at, streams(d, 1) as [stream], event(d) as done:
        d.fill(at, 1, 4, stream)
        d.do("cuEventRecord", done, stream)
        assert [d.code("cuEventQuery", done) for _ in range(3)] == [NOT_READY, NOT_READY, 0]
        d.fill(at, 2, 4, stream)
        assert [d.code("cuStreamQuery", stream) for _ in range(3)] == [NOT_READY, NOT_READY, 0]
        assert d.peek(at, 4) == b"\2\2\2\2"


@pytest.mark.parametrize("call", ["cuEventElapsedTime", "cuEventElapsedTime_v2"])
def test_the_time_between_events(d, call):
    found = ctypes.c_float(-1)
    elapsed = lambda *events: d.code(call, ctypes.byref(found), *events)  # noqa: E731
    with memory(d, 4) as at, streams(d, 1) as [stream], event(d) as untimed:
        first, second, never = (d.get("cuEventCreate", 0) for _ in range(3))
        d.do("cuEventRecord", first, stream)
        d.fill(at, 1, 4, stream)
        d.do("cuEventRecord", second, stream)
        d.do("cuEventRecord", untimed, stream)
        assert elapsed(first, second) == NOT_READY
        d.do("cuEventSynchronize", first)
        assert elapsed(first, second) == NOT_READY
        d.do("cuStreamSynchronize", stream)
        assert elapsed(first, second) == 0
        assert found.value >= 0
        for other, words in (never, "was never recorded"), (untimed, "without timing"):
            with violation(d, words):
                assert elapsed(first, other) == INVALID_HANDLE
        for made in (first, second, never):
            d.do("cuEventDestroy_v2", made)


def test_events_are_the_work_so_far(d):
    with memory(d, 4) as at, streams(d, 1) as [stream], event(d) as done:
        d.do("cuEventQuery", done)
        d.do("cuEventSynchronize", done)
        d.fill(at, 1, 4, stream)
        d.do("cuEventRecord", done, stream)
        d.fill(at, 2, 4, stream)
        d.do("cuEventSynchronize", done)
        assert d.peek(at, 4) == b"\1\1\1\1"
        assert d.pending() == 1


def test_waiting_for_an_event_takes_its_latest_record(d):
    with memory(d, 4) as a, memory(d, 4) as b, streams(d, 2) as [first, second], event(d) as e:
        d.do("cuEventRecord", e, second)
        d.fill(a, 9, 4, first)
        d.do("cuEventRecord", e, first)
        d.do("cuStreamWaitEvent", second, e, 0)
        d.do("cuEventRecord", e, second)
        d.do("cuMemcpyAsync", b, a, 4, second)
        d.do("cuStreamSynchronize", second)
        assert d.peek(b, 4) == b"\t\t\t\t"


def test_events_cross_devices(d):
    with memory(d, 4) as a, streams(d, 1) as [stream], event(d) as e:
        d.fill(a, 7, 4, stream)
        d.do("cuEventRecord", e, stream)
        with device(d, 1), memory(d, 4) as b, streams(d, 1) as [other]:
            d.do("cuStreamWaitEvent", other, e, 0)
            d.do("cuMemcpyAsync", b, a, 4, other)
            d.do("cuStreamSynchronize", other)
            assert d.peek(b, 4) == b"\7\7\7\7"


def test_destroyed_streams_finish_their_work(d):
    with memory(d, 4) as at, event(d) as done:
        stream = d.stream()
        d.fill(at, 3, 4, stream)
        d.do("cuEventRecord", done, stream)
        d.do("cuStreamDestroy_v2", stream)
        d.do("cuEventSynchronize", done)
        assert d.peek(at, 4) == b"\3\3\3\3"
        with violation(d, "unknown stream"):
            assert d.code("cuStreamQuery", stream) == INVALID_HANDLE


@pytest.mark.parametrize("flags", [0, 1], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize("default", [0, 1, 2])
def test_legacy_default_stream(d, flags, default):
    """Blocking streams and the legacy default stream wait for each other."""
    ordered = flags == 0 and default != 2
    with memory(d, 4) as at, memory(d, 4) as copied, streams(d, 1, flags) as [stream]:
        d.fill(at, 1, 4, stream)
        with nullcontext() if ordered else violation(d, "is not in order with work"):
            d.do("cuMemcpyAsync", copied, at, 4, default)
        d.do("cuStreamSynchronize", default)
        assert d.peek(copied, 4) == (b"\1\1\1\1" if ordered else bytes([GARBAGE]) * 4)
        d.finish()
        d.fill(at, 2, 4, default)
        with nullcontext() if ordered else violation(d, "is not in order with work"):
            d.do("cuMemcpyAsync", copied, at, 4, stream)
        d.do("cuStreamSynchronize", stream)
        assert d.peek(copied, 4) == (b"\2\2\2\2" if ordered else b"\1\1\1\1")
        d.finish()


def test_default_streams_of_threads_differ(d):
    context = d.get("cuCtxGetCurrent")
    with memory(d, 4) as at:
        d.fill(at, 1, 4, 2)

        def other_thread():
            d.do("cuCtxSetCurrent", context)
            d.do("cuStreamSynchronize", 2)

        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
        assert d.pending() == 1
        d.do("cuStreamSynchronize", 2)
        assert d.pending() == 0
