"""The emulator's memory: copies, fills, pools, what is known of addresses, and misuse."""

import ctypes

import pytest

from tests.emulator.emulated_driver import (
    GARBAGE,
    INVALID_VALUE,
    OUT_OF_MEMORY,
    address_of,
    device,
    event,
    memory,
    seen,
    streams,
    violation,
)


def test_pageable_memory_is_read_at_the_call_and_written_before_return(d):
    host = ctypes.create_string_buffer(b"abcd", 4)
    with memory(d, 4) as at, streams(d, 1) as [stream]:
        d.do("cuMemcpyHtoDAsync_v2", at, host, 4, stream)
        host.raw = b"efgh"
        assert d.peek(at, 4) == bytes([GARBAGE]) * 4
        d.do("cuStreamSynchronize", stream)
        assert d.peek(at, 4) == b"abcd"
        d.fill(at, ord("z"), 4, stream)
        d.do("cuMemcpyAsync", address_of(host), at, 4, stream)
        assert host.raw == b"zzzz"
        d.do("cuMemcpyHtoD_v2", at, b"wxyz", 4)
        assert d.peek(at, 4) == b"zzzz"
        d.do("cuMemcpyDtoH_v2", host, at, 4)
        assert host.raw == b"wxyz"


def test_pinned_memory_is_read_and_written_late(d):
    with memory(d, 4) as at, memory(d, 4, "cuMemHostAlloc", 0) as pinned:
        ctypes.memmove(pinned, b"abcd", 4)
        d.do("cuMemcpyAsync", at, pinned, 4, 0)
        ctypes.memmove(pinned, b"efgh", 4)
        d.do("cuStreamSynchronize", 0)
        assert d.peek(at, 4) == b"efgh"
        d.poke(at, b"ijkl")
        d.do("cuMemcpyDtoHAsync_v2", pinned, at, 4, 0)
        assert seen(pinned, 4) == b"efgh"
        d.do("cuCtxSynchronize")
        assert seen(pinned, 4) == b"ijkl"


def test_freeing_finishes_the_device(d):
    at = d.allocate(4)
    with memory(d, 4) as other:
        d.fill(at, 1, 4)
        d.do("cuMemcpyAsync", other, at, 4, 0)
        d.do("cuMemFree_v2", at)
        assert d.pending() == 0
        assert d.peek(other, 4) == b"\1\1\1\1"


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_fills(d, bits):
    size, value = bits // 8, 0x01020304 & ((1 << bits) - 1)
    element = value.to_bytes(size, "little")
    with memory(d, 64) as at:
        d.do(f"cuMemsetD{bits}Async", at, value, 5, 0)
        d.do(f"cuMemsetD2D{bits}Async", at + 32, 12, value, 2, 2, 0)
        d.do("cuCtxSynchronize")
        got = d.peek(at, 64)
        assert got[: 5 * size] == 5 * element
        assert got[5 * size : 32] == bytes([GARBAGE]) * (32 - 5 * size)
        rows = 2 * element + bytes([GARBAGE]) * (12 - 2 * size) + 2 * element
        assert got[32 : 32 + len(rows)] == rows
        if bits > 8:
            assert d.code(f"cuMemsetD{bits}Async", at + 1, value, 5, 0) == INVALID_VALUE
        with violation(d, "a pitch of 1"):
            assert d.code(f"cuMemsetD2D{bits}Async", at, 1, value, 2, 2, 0) == INVALID_VALUE


HOST = ctypes.create_string_buffer(200)

MISUSES = [
    ("out of bounds", lambda d, at: d.code("cuMemsetD8Async", at, 0, 101, 0)),
    ("out of bounds", lambda d, at: d.code("cuMemsetD2D8Async", at, 60, 0, 41, 2, 0)),
    ("out of bounds", lambda d, at: d.code("cuMemcpyHtoD_v2", at + 1, HOST, 100)),
    ("out of bounds", lambda d, at: d.code("cuMemcpyAsync", address_of(HOST), at, 101, 0)),
    ("out of bounds", lambda d, at: d.code("cuMemsetD8Async", at + 4096, 0, 1, 0)),
    ("unknown address", lambda d, _: d.code("cuMemsetD8Async", address_of(HOST), 0, 1, 0)),
    ("unknown target", lambda d, at: d.code("cuMemcpyDtoD_v2", address_of(HOST), at, 1)),
    ("on a device", lambda d, at: d.code("cuMemcpyDtoH_v2", ctypes.c_void_p(at), at, 1)),
    ("null pointer", lambda d, at: d.code("cuMemcpyAsync", at, 0, 1, 0)),
    ("free of unknown", lambda d, _: d.code("cuMemFree_v2", address_of(HOST))),
    ("inside the block", lambda d, at: d.code("cuMemFree_v2", at + 8)),
    ("is device memory", lambda d, at: d.code("cuMemFreeHost", at)),
    ("not memory of a pool", lambda d, at: d.code("cuMemFreeAsync", at, 0)),
]


@pytest.mark.parametrize(("words", "misuse"), MISUSES)
def test_misuse_is_refused_and_noticed(d, words, misuse):
    with memory(d, 100) as at, violation(d, words):
        assert misuse(d, at) == INVALID_VALUE


def test_freed_memory_is_refused_and_noticed(d):
    at = d.allocate(4)
    d.do("cuMemFree_v2", at)
    with violation(d, "double free"):
        assert d.code("cuMemFree_v2", at) == INVALID_VALUE
    with violation(d, "use after free"):
        assert d.code("cuMemsetD8Async", at, 1, 4, 0) == INVALID_VALUE


def test_overlap_is_noticed(d):
    with memory(d, 100) as at:
        d.do("cuMemcpyDtoD_v2", at, at + 50, 50)
        with violation(d, "overlap"):
            d.do("cuMemcpyDtoD_v2", at, at + 49, 50)


def test_host_writes_behind_a_block_are_noticed(d):
    with violation(d, "was written at offset 100"), memory(d, 100, "cuMemHostAlloc", 0) as at:
        ctypes.memset(at + 100, 1, 1)


def test_out_of_memory(d):
    with memory(d, 200 << 20):
        out = ctypes.c_uint64()
        assert d.code("cuMemAlloc_v2", ctypes.byref(out), 57 << 20) == OUT_OF_MEMORY
        assert d.code("cuMemAllocAsync", ctypes.byref(out), 1 << 46, 0) == OUT_OF_MEMORY
        assert d.code("cuMemAllocManaged", ctypes.byref(out), 1 << 46, 1) == OUT_OF_MEMORY
        assert d.code("cuMemHostAlloc", ctypes.byref(out), 1 << 46, 0) == OUT_OF_MEMORY
        assert d.code("cuMemAlloc_v2", ctypes.byref(out), 0) == INVALID_VALUE
        total = ctypes.c_uint64()
        free = d.get("cuMemGetInfo_v2", ctypes.byref(total))
        assert (free, total.value) == (56 << 20, 256 << 20)


def test_queued_frees_make_room(d):
    with streams(d, 2) as [stream, other], memory(d, 4) as at:
        d.fill(at, 1, 4, other)
        d.do("cuMemFreeAsync", d.get("cuMemAllocAsync", 200 << 20, stream), stream)
        with memory(d, 200 << 20):
            assert d.pending() == 1


def new_pool(d, device=0):
    properties = (ctypes.c_int * 22)(1, 0, 1, device)
    return d.get("cuMemPoolCreate", properties)


def attribute(d, pool, number):
    value = ctypes.c_uint64()
    d.do("cuMemPoolGetAttribute", pool, number, ctypes.byref(value))
    return value.value


def available(d):
    return d.get("cuMemGetInfo_v2", ctypes.byref(ctypes.c_uint64()))


def test_pools_keep_memory_up_to_their_threshold(d):
    unit, size = 32 << 20, 20 << 20
    pool = new_pool(d)
    assert d.live("pools") == 1
    d.do("cuMemPoolSetAttribute", pool, 4, ctypes.byref(ctypes.c_uint64(unit)))
    for _ in range(2):
        blocks = [d.get("cuMemAllocFromPoolAsync", size, pool, 0) for _ in range(2)]
        expected = [2 * unit, 2 * unit, 2 * size, 2 * size]
        assert [attribute(d, pool, n) for n in (5, 6, 7, 8)] == expected
        assert available(d) == (256 << 20) - 2 * unit
        for at in blocks:
            d.do("cuMemFreeAsync", at, 0)
        d.do("cuStreamSynchronize", 0)
        assert [attribute(d, pool, n) for n in (5, 7)] == [unit, 0]
    d.do("cuMemPoolTrimTo", pool, 100)
    assert attribute(d, pool, 5) == unit, "which has the bytes that are to stay"
    d.do("cuMemPoolTrimTo", pool, 0)
    assert attribute(d, pool, 5) == 0
    d.do("cuMemPoolDestroy", pool)
    with violation(d, "unknown pool"):
        assert d.code("cuMemPoolDestroy", pool) == INVALID_VALUE
    assert available(d) == 256 << 20


def test_pools_of_a_device_with_less_room_than_a_unit(d):
    pool = new_pool(d)
    with memory(d, 250 << 20):
        at = d.get("cuMemAllocFromPoolAsync", 4 << 20, pool, 0)
        assert [attribute(d, pool, n) for n in (5, 7)] == [4 << 20, 4 << 20]
        assert available(d) == 2 << 20
        assert d.code(
            "cuMemAllocFromPoolAsync", ctypes.byref(ctypes.c_uint64()), 3 << 20, pool, 0
        ) == (OUT_OF_MEMORY)
    d.do("cuMemFreeAsync", at, 0)
    d.do("cuStreamSynchronize", 0)
    d.do("cuMemPoolDestroy", pool)
    assert available(d) == 256 << 20


def test_destroyed_pools_last_until_their_memory_is_back(d):
    pool = new_pool(d)
    at = d.get("cuMemAllocFromPoolAsync", 4, pool, 0)
    d.do("cuMemPoolDestroy", pool)
    d.fill(at, 1, 4)
    d.do("cuMemFreeAsync", at, 0)
    assert d.live("memory") == 0
    d.do("cuStreamSynchronize", 0)


def test_pool_memory_keeps_the_order_of_streams(d):
    with streams(d, 2) as [first, second], event(d) as ready:
        at = d.get("cuMemAllocAsync", 4, first)
        d.do("cuEventRecord", ready, first)
        d.do("cuStreamWaitEvent", second, ready, 0)
        d.fill(at, 1, 4, second)
        d.do("cuMemFreeAsync", at, second)
        d.do("cuStreamSynchronize", second)


def test_pool_memory_used_before_its_stream_came_to_it(d):
    with streams(d, 2) as [first, second]:
        at = d.get("cuMemAllocAsync", 4, first)
        with violation(d, "without waiting for the stream of its allocation"):
            d.fill(at, 1, 4, second)
        d.do("cuCtxSynchronize")
        d.do("cuMemFreeAsync", at, second)


def test_pool_memory_freed_under_work_of_another_stream(d):
    with streams(d, 2) as [first, second]:
        at = d.get("cuMemAllocAsync", 4, first)
        d.do("cuStreamSynchronize", first)
        d.fill(at, 1, 4, first)
        with violation(d, "without waiting for work on another stream"):
            d.do("cuMemFreeAsync", at, second)
        d.do("cuStreamSynchronize", second)
        with violation(d, "use after free: a late fill"):
            d.do("cuStreamSynchronize", first)
        at = d.get("cuMemAllocAsync", 4, first)
        d.do("cuMemFreeAsync", at, first)
        with violation(d, "use after free"):
            assert d.code("cuMemsetD8Async", at, 1, 4, first) == INVALID_VALUE


@pytest.mark.parametrize(
    ("call", "arguments", "managed", "host"),
    [
        ("cuMemAlloc_v2", (), 0, False),
        ("cuMemAllocManaged", (1,), 1, True),
        ("cuMemHostAlloc", (0,), 0, True),
        ("cuMemAllocAsync", (0,), 0, False),
    ],
)
def test_pointer_attributes(d, call, arguments, managed, host):
    with memory(d, 100, call, *arguments) as at:
        pooled = call == "cuMemAllocAsync"
        context = 0 if pooled else d.get("cuCtxGetCurrent")
        pool = d.get("cuDeviceGetDefaultMemPool", 0) if pooled else 0
        kind = 1 if call == "cuMemHostAlloc" else 2
        want = {1: context, 2: kind, 3: at + 9, 4: (at + 9) * host, 8: managed, 9: 0}
        want |= {11: at, 12: 100, 13: 1, 17: pool}
        for number, value in want.items():
            out = ctypes.c_uint64()
            code = d.code("cuPointerGetAttribute", ctypes.byref(out), number, at + 9)
            assert code == (INVALID_VALUE if number == 4 and not host else 0)
            assert out.value == value, number
        assert pointer_attributes(d, at + 9, list(want)) == list(want.values())
        assert d.code("cuPointerGetAttribute", ctypes.byref(out), 2, at + 100) == INVALID_VALUE


def pointer_attributes(d, at, numbers):
    values = [ctypes.c_uint64() for _ in numbers]
    places = (ctypes.c_void_p * len(numbers))(*map(ctypes.addressof, values))
    kinds = (ctypes.c_int * len(numbers))(*numbers)
    d.do("cuPointerGetAttributes", len(numbers), kinds, places, at)
    return [value.value for value in values]


def test_attributes_of_unknown_pointers(d):
    at = address_of(HOST)
    assert d.code("cuPointerGetAttribute", ctypes.byref(ctypes.c_uint64()), 2, at) == INVALID_VALUE
    assert pointer_attributes(d, at, [2, 1, 9, 12]) == [0, 0, 2**32 - 2, 0]


def test_copies_between_devices_need_no_access(d):
    with memory(d, 4) as near, device(d, 1), memory(d, 4) as far, streams(d, 1) as [stream]:
        d.poke(near, b"abcd")
        contexts = [d.get("cuDevicePrimaryCtxRetain", n) for n in range(2)]
        for n in range(2):
            d.do("cuDevicePrimaryCtxRelease_v2", n)
        d.do("cuMemcpyPeerAsync", far, contexts[1], near, contexts[0], 4, stream)
        d.do("cuStreamSynchronize", stream)
        assert d.peek(far, 4) == b"abcd"
        with violation(d, "is on device"):
            code = d.code("cuMemcpyPeerAsync", far, contexts[0], near, contexts[1], 4, stream)
            assert code == INVALID_VALUE
        with violation(d, "does not reach"):
            assert d.code("cuMemsetD8Async", near, 1, 4, stream) == INVALID_VALUE
