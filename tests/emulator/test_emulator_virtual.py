"""Addresses and memory apart: what the emulator does, and every misuse that it notes."""

import contextlib
import ctypes
import os

import pytest

from tests.emulator.emulated_driver import (
    GARBAGE,
    ILLEGAL_ADDRESS,
    INVALID_VALUE,
    OUT_OF_MEMORY,
    Access,
    Properties,
    device,
    run_script,
    streams,
    violation,
)  # fmt: skip

UNIT = 2 << 20


def properties(on=0):
    return ctypes.byref(Properties(1, 0, 1, on))


def create(d, size=UNIT, on=0):
    return d.get("cuMemCreate", size, properties(on), 0)


def reserve(d, size=UNIT, wanted=0):
    return d.get("cuMemAddressReserve", size, 0, wanted, 0)


def open_to(d, at, size=UNIT, to=0, flags=3):
    return d.code("cuMemSetAccess", at, size, ctypes.byref(Access(1, to, flags)), 1)


@contextlib.contextmanager
def mapped(d, pieces=1, on=0):
    """Some pieces side by side, of which nobody has the handles."""
    at = reserve(d, pieces * UNIT)
    for i in range(pieces):
        handle = create(d, on=on)
        d.do("cuMemMap", at + i * UNIT, UNIT, 0, handle, 0)
        d.do("cuMemRelease", handle)
        assert open_to(d, at + i * UNIT, to=on) == 0
    yield at
    d.finish()
    d.do("cuMemUnmap", at, pieces * UNIT)
    d.do("cuMemAddressFree", at, pieces * UNIT)


def test_granularity(d):
    assert d.get("cuMemGetAllocationGranularity", properties(), 0) == UNIT
    assert d.get("cuDeviceGetAttribute", 102, 0, kind=ctypes.c_int) == 1


def test_pieces_side_by_side_are_used_as_one(d):
    with mapped(d, 3) as at:
        assert set(d.peek(at, 3 * UNIT)) == {GARBAGE}
        d.fill(at + UNIT - 10, 5, UNIT + 20)
        d.finish()
        assert d.peek(at + UNIT - 11, UNIT + 22) == bytes([GARBAGE, *[5] * (UNIT + 20), GARBAGE])
        assert d.get("cuPointerGetAttribute", 11, at + UNIT + 5) == at + UNIT, "only one piece"
        assert d.get("cuPointerGetAttribute", 12, at + UNIT + 5) == UNIT


def test_memory_lasts_while_it_is_mapped_or_somebody_has_its_handle(d):
    live = d.live("memory")
    with mapped(d) as at:
        d.fill(at, 7, 100)
        d.finish()
        handle = d.get("cuMemRetainAllocationHandle", at)
        other = reserve(d)
        d.do("cuMemMap", other, UNIT, 0, handle, 0)
        assert open_to(d, other) == 0
        d.do("cuMemRelease", handle)
        assert d.peek(other, 100) == bytes([7]) * 100
        d.poke(other, b"abc")
        assert d.peek(at, 3) == b"abc"
    assert d.live("memory") == live + 2
    assert d.peek(other, 3) == b"abc"
    d.do("cuMemUnmap", other, UNIT)
    d.do("cuMemAddressFree", other, UNIT)
    assert d.live("memory") == live


def test_more_addresses_behind(d):
    at = reserve(d)
    assert reserve(d, UNIT, at + UNIT) == at + UNIT
    elsewhere = reserve(d, UNIT, at + UNIT)
    assert elsewhere not in (at, at + UNIT)
    for start in (at, at + UNIT, elsewhere):
        d.do("cuMemAddressFree", start, UNIT)


def test_none_behind(library):
    output = run_script(
        library,
        """
import ctypes
d.start()
at = d.get("cuMemAddressReserve", 2 << 20, 0, 0, 0)
print(d.get("cuMemAddressReserve", 2 << 20, 0, at + (2 << 20), 0) != at + (2 << 20))
""",
        HAMR_EMULATOR_ADDRESSES="0",
    )
    assert output == "True"


def test_a_device_without(library):
    script = 'd.start(); print(d.get("cuDeviceGetAttribute", 102, 0, kind=ctypes.c_int))'
    assert run_script(library, f"import ctypes\n{script}", HAMR_EMULATOR_VMM="0") == "0"


def test_memory_runs_out(d):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    d.do("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    handle = ctypes.c_uint64()
    size = total.value // UNIT * UNIT + UNIT
    code = d.code("cuMemCreate", ctypes.byref(handle), size, properties(), 0)
    assert code == OUT_OF_MEMORY


def test_memory_is_opened_to_each_device(d):
    with mapped(d) as at, device(d, 1):
        stream = d.stream()
        assert d.scale(stream, at, 0, 10, 1, 1) == 0
        with violation(d, "without access"):
            assert d.code("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS
        assert open_to(d, at, to=1) == 0
        assert d.scale(stream, at, 0, 10, 1, 1) == 0
        d.do("cuStreamSynchronize", stream)
        d.do("cuStreamDestroy_v2", stream)


def test_unmapping_under_pending_work(d):
    with streams(d, 1) as (stream,):
        at, handle = reserve(d), create(d)
        d.do("cuMemMap", at, UNIT, 0, handle, 0)
        assert open_to(d, at) == 0
        d.fill(at, 1, 100, stream)
        with violation(d, "which work that is pending uses"):
            d.do("cuMemUnmap", at, UNIT)
        with violation(d, "use after unmap"):
            d.code("cuStreamSynchronize", stream)
        d.do("cuMemRelease", handle)
        d.do("cuMemAddressFree", at, UNIT)


MISUSES = {
    "use of what nobody may use": lambda d, at: (
        open_to(d, at, flags=0),
        d.code("cuMemsetD8Async", at, 1, 10, 0),
        open_to(d, at),
    ),
    "use beyond what is mapped": lambda d, at: d.code("cuMemsetD8Async", at, 1, UNIT + 1, 0),
    "free": lambda d, at: d.code("cuMemFree_v2", at),
    "unmapping a part": lambda d, at: d.code("cuMemUnmap", at, UNIT // 2),
    "unmapping what is not mapped": lambda d, at: d.code("cuMemUnmap", at + UNIT, UNIT),
    "freeing addresses in use": lambda d, at: d.code("cuMemAddressFree", at, UNIT),
    "an unknown handle": lambda d, at: d.code("cuMemMap", at, UNIT, 0, 5, 0),
    "releasing what was released": lambda d, at: d.code("cuMemRelease", 0xE0000000),
    "a size between units": lambda d, at: d.code(
        "cuMemCreate", ctypes.byref(ctypes.c_uint64()), UNIT + 1, properties(), 0
    ),
    "addresses between units": lambda d, at: d.code(
        "cuMemAddressReserve", ctypes.byref(ctypes.c_uint64()), 1000, 0, 0, 0
    ),
    "access to a part": lambda d, at: open_to(d, at, UNIT // 2),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse(d, misuse):
    with mapped(d) as at, violation(d, ""):
        code = MISUSES[misuse](d, at)
        assert INVALID_VALUE in (code if isinstance(code, tuple) else (code,))


def test_mapping_twice(d):
    with mapped(d) as at:
        handle = create(d)
        with violation(d, "mapped already"):
            assert d.code("cuMemMap", at, UNIT, 0, handle, 0) == INVALID_VALUE
        d.do("cuMemRelease", handle)


def test_use_after_the_addresses_were_freed(d):
    with mapped(d) as at:
        pass
    for call in (("cuMemsetD8Async", at, 1, 10, 0), ("cuMemUnmap", at, UNIT)):
        with violation(d, ""):
            assert d.code(*call) == INVALID_VALUE


def test_each_call_can_fail(d):
    for call in ("cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemAddressReserve"):
        d.fail(call, 1, 719)
        assert d.code(call, 0, 0, 0, 0, 0) == 719


def test_nothing_stays_open(d):
    before = len(os.listdir("/proc/self/fd"))
    with mapped(d, 3):
        pass
    assert len(os.listdir("/proc/self/fd")) == before
