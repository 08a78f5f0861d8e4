"""Kernels of a user's own, by Numba and through ctypes; and MPI's view of host memory."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_delays import keep
from tests.support.paths import ROOT
from tests.support.processes import launch

EXAMPLES = ROOT / "examples"
COUNT = 10_007


def host(b: hamr.Buffer) -> np.ndarray:
    return np.array(b.get_host_accessible())


def test_numba_kernel(numba_compiler):
    cuda = numba_compiler.module

    @cuda.jit
    def scale(result, values, factor):
        i = cuda.grid(1)
        if i < result.size:
            result[i] = values[i] * factor

    values = np.arange(COUNT, dtype="f4")
    given, result = hamr.buffer(values), hamr.Buffer(COUNT, "float32", "cuda_async", fill=0)
    blocks = (COUNT + 127) // 128
    for wrap in (cuda.as_cuda_array, lambda handle: handle):
        scale[blocks, 128](
            wrap(result.get_cuda_accessible()), wrap(given.get_cuda_accessible()), np.float32(3)
        )
        cuda.synchronize()
        np.testing.assert_array_equal(host(result), values * 3)
        result.fill(0)
    scale[blocks, 128](result, given.copy("cuda"), np.float32(2))  # buffers themselves
    cuda.synchronize()
    np.testing.assert_array_equal(host(result), values * 2)
    halves = hamr.Buffer(COUNT, "float32", "cuda", fill=1)
    scale[blocks, 128](
        cuda.as_cuda_array(result[::2]), cuda.as_cuda_array(halves[::2]), np.float32(5)
    )
    cuda.synchronize()
    expected = values * 2
    expected[::2] = 5
    np.testing.assert_array_equal(host(result), expected)


_SOURCE = r"""
extern "C" __global__ void saxpy(float *y, const float *x, float a, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
_LAUNCHER = r"""
extern "C" int launch_saxpy(float *y, const float *x, float a, long long n, cudaStream_t stream) {
    saxpy<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(y, x, a, n);
    return (int)cudaGetLastError();
}
"""


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory):
    """A function (y, x, a, n, stream) that runs the kernel: by nvcc, else by CuPy's NVRTC."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if Path(nvcc).exists():
        folder = tmp_path_factory.mktemp("saxpy")
        source, built = folder / "saxpy.cu", folder / "libsaxpy.so"
        source.write_text(_SOURCE + _LAUNCHER)
        command = [nvcc, "-shared", "-arch=native", "-Xcompiler", "-fPIC", "-o", built, source]
        subprocess.run(command, check=True, timeout=300)
        function = ctypes.CDLL(str(built)).launch_saxpy
        function.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_float,
            ctypes.c_longlong,
            ctypes.c_void_p,
        ]

        def run(y, x, a, n, stream):
            assert function(y, x, a, n, stream) == 0

        return run
    try:
        import cupy
    except ImportError:
        pytest.skip("neither nvcc nor CuPy is here to compile a kernel")
    kernel = cupy.RawModule(code=_SOURCE).get_function("saxpy")

    def run(y, x, a, n, stream):
        with cupy.cuda.ExternalStream(stream):
            kernel(((n + 255) // 256,), (256,), (y, x, np.float32(a), np.int64(n)))

    return run


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
def test_kernel_called_through_ctypes(saxpy, allocator):
    stream = keep(hamr.Stream(device=0))
    values = np.arange(COUNT, dtype="f4")
    y = hamr.Buffer(COUNT, "float32", allocator, fill=1, stream=stream)
    x = hamr.buffer(values, stream=stream).get_cuda_accessible()
    stream.synchronize()
    for _ in range(3):
        saxpy(y.ptr, x.ptr, 2.0, COUNT, stream.ptr)
    # The buffer's stream is the kernel's: reading waits for it.
    np.testing.assert_array_equal(host(y), 1 + 6 * values)
    y.fill(0)
    saxpy(y.ptr, x.ptr, -1.0, COUNT, stream.ptr)
    doubled = y.copy(dtype="float64")
    np.testing.assert_array_equal(host(doubled), -values.astype("f8"))


_MPI = """
import sys
import numpy as np
import hamr
from mpi4py import MPI

comm = MPI.COMM_SELF
if sys.argv[1:] == ["probe"]:
    print("MPI", MPI.Get_version())
    sys.exit()
values = np.arange(1000, dtype="f8")
for allocator in ("malloc", "cpp", "cuda_host", "cuda_uva"):
    source = hamr.Buffer(1000, "float64", allocator, data=values)
    target = hamr.Buffer(1000, "float64", allocator, fill=0)
    source.synchronize()
    target.synchronize()
    request = comm.Irecv(target.get_host_accessible(), source=0, tag=7)
    comm.Send(source.get_host_accessible(), dest=0, tag=7)
    request.Wait()
    assert (np.asarray(target.get_host_accessible()) == values).all(), allocator
    total = hamr.Buffer(1000, "float64", allocator, fill=0)
    total.synchronize()
    comm.Allreduce(source.get_host_accessible(), total.get_host_accessible())
    assert (np.asarray(total.get_host_accessible()) == values).all(), allocator
moved = hamr.Buffer(1000, "float64", "cuda", data=values)
target = np.zeros(1000)
request = comm.Irecv(target, source=0, tag=8)
comm.Send(moved.get_host_accessible(), dest=0, tag=8)  # through a temporary
request.Wait()
assert (target == values).all()
print("passed")
"""
_ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(scope="module")
def mpi():
    """Whether MPI starts at all is found out in another process, which it may end."""
    command = [sys.executable, "-c", _MPI, "probe"]
    try:
        done = subprocess.run(
            command, text=True, capture_output=True, timeout=60, env={**os.environ, **_ROOT_MAY}
        )
    except subprocess.TimeoutExpired:
        pytest.skip("MPI did not start within a minute")
    if done.returncode:
        pytest.skip(f"mpi4py cannot be used: {done.stderr.strip()[-200:]}")


def test_mpi_sends_host_memory(mpi):
    status, output = launch([sys.executable, "-c", _MPI], 120, _ROOT_MAY)
    assert status == 0, output[-4000:]
    assert "passed" in output
