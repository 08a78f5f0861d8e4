"""Strides of dimensions of one element, along which no step is taken, by DLPack."""

import numpy as np
import pytest

import hamr
from tests.support.dlpack_structs import NEW_NUMPY
from tests.support.producers import interface_of

ROOM = np.arange(60, dtype="i4")


def laid_out(shape, strides):
    return np.ndarray(shape, "i4", ROOM, 0, [4 * s for s in strides])


@pytest.mark.skipif(not NEW_NUMPY, reason="NumPy before 2.1 exports read-only memory otherwise")
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((4, 1, 3), (3, 7, 1)), ((1, 5), (30, 2)), ((1,), (9,)), ((1, 1), (0, 3)), ((3, 1), (1, 0))],
)
def test_they_are_as_they_were(shape, strides):
    array = laid_out(shape, strides)
    # NumPy's own buffers have other strides than its arrays there.
    for b in (hamr.buffer(interface_of(array, strides=array.strides)), hamr.from_dlpack(array)):
        assert b.strides == array.strides
        back = np.from_dlpack(b)
        assert back.strides == array.strides
        assert np.array_equal(back, array)


@pytest.mark.parametrize(
    ("shape", "strides"), [((1, 3), (-12, 4)), ((2, 1), (4, -4)), ((1, 2), (7, 4))]
)
def test_those_that_consumers_would_refuse_are_of_c_order(shape, strides):
    """Backwards, at which torch fails, or no number of elements."""
    b = hamr.Buffer.from_pointer(ROOM.ctypes.data, shape, "i4", strides=strides, owner=ROOM)
    back = np.from_dlpack(b)
    assert np.array_equal(back, np.ndarray(shape, "i4", ROOM, 0, strides))
    assert back.strides == tuple(
        4 * int(np.prod(shape[i + 1 :])) if n == 1 else s
        for i, (n, s) in enumerate(zip(shape, strides, strict=True))
    )
