"""__cuda_array_interface__ as hamr offers it, and that it takes back what it gives."""

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import Only
from tests.support.producers import DTYPES, assert_same, cast

A = hamr.Allocator


def sample(dtype="float32", shape=(3, 4)):
    return cast(np.arange(1, 1 + int(np.prod(shape, dtype=int))).reshape(shape), dtype)


def test_the_dictionary(device_allocator):
    buffer = hamr.Buffer((3, 4), "f4", device_allocator, data=sample())
    buffer.synchronize()
    assert buffer.__cuda_array_interface__ == {
        "shape": (3, 4), "typestr": "<f4", "data": (buffer.ptr, False), "strides": None,
        "version": 3, "stream": None,
    }  # fmt: skip
    handle = buffer.get_cuda_accessible()
    assert handle.__cuda_array_interface__ == buffer.__cuda_array_interface__
    assert (handle.is_temporary, handle.ptr) == (False, buffer.ptr)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_goes_out_and_comes_in(dtype):
    array = sample(dtype)
    buffer = hamr.Buffer(array.shape, dtype, "cuda", data=array)
    np.testing.assert_array_equal(driver.content(buffer), array, strict=True)
    made = driver.Array(array)
    shared = hamr.buffer(made)
    assert (shared.ptr, shared.shape, shared.typestr) == (made.ptr, array.shape, array.dtype.str)
    assert shared.source_protocol == "__cuda_array_interface__"
    assert (shared.allocator, shared.owner) == (A.cuda, 0)
    assert_same(shared, array)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_types_without_a_typestr_are_not_offered(dtype):
    buffer = hamr.Buffer(3, dtype, "cuda")
    assert not hasattr(buffer, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="no typestr of its own"):
        buffer.__cuda_array_interface__  # noqa: B018


@pytest.mark.parametrize("allocator", ["malloc", "cpp", "cuda_host"])
def test_host_memory_has_no_cuda_interface(allocator):
    buffer = hamr.Buffer(3, "f4", allocator, fill=1)
    for x in (buffer, buffer.get_host_accessible()):
        assert not hasattr(x, "__cuda_array_interface__")
        with pytest.raises(AttributeError, match="get_cuda_accessible"):
            x.__cuda_array_interface__  # noqa: B018
    handle = buffer.get_cuda_accessible()
    assert handle.is_temporary
    assert driver.content(handle).tolist() == [1, 1, 1]
    assert driver.device_of(handle.ptr) == handle.device == 0


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_device_memory_has_no_host_interfaces(allocator):
    buffer = hamr.Buffer(3, "f4", allocator, fill=1)
    assert not hasattr(buffer, "__array_interface__")
    with pytest.raises((BufferError, TypeError), match="get_host_accessible"):
        memoryview(buffer)
    with pytest.raises((BufferError, TypeError), match="get_host_accessible"):
        np.asarray(buffer)
    handle = buffer.get_cuda_accessible()
    with pytest.raises((BufferError, TypeError), match="get_host_accessible"):
        np.asarray(handle)
    assert np.asarray(handle.get_host_accessible()).tolist() == [1, 1, 1]


def test_managed_memory_has_both():
    buffer = hamr.Buffer(3, "f4", "cuda_uva", fill=1)
    assert np.asarray(buffer).ctypes.data == buffer.ptr
    assert buffer.__cuda_array_interface__["data"] == (buffer.ptr, False)
    np.asarray(buffer)[1] = 5
    assert driver.content(buffer).tolist() == [1, 5, 1]


VIEWS = {
    "rows": np.s_[::2], "columns": np.s_[:, 1:3], "reversed": np.s_[::-1, ::-2],
    "one": np.s_[1, 2, ...], "row": np.s_[1], "new axis": np.s_[:, None], "nothing": np.s_[1:1],
    "length one": np.s_[1:2, 3:],
}  # fmt: skip


@pytest.mark.parametrize("key", VIEWS.values(), ids=VIEWS)
def test_views_go_out_and_come_in(device_allocator, key):
    array = sample()
    buffer = hamr.Buffer(array.shape, "f4", device_allocator, data=array)
    view, expected = buffer[key], array[key]
    interface = view.__cuda_array_interface__
    assert interface["shape"] == expected.shape
    if expected.size:
        assert interface["data"][0] - buffer.ptr == expected.ctypes.data - array.ctypes.data
    else:
        assert interface["data"][0] == 0
    strides = interface["strides"] or np.empty(expected.shape, "f4").strides
    assert [s for s, n in zip(strides, expected.shape, strict=True) if n > 1 and expected.size] == [
        s for s, n in zip(expected.strides, expected.shape, strict=True) if n > 1 and expected.size
    ]
    np.testing.assert_array_equal(driver.content(view), expected)
    again = hamr.buffer(Only(view))
    assert_same(again, expected)


def test_read_only_stays_read_only():
    made = driver.Array(sample())
    pointer = made.ptr
    shared = hamr.buffer(Only(made, data=(pointer, True)))
    for x in (shared, shared[1:], shared.get_cuda_accessible(), hamr.buffer(Only(shared))):
        assert x.readonly
        assert x.__cuda_array_interface__["data"][1] is True
    for change in (lambda: shared.fill(1), lambda: shared.__setitem__(0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            change()
    assert not shared.copy().readonly
    np.testing.assert_array_equal(made.read(), sample())


def test_the_interface_follows_the_buffer(device_allocator):
    buffer = hamr.Buffer(3, "f4", device_allocator, fill=1)
    handle = buffer.get_cuda_accessible()
    first = buffer.__cuda_array_interface__["data"][0]
    buffer.resize((200, 300), 2)
    interface = buffer.__cuda_array_interface__
    assert interface["shape"] == (200, 300)
    assert interface["data"][0] == buffer.ptr
    assert (buffer.ptr == first) == (device_allocator == hamr.Allocator.cuda_vmm)
    assert handle.__cuda_array_interface__["data"][0] == first
    assert driver.content(handle).tolist() == [1, 1, 1]
    buffer.free()
    assert buffer.__cuda_array_interface__["data"] == (0, False)
    assert buffer.__cuda_array_interface__["shape"] == (0,)
    buffer.move("malloc")
    assert not hasattr(buffer, "__cuda_array_interface__")
    buffer.close()
    with pytest.raises(hamr.FreedBuffer):
        buffer.__cuda_array_interface__  # noqa: B018


def test_the_dictionary_may_be_changed_by_its_reader():
    buffer = hamr.Buffer(3, "f4", "cuda", fill=1)
    buffer.__cuda_array_interface__["shape"] = (1000,)
    assert buffer.__cuda_array_interface__["shape"] == (3,)
