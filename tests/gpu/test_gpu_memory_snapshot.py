"""A snapshot's sums are the driver's, beside memory of the driver, of CuPy and of torch."""

from __future__ import annotations

import ctypes
import pickle

import pytest

import hamr
from tests.diagnostics.test_memory_snapshot import check_torch, viewer
from tests.gpu.cuda_driver_calls import check, driver, ensure_context, free_bytes

MIB = 1 << 20
LARGE = 2048 * MIB


@pytest.fixture
def others():
    """Memory that somebody else has by the driver, in bytes."""
    hamr.trim()
    ensure_context()
    hamr.Buffer(1, "u1", "cuda").close()
    hamr.Buffer(1, "u1", "cuda_async").close()
    hamr.trim()
    filler = ctypes.c_uint64()
    check(driver().cuMemAlloc_v2(ctypes.byref(filler), ctypes.c_size_t(3 * LARGE)))
    yield 3 * LARGE
    check(driver().cuMemFree_v2(filler))
    hamr.trim()


def used():
    free, total = hamr.memory_info(0)
    assert abs(free - free_bytes()) <= 64 * MIB
    return total - free


def ours(snapshot):
    held = snapshot.devices["cuda:0"]
    return sum(held["libraries"].values()) + held["kept"]


def test_the_sum_is_the_drivers(others):
    before = used()
    elsewhere = hamr.memory_snapshot().devices["cuda:0"]["libraries"].get("hamr", 0)
    held = [
        hamr.Buffer(n * 300 * MIB + 77, "u1", allocator, fill=1)
        for n in (1, 2, 3)
        for allocator in ("cuda", "cuda_async")
    ]
    kept = hamr.Buffer(500 * MIB, "u1", "cuda", fill=1)
    kept.close()
    for buffer in held:
        buffer.synchronize()
    snapshot, now = hamr.memory_snapshot(), used()
    device = snapshot.devices["cuda:0"]
    assert abs(device["used"] - now) <= 0.01 * now
    assert abs(ours(snapshot) + device["others"] - now) <= 0.01 * now
    # Ours by hamr's own count, and by what the driver had before and has now.
    assert abs(ours(snapshot) - (now - before)) <= 0.01 * now
    assert abs(device["others"] - before) <= 0.01 * now
    assert device["others"] >= others
    assert device["libraries"]["hamr"] - elsewhere == sum(b.nbytes for b in held)
    check_torch(snapshot.to_torch())


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_beside_pools_of_others(others, request, name):
    request.getfixturevalue(f"{name}_library")
    held = hamr.Buffer(LARGE, "u1", "cuda", fill=1)
    before = hamr.memory_snapshot().devices["cuda:0"]
    if name == "cupy":
        import cupy

        theirs = cupy.ones(LARGE, "u1")
    else:
        import torch

        theirs = torch.ones(LARGE, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
    snapshot, now = hamr.memory_snapshot(), used()
    device = snapshot.devices["cuda:0"]
    grown = device["own_pools"][name] - before["own_pools"].get(name, 0)
    assert grown >= LARGE
    total = ours(snapshot) + sum(device["own_pools"].values()) + device["others"]
    assert abs(total - now) <= 0.01 * now
    del held, theirs


def test_an_error_names_who_has_the_memory(others):
    held = hamr.Buffer(LARGE, "u1", "cuda", fill=1)
    with pytest.raises(hamr.OutOfMemory) as caught:
        hamr.Buffer(1 << 45, "u1", "cuda")
    asked, who, tried = str(caught.value).splitlines()
    assert f"{1 << 45} bytes from allocator cuda on device 0" in asked
    assert "hamr 2.0 GiB" in who
    assert "others" in who
    assert tried.startswith("tried: what hamr itself keeps")
    del held


def test_a_record_of_streams(others, tmp_path):
    stream = hamr.Stream(device=0)
    with hamr.record_memory(tmp_path / "x.pickle") as record, hamr.track(device=0) as t:
        for n in range(1, 6):
            hamr.Buffer(n * 50 * MIB, "u1", "cuda", stream=stream, fill=1).close()
            hamr.Buffer(n * 50 * MIB, "u1", "cuda_async", stream=stream, fill=1).close()
    assert t.allocated == t.freed == 2 * 15 * 50 * MIB
    assert t.peak == 250 * MIB
    mine = [e for e in record.snapshot.events if e["device"] == 0 and e["action"] == "alloc"]
    assert len(mine) == 10
    assert all(any("test_a_record" in f["name"] for f in e["stack"]) for e in mine)
    assert {e["stream"] for e in mine} == {int(stream)}
    found = pickle.loads((tmp_path / "x.pickle").read_bytes())
    check_torch(found)
    module = viewer()
    if module is not None:
        assert "250.0MiB" in module.trace(found)
