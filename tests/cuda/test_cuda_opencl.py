"""CUDA and OpenCL in one process: chains of copies, and streams that are the other one's."""

import numpy as np
import pytest

import hamr
from tests.support import opencl_runtime

pytestmark = pytest.mark.skipif(bool(opencl_runtime.absent()), reason=opencl_runtime.absent())
CHAINS = [
    ("opencl_device", "malloc", "cuda", "opencl_svm"),
    ("opencl_svm", "cuda_async", "opencl_device", "cpp"),
    ("cuda", "opencl_svm", "cuda_uva", "opencl_device"),
    ("cuda_host", "opencl_device", "cuda_host", "opencl_svm"),
]


@pytest.fixture(params=["opencl_device", "opencl_svm"])
def name(request):
    return request.param


def of(b):
    return b.get(np.empty(b.shape, b.dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "complex128"])
@pytest.mark.parametrize("chain", CHAINS, ids=" ".join)
def test_chains(chain, dtype):
    values = np.arange(30_000).astype(dtype).reshape(300, 100)
    b = hamr.buffer(values.copy())
    for name in chain:
        b = b.copy(name)
        assert b.allocator == hamr.Allocator[name]
        b[::2, 1:] = b[1::2, 1:]
        values[::2, 1:] = values[1::2, 1:]
        np.testing.assert_array_equal(of(b), values)
    for space in ("cuda", "opencl", "host"):
        h = getattr(b, f"get_{space}_accessible")()
        np.testing.assert_array_equal(of(hamr.buffer(h).copy("malloc")), values)
        del h


def test_assignment_between_them(name):
    b = hamr.buffer(np.zeros((4, 6))).copy(name)
    c = hamr.buffer(np.arange(24.0).reshape(4, 6)).copy("cuda")
    b[1:, ::3] = c[1:, ::3]
    c[...] = b
    expected = np.zeros((4, 6))
    expected[1:, ::3] = np.arange(24.0).reshape(4, 6)[1:, ::3]
    np.testing.assert_array_equal(of(c), expected)


def test_late_work_of_one_is_waited_for_by_the_other(name):
    """The emulated driver does nothing until somebody waits."""
    stream = hamr.Stream(device=0)
    c = hamr.Buffer(1000, "f8", "cuda", fill=5, stream=stream, transfer="async")
    b = c.copy(name)
    c.fill(6)
    assert of(b)[-1] == 5
    c[...] = b
    b.fill(7)
    assert of(c)[-1] == 5


def test_streams_of_the_other_one(name):
    ours, theirs = hamr.Stream(device="cuda:0"), hamr.Stream(device="opencl:0")
    with pytest.raises(ValueError, match="of cuda: accepted here are streams of opencl"):
        hamr.Buffer(3, "f8", name, stream=ours)
    with pytest.raises(ValueError, match="of opencl: accepted here are streams of cuda"):
        hamr.Buffer(3, "f8", "cuda", stream=theirs)
    b = hamr.Buffer(3, "f8", name, fill=1)
    with pytest.raises(ValueError, match="of cuda: accepted here are streams of opencl"):
        b.set_stream(ours)
    host = hamr.Buffer(3, "f8", fill=4, stream=ours)
    assert of(host.copy(name)).tolist() == [4] * 3, "it has the stream of neither"
    host.move(name)
    host.move("cuda")
    assert of(host).tolist() == [4] * 3
    theirs.wait(ours.record())
    ours.wait(theirs.record())
    with ours:
        assert hamr.Buffer(3, "f8", name).stream != ours
        with theirs:
            assert hamr.Buffer(3, "f8", name).stream == theirs
            assert hamr.Buffer(3, "f8", "cuda").stream == ours
