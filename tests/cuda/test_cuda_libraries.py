"""hamr.allocators with stand-ins for CuPy, torch and Numba, which have their rules."""

from __future__ import annotations

import gc
import itertools
import sys
import threading

import pytest

import hamr
import hamr.allocators
from hamr._base.library import core
from hamr.allocators import _cupy, _numba, _torch
from tests.cuda import driver
from tests.support import library_stand_ins as stand_ins
from tests.support.processes import run_code

MIB = 1 << 20

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")


@pytest.fixture(autouse=True)
def nothing_left(needs_device):
    hamr.trim()
    before = live()
    yield
    gc.collect()
    hamr.trim()
    assert live() == before


def live() -> int:
    rows = hamr.stats()["allocators"]
    return rows["cuda"]["live"] if "cuda" in rows else 0


@pytest.fixture
def put(monkeypatch):
    """Makes a stand-in what one imports; hamr.allocators starts anew."""

    def install(stand_in):
        for name, module in stand_in.modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        return stand_in

    monkeypatch.setattr(_cupy, "_made", None)
    monkeypatch.setattr(_torch, "_allocators", {})
    monkeypatch.setattr(_torch, "_everywhere", False)
    monkeypatch.setattr(_numba, "_manager", None)
    return install


@pytest.fixture(params=[b"intptr_t (void)", b"void *(int)"])
def cupy(request, put):
    """With a C function that tells the current stream, and without one of a type that is known."""
    cupy = put(stand_ins.CuPy(request.param))
    yield cupy
    made = _cupy._made
    if made is not None:
        gc.collect()
        hamr.trim()
        for key in list(made.streams):
            assert core().DropStream(*key)
            del made.streams[key]


def test_cupys_memory_is_of_the_current_stream(cupy, emulator):
    one, other = driver.Stream(), driver.Stream()
    with driver.on(0):
        emulator.hold(one.handle)
    hamr.allocators.use_in_cupy()
    cupy.stream = stand_ins.CuPyStream(one.handle, one)
    first = cupy.alloc(3 * MIB)
    address = first.ptr
    driver.write_late(one, address, 100, 1)
    del first
    assert cupy.alloc(3 * MIB).ptr == address
    cupy.stream = stand_ins.CuPyStream(other.handle, other)
    assert cupy.alloc(3 * MIB).ptr != address
    emulator.let_go()
    one.synchronize()


def test_cupy_gets_its_allocator_back(cupy):
    before = cupy.cuda.get_allocator()
    with hamr.allocators.use_in_cupy() as use:
        kept = cupy.alloc(100)
        assert kept.ptr
        with hamr.allocators.use_in_cupy():
            assert cupy.alloc(100).ptr
        assert cupy.cuda.get_allocator() is not before
        assert repr(use) == "<hamr.allocators.CuPyUse>"
    assert cupy.cuda.get_allocator() is before
    assert repr(use) == "<hamr.allocators.CuPyUse, ended>"
    use.end()
    del kept


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_uses_in_cupy_end_in_any_order(cupy, order):
    before = cupy.cuda.get_allocator()
    uses = [hamr.allocators.use_in_cupy() for _ in range(3)]
    ours = cupy.cuda.get_allocator()
    for left, number in zip((2, 1, 0), order, strict=True):
        uses[number].end()
        uses[number].end()
        assert cupy.cuda.get_allocator() is (ours if left else before)


@pytest.mark.parametrize("first", [0, 1])
def test_an_allocator_that_cupy_was_given_between_two_uses(cupy, first):
    uses = [hamr.allocators.use_in_cupy()]
    ours = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(max)
    uses.append(hamr.allocators.use_in_cupy())
    uses[first].end()
    assert cupy.cuda.get_allocator() is (max if first else ours)
    uses[1 - first].end()
    assert cupy.cuda.get_allocator() is max


def test_cupys_other_allocator_stays(cupy):
    use = hamr.allocators.use_in_cupy()
    cupy.cuda.set_allocator(max)
    use.end()
    assert cupy.cuda.get_allocator() is max


def test_no_bytes_for_cupy(cupy):
    with hamr.allocators.use_in_cupy():
        assert cupy.alloc(0).ptr == 0


def test_cupy_runs_out_of_memory(cupy, emulator):
    with hamr.allocators.use_in_cupy():
        emulator.fail("cuMemAlloc_v2", 0, driver.OUT_OF_MEMORY)
        with pytest.raises(stand_ins.CuPyOutOfMemory, match="67,108,864") as caught:
            cupy.alloc(64 * MIB)
        assert isinstance(caught.value.__cause__, hamr.OutOfMemory)
        emulator.stop_failing()
        assert cupy.alloc(64 * MIB).ptr


def test_cupys_streams_stay_while_they_may_be_asked(cupy, monkeypatch):
    monkeypatch.setattr(_cupy, "_FEW_STREAMS", 4)
    with hamr.allocators.use_in_cupy():
        made = _cupy._made
        made.few = 4
        kept, first = [], 0
        for number in range(9):
            stream = driver.Stream()
            first = first or stream.handle
            cupy.stream = stand_ins.CuPyStream(stream.handle, stream)
            memory = cupy.alloc(100)
            if number == 0:
                kept.append(memory)
            del memory
        assert (0, first) in made.streams  # it has memory
        assert len(made.streams) <= 5
        kept.clear()
        cupy.stream = stand_ins.CuPyStream(0)


def test_cupys_external_streams_are_not_asked(cupy):
    with hamr.allocators.use_in_cupy():
        stream = driver.Stream()
        cupy.stream = stand_ins.CuPyExternalStream(stream.handle)
        cupy.alloc(3 * MIB)
        assert not _cupy._made.streams
        cupy.stream = stand_ins.CuPyStream(0)
        del stream
        assert cupy.alloc(3 * MIB).ptr


def test_cupy_on_many_threads(cupy):
    with hamr.allocators.use_in_cupy():
        failed = []

        def work() -> None:
            mine = []
            for size in range(1, 200):
                mine.append(cupy.alloc(size * 100))
            if len({each.ptr for each in mine}) != len(mine):
                failed.append(mine)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def test_torchs_region(put):
    torch = put(stand_ins.Torch())
    with hamr.allocators.use_in_torch() as use:
        assert torch.regions == [use.pool]
        address = torch.alloc(3 * MIB, 0)
        assert address
        torch.free(address, 3 * MIB, 0)
        assert repr(use) == "<hamr.allocators.TorchUse>"
    assert torch.regions == []
    assert use.pool is None
    assert live() == 0  # the pool's cache is hamr's again
    use.end()
    with hamr.Buffer(3 * MIB, "uint8", "cuda") as buffer:
        assert buffer.ptr == address


def test_torchs_regions_end_before_the_process_does(put):
    torch = put(stand_ins.Torch())
    use = hamr.allocators.use_in_torch()
    _torch._end_all()
    assert use.pool is None
    assert torch.regions == []


def test_torch_everywhere(put):
    streams = [driver.Stream() for _ in range(2)]
    torch = put(stand_ins.Torch(streams=[stream.handle for stream in streams]))
    assert hamr.allocators.use_in_torch(everywhere=True) is None
    assert hamr.allocators.use_in_torch(everywhere=True) is None  # it is so already
    assert torch.current.record_stream
    with pytest.raises(RuntimeError, match="no region is needed"):
        hamr.allocators.use_in_torch()
    handle = streams[0].handle
    address = torch.current.alloc(3 * MIB, 0, handle)
    driver.write_late(streams[0], address, 100, 1)
    torch.current.free(address, 3 * MIB, 0, handle)
    assert torch.current.alloc(3 * MIB, 0, handle) == address  # at once: the stream stays
    torch.current.free(address, 3 * MIB, 0, handle)
    streams[0].synchronize()
    for stream in streams:
        assert core().DropStream(0, stream.handle)


def test_torch_everywhere_comes_first(put):
    put(stand_ins.Torch(used=True))
    with pytest.raises(RuntimeError, match="before its first use of CUDA"):
        hamr.allocators.use_in_torch(everywhere=True)


def test_a_torch_without_record_stream_is_warned_of(put):
    put(stand_ins.Torch(can_record=False))
    with pytest.warns(RuntimeWarning, match="record_stream"):
        hamr.allocators.use_in_torch(everywhere=True)


def test_torchs_odd_arguments(put):
    put(stand_ins.Torch())
    with pytest.raises(TypeError, match="everywhere is 1"):
        hamr.allocators.use_in_torch(everywhere=1)
    with pytest.raises(ValueError, match="device is 0"):
        hamr.allocators.use_in_torch(everywhere=True, device=0)
    with pytest.raises(ValueError, match="99"):
        hamr.allocators.use_in_torch(device=99)


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_builds_for_rocm_are_refused(put, library):
    stand_in = put(stand_ins.CuPy() if library == "cupy" else stand_ins.Torch())
    if library == "cupy":
        stand_in.cuda.runtime.is_hip = True
    else:
        stand_in.modules["torch"].version.hip = "6.2"
    with pytest.raises(hamr.BackendUnavailable, match="ROCm"):
        getattr(hamr.allocators, f"use_in_{library}")()


def test_a_torch_without_cuda_is_refused(put):
    put(stand_ins.Torch()).modules["torch"].version.cuda = None
    with pytest.raises(hamr.BackendUnavailable, match="without CUDA"):
        hamr.allocators.use_in_torch()


def test_numbas_memory(put):
    numba = put(stand_ins.Numba())
    hamr.allocators.use_in_numba()
    hamr.allocators.use_in_numba()
    context = numba.context()
    info = context.manager.get_memory_info()
    assert 0 < info.free <= info.total == context.manager.deallocations.memory_capacity
    memory = context.manager.memalloc(3 * MIB)
    address = memory.address
    assert address
    del memory
    gc.collect()
    assert live() == 1  # Numba lets go of many at a time
    context.manager.deallocations.clear()
    again = context.manager.memalloc(3 * MIB)
    assert again.address == address
    del again
    gc.collect()
    context.manager.deallocations.clear()


class BareDevice:
    """The driver's binding's, which is a number and has no more."""

    def __int__(self):
        return 0


def test_numbas_device_may_be_that_of_the_drivers_binding(put):
    numba = put(stand_ins.Numba())
    hamr.allocators.use_in_numba()
    manager = numba.context(BareDevice()).manager
    memory = manager.memalloc(1000)
    assert memory.address
    assert manager.get_memory_info().total > 0
    del memory
    manager.deallocations.clear()


def test_numba_runs_out_of_memory(put, emulator):
    numba = put(stand_ins.Numba())
    hamr.allocators.use_in_numba()
    context = numba.context()
    emulator.fail("cuMemAlloc_v2", 0, driver.OUT_OF_MEMORY)
    with pytest.raises(stand_ins.CudaAPIError) as caught:
        context.manager.memalloc(64 * MIB)
    assert caught.value.code == 2
    assert isinstance(caught.value.__cause__, hamr.OutOfMemory)


def test_numba_comes_first(put):
    put(stand_ins.Numba(used=True))
    with pytest.raises(RuntimeError, match="before its first use"):
        hamr.allocators.use_in_numba()


ENDS = """
import os, sys
from tests.support import library_stand_ins as stand_ins
cupy, torch, numba = stand_ins.CuPy(), stand_ins.Torch(), stand_ins.Numba()
for each in (cupy, torch, numba):
    sys.modules.update(each.modules)
import hamr.allocators
hamr.allocators.use_in_cupy()
hamr.allocators.use_in_numba()
use = hamr.allocators.use_in_torch()
context = numba.context()
kept = [cupy.alloc(1000), context.manager.memalloc(1000), torch.alloc(1000, 0)]
torch.free(kept[2], 1000, 0)
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "import gc; kept.append(kept)"])
def test_the_process_ends_with_live_memory(end):
    run_code(ENDS + end)


def test_a_forked_child_gets_none_and_lets_go_of_what_there_is():
    run_code(
        ENDS
        + """
import hamr
child = os.fork()
if child == 0:
    try:
        cupy.alloc(2000)
    except hamr.ForkError as error:
        assert "spawn" in str(error)
    else:
        os._exit(3)
    if torch.alloc(2000, 0) is not None:
        os._exit(4)
    kept.clear()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert cupy.alloc(2000).ptr
"""
    )
