"""Memory that the driver does not take back: said, and all goes on."""

import gc

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import INVALID_VALUE
from tests.support.contents import on_host

N = 64


def check(found, expected):
    assert np.asarray(found).tolist() == np.asarray(expected).tolist()


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
def test_page_locked_memory_that_the_driver_does_not_take_back(emulator):
    hamr.trim()
    hamr.Buffer(driver.LARGE, "u1", "cuda_host").close()
    emulator.fail("cuMemHostUnregister", 1, INVALID_VALUE)
    with pytest.raises(hamr.DeviceError, match="cuMemHostUnregister"):
        hamr.trim()
    kept = hamr.Buffer(N, "f4", "cuda_host", fill=1)
    check(kept, np.ones(N))
    kept.close()
    emulator.stop_failing()
    hamr.trim()


@pytest.mark.parametrize("allocator", ["cuda_async", "cuda_uva", "cuda_vmm"])
def test_memory_whose_device_is_out_of_reach_goes_back_later(emulator, allocator, capfd):
    gc.collect()  # what earlier tests' tracebacks keep
    hamr.trim()
    without = emulator.live("memory")
    size = driver.MORE_THAN_IS_KEPT if allocator == "cuda_async" else N
    buffer = hamr.Buffer(size, "u1", allocator, fill=1)
    buffer.synchronize()
    before = hamr.stats()["allocators"][allocator]
    memory = emulator.live("memory")
    emulator.fail("cuCtxGetCurrent", 0, INVALID_VALUE)
    buffer.close()
    emulator.stop_failing()
    assert "CUDA_ERROR_INVALID_VALUE" in capfd.readouterr().err
    assert hamr.stats()["allocators"][allocator] == before
    assert emulator.live("memory") == memory > without
    hamr.trim()
    after = hamr.stats()["allocators"][allocator]
    assert (after["live"], after["current"]) == (before["live"] - 1, before["current"] - size)
    assert emulator.live("memory") == without


def test_memory_whose_device_is_out_of_reach_makes_room(emulator):
    with hamr.Stream(device=0) as stream:
        buffer = hamr.Buffer(200 << 20, "u1", "cuda_async")
        emulator.fail("cuCtxGetCurrent", 0, INVALID_VALUE)
        buffer.close()
        emulator.stop_failing()
    del stream  # on which it would have gone back
    hamr.Buffer(200 << 20, "u1", "cuda_async").close()


RELEASED = ["cuda", "cuda_async", "cuda_uva", "cuda_vmm"] + ["cuda_host"] * (not driver.POOLED)


@pytest.mark.parametrize("allocator", RELEASED)
def test_a_failing_release_is_reported_and_raises_nothing(emulator, allocator, capfd):
    call = {"cuda_async": "cuMemFreeAsync", "cuda_host": "cuMemFreeHost", "cuda_vmm": "cuMemUnmap"}
    # More than hamr's pool keeps: that goes back to the driver at once.
    size = driver.MORE_THAN_IS_KEPT if allocator in ("cuda", "cuda_async") else N
    buffer = hamr.Buffer(size, "u1", allocator, fill=1)
    gc.collect()  # what earlier tests' tracebacks keep
    before = hamr.stats()["allocators"][allocator]["live"]
    emulator.fail(call.get(allocator, "cuMemFree_v2"), 1, INVALID_VALUE)
    buffer.close()
    assert hamr.stats()["allocators"][allocator]["live"] == before - 1
    assert "CUDA_ERROR_INVALID_VALUE" in capfd.readouterr().err
    emulator.stop_failing()
    check(on_host(hamr.Buffer(3, "f4", allocator, fill=1)), [1, 1, 1])
