"""hamr.pygpu's arrays on a device: constructors, both sides, views, protocols."""

import copy
import gc
import pickle

import numpy as np
import pytest

import hamr
from hamr import pygpu
from hamr.pygpu import DeviceArray_float64, GPUArray, to_gpu
from tests.cuda import driver
from tests.support.in_threads import in_threads


@pytest.fixture
def values():
    return np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("name", pygpu.SUPPORTED_DTYPES)
def test_every_type_there_and_back(name):
    values = np.arange(6).reshape(2, 3).astype(name)
    array = to_gpu(values.copy())
    low = getattr(pygpu, f"DeviceArray_{name}")(values.copy())
    low.allocate()
    low.to_device()
    np.asarray(low)[:] = 0
    low.to_host()
    for got in (array.get(), np.asarray(low)):
        assert got.dtype == name
        assert got.tolist() == values.tolist()
    assert (array.size, array.nbytes, array.shape, array.dtype) == (6, values.nbytes, (2, 3), name)
    array.set_val(4, 9)
    low.set_val(4, 9)
    low.to_host()
    assert array.get()[1, 1] == np.asarray(low)[1, 1] == 9
    assert array.__cuda_array_interface__["typestr"] == values.dtype.str


def test_shapes_in_each_spelling():
    arrays = [
        GPUArray((2, 3)),
        GPUArray([2, 3]),
        GPUArray(shape=(2, 3)),
        GPUArray(shape=[2, 3], dtype=float),
        GPUArray((np.int64(2), 3), np.float64),
        GPUArray((2, 3), pygpu.dtype.float64, None),
    ]
    for array in arrays:
        assert (array.shape, array.dtype, array.strides) == ((2, 3), "float64", (24, 8))
        assert array.strides == [24, 8]
        assert array.ptr == int(array.device_data) == int(array.gpudata) != 0
        assert not array.device_data.is_safe()
        assert array.last_status == array.last_status() == 0
    assert GPUArray(5).shape == (5,)
    assert GPUArray(()).get().shape == ()
    assert GPUArray((0, 3)).get().shape == (0, 3)


def test_an_array_is_the_host_side(values):
    model = values.copy()
    array = GPUArray(values)
    assert int(array.host_data) == values.ctypes.data
    array.to_device()
    values[:] = -1
    got = array.get()
    assert np.shares_memory(got, values)
    assert values.tolist() == model.tolist()
    copied = GPUArray(values, copy=True)
    copied.to_device()
    values[:] = -2
    assert copied.get().tolist() == model.tolist()
    assert (values == -2).all()
    assert not np.shares_memory(array.get(copy=True), values)
    assert not np.shares_memory(array.get(True), values)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # NumPy 2.5
def test_get_gives_the_same_memory_each_time():
    array = pygpu.ones((2, 2))
    first = array.get()
    array.fill(3)
    assert np.shares_memory(first, array.get())
    assert (first == 3).all()
    assert array.host_data.get().tolist() == [[3, 3], [3, 3]]
    first.shape = (4,)
    assert array.get().shape == (2, 2)


def test_read_only_arrays_are_not_written_to(values):
    values.flags.writeable = False
    array = to_gpu(values)
    array.fill(7)
    assert (array.get() == 7).all()
    assert values[1, 2] == 5


@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, lambda a: a[::-1, ::2], lambda a: a.T]
)
def test_layouts(values, layout):
    host = layout(np.arange(24.0).reshape(4, 6))
    model = host.copy()
    array = to_gpu(host)
    assert array.flags.f_contiguous == (host.flags.f_contiguous and not host.flags.c_contiguous)
    host[:] = 0
    assert array.get().tolist() == model.tolist()
    assert np.shares_memory(array.get(), host)
    assert host.tolist() == model.tolist()


def test_fortran_order():
    array = GPUArray((2, 3), "int32", order="F")
    assert array.strides == (4, 8)
    array.set(np.arange(6, dtype="i4").reshape(2, 3))
    array.set_val(1, -5)
    got = array.get()
    assert got.tolist() == [[0, 1, 2], [-5, 4, 5]]
    assert got.flags.f_contiguous
    assert array.copy().strides == (4, 8)
    assert pygpu.zeros_like(array).strides == (4, 8)
    assert pygpu.zeros_like(array, order="C").strides == (12, 4)
    assert array.get(pagelocked=True).flags.f_contiguous
    low = pygpu.DeviceArray_int32(got)
    low.allocate()
    low.to_device()
    got[:] = 0
    low.to_host()
    assert got.tolist() == [[0, 1, 2], [-5, 4, 5]]


def test_an_allocator_shares_the_device_side():
    x = np.zeros(4)
    first = to_gpu(x)
    allocator = pygpu.Allocator(first)
    second = GPUArray(allocator=allocator)
    assert (allocator.ptr(), second.ptr) == (first.ptr, first.ptr)
    assert allocator.host_ptr() == int(second.host_data) != int(first.host_data)
    second.set_val(2, 5)
    assert second.get().tolist() == [0, 0, 5, 0]
    assert x.tolist() == [0, 0, 0, 0]
    del first, allocator
    gc.collect()
    assert second.get().tolist() == [0, 0, 5, 0]  # the memory lives on


def test_an_allocator_of_any_device_array():
    foreign = hamr.Buffer((2, 3), "float32", "cuda", fill=2)
    host = np.zeros((2, 3), "float32")
    array = GPUArray(allocator=pygpu.Allocator(foreign, host))
    array.set_val(0, 4)
    got = array.get()
    assert got.tolist() == [[4, 2, 2], [2, 2, 2]]
    assert np.shares_memory(got, host)
    assert foreign.get()[0, 0] == 4

    class Other:
        """What another library's array shows."""

        __cuda_array_interface__ = foreign.__cuda_array_interface__

    other = GPUArray(allocator=pygpu.Allocator(Other()))
    assert other.ptr == foreign.ptr
    assert GPUArray(allocator=pygpu.Allocator(foreign), order="F").strides == (4, 8)
    with pytest.raises(RuntimeError, match="accepted beside it is order"):
        GPUArray((2, 3), allocator=pygpu.Allocator(foreign))
    with pytest.raises(ValueError, match="5 float32 elements"):
        pygpu.Allocator(foreign, np.zeros(5, "f4"))
    with pytest.raises(pygpu.UnsupportedDataType):
        pygpu.Allocator(hamr.Buffer(3, "bfloat16", "cuda"))


def test_page_locked_memory_is_shared():
    pinned = pygpu.PagelockedAllocator((2, 2), "float64")
    pinned.get()[:] = 1
    first = GPUArray(allocator=pygpu.Allocator(pinned))
    second = GPUArray(allocator=pinned)
    first.set_val(3, 4)
    assert second.get()[1, 1] == pinned.get()[1, 1] == 4
    pinned.get()[0, 0] = 8
    assert first.get()[0, 0] == 8
    assert first.ptr == int(pinned.ptr()) == int(pygpu.Allocator(pinned).ptr())
    assert first.__cuda_array_interface__["data"] == (first.ptr, False)
    low = DeviceArray_float64(pinned.ptr(), [4])
    low.allocate()
    low.to_device()
    pinned.get()[:] = 0  # the transfer is over
    low.to_host()
    assert pinned.get().tolist() == [[8, 1], [1, 4]]


def test_host_memory_is_shared():
    shared = pygpu.HostAllocator((2, 2), "float64")
    allocator = pygpu.Allocator(shared)
    first, second = GPUArray(allocator=allocator), GPUArray(allocator=allocator)
    shared.get()[:] = 3
    first.to_device()
    second.set_val(1, 5)
    assert first.get().tolist() == [[3, 5], [3, 3]] == shared.get().tolist()


def test_memory_of_pycudas_allocators():
    taken = []

    class Memory:
        def __init__(self, nbytes):
            self.buffer = hamr.Buffer(nbytes, "uint8", "cuda")
            taken.append(nbytes)

        def __int__(self):
            return self.buffer.ptr

    array = GPUArray((2, 3), np.float32, Memory)
    assert taken == [24]
    assert (array.fill(2).get() == 2).all()
    assert GPUArray((0,), np.float32, Memory).size == 0
    assert GPUArray((3,), "f4", "cuda_async").allocator is hamr.Allocator.cuda_async


def test_managed_memory_is_both_sides():
    array = GPUArray((3,), "float64", hamr.Allocator.cuda_uva)
    assert int(array.host_data) == array.ptr
    array.fill(2)
    got = array.get()
    got[0] = 5
    array.to_device()
    assert hamr.buffer(array).get().tolist() == [5, 2, 2]


def test_pointers_of_others():
    owner = to_gpu(np.arange(8.0))
    part = GPUArray((2, 2), np.float64, base=owner, gpudata=int(owner.gpudata) + 16)
    whole = GPUArray((4,), np.float64, gpudata=owner.gpudata, strides=(16,))
    assert part.base is owner
    part.fill(-1)
    assert whole.get().tolist() == [0, -1, -1, 6]
    del owner
    gc.collect()
    assert whole.get().tolist() == [0, -1, -1, 6]
    assert GPUArray((3, 2), "f4", strides=(4, 12)).flags.f_contiguous
    assert GPUArray((2, 3, 4), "f4", strides=(12, 4, 24)).strides == (12, 4, 24)


def test_low_level_arrays_at_addresses(values):
    device = hamr.Buffer(6, "float64", "cuda", fill=9)
    array = DeviceArray_float64(values.ctypes.data, device.ptr, [2, 3])
    assert array.allocated()
    array.to_host()
    assert (values == 9).all()
    array.set(np.arange(6.0).ctypes.data)
    assert device.get().tolist() == [0, 1, 2, 3, 4, 5]
    array.set(values)
    assert (device.get() == 9).all()
    with pytest.raises(ValueError, match="has shape"):
        array.set(np.zeros(6))
    memory = pygpu.DeviceAllocator_float64()
    assert memory.allocate(6) == 0
    first, second = (DeviceArray_float64(memory.ptr(), [6]) for _ in range(2))
    np.asarray(first)[:] = 4
    first.to_device()
    second.to_host()
    assert (np.asarray(second) == 4).all()


def test_views_share_the_devices_memory():
    array = to_gpu(np.arange(12.0).reshape(3, 4))
    row, column = array[1], array[:, 2]
    row.fill(-1)
    column[...] = [7, 8, 9]
    column[0] = 70
    assert array.get().tolist() == [[0, 1, 70, 3], [-1, -1, 8, -1], [8, 9, 9, 11]]
    assert array.T.get().tolist() == array.get().T.tolist()
    assert array.reshape(4, -1).ptr == array.ptr
    assert array.reshape((6, 2), order="F").get().tolist() == (
        array.get().reshape((6, 2), order="F").tolist()
    )
    assert array.ravel().shape == (12,)
    assert array.reshape(1, 12, 1).squeeze().shape == (12,)
    assert array.view("int64").dtype == "int64"
    assert array.view("complex128").shape == (3, 2)
    assert array.T.view("complex128").shape == (2, 3)
    assert array[array.get() > 8].get().tolist() == [70, 9, 9, 11]
    assert array[[0, 2]].get().tolist() == array.get()[[0, 2]].tolist()
    assert [float(x) for x in row] == [-1, -1, 8, -1]
    with pytest.raises(IndexError, match="index is 3"):
        array[3]
    with pytest.raises(pygpu.UnsupportedDataType):
        array.view("bfloat16")


def test_set_and_get_check(values):
    array = to_gpu(values)
    with pytest.raises(ValueError, match=r"shape \(6,\): accepted is \(2, 3\)"):
        array.set(np.zeros(6))
    with pytest.raises(TypeError, match="float32 elements"):
        array.set(values.astype("f4"))
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        array.get(np.zeros(3))
    with pytest.raises(TypeError, match="int32 elements"):
        array.get(np.zeros((2, 3), "i4"))
    out = np.zeros((2, 3))
    assert array.get(out) is out
    assert out.tolist() == values.tolist()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        array.get(out)
    other = pygpu.ones((2, 3))
    array.set(other)
    assert (array.get() == 1).all()
    for idx, error in ((6, IndexError), (-1, IndexError), ("a", TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="idx is"):
            array.set_val(idx, 1)


def test_new_arrays():
    assert pygpu.zeros((2, 2), np.int16).get().tolist() == [[0, 0], [0, 0]]
    assert pygpu.ones(3, "complex64").get().tolist() == [1, 1, 1]
    assert pygpu.arange(4).get().tolist() == [0, 1, 2, 3]
    assert pygpu.arange(1, 2, 0.5).dtype == "float64"
    assert pygpu.arange(1, 4, dtype=np.float32).get().tolist() == [1, 2, 3]
    assert pygpu.empty((2, 3), order="F").strides == (8, 16)
    assert pygpu.empty_like(np.zeros((2, 3), "f4")).dtype == "float32"
    assert pygpu.ones_like(pygpu.arange(3)).get().tolist() == [1, 1, 1]
    assert to_gpu(3.5).get() == 3.5
    assert to_gpu(hamr.Buffer(3, fill=2)).get().tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="which GPUArray takes for a shape"):
        to_gpu([1, 2, 3])


def test_what_buffers_can():
    array = to_gpu(np.arange(4.0))
    assert array.__dlpack_device__() == (2, array.device)
    assert hamr.from_dlpack(array).ptr == array.ptr
    assert hamr.buffer(array).ptr == array.ptr
    assert isinstance(array, hamr.Buffer)
    with pytest.raises(TypeError, match="the host does not reach cuda memory"):
        np.asarray(array)
    for made in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
        assert type(made) is GPUArray
        assert made.ptr != array.ptr
        assert made.get().tolist() == [0, 1, 2, 3]
        assert not np.shares_memory(made.get(), array.get())
    assert str(array) == "{0, 1, 2, 3}"
    assert repr(array).startswith("<hamr.pygpu.GPUArray (4,) float64 cuda device ")
    array.close()
    assert repr(array) == "<hamr.pygpu.GPUArray closed>"
    with pytest.raises(hamr.FreedBuffer):
        array.get()


class Named(GPUArray):
    """What users derive."""

    name = "none"


def test_subclasses_keep_what_they_add():
    array = Named((2, 3))
    array.name = "first"
    array.fill(1)
    host = array.get()
    for made in (array[0], array.copy(), copy.copy(array), pickle.loads(pickle.dumps(array))):
        assert (type(made), made.name) == (Named, "first")
        assert not np.shares_memory(made.get(), host)


def test_types_of_buffers_that_pointers_lack():
    array = to_gpu(np.arange(4.0)).copy(dtype="bfloat16")
    assert array.get().tolist() == [0, 1, 2, 3]
    with pytest.raises(pygpu.UnsupportedDataType, match="elements are bfloat16"):
        array.device_data  # noqa: B018


def test_the_host_side_follows_the_shape():
    host = np.arange(4.0)
    array = to_gpu(host)
    array.resize(6, 7)
    assert array.get().tolist() == [0, 1, 2, 3, 7, 7]
    array.assign(np.ones((2, 2)))
    array.get()[:] = 5
    array.to_device()
    assert hamr.buffer(array).get().tolist() == [[5, 5], [5, 5]]
    assert host.tolist() == [0, 1, 2, 3]


def test_threads_get_one_host_side():
    array = pygpu.ones(1000)
    sides = []
    in_threads(lambda _: sides.append(array.get()), 8)
    assert all(np.shares_memory(side, sides[0]) for side in sides)


def test_large_transfers_have_read_the_host_when_they_return():
    values = np.arange(1 << 20, dtype="f8")
    array, low = to_gpu(values), pygpu.DeviceArray_float64(values)
    low.allocate()
    low.to_device()
    values[:] = -1
    assert array.get(np.empty_like(values))[-1] == (1 << 20) - 1
    low.to_host()
    assert values[-1] == (1 << 20) - 1


def test_read_only_memory_is_not_written_to():
    values = np.arange(4.0)
    values.flags.writeable = False
    low = DeviceArray_float64(values)
    low.allocate()
    low.to_device()
    with pytest.raises(ValueError, match="read-only"):
        low.to_host()


def test_arrays_of_one_element():
    assert DeviceArray_float64(np.array(3.0)).shape() == []
    assert DeviceArray_float64(np.int16(3)).shape() == [3]
    assert GPUArray(np.int64(3)).shape == (3,)
    assert GPUArray(np.array(3.0)).shape == ()


def test_the_current_device_is_used():
    with hamr.device(0):
        for device in range(driver.DEVICES):
            assert pygpu.cudaSetDevice(device) == 0
            low = pygpu.DeviceArray_float32([2])
            low.allocate()
            assert GPUArray((3,)).device == low._device_side.device == device


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "float16"])
def test_images_and_masks(name):
    host = np.arange(6).reshape(2, 3).astype(name)
    array = to_gpu(host.copy())
    assert array.dtype == host.dtype
    assert (array.get() == host).all()
    assert (array.T.get() == host.T).all()
    assert int(array.device_data) == array.ptr
    assert (array.host_data.get() == host).all()
    array.set_val(1, 0)
    assert array.get().tolist()[0][1] == 0
    assert (pygpu.zeros((2, 3), name).fill(1).get() == np.ones((2, 3), name)).all()
    assert (array.astype("float32").get() == array.get().astype("float32")).all()
    assert pygpu.empty_like(array).dtype == host.dtype
    assert (GPUArray(allocator=pygpu.Allocator(array)).get() == 0).shape == (2, 3)
