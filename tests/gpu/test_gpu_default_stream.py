"""A CuPy kernel on the default stream writes a buffer; others take it on streams of their own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_delays import COUNT, hold, keep, write_late
from tests.support.processes import scaled

ROUNDS = scaled(1000, 20)
DELAY = 200.0  # microseconds

ALLOCATORS = ["cuda", "cuda_async", "cuda_uva"]


@pytest.fixture
def cp(cupy_library):
    return cupy_library.module


def view_of(cp, b):
    """CuPy's own view of the memory, which no protocol has a part in."""
    memory = cp.cuda.UnownedMemory(b.ptr, b.nbytes, b, 0)
    return cp.ndarray(COUNT, "f4", cp.cuda.MemoryPointer(memory, 0))


def by_cupy_interface(b, side, cp, torch):
    with side:
        copied = cp.asarray(b).copy()
    return cp.asnumpy(copied, stream=side)


def by_cupy_handle(b, side, cp, torch):
    with side:
        copied = cp.asarray(b.get_cuda_accessible()).copy()
    return cp.asnumpy(copied, stream=side)


def by_cupy_dlpack(b, side, cp, torch):
    with side:
        copied = cp.from_dlpack(b).copy()
    return cp.asnumpy(copied, stream=side)


def by_torch_dlpack(b, side, cp, torch):
    with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
        return torch.from_dlpack(b).clone().cpu().numpy()


def by_the_host(b, side, cp, torch):
    return np.array(b.get_host_accessible())


WAYS = [by_cupy_interface, by_cupy_handle, by_cupy_dlpack, by_torch_dlpack, by_the_host]


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("take", WAYS, ids=lambda f: f.__name__)
def test_no_old_value_is_read(cp, torch_library, take, allocator):
    torch = torch_library.module
    b = hamr.Buffer(COUNT, "f4", allocator, fill=0)
    x, default = view_of(cp, b), cp.cuda.Stream.null
    side = keep(cp.cuda.Stream(non_blocking=True))
    write_late(cp, default, x, 0, 1)
    take(b, side, cp, torch)
    cp.cuda.runtime.deviceSynchronize()
    wrong = 0
    for i in range(1, ROUNDS + 1):
        write_late(cp, default, x, i, DELAY)
        wrong += bool((take(b, side, cp, torch) != i).any())
    assert wrong == 0


@pytest.mark.parametrize("take", WAYS[:4], ids=lambda f: f.__name__)
def test_no_old_value_of_an_adopted_array_is_read(cp, torch_library, take):
    torch = torch_library.module
    x = cp.zeros(COUNT, "f4")
    b, side = hamr.buffer(x), keep(cp.cuda.Stream(non_blocking=True))
    take(b, side, cp, torch)
    wrong = 0
    for i in range(1, scaled(200, 10) + 1):
        write_late(cp, cp.cuda.Stream.null, x, i, DELAY)
        wrong += bool((take(b, side, cp, torch) != i).any())
    assert wrong == 0


def test_a_captured_graph_may_take_buffers(cp):
    """To ask the default stream would end the capture of a stream that it waits for."""
    b, out = hamr.Buffer(COUNT, "f4", "cuda", fill=3), cp.zeros(COUNT, "f4")
    b.synchronize()
    for non_blocking in (False, True):
        stream = keep(cp.cuda.Stream(non_blocking=non_blocking))
        with stream:
            out += cp.asarray(b)  # compiled
            stream.synchronize()
            out.fill(0)
            stream.synchronize()
            stream.begin_capture()
            out += cp.asarray(b)
            graph = stream.end_capture()
            graph.launch(stream)
            stream.synchronize()
        assert np.unique(cp.asnumpy(out)).tolist() == [3]
        out.fill(0)
        cp.cuda.runtime.deviceSynchronize()


@pytest.mark.multigpu
def test_managed_memory_on_another_device(cp):
    """Made and filled on one device, taken on another, while other threads keep both busy."""
    end = threading.Event()

    def occupy(device):
        with cp.cuda.Device(device):
            stream = keep(cp.cuda.Stream(non_blocking=True))
            while not end.is_set():
                hold(cp, stream, 500)
                stream.synchronize()

    threads = [threading.Thread(target=occupy, args=(d,)) for d in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    wrong = 0
    try:
        for i in range(1, scaled(1000, 20) + 1):
            with cp.cuda.Device(i % 2):
                b = hamr.Buffer(1 << 18, "f4", "cuda_uva", fill=i, device=i % 2)
            with cp.cuda.Device(1 - i % 2):
                seen = cp.asarray(b.get_cuda_accessible(1 - i % 2))
                wrong += int((seen != i).any())
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert wrong == 0
