"""Two GPUs: what is on one is handed over by DLPack while the other is current."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_libraries
from tests.gpu.test_gpu_sharing import host

pytestmark = pytest.mark.multigpu

CUDA = 2


@pytest.fixture(autouse=True)
def _first_again():
    """Libraries leave the device current that they used last."""
    yield
    with hamr.device(0):
        pass
    torch, _ = gpu_libraries.get("torch")
    if torch is not None:
        torch.module.cuda.set_device(0)


def test_tensors_on_the_second_gpu_while_the_first_is_current(torch_library):
    """torch exports what is on its current device only."""
    torch = torch_library.module
    values = gpu_libraries.sample("float32", (1000,))
    x = torch.tensor(values, device="cuda:1")
    torch.cuda.synchronize(1)
    assert torch.cuda.current_device() == 0
    for _ in range(3):
        b = hamr.from_dlpack(x)
        assert torch.cuda.current_device() == 0
        assert b.device == 1
        assert b.ptr == x.data_ptr()
        np.testing.assert_array_equal(host(b), values)
    y = torch.from_dlpack(b)
    assert y.device.index == 1
    assert y.data_ptr() == x.data_ptr()
    first = hamr.from_dlpack(x, device=0)
    assert first.device == 0
    np.testing.assert_array_equal(host(first), values)
    with pytest.raises(BufferError):
        hamr.from_dlpack(x, device=0, copy=False)


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_buffers_on_the_second_gpu(gpu_count, name):
    library, reason = gpu_libraries.get(name)
    if library is None:
        pytest.skip(reason)
    values = gpu_libraries.sample("float32", (1000,))
    for allocator in ("cuda", "cuda_async"):
        b = hamr.Buffer(1000, "float32", allocator, data=values, device=1)
        assert b.__dlpack_device__() == (CUDA, 1)
        for current in (0, 1):
            with hamr.device(current):
                x = library.from_dlpack(b)
                assert hamr.current_device() == current
            number = x.device.index if name == "torch" else x.device.id
            assert number == 1
            assert library.pointer(x) == b.ptr
            np.testing.assert_array_equal(library.values(x), values)


def test_cupys_arrays_on_the_second_gpu(cupy_library):
    cp = cupy_library.module
    values = gpu_libraries.sample("float32", (1000,))
    with cp.cuda.Device(1):
        x = cp.asarray(values)
        cp.cuda.runtime.deviceSynchronize()
    b = hamr.from_dlpack(x)
    assert cp.cuda.runtime.getDevice() == 0
    assert b.device == 1
    assert b.ptr == x.data.ptr
    np.testing.assert_array_equal(host(b), values)


def test_jaxs_arrays_on_the_second_gpu(jax_library):
    import jax

    values = gpu_libraries.sample("float32", (1000,))
    x = jax.device_put(values, jax.devices()[1]).block_until_ready()
    b = hamr.from_dlpack(x)
    assert b.device == 1
    assert b.ptr == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(host(b), values)
    y = jax_library.from_dlpack(hamr.Buffer(1000, "float32", "cuda", data=values, device=1))
    assert y.devices() == {jax.devices()[1]}
    np.testing.assert_array_equal(jax_library.values(y), values)
