"""Freed page-locked memory is handed out again, when nothing uses it any more."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.in_threads import in_threads
from tests.support.processes import run_code, scaled

COUNT = 1000
REFUSALS = (2, 304, 800, 801)  # out of memory; the system's; not permitted; not supported

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")


def pinned(value: float, count: int = COUNT, **options) -> hamr.Buffer:
    buffer = hamr.Buffer(count, "f4", "cuda_host", fill=value, **options)
    buffer.synchronize()
    return buffer


@pytest.fixture(autouse=True)
def trimmed(needs_device):
    hamr.trim()
    yield
    hamr.set_limit(pinned=None)
    hamr.trim()


def figures() -> dict:
    return hamr.stats()["pools"]["pinned"]


@pytest.mark.parametrize("count", [1, 256 << 10, 16 << 20])
def test_a_second_one_asks_the_driver_for_nothing(emulator, count):
    pinned(1, count).close()
    before = [emulator.calls(name) for name in emulator.entry_points]
    for _ in range(3):
        hamr.Buffer(count, "f4", "cuda_host").close()
    assert [emulator.calls(name) for name in emulator.entry_points] == before


def test_a_device_that_still_reads_keeps_it(emulator):
    source = pinned(7)
    target = hamr.Buffer(COUNT, "f4", "cuda", transfer="async", stream=hamr.Stream(device=0))
    target.assign(source)
    assert emulator.pending() > 0
    place = source.get_host_accessible  # no address was told
    del place
    source.close()
    assert emulator.pending() > 0, "nobody waits"
    others = [pinned(9) for _ in range(3)]
    assert np.unique(target.get()).tolist() == [7]
    assert [np.unique(other.get()).tolist() for other in others] == [[9]] * 3


@pytest.mark.parametrize("gone", [False, True], ids=["stream", "ended stream"])
def test_work_on_its_own_stream_is_over_before(emulator, gone):
    stream = hamr.Stream(device=0)
    source = hamr.Buffer(COUNT, "f4", "cuda_host", fill=7, stream=stream)
    target = driver.Array(np.zeros(COUNT, "f4"))
    device = hamr.buffer(target, stream=stream)
    device.set_stream(stream, "async")
    device.assign(source)
    source.close()
    if gone:
        del stream, device
    others = [pinned(9) for _ in range(3)]
    with driver.on(0):
        driver.do("cuCtxSynchronize")
    assert np.unique(target.read()).tolist() == [7]
    assert [np.unique(other.get()).tolist() for other in others] == [[9]] * 3


ADDRESSES = {
    "ptr": lambda b: b.ptr,
    "numpy": lambda b: np.asarray(b).ctypes.data,
    "memoryview": lambda b: np.asarray(memoryview(b)).ctypes.data,
    "array interface": lambda b: b.__array_interface__["data"][0],
    "handle": lambda b: np.asarray(b.get_host_accessible()).ctypes.data,
    "dlpack": lambda b: np.from_dlpack(b.get_host_accessible()).ctypes.data,
    "arrow": lambda b: (b.__arrow_c_array__(), b.get_host_accessible().ptr)[1],
    "view": lambda b: np.asarray(b[:10]).ctypes.data,
}


@pytest.mark.parametrize("ask", ADDRESSES)
def test_whoever_has_the_address_is_waited_for(emulator, ask):
    """On any stream, which may have ended: as when the driver frees the memory."""
    stream, first = driver.Stream(), pinned(1)
    place = ADDRESSES[ask](first)
    driver.write_late(stream.handle, place, COUNT, 9)
    del stream
    first.close()
    others = [pinned(5) for _ in range(3)]
    with driver.on(0):
        driver.do("cuCtxSynchronize")
    assert [np.unique(other.get()).tolist() for other in others] == [[5]] * 3


@pytest.mark.multigpu
def test_other_devices_are_waited_for_too(emulator):
    source = pinned(7)
    target = hamr.Buffer(COUNT, "f4", "cuda", transfer="async", device=1)
    target.assign(source)
    source.close()
    first = pinned(1)
    stream, place = driver.Stream(device=1), first.ptr
    driver.write_late(stream, place, COUNT, 9)
    first.close()
    others = [pinned(5) for _ in range(4)]
    assert np.unique(target.get()).tolist() == [7]
    with driver.on(1):
        driver.do("cuCtxSynchronize")
    assert [np.unique(other.get()).tolist() for other in others] == [[5]] * 4


def test_trim_gives_it_back(emulator):
    live = emulator.live("bytes")
    pinned(1, 3 << 20).close()
    assert figures()["cached"] > 0
    assert emulator.live("bytes") > live
    hamr.trim()
    assert (figures()["current"], figures()["cached"]) == (0, 0)
    assert emulator.live("bytes") <= live


def test_what_copies_use_counts(emulator):
    run_code(
        """
import numpy as np
import hamr
device = hamr.Buffer(100_000, "u1", "cuda", data=np.ones(100_000, "u1"))
device.synchronize()
assert hamr.stats()["pools"]["pinned"]["current"] == 5 * 1024, hamr.stats()
hamr.trim()
assert hamr.stats()["pools"]["pinned"]["current"] == 0
""",
        env={
            "HAMR_COPY_CHUNK": "1024",
            "HAMR_COPY_THREADS": "8",
            "HAMR_PINNED_LIMIT": "5200",
        },
    )


def test_what_is_freed_is_overwritten_to_check(emulator):
    run_code(
        """
import hamr
from tests.cuda import driver
buffer, beside = (hamr.Buffer(1000, "u1", "cuda_host", fill=1) for _ in range(2))
place = buffer.ptr
buffer.close()
hamr.trim()  # the memory was aside
assert set(driver.emulator.peek(place, 1000, "u1").tolist()) == {0xDB}
""",
        env={"HAMR_CUDA_POOL": "check"},
    )


def fallen_back(make) -> hamr.Buffer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hamr.PinnedMemoryWarning)
        return make()


MAKERS = {
    "create": lambda w: hamr.Buffer(COUNT, "f4", "cuda_host", fill=3),
    "create on a stream": lambda w: hamr.Buffer(
        COUNT, "f4", "cuda_host", fill=3, stream=hamr.Stream(device=0)
    ),
    "copy": lambda w: w.copy("cuda_host"),
    "move": lambda w: (lambda b: (b.move("cuda_host"), b)[1])(w.copy()),
    "of a host array": lambda w: hamr.Buffer(COUNT, "f4", "cuda_host", data=np.full(COUNT, 3)),
    "view's copy": lambda w: w[::-1].copy("cuda_host"),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("code", REFUSALS)
def test_ordinary_memory_takes_its_place(emulator, maker, code):
    source = hamr.Buffer(COUNT, "f4", "cuda", fill=3)
    emulator.fail_locking(0, code)
    made = fallen_back(lambda: MAKERS[maker](source))
    assert made.allocator == hamr.Allocator.malloc
    assert made.host_accessible()
    assert not made.cuda_accessible()
    assert np.unique(made.get()).tolist() == [3]
    assert np.unique(made.copy("cuda").get()).tolist() == [3]
    emulator.stop_failing()
    again = MAKERS[maker](source)
    assert again.allocator == hamr.Allocator.cuda_host
    assert np.unique(again.get()).tolist() == [3]


def test_a_buffer_that_grows_falls_back(emulator):
    buffer = pinned(3)
    emulator.fail_locking(0, 2)
    fallen_back(lambda: buffer.resize(4 << 20, 4))
    assert buffer.allocator == hamr.Allocator.malloc
    assert (buffer[0].item(), buffer[-1].item()) == (3, 4)


def test_other_failures_are_errors(emulator):
    emulator.fail_locking(1, driver.ILLEGAL_ADDRESS)
    with pytest.raises(hamr.DeviceError, match="ILLEGAL_ADDRESS"):
        pinned(1)


def test_one_warning_says_so(emulator):
    output = run_code(
        """
import sys, warnings
import hamr
from tests.cuda import driver
driver.emulator.fail_locking(0, 304)
seen = []
warnings.showwarning = lambda message, kind, name, *rest: seen.append((kind, name))
warnings.simplefilter("error", hamr.PinnedMemoryWarning)
for _ in range(2):
    try:
        hamr.Buffer(10, "f4", "cuda_host")
    except hamr.OutOfMemory as error:
        assert "CUDA_ERROR_OPERATING_SYSTEM (304)" in str(error), error
    else:
        raise AssertionError("no error")
warnings.simplefilter("always")
for _ in range(3):
    assert hamr.Buffer(10, "f4", "cuda_host").allocator.name == "malloc"
assert seen == [(hamr.PinnedMemoryWarning, "<string>")], seen
assert issubclass(hamr.PinnedMemoryWarning, RuntimeWarning)
warnings.simplefilter("error")
try:
    hamr.Buffer(10, "f4", "cuda_host")
except hamr.OutOfMemory:
    pass
else:
    raise AssertionError("no error")
"""
    )
    assert output == ""


def test_staging_needs_none(emulator):
    run_code(
        """
import warnings
import numpy as np
import hamr
from tests.cuda import driver
warnings.simplefilter("error")
driver.emulator.fail_locking(0, 2)
device = hamr.Buffer(100_000, "u1", "cuda", data=np.ones(100_000, "u1"))
assert device.get().all()
""",
        env={"HAMR_COPY_CHUNK": "1024", "HAMR_COPY_THREADS": "8"},
    )


def test_threads_keep_out_of_each_others_memory():
    def work(number: int) -> None:
        stream = hamr.Stream(device=number % driver.DEVICES)
        random = np.random.default_rng(number)
        held: list[tuple[hamr.Buffer, int]] = []
        for value in range(scaled(600, 60)):
            count = int(random.integers(1, 1 << int(random.integers(4, 20))))
            source = pinned(value, count)
            target = hamr.Buffer(
                count, "f4", "cuda", device=stream.device, stream=stream, transfer="async"
            )
            target.assign(source)
            source.close()
            held.append((target, value))
            if len(held) > 6:
                buffer, expected = held.pop(int(random.integers(len(held))))
                assert (buffer.get() == expected).all(), (number, expected)

    in_threads(work)
