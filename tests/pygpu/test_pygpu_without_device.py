"""hamr.pygpu where there is no device: it is imported, and says so; and what needs none."""

import copy
import pickle
import re
import sys
import threading

import numpy as np
import pytest

from hamr import pygpu
from tests.support.processes import run_code

ABSENT = {
    "HAMR_CUDA_LIBRARY": "/nonexistent/libcuda.so.1",
    "HAMR_HIP_LIBRARY": "/nonexistent/libamdhip64.so",
}


def without_devices(code):
    return run_code("import hamr\nfrom hamr import pygpu\n" + code, env=ABSENT)


def test_statuses_say_that_there_is_no_device():
    printed = without_devices("""
print(pygpu.cudaGetDeviceCount(), pygpu.cudaGetDevice(), pygpu.cudaSetDevice(0))
print(pygpu.cudaDeviceSynchronize(), pygpu.cudaGetLastError(), pygpu.cudaGetLastError())
stream, event = pygpu.cudaStream_t(), pygpu.cudaEvent_t()
print(stream.last_status(), event.last_status(), int(stream.get()), int(event.get()))
print(pygpu.cudaEventRecord(event), pygpu.cudaEventSynchronize(event))
print(pygpu.cudaEventElapsedTime(event, event), pygpu.cuda_enabled, pygpu.use_hip)
a = pygpu.DeviceArray_float32([2, 3])
a.allocate()
print(a.last_status(), a.allocated(), int(a.device_data()))
print(pygpu.DeviceAllocator_int16().allocate(3), pygpu.PagelockedAllocator_int16().allocate(3))
""")
    none = "<CudaError: 'code=100'>"
    assert printed.splitlines() == [
        f"(0, {none}) (-1, {none}) {none}",
        f"{none} {none} <CudaError: 'code=0'>",
        f"{none} {none} 0 0",
        f"{none} {none}",
        f"(0.0, {none}) False False",
        f"{none} False 0",
        f"{none} {none}",
    ]


def test_constructors_raise():
    without_devices("""
import numpy as np
for make in (
    lambda: pygpu.GPUArray((2, 3)),
    lambda: pygpu.GPUArray((2, 3), order="F"),
    lambda: pygpu.to_gpu(np.zeros(3)),
    lambda: pygpu.zeros(3),
    lambda: pygpu.gpuarray.PagelockedAllocator((2, 3), "float32"),
):
    try:
        make()
    except hamr.BackendUnavailable:
        assert pygpu.cudaGetLastError() == 100
        assert pygpu.cudaGetLastError() == 0
    else:
        raise AssertionError("made without a device")
""")


def test_numpy_is_not_imported():
    without_devices("""
import sys
assert pygpu.SUPPORTED_DTYPES[7] == "float64"
a = pygpu.DeviceArray_int32([2, 3])
assert memoryview(a).shape == (2, 3) and pygpu.HostAllocator((2,), "int16").ptr().is_safe()
p = pygpu.ptr_wrapper_int32()
p.create(2)
assert "numpy" not in sys.modules
""")


@pytest.mark.parametrize("alias", ["gpuarray", "PybindGPU", "PyGPU"])
def test_modules_are_found_as_upstreams_are(alias):
    namespace = {}
    exec(f"import hamr.pygpu as {alias}\nfrom hamr.pygpu.gpuarray import GPUArray", namespace)
    module = namespace[alias]
    assert module.GPUArray is namespace["GPUArray"] is module.gpuarray.GPUArray
    assert module.gpuarray.HostAllocator is module.HostAllocator
    assert (module.major_version, module.minor_version, module.release_version) == (0, 2, 1)
    exec("from hamr.pygpu.backend import DeviceArray_int64, cudaError_t", namespace)
    assert namespace["DeviceArray_int64"] is module.backend.DeviceArray_int64
    everything = {}
    exec("from hamr.pygpu import *", everything)
    assert everything["DeviceArray_complex128"] is module.DeviceArray_complex128
    assert sorted(module.__all__) == sorted(set(module.__all__))


def test_the_attribute_is_there_without_an_import():
    assert run_code("import hamr.pygpu as P; print(P.gpuarray.GPUArray is P.GPUArray)") == "True\n"
    with pytest.raises(AttributeError, match="nope"):
        pygpu.nope  # noqa: B018


def test_every_type_has_its_classes():
    assert len(pygpu.SUPPORTED_DTYPES) == 10
    for name in pygpu.SUPPORTED_DTYPES:
        assert getattr(pygpu, f"pointer_wrapper_{name}") is getattr(pygpu, f"ptr_wrapper_{name}")
        array = getattr(pygpu, f"DeviceArray_{name}")([2, 3])
        assert np.asarray(array).dtype == name
        assert np.asarray(array).shape == (2, 3)
        for kind in ("Host", "Device", "Pagelocked"):
            allocator = getattr(pygpu, f"{kind}Allocator_{name}")()
            assert type(allocator.ptr()) is getattr(pygpu, f"ptr_wrapper_{name}")
            assert not allocator.ptr()


def test_the_enumeration():
    dtype = pygpu.dtype
    assert dtype.__size__.value == 10
    assert tuple(dtype(i).name for i in range(10)) == pygpu.SUPPORTED_DTYPES
    assert list(dtype.__members__)[-1] == "__size__"
    assert dtype.float_alias is dtype.float32 is dtype(6) is dtype["float32"]
    assert dtype.__members__["unsigned_int_alias"] is dtype.uint32
    assert int(dtype.complex128) == 9
    assert repr(dtype.int64) == "<dtype.int64: 2>"
    for same in (pickle.loads(pickle.dumps(dtype.int16)), copy.deepcopy(dtype.int16)):
        assert same is dtype.int16
    for wrong, error in ((11, ValueError), (-1, ValueError), ("int16", TypeError)):
        with pytest.raises(error, match="value is"):
            dtype(wrong)


@pytest.mark.parametrize("wrong", ["bfloat16", "float8_e5m2", np.dtype(">f8"), object, "nonsense"])
def test_other_types_are_refused(wrong):
    for make in (pygpu.GPUArray, pygpu.HostAllocator):
        with pytest.raises(pygpu.UnsupportedDataType, match="accepted are int16, int32"):
            make((2, 3), dtype=wrong)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((), TypeError, "needs a shape or an array"),
        ((2.5,), pygpu.UnsupportedDataType, "a float is given"),
        (([[1, 2]],), pygpu.UnsupportedDataType, "a list is a shape here"),
        (((2, -3),), ValueError, "-3"),
        ((np.zeros(3, "U1"),), pygpu.UnsupportedDataType, "U1"),
        ((np.zeros(3, ">i4"),), pygpu.UnsupportedDataType, "accepted are int16"),
        ((np.zeros(3), "float32"), TypeError, "accepted is its own"),
        ((np.zeros(3), None, None, None, 4096), TypeError, "gpudata goes with a shape"),
        (((3,), "float32", "malloc"), ValueError, "devices' memory"),
        (((3,), "float32", None, None, None, None, "G"), ValueError, "order is 'G'"),
        (((3,), "float32", None, None, "x"), TypeError, "gpudata is 'x'"),
        (((3,), "float32", None, None, None, (8,)), ValueError, r"strides are \(8,\)"),
        (((3,), "float32", None, None, None, (4, 4)), ValueError, "one for each size"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        pygpu.GPUArray(*arguments)


def test_statuses():
    success, memory = pygpu.cudaError_t(0), pygpu.cudaError_t(2)
    assert repr(success) == str(success) == "<CudaError: 'code=0'>"
    assert (success.as_int(), int(memory), memory.name) == (0, 2, "cudaErrorMemoryAllocation")
    assert memory == pygpu.cudaError_t(2) == 2 != success
    assert len({memory, pygpu.cudaError_t(2)}) == 1
    assert memory() is memory
    assert pygpu.cudaGetErrorName(memory) == "cudaErrorMemoryAllocation"
    assert pygpu.cudaGetErrorString(memory) == "out of memory"
    assert pygpu.cudaGetErrorString(success) == "no error"
    assert pygpu.cudaGetErrorName(pygpu.cudaError_t(54321)) == "unrecognized error code"
    with pytest.raises(TypeError, match="code is 'a'"):
        pygpu.cudaError_t("a")


def test_the_last_error_is_each_threads_own():
    array = pygpu.DeviceArray_float32([2])
    pygpu.cudaGetLastError()
    array.to_host()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(pygpu.cudaGetLastError()))
    thread.start()
    thread.join()
    assert seen == [0]
    assert pygpu.cudaPeekAtLastError() == 1 == pygpu.cudaGetLastError()
    assert pygpu.cudaGetLastError() == 0


def test_pointers(capsys):
    pointer = pygpu.ptr_wrapper_float64()
    assert repr(pointer) == "<ptr_wrapper<float64>, is_safe=0, addr=0>"
    assert not pointer.is_safe()
    with pytest.raises(ValueError, match="not safe"):
        pointer.get()
    pointer.create(3)
    kept = pointer.get()
    kept[:] = 2
    assert pointer.is_safe()
    assert pointer.get().tolist() == [2, 2, 2]
    assert int(pointer) == kept.ctypes.data == pointer.__int__()
    assert repr(pointer) == f"<ptr_wrapper<float64>, is_safe=1, addr={int(pointer)}>"
    pointer.print_address()
    assert capsys.readouterr().out == f"{hex(int(pointer))}\n"
    pointer.destroy()
    pointer.destroy()
    assert (int(pointer), pointer.is_safe(), kept.tolist()) == (0, False, [2, 2, 2])
    with pytest.raises(ValueError, match="n is -1"):
        pointer.create(-1)


def test_host_sides_without_a_device():
    values = np.arange(6.0)
    array = pygpu.DeviceArray_float64(values)
    assert np.shares_memory(np.asarray(array), values)
    assert int(array.host_data()) == values.ctypes.data
    assert array.host_data().is_safe()
    assert (array.size(), array.nbytes(), array.shape(), array.strides()) == (6, 48, [6], [8])
    assert len(array) == 6
    assert pygpu.DeviceArray_int16([2, 3], 0).strides() == [2, 4]
    assert pygpu.DeviceArray_int16([2, 3], order=1).strides() == [6, 2]
    assert pygpu.DeviceArray_int16(l=[2, 3], flag_c_contiguous=0).strides() == [2, 4]
    assert pygpu.DeviceArray_int16(np.int64(4)).shape() == [4]
    assert pygpu.DeviceArray_int16(values.astype("i2")[::2]).strides() == [4]
    del array
    assert values.tolist() == [0, 1, 2, 3, 4, 5]


def test_host_allocators_are_shared():
    typed = pygpu.HostAllocator_float32()
    assert typed.allocate(6) is None
    first = pygpu.DeviceArray_float32(typed.ptr(), [2, 3])
    second = pygpu.DeviceArray_float32(typed.ptr(), [3, 2], 0)
    np.asarray(first)[0, 1] = 7
    assert np.asarray(second)[1, 0] == 7
    shaped = pygpu.HostAllocator([2, 3], float)
    shaped.get()[1, 2] = 4
    third = pygpu.DeviceArray_float64(shaped.ptr(), [6])
    before = sys.getrefcount(shaped._memory)
    assert np.asarray(third)[5] == 4 == shaped.get()[1, 2]
    assert before >= 2
    pointer = shaped.ptr()
    del shaped, third
    assert pointer.get()[1, 2] == 4  # the memory lives as long as pointers to it


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((), TypeError, "takes a count"),
        ((1, 2, 3, 4, 5), TypeError, "takes a count"),
        ((-1,), ValueError, "n is -1"),
        ((2.5,), TypeError, "float"),
        (([2, "x"],), TypeError, "shape"),
        (([2, 3], 2), ValueError, "order is 2"),
        ((np.zeros(3, "f4"),), TypeError, "float32 elements: accepted are float64"),
        ((pygpu.ptr_wrapper_float64(), [3]), ValueError, "addr=0"),
        ((pygpu.ptr_wrapper_float32(), [3]), TypeError, "accepted is a ptr_wrapper_float64"),
        ((0, 0, [3]), ValueError, "an address is 0"),
    ],
)
def test_wrong_arguments_of_low_level_arrays(arguments, error, words):
    with pytest.raises(error, match=words):
        pygpu.DeviceArray_float64(*arguments)


def test_too_large_for_the_pointer():
    pointer = pygpu.ptr_wrapper_int32()
    pointer.create(5)
    with pytest.raises(ValueError, match="at most the 5"):
        pygpu.DeviceArray_int32(pointer, [2, 3])


def test_a_host_array_is_no_allocator():
    with pytest.raises(TypeError, match="memory of the host"):
        pygpu.Allocator(np.zeros(3))


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "float16"])
def test_types_of_images_and_masks_have_allocators(name):
    made = pygpu.HostAllocator((2, 3), name)
    made.get()[:] = 1
    assert made.dtype == np.dtype(name)
    assert made.ptr().get().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert name not in pygpu.SUPPORTED_DTYPES


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("SourceModule", "write hamr.pygpu.compile(source).function(name)"),
        ("mem_alloc", 'write hamr.Buffer(nbytes, "uint8", "cuda")'),
        ("memcpy_htod", "write a.set(array)"),
        ("memcpy_dtoh", "write a.get(array)"),
        ("autoinit", "write nothing"),
        ("driver", "write the names of hamr.pygpu itself"),
        ("pagelocked_empty", "write hamr.pygpu.PagelockedAllocator(shape, dtype).get()"),
        ("sum", "cupy.asarray(a)"),
        ("dot", "cupy.asarray(a)"),
        ("array", "write hamr.pygpu.to_gpu(numpy.array(x))"),
    ],
)
def test_names_of_pycuda_say_what_to_write(name, written):
    from hamr.pygpu import gpuarray

    for module in (pygpu, gpuarray):
        with pytest.raises(AttributeError, match=re.escape(written)):
            getattr(module, name)
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing_of_the_kind'$"):
            module.nothing_of_the_kind  # noqa: B018
