"""Contents byte for byte, and values that are hard to convert."""

from __future__ import annotations

import ctypes

import numpy as np

import hamr

NUMPY = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
EVERY = (*NUMPY, "bfloat16")


def raw(buffer: hamr.Buffer) -> np.ndarray:
    """The elements in C order, as bytes, one row for each."""
    host = buffer.copy("malloc")
    content = ctypes.string_at(host.ptr, host.nbytes) if host.nbytes else b""
    return np.frombuffer(content, "u1").reshape(-1, host.itemsize)


def from_bits(values: np.ndarray, dtype: str) -> hamr.Buffer:
    """A host buffer of any type, from NumPy's or, for bfloat16, from its bits."""
    owner = np.ascontiguousarray(values)
    return hamr.Buffer.from_pointer(owner.ctypes.data, owner.shape, dtype, owner=owner)


def _integers(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    edges = [0, 1, 2, 3, 127, 128, 255, 256, 2**11 + 1, 2**24 + 1, 2**31, 2**32, 2**53 + 1]
    edges += [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.max // 2 + 1]
    edges += [-e for e in edges]
    # Halfway between two neighbours of float32, float16 and bfloat16.
    edges += [2**24 + 2**0, 2**25 + 2, 2**25 + 6, 2049, 2051, 65519, 65520, 257, 259, 769]
    return np.array(sorted({e for e in edges if info.min <= e <= info.max}), dtype)


def _floats(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    edges = [
        0.0, -0.0, 0.5, -0.5, 0.999, 1.0, -1.0, 1.5, 2.5, -2.5, 3.7, -3.7, 126.9, 127.0, 128.0,
        -128.0, -128.9, -129.0, 254.9, 255.0, 256.0, 32767.0, 32768.0, 65504.0, 65519.0, 65520.0,
        65535.9, 65536.0, 2.0**24 + 2, 2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1,
        2.0**32 - 1, 2.0**32, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 2.0**63 - 1024, 2.0**64,
        2.0**64 - 2048, 1e10, -1e10, 1e19, 1e20, 1e38, 3.4e38, 3.5e38, 1e300,
        5.96e-8, 2.98e-8, 2.9802322387695312e-08, 6.1e-5, 1e-38, 1.4e-45, 7e-46, 5e-324, 1e-310,
        1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-24, 1 + 2.0**-23,
        1 + 2.0**-24 + 2.0**-40, float("inf"), -float("inf"), float("nan"), -float("nan"),
        float(info.max), float(info.min), float(info.tiny), float(info.smallest_subnormal),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.array(edges).astype(dtype)


def tricky(dtype: str) -> hamr.Buffer:
    """A host buffer of the values that conversions get wrong."""
    if dtype == "bool":
        return from_bits(np.array([False, True, True, False]), dtype)
    if dtype == "bfloat16":
        return from_bits(np.arange(1 << 16, dtype="u2"), dtype)  # all there are
    if dtype == "float16":
        return from_bits(np.arange(1 << 16, dtype="u2"), dtype)
    if dtype.startswith("complex"):
        part = _floats("float32" if dtype == "complex64" else "float64")
        values = np.zeros((len(part), len(part)), dtype)
        values.real, values.imag = part[:, None], part[None, :]
        return from_bits(values.ravel(), dtype)
    return from_bits((_floats if dtype.startswith("float") else _integers)(dtype), dtype)


def repeated(buffer: hamr.Buffer, count: int) -> hamr.Buffer:
    """The same elements again and again: more than one block of a kernel's threads."""
    content = raw(buffer)
    rows = np.resize(content, (count, buffer.itemsize))
    return from_bits_of(rows, buffer.dtype)


def from_bits_of(rows: np.ndarray, dtype) -> hamr.Buffer:
    owner = np.ascontiguousarray(rows)
    return hamr.Buffer.from_pointer(owner.ctypes.data, len(owner), dtype, owner=owner)
