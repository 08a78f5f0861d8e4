"""Memory serves others only after CuPy's work on it, also where its stream has ended."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.cuda.library_work import SHAPES
from tests.gpu.gpu_delays import COUNT, write_late
from tests.support.processes import scaled

ROUNDS, ENDS, DELAY, OTHERS = 50, 100, 500, 4
BUFFERS = ["cuda", "cuda_async"]


@pytest.fixture
def cp(cupy_library):
    return cupy_library.module


def shapes():
    return [
        pytest.param(shape, marks=pytest.mark.multigpu) if shape.devices > 1 else shape
        for shape in SHAPES
    ]


@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_cupy_reads_what_it_was_given(cp, shape):
    wrong = 0
    with cp.cuda.Device(shape.device):
        stream = cp.cuda.Stream(non_blocking=True)
        delayed = cp.zeros(COUNT, "f4")
        for value in range(scaled(ROUNDS, 5)):
            with stream:
                x = cp.asarray(shape.take(COUNT, value))
                write_late(cp, stream, delayed, value, DELAY)
                y = x + 1
                del x
            others = [shape.take(COUNT, -7) for _ in range(OTHERS)]
            stream.synchronize()
            wrong += bool((cp.asnumpy(y) != value + 1).any())
            del others
    assert wrong == 0


@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_a_late_write_of_cupys_spoils_nobody(cp, shape):
    wrong = 0
    with cp.cuda.Device(shape.device):
        stream = cp.cuda.Stream(non_blocking=True)
        for value in range(scaled(ROUNDS, 5)):
            with stream:
                x = cp.asarray(shape.take(COUNT, value))
                write_late(cp, stream, x, -9, DELAY)
                del x
            others = [shape.take(COUNT, value) for _ in range(OTHERS)]
            stream.synchronize()
            found = [cp.asnumpy(cp.asarray(other)) for other in others]
            wrong += any((values != value).any() for values in found)
    assert wrong == 0


@pytest.mark.parametrize("allocator", BUFFERS)
def test_a_buffer_is_waited_for(cp, allocator):
    wrong, stream = 0, cp.cuda.Stream(non_blocking=True)
    for value in range(scaled(ROUNDS, 5)):
        b = hamr.Buffer(COUNT, "f4", allocator, fill=value)
        with stream:
            x = cp.asarray(b)
            write_late(cp, stream, x, -9, DELAY)
            del x, b
        others = [hamr.Buffer(COUNT, "f4", allocator, fill=value) for _ in range(OTHERS)]
        stream.synchronize()
        wrong += any((np.asarray(o.get_host_accessible()) != value).any() for o in others)
    assert wrong == 0


@pytest.mark.parametrize("allocator", ["cuda", "cuda_host", "cuda_uva"])
@pytest.mark.parametrize("copied", [False, True], ids=["", "copied"])
def test_memory_outlives_its_stream(cp, allocator, copied):
    for number in range(scaled(ENDS, 10)):
        stream = cp.cuda.Stream(non_blocking=True)
        b = hamr.Buffer(COUNT, "f4", allocator, fill=1, stream=stream.ptr, transfer="async")
        other = b.copy("cuda") if copied else None
        if number % 2:
            stream.synchronize()
        del stream
        del b, other
        assert (hamr.Buffer(COUNT, "f4", allocator, fill=5).get() == 5).all()
