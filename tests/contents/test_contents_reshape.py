"""Buffer.reshape: when it is a view, when a copy, and that it holds what NumPy's holds."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hamr
from tests.support import producers
from tests.support.producers import in_memory


@st.composite
def reshaped(draw, array):
    """A shape of as many elements as the array's, perhaps with -1."""
    left, shape = array.size, []
    while left > 1 and len(shape) < 4:
        n = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        shape.append(n)
        left //= n
    shape.append(left)
    if array.size and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    return tuple(shape)


@given(producers.arrays(), st.data())
def test_what_is_a_view_to_numpy_is_one(array, data):
    shape = data.draw(reshaped(array))
    expected = array.reshape(shape)
    buffer = hamr.buffer(array)
    made = buffer.reshape(shape)
    assert made.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(made), expected, strict=True)
    if not array.size:
        return
    view = np.shares_memory(array, expected)
    assert (made.ptr == buffer.ptr) == view
    assert made.source_protocol == (buffer.source_protocol if view else None)
    assert made.readonly == (view and buffer.readonly)
    if view:
        assert buffer.reshape(*shape, copy=False).ptr == buffer.ptr
    else:
        with pytest.raises(ValueError, match="copy is False: accepted is True or None"):
            buffer.reshape(shape, copy=False)
    copied = buffer.reshape(shape, copy=True)
    assert copied.ptr != buffer.ptr
    assert copied.is_contiguous
    np.testing.assert_array_equal(np.asarray(copied), expected, strict=True)


@given(producers.arrays(), producers.allocators, st.data())
def test_memory_of_each_allocator(array, allocator, data):
    shape = data.draw(reshaped(array))
    buffer = in_memory(array, allocator)
    for copy in (None, True):
        made = buffer.reshape(shape, copy=copy)
        assert made.allocator == buffer.allocator
        np.testing.assert_array_equal(made.get(), array.reshape(shape), strict=True)


def test_a_view_writes_through_and_keeps_the_memory():
    buffer = hamr.Buffer(6, "int32", fill=1)
    view = buffer.reshape(2, -1)
    view[1] = 5
    assert buffer.get().tolist() == [1, 1, 1, 5, 5, 5]
    buffer.free()
    assert view.get().tolist() == [[1, 1, 1], [5, 5, 5]]


def test_growing_a_view_leaves_its_source():
    buffer = hamr.Buffer(4, "int8", fill=1)
    view = buffer.reshape(4)
    view.append(2)
    buffer.append(3)
    assert (view.get().tolist(), buffer.get().tolist()) == ([1, 1, 1, 1, 2], [1, 1, 1, 1, 3])


def test_no_dimensions_and_no_elements():
    assert hamr.Buffer(1, fill=2).reshape(()).item() == 2
    assert hamr.Buffer((1, 1), fill=2).reshape().shape == ()
    assert hamr.Buffer((0, 3)).reshape(7, 0).shape == (7, 0)
    assert hamr.Buffer((0, 3)).reshape(-1, 5).shape == (0, 5)
    empty = hamr.Buffer(3)
    empty.free()
    assert empty.reshape(2, 0).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_types_without_a_format(dtype):
    buffer = hamr.Buffer(4, dtype, data=[1, 2, 3, 4])
    assert buffer.reshape(2, 2).astype("f4").get().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("shape", "error", "words"),
    [
        ((4,), ValueError, r"shape \(4,\): has 4 elements, the array of shape \(3, 2\) has 6"),
        ((), ValueError, r"shape \(\): has 1 elements"),
        ((-1, 4), ValueError, r"no size in place of -1 makes it the 6 elements of shape \(3, 2\)"),
        ((-1, -1), ValueError, "only one size can be -1"),
        ((-2, -3), ValueError, "negative"),
        ((0, -1), ValueError, "no size in place of -1"),
        ((2**62, 2**62), ValueError, "too large"),
        ((2**70,), ValueError, "63 bits"),
        ((1.0, 6), TypeError, "shape is 1.0: accepted is an int"),
        (("6",), TypeError, "shape is '6'"),
        (([6], 1), TypeError, r"shape is \[6\]"),
        ((1,) * 65, ValueError, "at most 64"),
    ],
)
def test_refusals_leave_the_buffer(shape, error, words):
    buffer = hamr.Buffer((3, 2), fill=1)
    for copy in (None, True, False):
        with pytest.raises(error, match=words):
            buffer.reshape(*shape, copy=copy)
    assert buffer.shape == (3, 2)


@pytest.mark.parametrize("copy", [0, 1, "never", 2.0])
def test_copy_is_true_false_or_none(copy):
    with pytest.raises(TypeError, match=r"copy is .*: accepted are True, False and None"):
        hamr.Buffer(4).reshape(2, 2, copy=copy)


def test_a_loop_of_reshapes_leaks_nothing():
    buffer = hamr.buffer(np.arange(24.0).reshape(4, 6).T)
    buffer.copy()  # the core knows the memory from its first use on
    before = hamr.stats()
    for _ in range(1000):
        assert math.prod(buffer.reshape(8, 3).shape) == 24
        assert buffer.reshape(3, 2, 4, copy=False).ptr == buffer.ptr
    after = hamr.stats()
    assert after["references"] == before["references"]
    assert after["allocators"]["malloc"]["live"] == before["allocators"]["malloc"]["live"]
