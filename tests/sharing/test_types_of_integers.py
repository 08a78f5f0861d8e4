"""Integers of eight bytes are NumPy's int64 and uint64 by whatever way they reach it.

NumPy has two types of that size: long, which Linux's int64 is, and longlong. They compare
equal, and what asks for the one by its number refuses the other.
"""

import pickle
from importlib import util

import numpy as np
import pytest

import hamr
from tests.support.producers import interface_of


def _pickled(b):
    return pickle.loads(pickle.dumps(b, protocol=5))


WAYS = {
    "asarray": np.asarray,
    "memoryview": lambda b: np.asarray(memoryview(b)),
    "handle": lambda b: np.asarray(b.get_host_accessible()),
    "handle's __array__": lambda b: b.get_host_accessible().__array__(),
    "view": lambda b: np.asarray(b[::-1]),
    "read-only view": lambda b: np.asarray(hamr.buffer(np.broadcast_to(b.get(), (2, 3)))),
    "interface": lambda b: np.asarray(interface_of(np.asarray(b), **b.__array_interface__)),
    "dlpack": np.from_dlpack,
    "get": lambda b: b.get(),
    "copy": lambda b: np.array(b),
    "pickle": lambda b: np.asarray(_pickled(b)),
    "pickle of a view": lambda b: np.asarray(_pickled(b[::2])),
    "dtype": lambda b: np.zeros(1, b.dtype),
    "shared": lambda b: np.asarray(hamr.open_shared(b.share())),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_elements_are_numpys_own_type(kind, way):
    found = way(hamr.array(np.arange(3, dtype=kind)))
    assert found.dtype.char == np.dtype(kind).char
    assert isinstance(found.ravel()[0], kind)


def test_elements_lent_for_writing_are_numpys_own_type():
    b = hamr.zeros(3, "u8")
    with b.on_host("rw") as array:
        assert array.dtype.char == np.dtype("u8").char
    with b.mirror() as array:
        assert array.dtype.char == np.dtype("u8").char


@pytest.mark.parametrize("code", "qlnQLN")
def test_every_code_of_eight_bytes_is_still_read(code):
    source = np.arange(3, dtype="u8" if code.isupper() else "i8")
    shared = hamr.buffer(memoryview(source).cast("B").cast(code))
    assert shared.dtype == source.dtype
    assert list(np.asarray(shared)) == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_numbers_of_eight_bytes_are_read_whole(dtype):
    assert hamr.array([2**40], dtype=dtype)[0].item() == 2**40


@pytest.mark.libraries
@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_torch_takes_them_from_numpy(dtype):
    import torch

    tensor = torch.from_numpy(np.asarray(hamr.array([1, 2, 3], dtype=dtype)))
    assert tensor.tolist() == [1, 2, 3]
