"""Memory that is paused on a real device: graphs replay, and others have it meanwhile."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import hamr
import hamr.allocators
from tests.gpu.cuda_driver_calls import check, driver, free_bytes
from tests.gpu.gpu_delays import hold
from tests.support.processes import run_code

MIB = 1 << 20
COUNT = 16 * MIB
KEEPS = ("nothing", "host", "disk")
#: Bytes that the driver may take of a device for the page tables of page-locked memory.
TABLES = 4 * MIB


@pytest.fixture(autouse=True)
def able(gpu_count):
    if "cuda_vmm" in hamr.devices()[0].get("lacks", ""):
        pytest.skip("the device cannot map memory to addresses")
    yield
    gc.collect()
    hamr.trim()


@pytest.fixture
def name(request):
    return request.node.name


def made(name: str, value: float = 1) -> hamr.Buffer:
    with hamr.pausable(name):
        buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=value)
    buffer.synchronize()
    return buffer


@pytest.mark.parametrize("keep", KEEPS)
def test_another_process_has_the_memory_meanwhile(name, keep):
    buffer = made(name, 3)
    place, before = buffer.ptr, free_bytes()
    hamr.pause(name, keep=keep)
    assert free_bytes() - before >= 4 * COUNT - TABLES
    wanted = free_bytes() - 700 * MIB  # without what the other one's context takes
    code = f"""if True:
        import hamr
        with hamr.Buffer({wanted}, "u1", "cuda", fill=9) as taken:
            print(taken[-1].item())
    """
    assert run_code(code).strip().endswith("9")
    hamr.resume(name)
    assert buffer.ptr == place
    if keep != "nothing":
        assert (buffer.get() == 3).all()
    buffer.fill(5)
    assert (buffer.get() == 5).all()


@pytest.mark.parametrize("keep", ["host", "disk"])
def test_a_graph_of_cupys_replays(cupy_library, name, keep):
    cp = cupy_library.module
    with hamr.pausable(name), hamr.allocators.use_in_cupy():
        array, small = cp.zeros(COUNT, "f4"), cp.ones(100, "f4")
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        array += small[0]
        stream.synchronize()
        array[:] = 0
        stream.synchronize()
        stream.begin_capture()
        array += 1
        graph = stream.end_capture()
    for turn in range(1, 6):
        graph.launch(stream)
        hamr.pause(name, keep=keep)
        hamr.resume(name)
        graph.launch(stream)
        stream.synchronize()
        assert float(array[0]) == float(array[-1]) == 2 * turn
        assert float(small.sum()) == 100


@pytest.mark.parametrize("keep", ["host", "disk"])
def test_a_graph_of_torchs_replays(torch_library, name, keep):
    import torch

    with hamr.pausable(name), hamr.allocators.use_in_torch():
        tensor = torch.zeros(COUNT, device="cuda")
        step = torch.ones(1, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        tensor.add_(step).sub_(step)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensor.add_(step)
    for turn in range(1, 6):
        graph.replay()
        before = free_bytes()
        hamr.pause(name, keep=keep)
        assert free_bytes() - before >= 4 * COUNT - TABLES
        hamr.resume(name)
        graph.replay()
        assert tensor[0].item() == tensor[-1].item() == 2 * turn


def test_a_kernel_is_waited_for(cupy_library, name):
    cp = cupy_library.module
    buffer = made(name, 0)
    view = cp.asarray(buffer)
    view += 0  # compiles, which takes long
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        hold(cp, stream, 30_000)
        view += 1
    hamr.pause(name, keep="host")
    assert stream.done
    hamr.resume(name)
    assert (buffer.get() == 1).all()


def test_a_resume_without_memory_leaves_all_paused(name):
    hamr.trim()  # or it would be given back for this
    first, second = made(name, 1), made(name, 2)
    hamr.pause(name, keep="host")
    filler = ctypes.c_uint64()
    size = free_bytes() - COUNT
    check(driver().cuMemAlloc_v2(ctypes.byref(filler), ctypes.c_size_t(size)))
    left = free_bytes()
    for _ in range(2):
        with pytest.raises(hamr.OutOfMemory):
            hamr.resume(name)
        assert free_bytes() >= left - TABLES, "what was mapped is given back"
        with pytest.raises(hamr.PausedMemory):
            first.fill(1)
    check(driver().cuMemFree_v2(filler))
    hamr.resume(name)
    for value, buffer in enumerate((first, second), 1):
        assert (np.asarray(buffer.get()) == value).all()


@pytest.mark.multigpu
def test_devices_that_reach_each_other_do_so_again(name):
    with hamr.pausable(name):
        buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=4, device=0)
    far = hamr.Buffer(COUNT, "f4", "cuda", fill=0, device=1)
    far.assign(buffer)
    hamr.pause(name, keep="host")
    hamr.resume(name)
    far.fill(0)
    far.assign(buffer)
    assert (far.get() == 4).all()
