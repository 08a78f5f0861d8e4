"""Memory of `cuda_vmm` on a real device: it grows where it is, and libraries see it."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_delays import hold

MIB = 1 << 20
COUNT = MIB // 4


@pytest.fixture(autouse=True)
def able(gpu_count):
    if "cuda_vmm" in hamr.devices()[0].get("lacks", ""):
        pytest.skip("the device cannot map memory to addresses")


def test_append_from_one_mib_to_one_gib():
    buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=0)
    place, steps = buffer.ptr, 64
    for value in range(1, steps):
        buffer.append(hamr.Buffer(16 * COUNT, "f4", "cuda", fill=value))
        assert buffer.ptr == place
    for step in range(1, steps):
        part = buffer[COUNT + (step - 1) * 16 * COUNT :][: 16 * COUNT : 4099]
        assert (part.get() == step).all()
        part.close()
    free, _ = hamr.memory_info(0)
    buffer.close()
    assert hamr.memory_info(0)[0] >= free + 1000 * MIB, "the driver has it back"


def test_kernels_run_on_while_it_grows(cupy_library):
    cp = cupy_library.module
    buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=1)
    view = cp.asarray(buffer)
    view += 0  # compiles, which takes long
    with cp.cuda.Stream(non_blocking=True) as stream:
        hold(cp, stream, 30_000)
        view += 1
        grown = stream.done
        buffer.resize(40 * COUNT)
        assert grown is False
        assert not stream.done, "growth has waited for the stream"
        stream.synchronize()
    assert (buffer[:COUNT].get() == 2).all()
    assert view.data.ptr == buffer.ptr
    assert (cp.asarray(buffer)[:COUNT] == 2).all()


def test_it_is_not_taken_away_under_a_kernel(cupy_library):
    cp = cupy_library.module
    for _ in range(10):
        buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=1)
        buffer.resize(9 * COUNT, 1)
        place = buffer.ptr
        memory = cp.cuda.UnownedMemory(place, buffer.nbytes, None)
        raw = cp.ndarray(9 * COUNT, "f4", cp.cuda.MemoryPointer(memory, 0))
        with cp.cuda.Stream(non_blocking=True) as stream:
            hold(cp, stream, 30_000)
            raw += 1
            buffer.close()
            assert stream.done, "the release has not waited"
    assert cp.arange(3).sum() == 3, "the context is in order"


def test_libraries_see_what_it_has_become(cupy_library, torch_library):
    cp, torch = cupy_library.module, torch_library.module
    buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=3)
    old = torch.from_dlpack(buffer)
    for _ in range(5):
        buffer.append(buffer)
    assert buffer.size() == 32 * COUNT
    for array in (cp.asarray(buffer), cp.from_dlpack(buffer), torch.from_dlpack(buffer)):
        assert float(array.sum()) == 3 * 32 * COUNT
        back = hamr.buffer(array)
        assert back.ptr == buffer.ptr
        np.testing.assert_array_equal(back[:: 4 * COUNT].get(), np.full(8, 3, "f4"))
    assert old.data_ptr() == buffer.ptr
    old += 1
    torch.cuda.synchronize()
    assert buffer[5].item() == 4


def test_out_of_memory_leaves_it_as_it_was():
    buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=3)
    place, capacity = buffer.ptr, buffer.capacity()
    free, total = hamr.memory_info(0)
    for size in (total, 2 * total):  # of what is not free other libraries may give some back
        with pytest.raises(hamr.OutOfMemory):
            buffer.resize(size // 4)
    assert (buffer.ptr, buffer.capacity()) == (place, capacity)
    assert (buffer.get() == 3).all()
    assert hamr.memory_info(0)[0] >= free - 64 * MIB


@pytest.mark.multigpu
def test_another_gpu_reaches_what_it_has_become(cupy_library):
    cp = cupy_library.module
    if not hamr.peer_access(1, 0):
        pytest.skip("no peer access")
    buffer = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=3, device=0)
    buffer.resize(9 * COUNT, 5)
    buffer.synchronize()
    with cp.cuda.Device(1):
        memory = cp.cuda.UnownedMemory(buffer.ptr, buffer.nbytes, buffer, 1)
        far = cp.ndarray(9 * COUNT, "f4", cp.cuda.MemoryPointer(memory, 0))
        assert float(far.sum()) == (3 + 8 * 5) * COUNT
    assert (buffer.copy("cuda", device=1)[COUNT:].get() == 5).all()
