"""Content operations in every pair of memories, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_libraries import sample

ALLOCATORS = ("malloc", "cpp", "cuda", "cuda_async", "cuda_uva", "cuda_host")
DTYPES = ("bool", "uint8", "int16", "float16", "float32", "int64", "complex128")


def host(b: hamr.Buffer) -> np.ndarray:
    return np.array(b.get_host_accessible())


def same(b: hamr.Buffer, expected: np.ndarray, where: str) -> None:
    np.testing.assert_array_equal(host(b), expected, err_msg=where)
    assert np.dtype(b.dtype) == expected.dtype, where


@pytest.mark.parametrize("second", ALLOCATORS)
@pytest.mark.parametrize("first", ALLOCATORS)
def test_operations_equal_numpys(first, second):
    for dtype in DTYPES:
        a, b = sample(dtype, (6, 5)), sample("int16", (40,)) % 2
        there = hamr.Buffer(b.shape, "int16", second, data=b)
        where = f"{first} {second} {dtype}"

        x = hamr.Buffer(a.shape, dtype, first, data=a)
        assert x.allocator.name == first
        same(x, a, where)
        copied = x.copy(second)
        assert copied.allocator.name == second
        same(copied, a, where)
        same(x.copy(second, dtype="float64"), a.astype("f8"), where)
        same(x.astype("int32"), a.astype("i4"), where)
        x.move(second)
        assert x.allocator.name == second
        same(x, a, where)
        x.move(first)

        x[...] = copied
        same(x, a, where)
        x[1:3] = there[:5]
        expected = a.copy()
        expected[1:3] = b[:5]
        same(x, expected, where)
        x[::2, ::-1] = there[5:10]
        expected[::2, ::-1] = b[5:10]
        same(x, expected, where)

        x.assign(there)
        same(x, b.astype(dtype), where)
        assert x.allocator.name == first
        x.append(there)
        x.append(1)
        expected = np.concatenate([b, b, [1]]).astype(dtype)
        same(x, expected, where)
        x.set(there, at=3, start=2, n=7)
        expected[3:10] = b[2:9]
        same(x, expected, where)
        x.resize(100, 1)
        expected = np.concatenate([expected, np.ones(100 - len(expected))]).astype(dtype)
        same(x, expected, where)
        x.resize(9)
        same(x, expected[:9], where)
        x.reserve(500)
        assert x.capacity() >= 500
        same(x, expected[:9], where)
        out = np.zeros(9, dtype)
        assert x.get(out) is out
        np.testing.assert_array_equal(out, expected[:9], err_msg=where)
        target = hamr.Buffer(9, dtype, second, fill=0)
        target.set(x, n=4)
        expected[4:9] = 0
        same(target, expected[:9], where)
        x.swap(target)
        same(x, expected[:9], where)
        assert x.allocator.name == second
        x.fill(1)
        same(x, np.ones(9, dtype), where)
        assert x[3].item() == 1
        x.free()
        assert x.size() == 0
        x.resize(3, 1)
        same(x, np.ones(3, dtype), where)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_where_memory_is(allocator):
    b = hamr.Buffer((3, 4), "float32", allocator, fill=2)
    on_host = allocator in ("malloc", "cpp", "cuda_uva", "cuda_host")
    on_device = allocator in ("cuda", "cuda_async", "cuda_uva")
    assert b.host_accessible() is on_host
    assert b.cuda_accessible() is on_device
    h, d = b.get_host_accessible(), b.get_cuda_accessible()
    assert h.is_temporary is not on_host
    assert d.is_temporary is not on_device
    assert (h.ptr == b.ptr) is on_host
    assert (d.ptr == b.ptr) is on_device
    assert b.get_device_accessible().is_temporary is not on_device
    assert (np.array(h) == 2).all()
    assert (np.array(d.get_host_accessible()) == 2).all()
    text = str(hamr.Buffer(3, "float32", allocator, data=np.arange(3, dtype="f4")))
    assert text == str(hamr.Buffer(3, "float32", "malloc", data=np.arange(3, dtype="f4")))


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_nothing_is_left(allocator):
    before = hamr.stats()["allocators"].get(allocator, {})
    for n in (0, 1, 1000, 1 << 22):
        b = hamr.Buffer(n, "float32", allocator, fill=1)
        b.get_host_accessible()
        b.get_cuda_accessible()
        b.copy()
        b.append(b)
        b.close()
    after = hamr.stats()["allocators"][allocator]
    for key in ("live", "current", "adopted"):
        assert after[key] == before.get(key, 0), (key, before, after)


def test_no_memory_is_an_error_that_leaves_all_as_it_was(gpu_count):
    b = hamr.Buffer(100, "float32", "cuda", fill=3)
    for allocator in ("cuda", "cuda_async"):
        with pytest.raises(hamr.OutOfMemory):
            hamr.Buffer(1 << 42, "uint8", allocator)
    with pytest.raises(hamr.OutOfMemory):
        b.resize(1 << 40)
    assert (host(b) == 3).all()
    assert (host(hamr.Buffer(10, "float32", "cuda", fill=1)) == 1).all()
