"""HIP's memory for other libraries: the shapes in which CuPy and PyTorch for ROCm take it."""

import gc

import numpy as np
import pytest

import hamr
from tests.hip import runtime
from tests.support.dlpack_consumer import Consumed

A = hamr.Allocator
ROCM, ROCM_HOST = 10, 11


def on_hip(values, allocator=A.hip, device=0):
    return hamr.buffer(values).copy(allocator, device=device)


def test_the_array_interface_of_cupy_for_rocm(device_allocator):
    b = on_hip(np.arange(6, dtype="f8").reshape(2, 3), device_allocator)
    interface = b.T.__cuda_array_interface__
    assert interface["shape"] == (3, 2)
    assert interface["strides"] == (8, 24)
    assert interface["typestr"] == "<f8"
    assert interface["version"] == 3
    shared = hamr.buffer(Offers(b))
    shared.fill(4)
    assert np.asarray(b.get_host_accessible()).tolist() == [[4.0] * 3] * 2


class Offers:
    """A foreign array over HIP's memory, as hipified CuPy has."""

    def __init__(self, owner):
        self.__cuda_array_interface__ = owner.__cuda_array_interface__
        self._owner = owner


@pytest.mark.parametrize("device", [0, 1])
def test_dlpack_is_that_of_rocm(device_allocator, device):
    b = on_hip(np.arange(6, dtype="f4").reshape(2, 3), device_allocator, device)
    assert b.__dlpack_device__() == (ROCM, device)
    for stream in (None, 0, -1):
        consumed = Consumed(b.T, stream)
        tensor = consumed.tensor
        assert (tensor.device.type, tensor.device.id) == (ROCM, device)
        assert consumed.address == b.__cuda_array_interface__["data"][0]
        consumed.end()
    for stream in (1, 2):  # numbers of CUDA's, which ROCm has not
        with pytest.raises(ValueError, match="0 for the default stream, and handles of HIP's"):
            b.__dlpack__(stream=stream)
    back = hamr.from_dlpack(b)
    assert (back.allocator.name[:3], back.device) == ("hip", device)
    back.fill(7)
    assert np.asarray(b.get_host_accessible()).tolist() == [[7.0] * 3] * 2


def test_dlpack_of_page_locked_memory():
    b = hamr.Buffer(4, "f4", A.hip_host, fill=3)
    assert b.__dlpack_device__() == (ROCM_HOST, 0)
    assert np.asarray(b).tolist() == [3.0] * 4
    consumed = Consumed(b, None)
    assert consumed.tensor.device.type == ROCM_HOST
    consumed.end()
    back = hamr.from_dlpack(b)
    assert back.allocator == A.hip_host
    back.fill(5)
    assert np.asarray(back).tolist() == np.asarray(b).tolist() == [5.0] * 4


def test_a_consumers_stream_runs_after_the_work():
    stream = runtime.new_stream()
    b = hamr.Buffer(1000, "u1", A.hip, fill=0)
    host = hamr.Buffer(1000, "u1", A.hip_host, fill=0)
    runtime.do("hipDeviceSynchronize")
    ours = hamr.Stream(device="hip:0")
    b.set_stream(ours)
    b.fill(9)
    consumed = Consumed(b, stream)
    runtime.do("hipMemcpyAsync", host.data(), consumed.address, 1000, 4, stream)
    runtime.do("hipStreamSynchronize", stream)
    assert set(np.asarray(host).tolist()) == {9}
    consumed.end()
    del b
    gc.collect()
    runtime.end_stream(stream)


def test_memory_that_another_library_has_made():
    address = runtime.get("hipMalloc", 400)
    b = hamr.Buffer.from_pointer(address, 100, "f4", A.hip, owner=object())
    b.fill(2)
    assert np.asarray(b.get_host_accessible()).tolist() == [2.0] * 100
    with pytest.raises(ValueError, match="inside the allocation"):
        hamr.Buffer.from_pointer(address, 101, "f4", A.hip, owner=object())
    del b
    gc.collect()
    taken = hamr.Buffer.from_pointer(address, 100, "f4", A.hip, take=True)
    assert taken.device == 0
