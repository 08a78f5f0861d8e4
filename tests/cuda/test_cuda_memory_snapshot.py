"""Whose device memory is: beside a plain model, the driver's own figures, and in files."""

from __future__ import annotations

import gc
import pickle
import threading

import pytest

import hamr
from tests.cuda import driver
from tests.diagnostics.test_memory_snapshot import check_torch
from tests.support.memory_walk import OF_DEVICE, walk_at_random
from tests.support.processes import run_code, scaled

MIB = 1 << 20

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")


@pytest.fixture(autouse=True)
def at_rest(needs_device):
    gc.collect()
    hamr.trim()
    yield
    hamr.trim()


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_a_walk(seed):
    walk_at_random(seed, OF_DEVICE, driver.DEVICES)


def ours(snapshot, name="cuda:0"):
    held = snapshot.devices[name]
    return sum(held["libraries"].values()) + held["kept"]


def used():
    free, total = hamr.memory_info(0)
    return total - free


def test_the_sum_is_what_the_driver_says():
    """Beside memory of somebody else's: ours grows as the driver's figure, the others' does not."""
    start = hamr.Buffer(MIB, "u1", "cuda")
    other = driver.allocate(64 * MIB)
    first, there = hamr.memory_snapshot(), used()
    held = [
        hamr.Buffer(n * MIB + 77, "u1", allocator)
        for n in (3, 5, 8)
        for allocator in ("cuda", "cuda_async")
    ]
    kept = [hamr.Buffer(6 * MIB, "u1", "cuda") for _ in range(2)]
    del kept[0]
    second, now = hamr.memory_snapshot(), used()
    grown = ours(second) - ours(first)
    assert abs(grown - (now - there)) <= 0.01 * now
    held_now = second.devices["cuda:0"]
    assert abs(ours(second) + held_now["others"] - now) <= 0.01 * now
    assert held_now["used"] == now
    assert abs(held_now["others"] - first.devices["cuda:0"]["others"]) <= 0.01 * now
    assert held_now["others"] >= 64 * MIB
    assert held_now["kept"] >= 6 * MIB
    driver.free(other)
    del held, start, kept


@pytest.mark.freed_again
def test_segments_are_whole_and_known():
    held = [hamr.Buffer(n, "u1", "cuda") for n in (100, 5000, 3 * MIB, 700 << 10)]
    freed = hamr.Buffer(5 * MIB, "u1", "cuda")
    freed.close()
    snapshot = hamr.memory_snapshot()
    check_torch(snapshot.to_torch())
    blocks = {at: lent for s in snapshot.segments for at, _, lent in s["blocks"]}
    for a in snapshot.allocations:
        if a["allocator"] == "cuda":
            assert blocks[a["address"]]
    assert not all(blocks.values())
    torch = snapshot.to_torch()
    total = sum(b["requested_size"] for s in torch["segments"] for b in s["blocks"])
    assert total == sum(a["size"] for a in snapshot.allocations)
    del held


def test_a_record_of_two_devices_and_streams(tmp_path):
    stream = hamr.Stream(device=0)
    with hamr.record_memory(tmp_path / "x.pickle") as record:
        first = hamr.Buffer(3 * MIB, "u1", "cuda", stream=stream)
        second = hamr.Buffer(MIB, "u1", "cuda_async", device=driver.DEVICES - 1)
        temporary = second.get_host_accessible()
        del temporary
        first.close()
        second.close()
    events = record.snapshot.events
    assert next(e for e in events if e["size"] == 3 * MIB)["stream"] == int(stream)
    assert {e["device"] for e in events} >= {0, driver.DEVICES - 1}
    # Who asked for a copy is told, whichever thread makes it.
    [copied] = [e for e in events if e["device"] < 0 and e["action"] == "alloc"]
    assert copied["thread"] == threading.get_native_id()
    assert any("two_devices" in frame["name"] for frame in copied["stack"])
    found = pickle.loads((tmp_path / "x.pickle").read_bytes())
    check_torch(found)
    assert len(found["device_traces"]) >= driver.DEVICES
    text = tmp_path / "x.html"
    record.snapshot.write(text)
    assert "cuda:0" in text.read_text()


def test_memory_freed_by_another_thread_is_nobodys():
    held = [hamr.Buffer(MIB, "u1", "cuda") for _ in range(4)]
    with hamr.track(device=0) as t:
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    assert (t.freed, t.allocated, t.peak) == (4 * MIB, 0, 0)
    assert not [a for a in hamr.memory_snapshot().allocations if a["allocator"] == "cuda"]


def test_the_limit_of_a_library():
    hamr.set_limit(library="hamr", device=0, bytes=8 * MIB)
    try:
        assert hamr.limits()["libraries"] == {"hamr": {"cuda:0": 8 * MIB}}
        held = hamr.Buffer(5 * MIB, "u1", "cuda")
        with pytest.raises(hamr.OutOfMemory, match=r"the limit is .* for hamr, of which") as caught:
            hamr.Buffer(4 * MIB, "u1", "cuda_async")
        assert len(str(caught.value).splitlines()) == 3
        asked = []
        callback = hamr.on_out_of_memory(lambda *a: asked.append(a) or held.close() or True)
        again = hamr.Buffer(4 * MIB, "u1", "cuda_async")  # what a callback gave back makes room
        callback.remove()
        assert asked == [(0, 4 * MIB)]
        hamr.set_limit(library="torch", bytes=0)
        more = hamr.Buffer(4 * MIB, "u1", "cuda")
        assert hamr.limits()["libraries"]["torch"] == {"all": 0}
        del again, more
    finally:
        hamr.set_limit(library="hamr", device=0, bytes=None)
        hamr.set_limit(library="torch", bytes=None)
    assert hamr.limits()["libraries"] == {}


def test_three_lines(emulator):
    held = hamr.Buffer(2 * MIB, "u1", "cuda")
    with pytest.raises(hamr.OutOfMemory) as caught:
        hamr.Buffer(1 << 40, "u1", "cuda")
    asked, who, tried = str(caught.value).splitlines()
    assert asked.startswith(f"out of memory: {1 << 40} bytes from allocator cuda on device 0")
    assert "hamr 2.0 MiB" in who
    assert "others" in who
    assert tried.startswith("tried: what hamr itself keeps")
    del held


def test_an_error_where_the_driver_cannot_be_asked(emulator):
    held = hamr.Buffer(2 * MIB, "u1", "cuda")
    emulator.fail("cuMemAlloc_v2", 0, driver.OUT_OF_MEMORY)
    emulator.fail("cuMemGetInfo_v2", 0, 999)
    try:
        with pytest.raises(hamr.OutOfMemory) as caught:
            hamr.Buffer(30 * MIB, "u1", "cuda")
    finally:
        emulator.stop_failing()
    assert "hamr 2.0 MiB" in str(caught.value)
    del held


def test_the_page_locked_memory_that_is_ordinary_is_told():
    run_code(
        """
import hamr
hamr.set_limit(pinned=0)
import warnings
warnings.simplefilter("ignore")
b = hamr.Buffer(1000, "u1", "cuda_host")
[one] = hamr.memory_snapshot().allocations
assert one["allocator"] == b.allocator.name == "malloc", (one, b.allocator)
"""
    )
