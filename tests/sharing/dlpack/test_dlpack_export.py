"""__dlpack__ of buffers and handles in host memory: what consumers find, and what they may ask."""

import enum
import gc
import sys

import numpy as np
import pytest
from hypothesis import given

import hamr
from tests.support import dlpack_structs as dl, producers
from tests.support.contents import on_host
from tests.support.processes import run_code
from tests.support.producers import LAYOUTS, cast, in_memory

VERSION = (1, 3)


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters as it found them."""
    hamr.Buffer(1)

    def counters():
        gc.collect()
        totals = hamr.stats()
        host = totals["spaces"]["host"]
        return host["live"], host["adopted"], totals["references"]

    before = counters()
    yield
    assert counters() == before


def sample(dtype="float32", shape=(2, 3, 4)):
    return cast(np.arange(1, 1 + int(np.prod(shape, dtype=int))).reshape(shape), dtype)


def shares(consumer, buffer):
    """Both are the same bytes."""
    host = on_host(buffer)
    return (consumer.ctypes.data, consumer.strides) == (host.ctypes.data, host.strides)


# What a consumer finds.


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_type_and_layout(dtype, layout):
    array = LAYOUTS[layout](sample(dtype))
    buffer = hamr.buffer(array)
    for exporter in (buffer, buffer.get_host_accessible()):
        if dtype != "bool" or dl.NEW_NUMPY:
            found = np.from_dlpack(exporter)
            np.testing.assert_array_equal(found, array, strict=True)
            assert shares(found, buffer)
        capsule = exporter.__dlpack__(max_version=VERSION)
        seen = dl.read(capsule)
        assert (seen.shape, seen.device) == (array.shape, (dl.CPU, 0))
        assert seen.strides == tuple(s // array.itemsize for s in array.strides)
        assert seen.dtype == (dl.CODES[array.dtype.kind], 8 * array.itemsize, 1)
        assert (seen.data, seen.byte_offset, seen.flags) == (array.ctypes.data, 0, 0)
        np.testing.assert_array_equal(seen.array(dtype), array, strict=True)


@given(producers.arrays())
def test_any_array(array):
    """Read-only ones and such as repeat elements among them."""
    buffer = hamr.buffer(array)
    seen = dl.read(capsule := buffer.__dlpack__(max_version=(1, 0)))
    np.testing.assert_array_equal(seen.array(array.dtype), array, strict=True)
    assert bool(seen.flags & dl.READ_ONLY) is not array.flags.writeable
    del capsule
    if dl.NEW_NUMPY:
        found = np.from_dlpack(buffer)
        np.testing.assert_array_equal(found, array, strict=True)
        assert found.flags.writeable is (array.flags.writeable or not array.size)


@pytest.mark.parametrize("versioned", [False, True])
def test_memory_of_hamrs_own(allocator, versioned):
    buffer = in_memory(sample(), allocator)
    capsule = buffer.__dlpack__(max_version=VERSION if versioned else None)
    seen = dl.read(capsule)
    assert dl.name_of(capsule) == (dl.VERSIONED_NAME if versioned else dl.LEGACY_NAME)
    assert (seen.version, seen.data) == (VERSION if versioned else None, buffer.ptr)
    np.testing.assert_array_equal(seen.array("f4"), sample(), strict=True)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bfloat16", (4, 16, 1)), ("float8_e4m3fn", (10, 8, 1)), ("float8_e5m2", (12, 8, 1))],
)
def test_types_that_numpy_does_not_have(dtype, expected):
    buffer = hamr.Buffer((2, 3), dtype)
    seen = dl.read(capsule := buffer.__dlpack__(max_version=VERSION))
    assert (seen.dtype, seen.strides) == (expected, (3, 1))
    del capsule


def test_the_device():
    buffer = hamr.Buffer(3)
    assert buffer.__dlpack_device__() == (1, 0)
    assert buffer.get_host_accessible().__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError, match="takes no arguments"):
        buffer.__dlpack_device__(1)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (5, 0)])
@pytest.mark.parametrize("foreign", [False, True])
def test_without_elements(shape, foreign):
    buffer = hamr.buffer(np.empty(shape, "f4")) if foreign else hamr.Buffer(shape, "f4")
    seen = dl.read(capsule := buffer.__dlpack__(max_version=VERSION))
    assert (seen.data, seen.shape) == (None, shape)
    del capsule
    assert np.from_dlpack(buffer).shape == shape


def test_without_dimensions():
    buffer = hamr.buffer(np.array(7.5))
    seen = dl.read(capsule := buffer.__dlpack__(max_version=VERSION))
    assert (seen.shape, seen.strides, seen.array("f8")[()]) == ((), (), 7.5)
    del capsule
    assert np.from_dlpack(buffer)[()] == 7.5


def test_strides_that_mean_nothing_are_those_of_c_order():
    memory = np.arange(12, dtype="f4")
    with_ones = hamr.Buffer.from_pointer(
        memory.ctypes.data, (3, 1, 4, 1), "f4", strides=(16, 7, 4, 3),
        owner=memory,
    )  # fmt: skip
    seen = dl.read(capsule := with_ones.__dlpack__())
    assert seen.strides == (4, 4, 1, 1)
    del capsule
    empty = hamr.Buffer.from_pointer(0, (2, 0, 5), "f4", strides=(3, 999, -7))
    seen = dl.read(capsule := empty.__dlpack__())
    assert seen.strides == (5, 5, 1)
    del capsule


def test_negative_strides_start_at_element_zero():
    array = sample(shape=(4, 3))[::-1, ::-2]
    seen = dl.read(capsule := hamr.buffer(array).__dlpack__())
    assert (seen.data, seen.strides) == (array.ctypes.data, (-3, -2))
    del capsule


def test_strides_between_elements_are_refused():
    memory = np.zeros(64, "u1")
    buffer = hamr.Buffer.from_pointer(memory.ctypes.data, (2, 3), "f4", strides=(20, 6))
    for call in (buffer.__dlpack__, lambda: np.from_dlpack(buffer)):
        with pytest.raises(BufferError, match=r"strides\[1\] is 6 bytes.*copy\(\)"):
            call()
    assert np.from_dlpack(buffer.copy()).shape == (2, 3)
    copied = buffer.__dlpack__(copy=True)
    assert dl.read(copied).strides == (3, 1)


def test_read_only():
    buffer = hamr.buffer(b"1234")
    seen = dl.read(capsule := buffer.__dlpack__(max_version=(1, 0)))
    assert seen.flags == dl.READ_ONLY
    del capsule
    if dl.NEW_NUMPY:
        assert not np.from_dlpack(buffer).flags.writeable
    else:
        with pytest.raises(BufferError, match="read-only"):
            np.from_dlpack(buffer)
    for arguments in ({}, {"max_version": (0, 8)}, {"max_version": None, "copy": False}):
        with pytest.raises(BufferError, match=r"read-only.*max_version=\(1, 0\).*copy=True"):
            buffer.__dlpack__(**arguments)
    copied = dl.read(capsule := buffer.__dlpack__(copy=True))
    assert not copied.is_versioned
    assert bytes(copied.array("u1")) == b"1234"
    del capsule


# What a consumer may ask.


@pytest.mark.parametrize(
    ("version", "versioned"),
    [
        (None, False), ((0, 8), False), ((-1, 0), False), ((-(10**30), 0), False),
        ((1, 0), True), ((1, 9), True), ((7, 0), True), ([1, 0], True), ((10**30, 0), True),
        ((np.int64(1), np.uint8(0)), True),
    ],
)  # fmt: skip
def test_versions(version, versioned):
    seen = dl.read(capsule := hamr.Buffer(3).__dlpack__(max_version=version))
    assert seen.is_versioned is versioned
    assert seen.version in (None, VERSION)
    del capsule


class DeviceType(enum.IntEnum):
    CPU = 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"stream": None}, {"stream": -1}, {"dl_device": None}, {"dl_device": (1, 0)},
        {"dl_device": (DeviceType.CPU, np.int32(0))}, {"dl_device": [1, 0]}, {"copy": None},
        {"copy": False}, {"copy": False, "dl_device": (1, 0), "stream": None},
    ],
)  # fmt: skip
def test_accepted_in_place(arguments):
    buffer = hamr.Buffer(3, fill=1)
    seen = dl.read(capsule := buffer.__dlpack__(max_version=VERSION, **arguments))
    assert (seen.data, seen.flags, seen.device) == (buffer.ptr, 0, (1, 0))
    del capsule


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"nothing": 1}, TypeError, "unexpected keyword argument 'nothing': accepted are stream"),
        ({"\udc80": 1}, TypeError, "unexpected keyword"),
        ({"max_version": 1}, TypeError, "max_version is 1: accepted are None and a tuple of two"),
        ({"max_version": "10"}, TypeError, "max_version is '10'"),
        ({"max_version": (1,)}, TypeError, "max_version is "),
        ({"max_version": (1, 0, 0)}, TypeError, "max_version is "),
        ({"max_version": (1.0, 0)}, TypeError, "max_version is "),
        ({"max_version": (1, "x")}, TypeError, "max_version is "),
        ({"max_version": {1: 0, 0: 1}.keys()}, TypeError, "max_version is "),
        ({"dl_device": 1}, TypeError, "dl_device is 1: accepted are None and a tuple of two int"),
        ({"dl_device": (1, None)}, TypeError, "dl_device is "),
        ({"dl_device": (1,)}, TypeError, "dl_device is "),
        ({"dl_device": (1, 1)}, BufferError, r"dl_device is \(1, 1\): accepted are \(1, 0\)"),
        ({"dl_device": (3, 0)}, BufferError, r"dl_device is \(3, 0\): accepted are"),
        ({"dl_device": (13, 0)}, BufferError, "accepted are"),
        ({"dl_device": (2, -1)}, BufferError, "accepted are"),
        ({"dl_device": (10, 0)}, BufferError, "accepted are"),
        ({"dl_device": (2**32 + 1, 0)}, BufferError, "4294967297, 0.: accepted are"),
        ({"dl_device": (2, 10**30)}, BufferError, "accepted are"),
        ({"dl_device": (2, 0), "copy": False}, BufferError, "copy is False and dl_device is"),
        ({"stream": 1}, ValueError, "stream is 1: accepted is None, since the host has no streams"),
        ({"stream": 0}, ValueError, "stream is 0: accepted is None"),
        ({"stream": 5, "dl_device": (1, 0)}, ValueError, "stream is 5"),
        ({"stream": -2}, ValueError, "stream is -2: accepted are None, -1"),
        ({"stream": 2**64}, ValueError, "stream is 18446744073709551616"),
        ({"stream": -(2**70)}, ValueError, "stream is -"),
        ({"stream": 1.0}, TypeError, "stream is 1.0: accepted are None and an int"),
        ({"stream": True}, TypeError, "stream is True"),
        ({"stream": "1"}, TypeError, "stream is '1'"),
        ({"copy": 1}, TypeError, "copy is 1: accepted are True, False and None"),
        ({"copy": "yes"}, TypeError, "copy is 'yes'"),
    ],
)
def test_refused(arguments, error, text):
    buffer = hamr.Buffer(3)
    for exporter in (buffer, buffer.get_host_accessible()):
        with pytest.raises(error, match=text):
            exporter.__dlpack__(**arguments)


def test_arguments_have_names():
    with pytest.raises(TypeError, match="takes keyword arguments alone, got 1 positional"):
        hamr.Buffer(3).__dlpack__(None)


class Raises:
    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error


@pytest.mark.parametrize("name", ["stream", "max_version", "dl_device"])
def test_errors_of_arguments_pass(name):
    value = Raises(OSError("from an argument"))
    with pytest.raises(OSError, match="from an argument"):
        hamr.Buffer(3).__dlpack__(**{name: value if name == "stream" else (value, 0)})


class Closes:
    def __init__(self, buffer):
        self.buffer = buffer

    def __index__(self):
        self.buffer.close()
        return 1


def test_an_argument_that_closes_the_buffer():
    buffer = hamr.Buffer(3)
    with pytest.raises(hamr.FreedBuffer):
        buffer.__dlpack__(max_version=(Closes(buffer), 0))


def test_closed_and_freed():
    buffer = hamr.Buffer(3)
    handle = buffer.get_host_accessible()
    buffer.free()
    assert np.from_dlpack(buffer).shape == (0,)
    buffer.close()
    handle.close()
    for exporter in (buffer, handle):
        with pytest.raises(hamr.FreedBuffer):
            exporter.__dlpack__()
        with pytest.raises(hamr.FreedBuffer):
            exporter.__dlpack_device__()


@pytest.mark.parametrize("own", [False, True])
def test_copies(own, allocator):
    array = sample()[:, ::-1]
    buffer = in_memory(array, allocator) if own else hamr.buffer(array)
    for exporter in (buffer, buffer.get_host_accessible()):
        seen = dl.read(capsule := exporter.__dlpack__(copy=True, max_version=VERSION))
        assert seen.flags == dl.IS_COPIED
        assert seen.data != exporter.ptr
        assert (seen.device, seen.strides) == ((1, 0), (12, 4, 1))
        np.testing.assert_array_equal(seen.array("f4"), array)
        del capsule
        if dl.NEW_NUMPY:
            copied = np.from_dlpack(exporter, copy=True)
            copied[...] = 9
            np.testing.assert_array_equal(on_host(buffer), array)
            assert shares(np.from_dlpack(exporter, copy=False), buffer)


def test_numpy_as_consumer():
    buffer = hamr.Buffer(5, "i2", fill=1)
    first = np.from_dlpack(buffer)
    if not dl.NEW_NUMPY:  # which cannot tell what may be written
        assert (first.tolist(), first.flags.writeable) == ([1] * 5, False)
        return
    for array in (first, np.from_dlpack(buffer, device="cpu", copy=False)):
        array[0] += 1
    assert on_host(buffer).tolist() == [3, 1, 1, 1, 1]


def test_torch_as_consumer():
    torch = pytest.importorskip("torch")
    array = sample("float64", (3, 4))
    buffer = hamr.buffer(array.T)
    tensor = torch.from_dlpack(buffer)
    tensor[0, 0] = 100
    assert array[0, 0] == 100
    assert (tensor.data_ptr(), tensor.stride()) == (buffer.ptr, (1, 4))
    assert torch.from_dlpack(buffer, copy=True).data_ptr() != buffer.ptr
    small = hamr.Buffer(3, "bfloat16", fill=1.5)
    assert torch.from_dlpack(small).tolist() == [1.5] * 3


def test_devices_that_are_absent():
    run_code(
        """
import hamr
b = hamr.Buffer(3)
try:
    b.__dlpack__(dl_device=(2, 0))
except BufferError as error:
    assert str(error).startswith("dl_device is (2, 0), where the elements cannot be: "), error
    assert isinstance(error.__cause__, hamr.BackendUnavailable), error.__cause__
else:
    raise AssertionError
assert hamr.stats()["references"] == 1
""",
        env={"HAMR_CUDA_LIBRARY": "/nonexistent"},
    )


def test_failing_leaves_nothing():
    buffer = hamr.Buffer(3)
    before = sys.getrefcount(buffer)
    for arguments in ({"copy": 3}, {"dl_device": (9, 9)}, {"stream": 7}, {"max_version": ()}):
        with pytest.raises((TypeError, ValueError, BufferError)):
            buffer.__dlpack__(**arguments)
    assert sys.getrefcount(buffer) == before
