"""What reads a buffer's contents: get, copy, astype, item, views, str, print, pickle and copy."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as hnp

import hamr
from tests.support import producers
from tests.support.contents import on_host
from tests.support.producers import ALLOCATORS, DTYPES, assert_same, cast, in_memory


@given(producers.arrays())
def test_sharing_keeps_type_shape_strides_and_elements(array):
    buffer = hamr.buffer(array)
    assert_same(buffer, array)
    assert buffer.readonly == (not array.flags.writeable)
    assert buffer.ndim == array.ndim
    assert buffer.nbytes == array.nbytes
    assert buffer.itemsize == array.itemsize
    assert np.dtype(buffer.dtype) == array.dtype == np.dtype(buffer.typestr)
    assert buffer.is_contiguous == array.flags.c_contiguous
    assert buffer.is_fortran_contiguous == array.flags.f_contiguous
    if array.size:
        # Where there is one element, the distance to the next means nothing.
        long = [i for i, n in enumerate(array.shape) if n > 1]
        assert [buffer.strides[i] for i in long] == [array.strides[i] for i in long]
        assert buffer.ptr == array.__array_interface__["data"][0]


@given(producers.arrays(), producers.allocators)
def test_get_without_out_makes_an_array(array, allocator):
    got = in_memory(array, allocator).get()
    np.testing.assert_array_equal(got, array, strict=True)
    assert got.flags.owndata


@given(producers.arrays(tame=True), producers.dtypes, producers.layouts)
def test_get_converts_into_any_layout(array, dtype, layout):
    out = producers.LAYOUTS[layout](np.ones(array.shape, dtype))
    assert hamr.buffer(array).get(out) is out
    np.testing.assert_array_equal(out, cast(array, dtype), strict=True)


@given(producers.arrays(), st.data())
def test_get_of_a_part(array, data):
    start = data.draw(st.integers(0, array.size))
    n = data.draw(st.integers(0, array.size - start))
    at = data.draw(st.integers(0, 3))
    out = np.zeros(at + n + 2, array.dtype)
    hamr.buffer(array).get(out, at=at, start=start, n=n)
    expected = np.zeros_like(out)
    expected[at : at + n] = array.ravel()[start : start + n]
    np.testing.assert_array_equal(out, expected)


def test_get_into_another_shape_of_as_many_elements():
    out = np.zeros((3, 2))
    hamr.buffer(np.arange(6.0)).get(out)
    np.testing.assert_array_equal(out, [[0, 1], [2, 3], [4, 5]])


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_astype_follows_numpy(dtype, data):
    array = data.draw(producers.arrays(dtype))
    tame = data.draw(producers.arrays(dtype, tame=True))
    for target in DTYPES:
        # What NumPy makes of a number that an integer type cannot hold depends on the machine.
        source = tame if np.dtype(dtype).kind in "fc" and np.dtype(target).kind in "iu" else array
        converted = hamr.buffer(source).astype(target)
        assert_same(converted, cast(source, target))
        assert not converted.readonly
        assert converted.is_contiguous


@given(producers.arrays(), producers.allocators, producers.allocators)
def test_copy_has_memory_of_its_own(array, first, second):
    source = in_memory(array, first)
    copied = source.copy(second)
    assert copied.allocator == second
    assert source.copy().allocator == first
    assert copied.source_protocol is None
    assert_same(copied, array)
    if array.size:
        copied[...] = 1
        assert_same(source, array)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
@given(array=producers.arrays(), allocator=producers.allocators)
def test_copy_module(duplicate, array, allocator):
    source = in_memory(array, allocator)
    copied = duplicate(source)
    assert_same(copied, array)
    assert copied.allocator == allocator
    assert array.size == 0 or copied.ptr != source.ptr


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@given(array=producers.arrays(), allocator=producers.allocators)
def test_pickle(protocol, array, allocator):
    loaded = pickle.loads(pickle.dumps(in_memory(array, allocator), protocol))
    assert type(loaded) is hamr.Buffer
    assert_same(loaded, array)
    assert loaded.allocator == allocator
    assert not loaded.readonly


def test_pickle_of_a_shared_read_only_view_is_a_buffer_of_its_own():
    array = np.arange(3, dtype="i2")
    array.setflags(write=False)
    loaded = pickle.loads(pickle.dumps(hamr.buffer(array)))
    assert_same(loaded, array)
    loaded[0] = 7
    assert array.tolist() == [0, 1, 2]


def test_pickle_of_a_broadcast_array_repeats_elements_of_its_own():
    source = np.arange(3, dtype="i2")
    array = np.broadcast_to(source, (4, 3))
    loaded = pickle.loads(pickle.dumps(hamr.buffer(array)))
    source[0] = 7
    assert loaded.strides == (0, 2)
    assert np.asarray(loaded).tolist() == [[0, 1, 2]] * 4
    with pytest.raises(ValueError, match="read-only"):
        loaded[0, 0] = 7
    copied = loaded.copy()
    copied[0, 0] = 7
    assert np.asarray(copied).tolist() == [[7, 1, 2], *[[0, 1, 2]] * 3]


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_item_is_numpys(dtype, data):
    array = data.draw(producers.arrays(dtype, shape=(1, 1)))
    item = hamr.buffer(array).item()
    assert type(item) is type(array.item())
    np.testing.assert_equal(item, array.item())


@given(producers.arrays(), st.data())
def test_basic_indexing_is_numpys(array, data):
    key = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
    view = hamr.buffer(array)[key]
    expected = array[key]
    assert_same(view, np.asarray(expected))
    if array.size and view.size():
        assert np.shares_memory(on_host(view), array) is isinstance(expected, np.ndarray)


@given(producers.arrays(broadcast=False), st.data())
def test_views_of_views_see_writes(array, data):
    assume(array.ndim)
    expected = array.copy()
    buffer = hamr.buffer(array)
    first = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
    second = data.draw(hnp.basic_indices(expected[first].shape))
    assume(isinstance(expected[first], np.ndarray))
    buffer[first][second] = 1
    expected[first][second] = 1
    assert_same(buffer, expected)
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("step", [2**62, -(2**62), 2**64, 3, -3])
def test_steps_longer_than_the_array(step):
    array = np.arange(3)
    view = hamr.buffer(array)[::step]
    assert view.get().tolist() == array.tolist()[::step]
    again = view[::step][::step][:0][::step][::step]
    assert (again.shape, again.strides) == ((0,), (8,))


def test_iteration_gives_views():
    array = np.arange(6).reshape(3, 2)
    rows = list(hamr.buffer(array))
    assert [row.get().tolist() for row in rows] == array.tolist()
    rows[1][...] = 9
    assert array[1].tolist() == [9, 9]
    assert sum(int(x) for row in rows for x in row) == array.sum()


@given(producers.arrays(), producers.allocators)
def test_str_lists_the_elements_eight_a_line(array, allocator):
    assert str(in_memory(array, allocator)) == producers.text_of(array)
    assert str(hamr.buffer(array)) == producers.text_of(array)


def test_str_as_upstream_writes_it():
    assert str(hamr.buffer(np.arange(10.0))) == "{0, 1, 2, 3, 4, 5, 6, 7, \n8, 9}"
    assert str(hamr.Buffer(0)) == "{}"
    assert str(hamr.buffer(np.array([True, False]))) == "{True, False}"
    assert str(hamr.buffer(np.array([0.1, 1e20, np.nan]))) == "{0.1, 1e+20, nan}"
    assert str(hamr.buffer(np.array([1 + 2j]))) == "{(1+2j)}"


def test_str_of_many_elements_is_short():
    assert str(hamr.buffer(np.arange(1001))) == "{0, 1, 2, ..., 998, 999, 1000}"
    assert "..." not in str(hamr.buffer(np.arange(1000)))


def test_print_tells_place_and_all_elements(capsys, allocator):
    buffer = hamr.Buffer(1500, "int32", allocator, fill=7)
    buffer.print()
    printed = capsys.readouterr().out
    place = f"allocator={allocator.name}, owner=-1, size=1500, capacity=1500"
    assert printed.startswith(f"{{{place}, data={buffer.ptr:#x}}} {{7, 7,")
    assert printed.count("7, ") + 1 >= 1500
    assert "..." not in printed


def test_repr_shows_values_as_numpys_does(allocator):
    buffer = hamr.Buffer((2, 3), "float32", allocator, fill=1.5)
    indent = " " * len("hamr.Buffer(")
    assert repr(buffer) == (
        f"hamr.Buffer([[1.5, 1.5, 1.5],\n{indent} [1.5, 1.5, 1.5]], float32, {allocator.name})"
    )
    assert repr(buffer[0, 0]) == f"hamr.Buffer(1.5, float32, {allocator.name})"
    assert repr(hamr.zeros(0)) == "hamr.Buffer([], float64, malloc)"
    assert repr(hamr.array([True, False])) == "hamr.Buffer([ True, False], bool, malloc)"
    many = repr(hamr.zeros(1001, "i4"))
    assert many == "hamr.Buffer([0, 0, 0, ..., 0, 0, 0], shape=(1001,), int32, malloc)"
    buffer.close()
    assert repr(buffer) == "<hamr.Buffer closed>"
    assert str(buffer) == "<closed>"


@pytest.mark.parametrize(
    ("array", "convert", "expected"),
    [
        (np.array([2.5]), float, 2.5),
        (np.array([2.5]), int, 2),
        (np.array(7, "u8"), int, 7),
        (np.array([1 + 2j]), complex, 1 + 2j),
        (np.array([[3]]), complex, 3 + 0j),
        (np.array([0.0]), bool, False),
        (np.array([2]), bool, True),
        (np.array(3, "i1"), lambda b: [10, 11, 12, 13][b], 13),
    ],
)
def test_one_element_converts_to_python_numbers(array, convert, expected):
    converted = convert(hamr.buffer(array))
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize("array", [np.zeros(0), np.zeros(2), np.zeros((2, 2))])
@pytest.mark.parametrize("convert", [float, int, complex, bool, hamr.Buffer.item])
def test_no_or_many_elements_convert_to_no_python_number(array, convert):
    with pytest.raises(ValueError, match=str(array.size)):
        convert(hamr.buffer(array))


@pytest.mark.parametrize("array", [np.array(1.0), np.array(True), np.array([1]), np.array([1, 2])])
def test_only_one_integer_without_dimensions_is_an_index(array):
    with pytest.raises(TypeError, match="index"):
        [1, 2][hamr.buffer(array)]


def test_len_is_the_first_dimension():
    assert len(hamr.Buffer((4, 5))) == 4
    assert len(hamr.Buffer(0)) == 0
    with pytest.raises(TypeError, match="dimensions"):
        len(hamr.Buffer(()))


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=str)
def test_constructor_fills_or_copies(dtype, allocator):
    filled = hamr.Buffer((2, 3), dtype, allocator, fill=1)
    assert_same(filled, np.ones((2, 3), dtype))
    assert filled.allocator is allocator
    data = np.arange(6).reshape(2, 3)
    assert_same(hamr.Buffer((2, 3), dtype, allocator, data=data), data.astype(dtype))
    assert_same(hamr.Buffer((2, 3), dtype, allocator, data=[0, 1, 2]), cast([[0, 1, 2]] * 2, dtype))
    assert hamr.Buffer((2, 3), dtype, allocator).shape == (2, 3)
