"""What needs an NVIDIA GPU: probes that skip with their reason, before any test's body."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

import hamr
from tests.gpu import gpu_libraries

# JAX would take three quarters of the GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

HERE = Path(__file__).resolve().parent


def pytest_configure(config):
    config.addinivalue_line("markers", "multigpu: needs two GPUs")


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            # Other libraries' warnings are not ours to mend.
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def gpu_count() -> int:
    row = hamr.backends().get("cuda")
    if row is None or not row["available"]:
        pytest.skip(f"no CUDA: {row.get('reason') if row else 'hamr has no cuda backend'}")
    return len(row["devices"])


@pytest.fixture(autouse=True)
def _gpu(request, gpu_count):
    if request.node.get_closest_marker("multigpu") and gpu_count < 2:
        pytest.skip(f"two GPUs are needed, {gpu_count} found")
    yield
    gc.collect()


def _probed(name: str):
    @pytest.fixture(name=f"{name}_library")
    def probe(gpu_count):
        library, reason = gpu_libraries.get(name)
        if library is None:
            pytest.skip(reason)
        return library

    return probe


cupy_library = _probed("cupy")
torch_library = _probed("torch")
numba_library = _probed("numba")
jax_library = _probed("jax")


@pytest.fixture
def numba_compiler(numba_library):
    """Numba where it can compile kernels: some of its releases do not suit the newest NumPy."""
    reason = gpu_libraries.numba_cannot_compile()
    if reason:
        pytest.skip(reason)
    return numba_library


@pytest.fixture(params=gpu_libraries.NAMES)
def library(request, gpu_count):
    found, reason = gpu_libraries.get(request.param)
    if found is None:
        pytest.skip(reason)
    return found


@pytest.fixture(params=gpu_libraries.DLPACK)
def exchange(request, gpu_count):
    """A library that has DLPack, both ways."""
    found, reason = gpu_libraries.get(request.param)
    if found is None:
        pytest.skip(reason)
    return found


@pytest.fixture(params=[name for name in gpu_libraries.NAMES if name != "jax"])
def keeping_library(request, gpu_count):
    """A library whose arrays keep the object alive that they were made from."""
    found, reason = gpu_libraries.get(request.param)
    if found is None:
        pytest.skip(reason)
    assert found.keeps_owner
    return found


@pytest.fixture(params=[name for name in gpu_libraries.NAMES if name != "jax"])
def writing_library(request, gpu_count):
    """A library whose arrays can be written to."""
    found, reason = gpu_libraries.get(request.param)
    if found is None:
        pytest.skip(reason)
    return found
