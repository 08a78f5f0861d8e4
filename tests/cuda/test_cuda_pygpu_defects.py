"""What PybindGPU 0.2.1 does wrong and hamr.pygpu must not: each test fails on its behaviour."""

import gc

import numpy as np
import pytest

import hamr
from hamr import pygpu
from hamr.pygpu import GPUArray, to_gpu


def test_the_cuda_array_interface_is_a_property():
    """There it is a method, of which no consumer makes anything."""
    described = to_gpu(np.arange(6, dtype="f4").reshape(2, 3)).__cuda_array_interface__
    assert isinstance(described, dict)
    assert described["shape"] == (2, 3)


def test_its_typestr_is_one():
    """There it is the type's name, as "float32"."""
    assert to_gpu(np.zeros(2, "f4")).__cuda_array_interface__["typestr"] == "<f4"
    assert to_gpu(np.zeros(2, "c16")).__cuda_array_interface__["typestr"] == "<c16"


@pytest.mark.parametrize("order", ["C", "F"])
def test_its_strides_are_the_arrays(order):
    """There they are a list, which consumers refuse."""
    array = GPUArray((2, 3), "float32", order=order)
    described = array.__cuda_array_interface__
    steps = described["strides"] or (12, 4)
    assert (type(steps), steps) == (tuple, (12, 4) if order == "C" else (4, 8))
    assert hamr.buffer(array).strides == steps


def test_numpys_dtypes_are_taken():
    """There a dtype object is not supported."""
    assert GPUArray((2,), dtype=np.dtype("int32")).dtype == np.int32
    assert pygpu.HostAllocator((2,), np.dtype("int32")).get().dtype == np.int32


def test_pythons_types_are_taken():
    """There their names, "float" and "int", are not supported."""
    assert GPUArray((2,), dtype=float).dtype == np.float64
    assert GPUArray((2,), dtype=int).dtype == np.int64
    assert GPUArray((2,), dtype=complex).dtype == np.complex128


def test_set_val_writes_on_the_device(emulator):
    """There the host dereferences the device's pointer: the emulator's memory is none of its."""
    values = np.zeros(4)
    array = to_gpu(values)
    array.set_val(1, 2.5)
    assert values.tolist() == [0, 0, 0, 0]
    assert array.get().tolist() == [0, 2.5, 0, 0]
    low = pygpu.DeviceArray_complex64([2])
    low.allocate()
    low.to_device()
    low.set_val(1, 1 + 2j)
    low.to_host()
    assert np.asarray(low)[1] == 1 + 2j


def test_positions_outside_are_errors():
    """There a line is printed, and the program goes on."""
    array = to_gpu(np.zeros(2))
    with pytest.raises(IndexError):
        array.set_val(2, 1)


def test_transfers_before_allocate_say_so():
    """There they use a pointer that nobody has set."""
    values = np.arange(4.0)
    low = pygpu.DeviceArray_float64(values)
    assert (low.allocated(), int(low.device_data()), low.last_status()) == (False, 0, 0)
    for transfer in (low.to_device, low.to_host, lambda: low.set(values)):
        pygpu.cudaGetLastError()
        transfer()
        assert low.last_status().name == "cudaErrorInvalidValue"
        assert pygpu.cudaGetLastError() == low.last_status()
    low.set_val(0, 9)
    assert values.tolist() == [0, 1, 2, 3]


def test_allocators_give_arrays():
    """There low-level allocators have no buffer, so that get() fails."""
    for kind in (pygpu.HostAllocator, pygpu.PagelockedAllocator):
        allocator = kind((2, 3), "float32")
        allocator.get()[:] = 4
        assert (allocator.get() == 4).all()
        assert allocator.get().shape == (2, 3)
        array = GPUArray(allocator=pygpu.Allocator(allocator))
        array.fill(3)
        assert (array.get() == 3).all()


def test_memory_outlives_its_allocator():
    """There the pointer of an allocator that is gone dangles, as that of an array does."""
    array = pygpu.DeviceArray_float64(pygpu.HostAllocator((64,), "float64").ptr(), [64])
    shared = GPUArray(allocator=pygpu.Allocator(to_gpu(np.ones(64))))
    gc.collect()
    kept = [np.full(64, -1.0) for _ in range(50)]
    np.asarray(array)[:] = 2
    assert all((block == -1).all() for block in kept)
    assert (shared.get() == 1).all()
    view = np.asarray(pygpu.DeviceArray_float64(np.ones(64)))
    gc.collect()
    assert (view == 1).all()


def test_types_are_checked():
    for make in (pygpu.GPUArray, pygpu.zeros, pygpu.empty):
        with pytest.raises(pygpu.UnsupportedDataType, match="accepted are int16, int32"):
            make((2, 3), [("a", "f4")])
    """There the bytes of any buffer are taken for elements."""
    with pytest.raises(TypeError, match="float32 elements: accepted are float64"):
        pygpu.DeviceArray_float64(np.zeros(4, "f4"))


def test_arrays_with_gaps_arrive_whole():
    """There as many bytes as there are elements are copied from the first one on."""
    host = np.arange(12.0)[::3]
    model = host.copy()
    array = to_gpu(host)
    host[:] = -1
    assert array.get().tolist() == model.tolist()
    low = pygpu.DeviceArray_float64(host)
    low.allocate()
    low.to_device()
    host[:] = 0
    low.to_host()
    assert host.tolist() == model.tolist()


def test_device_pointers_are_not_safe():
    """There those of DeviceAllocator say that they are."""
    memory = pygpu.DeviceAllocator_float32()
    memory.allocate(4)
    assert not memory.ptr().is_safe()
    assert not GPUArray((2,)).device_data.is_safe()
    with pytest.raises(ValueError, match="is not safe"):
        memory.ptr().get()


def test_failed_allocations_are_not_allocated(emulator):
    """There an array is allocated whatever the status was, and its end frees what is not there."""
    low = pygpu.DeviceArray_float64([1 << 20])
    hamr.trim()  # what is kept would do
    for call in ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync"):
        emulator.fail(call, 0, 2)
    low.allocate()
    emulator.stop_failing()
    assert (low.last_status(), low.allocated()) == (2, False)
    low.allocate()
    assert (low.last_status(), low.allocated()) == (0, True)


def test_statuses_are_set_from_the_start():
    """There last_status() of an array that did nothing is whatever was in its memory."""
    assert pygpu.DeviceArray_int16([3]).last_status() == 0
    assert repr(GPUArray((2,)).last_status) == "<CudaError: 'code=0'>"
