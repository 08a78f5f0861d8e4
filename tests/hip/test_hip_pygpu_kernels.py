"""Kernels that users bring for HIP: what differs from CUDA's, over the stand-in for its runtime."""

from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from hamr.pygpu import modules
from tests.hip import runtime

CODE = Path(__file__).parents[1] / "cuda" / "user_kernels.ptx"  # which the stand-in loads
N = 1000
GRID = {"grid": 8, "block": 128}
SOURCE = 'extern "C" __global__ void fill(float *y, unsigned long n, float value) { ... }'


@pytest.fixture(autouse=True)
def hip_serves(monkeypatch):
    """As where HIP alone has devices."""
    for module in (modules, pygpu.compiling):
        monkeypatch.setattr(module, "runtime", lambda: "hip")


def zeros(allocator="hip", **options):
    return hamr.Buffer(N, "f4", allocator, fill=0, **options)


def elements(b):
    return np.asarray(b.get_host_accessible())


def test_kernels_run_in_order():
    module = pygpu.Module(CODE)
    fill, saxpy = module.function("fill"), module.function("saxpy")
    for allocator in "hip", "hip_async", "hip_uva":
        x, y, stream = zeros(allocator), zeros(allocator), hamr.Stream(device="hip:0")
        for value in 1, 2:
            fill(x, np.uint64(N), np.float32(value), stream=stream, **GRID)
            saxpy(np.uint32(N), np.float32(3), x, y, **GRID)
        assert (elements(y) == 9).all()
        del x, y
    there = zeros(device=1)
    fill(there, np.uint64(N), np.float32(5), **GRID)
    assert (elements(there) == 5).all()


def test_work_of_others_is_waited_for():
    saxpy, handle = pygpu.Module(CODE).function("saxpy"), runtime.new_stream()
    x, y = zeros(), zeros()
    runtime.do("hipDeviceSynchronize")
    x.set_stream(handle)
    runtime.fill_late(x.data(), 0x40, x.nbytes, handle)
    saxpy(np.uint32(N), np.float32(1), x, y, **GRID)
    assert (elements(y) == np.frombuffer(b"\x40" * 4, "f4")).all()
    del x, y
    runtime.end_stream(handle)


def test_what_is_refused():
    fill = pygpu.Module(CODE).function("fill")
    assert fill.attributes()["parameters"] is None
    with pytest.raises(TypeError, match="driver does not say of which size"):
        fill(zeros(), N, 1.0, **GRID)
    with pytest.raises(ValueError, match="accepted is memory that hip device 0 uses in place"):
        fill(zeros("malloc"), np.uint64(N), np.float32(1), **GRID)
    with pytest.raises(ValueError, match="of hip"):
        fill(zeros(), np.uint64(N), np.float32(1), stream=hamr.Stream(device=0), **GRID)
    with pytest.raises(ValueError, match="shared is 65536: accepted is 0 … 49152 bytes"):
        fill(zeros(), np.uint64(N), np.float32(1), shared=1 << 16, **GRID)
    with pytest.raises(ValueError, match=r"block is \(2048, 1, 1\)"):
        fill(zeros(), np.uint64(N), np.float32(1), grid=1, block=2048)


def test_programs_are_compiled():
    b = zeros()
    module = pygpu.compile(SOURCE, options=["-DN=3"], arch="gfx90a")
    assert module.log == "options: -DN=3 --offload-arch=gfx90a"
    module.function("fill")(b, np.uint64(N), np.float32(7), **GRID)
    assert (elements(b) == 7).all()
    with pytest.raises(pygpu.CompileError, match="mistake") as raised:
        pygpu.compile("mistake")
    assert raised.value.api == "hiprtc"
    assert raised.value.log == 'kernels.cu(1): error: identifier "mistake" is undefined'
