"""Two GPUs: where memory is, how it gets to the other one, and which device is current."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu import cuda_driver_calls, gpu_libraries
from tests.gpu.gpu_delays import keep

pytestmark = pytest.mark.multigpu

ALLOCATORS = ("cuda", "cuda_async", "cuda_uva")


def host(b: hamr.Buffer) -> np.ndarray:
    return np.array(b.get_host_accessible())


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_memory_is_on_the_device_asked_for(allocator):
    for device in (0, 1):
        b = hamr.Buffer(1000, "float32", allocator, fill=device, device=device)
        assert b.device == device
        assert b.owner == device
        if allocator != "cuda_uva":
            assert cuda_driver_calls.device_of(b.ptr) == device
        assert (host(b) == device).all()
        with hamr.device(device):
            assert hamr.Buffer(10, "float32", allocator).device == device
            assert not b.get_cuda_accessible().is_temporary


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("start", [0, 1])
def test_contents_go_to_the_other_device(allocator, start):
    end = 1 - start
    for n in (1, 1000, (1 << 22) + 1):
        values = gpu_libraries.sample("float32", (n,))
        b = hamr.Buffer(n, "float32", allocator, data=values, device=start)
        copied = b.copy(device=end)
        assert copied.device == end
        np.testing.assert_array_equal(host(copied), values)
        cast = b.copy(device=end, dtype="float64")
        assert cast.device == end
        np.testing.assert_array_equal(host(cast), values)
        every_third = b[::3].copy(device=end)
        np.testing.assert_array_equal(host(every_third), values[::3])
        h = b.get_cuda_accessible(end)
        assert h.is_temporary is (allocator != "cuda_uva")
        np.testing.assert_array_equal(np.array(h.get_host_accessible()), values)
        assert not b.get_cuda_accessible(start).is_temporary
        with hamr.device(end):
            assert b.get_cuda_accessible().is_temporary is (allocator != "cuda_uva")
        other = hamr.Buffer(n, "float32", "cuda", fill=0, device=end)
        other[...] = b
        np.testing.assert_array_equal(host(other), values)
        b.move(allocator, device=end)
        assert b.device == end
        np.testing.assert_array_equal(host(b), values)
        b.append(other)
        np.testing.assert_array_equal(host(b), np.concatenate([values, values]))
        b.resize(n + 5, 1)
        assert b.device == end


def test_peer_access():
    assert isinstance(hamr.peer_access(0, 1), bool)
    hamr.peer_access(0, 1)  # twice is no error
    hamr.peer_access(1, 0)
    test_contents_go_to_the_other_device("cuda", 0)


def test_device_of_and_memory():
    for device in (0, 1):
        b = hamr.Buffer(1000, "float32", "cuda", device=device)
        assert hamr.device_of(b) == device
        free, total = hamr.memory_info(device)[:2]
        assert 0 < free < total


def test_streams_of_both_devices():
    for device in (0, 1):
        stream = keep(hamr.Stream(device=device))
        assert stream.device == device
        b = hamr.Buffer(1000, "float32", "cuda_async", device=device, stream=stream, fill=device)
        b.synchronize()
        event = stream.record()
        other = hamr.Stream(device=1 - device)
        other.wait(event)
        other.synchronize()
        assert event.done
        assert (host(b) == device).all()


def test_cupys_arrays_on_the_second_device(cupy_library):
    cp = cupy_library.module
    values = gpu_libraries.sample("float32", (1000,))
    with cp.cuda.Device(1):
        x = cp.asarray(values)
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            x *= 2
            b = hamr.buffer(x)
    assert b.device == 1
    assert hamr.device_of(x) == 1
    np.testing.assert_array_equal(host(b), values * 2)
    h = b.get_cuda_accessible(0)
    assert h.is_temporary
    with cp.cuda.Device(0):
        y = cp.asarray(h)
        assert y.device.id == 0
        np.testing.assert_array_equal(cp.asnumpy(y), values * 2)
    with cp.cuda.Device(1):
        assert not b.get_cuda_accessible().is_temporary
        y = cp.asarray(b.get_cuda_accessible())
        assert y.device.id == 1
        y += 1
        cp.cuda.Device(1).synchronize()
    np.testing.assert_array_equal(host(b), values * 2 + 1)


def test_torchs_tensors_on_the_second_device(torch_library):
    torch = torch_library.module
    values = gpu_libraries.sample("float32", (1000,))
    x = torch.tensor(values, device="cuda:1")
    torch.cuda.synchronize(1)
    b = hamr.buffer(x)
    assert b.device == 1
    np.testing.assert_array_equal(host(b), values)
    y = torch.as_tensor(b.get_cuda_accessible(1), device="cuda:1")
    assert y.data_ptr() == x.data_ptr()
    z = torch.as_tensor(b.get_cuda_accessible(0), device="cuda:0")
    assert z.device.index == 0
    np.testing.assert_array_equal(z.cpu().numpy(), values)


def test_the_libraries_share_the_current_device(cupy_library, torch_library):
    cp, torch = cupy_library.module, torch_library.module
    cp.cuda.Device(0).use()
    with hamr.device(1):
        assert cp.cuda.runtime.getDevice() == 1
        assert torch.cuda.current_device() == 1
        assert cp.zeros(3).device.id == 1
        assert torch.zeros(3, device="cuda").device.index == 1
        assert hamr.Buffer(3, "float32", "cuda").device == 1
        with hamr.device(0):
            assert cp.cuda.runtime.getDevice() == 0
        assert torch.cuda.current_device() == 1
    assert cp.cuda.runtime.getDevice() == 0
    with cp.cuda.Device(1):
        assert hamr.Buffer(3, "float32", "cuda").device == 1
    with torch.cuda.device(1):
        assert hamr.Buffer(3, "float32", "cuda").device == 1
    assert hamr.Buffer(3, "float32", "cuda").device == 0


def test_no_call_moves_the_current_device(cupy_library):
    cp = cupy_library.module
    for current in (0, 1):
        with cp.cuda.Device(current):
            for device in (0, 1):
                b = hamr.Buffer(1000, "float32", "cuda", fill=1, device=device)
                b.copy(device=1 - device)
                b.get_host_accessible()
                b.get_cuda_accessible(1 - device)
                b.append(2)
                b.close()
                assert cp.cuda.runtime.getDevice() == current


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_devices_that_are_not_there(allocator, gpu_count):
    with pytest.raises((ValueError, IndexError, hamr.Error), match="device"):
        hamr.Buffer(3, "float32", allocator, device=gpu_count)
