"""Float8 on devices: moved, gathered and filled there, converted by way of the host."""

import os

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import producers
from tests.support.producers import FLOAT8, LAYOUTS

#: More than the host does sooner than a kernel is started, where there are kernels.
MANY = 8_000 if os.environ.get("HAMR_CUDA_KERNELS") == "0" else 100_000


def codes_of(buffer):
    return np.asarray(buffer.copy("malloc")).view("u1")


def of_codes(name, codes, allocator):
    owner = np.ascontiguousarray(codes)
    host = hamr.Buffer.from_pointer(owner.ctypes.data, owner.shape, name, owner=owner)
    return host.copy(allocator)


def some_codes(shape):
    return np.random.default_rng(1).integers(0, 256, shape, "u1")


def converts(name, dtype, count, allocator):
    codes = some_codes(count)
    source = of_codes(name, codes, allocator)
    expected = of_codes(name, codes, "malloc").astype(dtype).get().tobytes()
    found = source.astype(dtype)
    assert found.allocator == allocator
    assert found.copy("malloc").get().tobytes() == expected
    # On the device on both sides, to the host, and between strides.
    for target in (
        hamr.Buffer(count, dtype, allocator),
        hamr.Buffer(count, dtype, "malloc"),
        hamr.Buffer(2 * count, dtype, allocator)[::2],
    ):
        target[...] = source
        assert target.copy("malloc").get().tobytes() == expected
    target = hamr.Buffer(count, dtype, allocator)
    target[...] = of_codes(name, codes, "malloc")
    assert target.copy("malloc").get().tobytes() == expected


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("count", [256, MANY])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "complex128", *FLOAT8])
def test_conversion_is_the_hosts(name, count, dtype):
    converts(name, dtype, count, hamr.Allocator.cuda)


@pytest.mark.parametrize(("name", "dtype"), [(FLOAT8[0], "f8"), (FLOAT8[1], FLOAT8[2])])
def test_conversion_on_every_allocator(name, dtype, cuda_allocator):
    converts(name, dtype, MANY, cuda_allocator)


def test_numbers_of_a_device_become_float8(cuda_allocator):
    numbers = np.arange(MANY) / 512
    source = hamr.Buffer(MANY, "f4", cuda_allocator, data=numbers)
    expected = codes_of(hamr.Buffer(MANY, "float8_e4m3fn", data=numbers))
    assert np.array_equal(codes_of(source.astype("float8_e4m3fn")), expected)
    assert np.array_equal(codes_of(source[::3].astype("float8_e4m3fn")), expected[::3])


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e8m0fnu"])
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_layouts_move_on_the_device(name, layout, device_allocator):
    codes = some_codes((300, 400))
    source = of_codes(name, codes, device_allocator)
    for view, part in ((source, codes), (source[::-1, ::3], codes[::-1, ::3])):
        assert np.array_equal(codes_of(view.copy()), part)
    target = LAYOUTS[layout](np.zeros((300, 400), "u1"))
    owner = hamr.Buffer.from_pointer(
        target.ctypes.data, target.shape, name, strides=target.strides, owner=target
    )
    owner[...] = source
    assert np.array_equal(target, codes)


@pytest.mark.parametrize("name", FLOAT8)
def test_contents_on_the_device(name, cuda_allocator):
    buffer = hamr.Buffer(3, name, cuda_allocator, fill=2)
    buffer.append(4)
    buffer.append(hamr.Buffer(2, "f4", cuda_allocator, fill=0.5))
    buffer.resize(8, 1)
    buffer[1:3] = 0.25
    buffer[::4] = 8
    assert buffer.astype("f4").copy("malloc").get().tolist() == [8, 0.25, 0.25, 4, 8, 0.5, 1, 1]
    assert str(buffer) == "{8, 0.25, 0.25, 4, 8, 0.5, 1, 1}"
    assert buffer[3].item() == 4.0
    large = hamr.Buffer(MANY, name, cuda_allocator, fill=4)
    large[::3] = 2
    expected = np.full(MANY, 4.0)
    expected[::3] = 2
    assert np.array_equal(large.astype("f8").copy("malloc").get(), expected)


@pytest.mark.skipif(not producers.ADDED, reason="no ml_dtypes here")
@pytest.mark.parametrize("name", producers.ADDED)
def test_arrays_of_ml_dtypes_come_in_by_their_dtype(name):
    array = np.array([[1, 2], [4, 8]]).astype(name)
    made = driver.Array(array)
    shared = hamr.buffer(made)
    assert (shared.ptr, shared.shape, shared.dtype) == (made.ptr, (2, 2), array.dtype)
    assert shared.source_protocol == "__cuda_array_interface__"
    assert np.asarray(shared.get_host_accessible()).tobytes() == array.tobytes()
    with pytest.raises(TypeError, match=r"void elements|float8 has no code"):
        hamr.buffer(driver.Only(made))
