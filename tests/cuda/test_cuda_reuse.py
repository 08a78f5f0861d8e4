"""Freed memory of `cuda` is handed out again: at once on its stream, on others after its work."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.in_threads import in_threads
from tests.support.processes import run_code, scaled

#: Which hamr takes from the driver by itself, once it was trimmed.
COUNT = driver.LARGE // 4

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")


def filled(value: float, **options) -> hamr.Buffer:
    return hamr.Buffer(COUNT, "f4", "cuda", fill=value, **options)


def values(buffer: hamr.Buffer) -> list[float]:
    return np.unique(np.asarray(buffer.get_host_accessible())).tolist()


@pytest.fixture(autouse=True)
def trimmed(needs_device):
    hamr.trim()


def taken(emulator) -> tuple[int, int, int]:
    """What was asked of the driver that takes long."""
    return tuple(map(emulator.calls, ("cuMemAlloc_v2", "cuMemFree_v2", "cuCtxSynchronize")))


def test_the_same_stream_has_it_at_once(emulator):
    for options in ({}, {"stream": hamr.Stream(device=0)}):
        first = filled(1, transfer="async", **options)
        before = taken(emulator)
        first.close()
        second = filled(2, transfer="async", **options)
        assert taken(emulator) == before
        assert emulator.pending() > 0
        assert values(second) == [2]
        second.close()
        hamr.trim()


def test_other_streams_have_it_when_the_work_is_over(emulator):
    streams = [hamr.Stream(device=0) for _ in range(2)]
    filled(1, transfer="async", stream=streams[0]).close()
    allocations, *_ = taken(emulator)
    second = filled(2, transfer="async", stream=streams[1])
    assert taken(emulator)[0] == allocations + 1
    streams[0].synchronize()
    third = filled(3, transfer="async", stream=streams[1])
    assert taken(emulator)[0] == allocations + 1
    assert [values(second), values(third)] == [[2], [3]]


@pytest.mark.parametrize("ask", ["ptr", "__cuda_array_interface__", "of a handle"])
def test_whoever_has_the_address_is_waited_for(emulator, ask):
    """On any stream, which may have ended; who drops the buffer does not wait."""
    stream, first = driver.Stream(), filled(1)
    first.synchronize()
    place = first.get_cuda_accessible().ptr if ask == "of a handle" else getattr(first, ask)
    place = place["data"][0] if isinstance(place, dict) else place
    driver.write_late(stream.handle, place, COUNT, 9)
    del stream
    *_, waits = taken(emulator)
    del first
    assert taken(emulator)[2] == waits
    others = [filled(5, transfer="async") for _ in range(3)]
    with driver.on(0):
        driver.do("cuCtxSynchronize")
    assert [values(other) for other in others] == [[5]] * 3


def test_trim_gives_it_back(emulator):
    live = emulator.live("memory")
    kept = hamr.Buffer(3, "f4", "cuda", fill=1)
    filled(1).close()
    assert emulator.live("memory") > live
    hamr.trim()
    assert emulator.live("memory") <= live + 1  # what kept is in
    assert values(kept) == [1]


def test_what_is_freed_is_overwritten_to_check(emulator):
    run_code(
        """
import hamr
from tests.cuda import driver
buffer, beside = (hamr.Buffer(1000, "u1", "cuda", fill=1) for _ in range(2))
buffer.synchronize()
place = buffer.ptr
buffer.close()
hamr.trim()  # the memory was aside
driver.emulator.finish()
assert set(driver.emulator.peek(place, 1000, "u1").tolist()) == {0xDB}
""",
        env={"HAMR_CUDA_POOL": "check"},
    )


@pytest.mark.parametrize("shared", [True, False], ids=["default stream", "streams"])
def test_threads_keep_out_of_each_others_memory(shared):
    def work(number: int) -> None:
        stream = None if shared else hamr.Stream(device=0)
        random = np.random.default_rng(number)
        held: list[tuple[hamr.Buffer, float]] = []
        for value in range(scaled(600, 60)):
            size = int(random.integers(1, 1 << int(random.integers(4, 20))))
            made = hamr.Buffer(size, "f4", "cuda", fill=value, stream=stream, transfer="async")
            held.append((made, value))
            if len(held) > 6:
                buffer, expected = held.pop(int(random.integers(len(held))))
                found = np.asarray(buffer.get_host_accessible())
                assert (found == expected).all(), (number, expected)

    in_threads(work)
