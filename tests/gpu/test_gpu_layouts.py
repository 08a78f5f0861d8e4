"""Copies between layouts and fills of every size of element, on the device."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_bytes import raw

BY_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
sizes = pytest.mark.parametrize("size", BY_SIZE)
device_allocator = pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])


def numbered(shape: tuple[int, ...], size: int) -> np.ndarray:
    """Elements that differ in all their bytes."""
    count = int(np.prod(shape))
    content = np.random.default_rng(size).integers(0, 256, count * size, "u1")
    if size == 16:  # no NaN, which would not equal itself
        return (np.arange(count) - 1j * np.arange(count)[::-1]).reshape(shape)
    return content.view(BY_SIZE[size]).reshape(shape)


def transposed(b: hamr.Buffer, axes: tuple[int, ...]) -> hamr.Buffer:
    return hamr.Buffer.from_pointer(
        b.ptr,
        tuple(b.shape[a] for a in axes),
        b.dtype,
        b.allocator,
        strides=tuple(b.strides[a] for a in axes),
        owner=b,
    )


def host(b: hamr.Buffer) -> np.ndarray:
    return np.array(b.get_host_accessible())


@sizes
@pytest.mark.parametrize(
    "shape", [(257, 130), (1, 1000), (1000, 1), (33, 31), (3, 5, 7, 11), (64, 3, 65), (2048, 2049)]
)
def test_transposed_copies(size, shape):
    values = numbered(shape, size)
    b = hamr.Buffer(shape, values.dtype, "cuda", data=values)
    for axes in itertools.permutations(range(len(shape))):
        view, expected = transposed(b, axes), values.transpose(axes)
        copied = view.copy()
        assert copied.is_contiguous
        np.testing.assert_array_equal(host(copied), expected)
        np.testing.assert_array_equal(host(view), expected)
        target = hamr.Buffer(view.shape, values.dtype, "cuda_async", fill=0)
        target[...] = view
        np.testing.assert_array_equal(host(target), expected)
        back = hamr.Buffer(shape, values.dtype, "cuda", fill=0)
        transposed(back, axes)[...] = copied
        np.testing.assert_array_equal(host(back), values)


KEYS = [
    np.s_[::2],
    np.s_[1::3],
    np.s_[::-1],
    np.s_[5:2:-1],
    np.s_[:, ::2],
    np.s_[:, ::-1],
    np.s_[::-2, ::-3],
    np.s_[3:4],
    np.s_[:, 4],
    np.s_[7, :],
    np.s_[2:2],
    np.s_[..., None, 3:9],
    np.s_[-1, -1],
]


@sizes
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts(size, key):
    values = numbered((40, 50), size)
    b = hamr.Buffer(values.shape, values.dtype, "cuda", data=values)
    np.testing.assert_array_equal(host(b[key]), values[key])
    np.testing.assert_array_equal(host(b[key].copy()), values[key])
    replaced, new = values.copy(), numbered((40, 50), size)[::-1, ::-1]
    replaced[key] = new[key]
    b[key] = hamr.Buffer(new.shape, new.dtype, "cuda", data=new)[key]
    np.testing.assert_array_equal(host(b), replaced)
    b[key] = values[key]  # from the host
    np.testing.assert_array_equal(host(b), values)
    b[key] = 1
    replaced = values.copy()
    replaced[key] = 1
    np.testing.assert_array_equal(host(b), replaced)


@sizes
def test_broadcast_and_overlap(size):
    values = numbered((40, 50), size)
    b = hamr.Buffer(values.shape, values.dtype, "cuda", data=values)
    row = hamr.Buffer(50, values.dtype, "cuda", data=values[3])
    b[...] = row
    np.testing.assert_array_equal(host(b), np.broadcast_to(values[3], values.shape))
    b[...] = values
    expected = values.copy()
    b[1:] = b[:-1]
    expected[1:] = expected[:-1].copy()
    np.testing.assert_array_equal(host(b), expected)
    b[...] = b[::-1]
    np.testing.assert_array_equal(host(b), expected[::-1])


PATTERNS = {
    "bool": [True, False],
    "uint8": [0, 0xA5],
    "int8": [-1, 0x5A],
    "uint16": [0, 0x0102],
    "float16": [1.5, -0.0],
    "uint32": [0, 0x01020304],
    "float32": [1.1, -0.0, float("inf")],
    "uint64": [0, 0x0102030405060708],
    "float64": [1.1, -1e300],
    "complex64": [1.5 - 2.25j, 0],
    "complex128": [1.1 - 2.2j, 3j],
}


@device_allocator
@pytest.mark.parametrize("dtype", PATTERNS)
def test_fills(allocator, dtype):
    for value in PATTERNS[dtype]:
        for n in (1, 2, 3, 7, 15, 16, 17, 255, 256, 257, 4097, (1 << 20) + 1):
            b = hamr.Buffer(n, dtype, allocator, fill=value)
            expected = np.full(n, value, dtype)
            np.testing.assert_array_equal(raw(b), expected.view("u1").reshape(n, -1))
            b.fill(0)
            for key in (np.s_[1:], np.s_[:-1], np.s_[::2], np.s_[2:-2:3], np.s_[::-1]):
                expected[:] = 0
                b.fill(0)
                expected[key] = value
                b[key].fill(value)
                np.testing.assert_array_equal(host(b), expected)


@device_allocator
def test_fills_of_two_dimensions(allocator):
    for dtype in PATTERNS:
        value = PATTERNS[dtype][-1]
        b = hamr.Buffer((33, 47), dtype, allocator, fill=0)
        expected = np.zeros((33, 47), dtype)
        for key in (np.s_[3:9, 5:40], np.s_[:, 7], np.s_[7], np.s_[::2, ::3], np.s_[::-5, ::-2]):
            b[key] = value
            expected[key] = value
            np.testing.assert_array_equal(host(b), expected)
        b[1:2] = hamr.Buffer((1, 47), dtype, "cuda", fill=0)
        expected[1:2] = 0
        np.testing.assert_array_equal(host(b), expected)
