"""A process that fits only if others' idle memory comes back finishes, beside CuPy and torch."""

from __future__ import annotations

import ctypes

import pytest

import hamr
from tests.gpu.cuda_driver_calls import check, driver, ensure_context, free_bytes

MIB = 1 << 20
ROOM = 3072 * MIB  # what is left of the device to hamr and the other library
LARGE = 2048 * MIB  # of which both cannot have so much


@pytest.fixture
def small_device():
    """A device that is full but for ROOM."""
    hamr.trim()
    ensure_context()
    filler = ctypes.c_uint64()
    size = free_bytes() - ROOM
    assert size > 0
    check(driver().cuMemAlloc_v2(ctypes.byref(filler), ctypes.c_size_t(size)))
    yield
    hamr.trim()
    check(driver().cuMemFree_v2(filler))


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
def test_beside_cupy(cupy_library, small_device, allocator):
    import cupy

    pool = cupy.get_default_memory_pool()
    array = cupy.ones(LARGE, "u1")
    del array
    assert pool.free_bytes() >= LARGE
    buffer = hamr.Buffer(LARGE, "u1", allocator, fill=7)
    assert (buffer[0].item(), buffer[-1].item()) == (7, 7)
    if allocator != "cuda_uva":  # of which a device may have more than it has
        assert pool.free_bytes() < LARGE


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_beside_torch(torch_library, small_device, allocator):
    import torch

    tensor = torch.ones(LARGE, dtype=torch.uint8, device="cuda")
    del tensor
    assert torch.cuda.memory_reserved() >= LARGE
    buffer = hamr.Buffer(LARGE, "u1", allocator, fill=7)
    assert (buffer[0].item(), buffer[-1].item()) == (7, 7)
    assert torch.cuda.memory_reserved() < LARGE


def test_what_they_use_they_keep(cupy_library, small_device):
    import cupy

    array = cupy.ones(LARGE, "u1")
    with pytest.raises(hamr.OutOfMemory, match="what hamr itself keeps, cupy's pool"):
        hamr.Buffer(LARGE, "u1", "cuda")
    assert set(array[:: LARGE // 100].get().tolist()) == {1}
    del array
    cupy.get_default_memory_pool().free_all_blocks()


def test_a_callback_makes_room(small_device):
    held = [hamr.Buffer(LARGE, "u1", "cuda", fill=1)]
    handle = hamr.on_out_of_memory(lambda device, nbytes: bool(held and held.pop().close() is None))
    buffer = hamr.Buffer(LARGE, "u1", "cuda", fill=2)
    handle.remove()
    assert (held, buffer[-1].item()) == ([], 2)
