"""Single elements are values, as NumPy's: of memory of their own, where the buffer's are."""

import collections
import copy
import gc
import pickle
import random
import weakref

import numpy as np
import pytest

import hamr
from tests.support import random_elements
from tests.support.processes import scaled
from tests.support.producers import DTYPES, cast

HOST = ["malloc", "cpp", "shared", "numpy"]
ELEMENT_TYPES = [*DTYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def made_in(place, values, dtype="f8"):
    if place == "numpy":
        return hamr.buffer(np.array(values, dtype))
    return hamr.Buffer(np.shape(values), dtype, place, data=np.array(values, dtype))


@pytest.fixture(params=HOST)
def four(request):
    return made_in(request.param, [4, 1, 3, 2])


def test_a_swap_keeps_both_elements(four):
    four[0], four[1] = four[1], four[0]
    assert np.asarray(four).tolist() == [1, 4, 3, 2]


def test_a_swap_in_two_dimensions():
    b = hamr.array([[1, 2], [3, 4]])
    b[0, 0], b[1, 1] = b[1, 1], b[0, 0]
    assert np.asarray(b).tolist() == [[4, 2], [3, 1]]


def test_a_shuffle_loses_no_element():
    b = hamr.array(range(100))
    random.Random(1).shuffle(b)
    assert sorted(b.get().tolist()) == list(range(100))
    assert b.get().tolist() != list(range(100))


def test_an_element_that_is_kept_stays_what_it_was(four):
    highest, listed = max(four), list(four)
    four.fill(0)
    assert highest == 4
    assert [x.item() for x in listed] == [4, 1, 3, 2]


@pytest.mark.parametrize("form", ["buffer", "handle", "view"])
def test_what_an_element_is(four, form):
    source = {"buffer": four, "handle": four.get_host_accessible(), "view": four[...]}[form]
    element = source[2]
    assert type(element) is hamr.Buffer
    assert (element.shape, element.strides, element.size()) == ((), (), 1)
    assert (element.dtype, element.device) == (four.dtype, four.device)
    assert not np.shares_memory(np.asarray(element), np.asarray(four))
    assert element.source_protocol is None
    assert element.item() == 3


def test_elements_of_shared_memory_are_ordinary():
    """A descriptor each of them would soon be too many."""
    b = hamr.zeros(5000, allocator="shared")
    assert {x.allocator.name for x in list(b)} == {"malloc"}


def test_an_element_outlives_its_buffer(four):
    element, gone = four[1], weakref.ref(four)
    four.close()
    del four
    gc.collect()
    assert element.item() == 1
    assert gone is not None


KEYS = {
    "int": (3, lambda a: a[1]),
    "negative": (3, lambda a: a[-1]),
    "numpy": (3, lambda a: a[np.int8(1)]),
    "tuple": ((2, 3), lambda a: a[1, -1]),
    "tuple of numpy": ((2, 3), lambda a: a[np.uint8(1), 2]),
    "tuple of one": (3, lambda a: a[(1,)]),
    "three": ((2, 3, 2), lambda a: a[1, 2, 0]),
    "none": ((), lambda a: a[()]),
}


@pytest.mark.parametrize("name", KEYS)
def test_one_integer_for_each_dimension_is_the_value(name):
    shape, take = KEYS[name]
    array = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
    b = hamr.buffer(array.copy())
    element = take(b)
    assert element.shape == ()
    assert element.item() == take(array)
    b.fill(-1)
    assert element.item() == take(array)


VIEWS = {
    "element": (3, lambda a: a[1, ...]),
    "element in front": (3, lambda a: a[..., 1]),
    "of two": ((2, 3), lambda a: a[1, 2, ...]),
    "row": ((2, 3), lambda a: a[1]),
    "slice": (3, lambda a: a[1:2]),
    "None": (3, lambda a: a[1, None]),
    "whole": ((), lambda a: a[...]),
    "dimensions of others": ((2, 3), lambda a: a[()]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_all_else_is_the_view(name):
    shape, take = VIEWS[name]
    array = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
    b = hamr.buffer(array.copy())
    view = take(b)
    assert view.shape == take(array).shape
    view[...] = -1
    take(array)[...] = -1
    assert np.array_equal(np.asarray(b), array)


def test_iteration_gives_values_of_one_dimension_and_views_of_more():
    one, two = hamr.array([1, 2, 3]), hamr.array([[1, 2], [3, 4]])
    for x in (*one, *one.get_host_accessible()):
        assert x.readonly
    for row in two:
        row[...] = 0
    assert not np.asarray(two).any()


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_elements_of_every_type(dtype):
    array = cast(np.array([1, 0, 1]), dtype)
    b = hamr.buffer(array)
    assert [x.item() for x in b] == [1, 0, 1]
    assert [bool(x) for x in b] == [True, False, True]
    assert np.asarray(b[0]).dtype == array.dtype
    b[1] = b[0]
    assert b[1] == 1
    b[0], b[2] = 0, b[1]
    assert array.astype("f4" if array.dtype.kind != "c" else "c8").tolist() == [0, 1, 1]


def test_conversions():
    b = hamr.array([7, 0])
    assert (int(b[0]), float(b[0]), complex(b[0])) == (7, 7, 7)
    assert (f"{b[0]}", f"{b[0]:03d}") == ("7", "007")
    assert ([10, 20][b[1]], bool(b[0]), bool(b[1])) == (10, True, False)
    assert b[0] > 3 > b[1]
    assert np.float64(2) * np.asarray(b[0]) == 14
    assert np.add(b[0], 1) == 8
    assert np.arange(9)[b[0]] == 7


def test_elements_are_taken_as_values():
    b, other = hamr.array([1.5, 2.5]), hamr.zeros(2, "i4")
    other[0] = b[1]
    other.set(b[1], at=1)
    other.append(b[0])
    assert other.get().tolist() == [2, 2, 1]
    assert hamr.Buffer(2, "f4", fill=b[0]).get().tolist() == [1.5, 1.5]
    assert hamr.full(2, b[0]).get().tolist() == [1.5, 1.5]
    assert hamr.zeros(2)[b.astype("i4")[0]] == 0


WRITES = {
    "b[i][...] = x": lambda e: e.__setitem__(..., 1),
    "b[i].fill(x)": lambda e: e.fill(1),
    "b[i].set(x)": lambda e: e.set(1),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_a_value_is_an_error(four, name):
    """It would be lost."""
    with pytest.raises(ValueError, match=r"b\[i\] = x"):
        WRITES[name](four[0])
    assert four[0] == 4
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(four[0])[...] = 1


def test_what_arithmetic_in_place_says():
    b = hamr.array([1, 2])
    with pytest.raises(TypeError, match=r"b\[i\] = b\[i\]\.item\(\) \+ x"):
        b[0] += 1
    with pytest.raises(TypeError, match=r"b\[\.\.\.\] = b\.item\(\) \+ x"):
        b[0, ...] += 1
    assert b.get().tolist() == [1, 2]


COPIES = {
    "copy()": lambda e: e.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle 2": lambda e: pickle.loads(pickle.dumps(e, 2)),
    "array": hamr.array,
    "astype": lambda e: e.astype("f4"),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_an_element_may_be_written(four, name):
    made = COPIES[name](four[0])
    made[...] = 9
    assert made == 9
    assert four[0] == 4


def test_an_element_may_become_something_else(four):
    element = four[0]
    element.resize(3, 0)
    element[1] = 5
    assert element.get().tolist() == [4, 5, 0]


def test_legacy_dlpack_takes_an_element(four):
    """Consumers of before version 1 know no read-only elements; these are nobody else's."""
    assert hamr.from_dlpack(four[2].__dlpack__()).item() == 3
    assert np.from_dlpack(four[2]).item() == 3


class Named(hamr.Buffer):
    """A subclass with an attribute."""


def test_elements_of_a_subclass():
    b = Named(3, fill=1)
    b.name = "b"
    assert type(b[0]) is Named
    assert b[0].name == "b"


UNHASHABLE = {
    "buffer": lambda: hamr.zeros(2),
    "element": lambda: hamr.zeros(2)[0],
    "number": lambda: hamr.zeros(()),
    "handle": lambda: hamr.zeros(2).get_host_accessible(),
    "subclass": lambda: Named(2),
}


@pytest.mark.parametrize("name", UNHASHABLE)
def test_what_compares_by_value_has_no_hash(name):
    made = UNHASHABLE[name]()
    for use in (hash, lambda x: {1: 0}.get(x), lambda x: {x}, lambda x: collections.Counter([x])):
        with pytest.raises(TypeError, match="unhashable"):
            use(made)
    assert not isinstance(made, collections.abc.Hashable)


def test_what_does_not_compare_by_value_has_a_hash():
    """Equal ones hash alike."""
    from hamr import pygpu

    pairs = [
        (hamr.Stream(1), hamr.Stream(1)),
        (hamr.Transfer.sync, hamr.Transfer(2)),
        (hamr.Allocator.cuda, hamr.Allocator(2)),
        (pygpu.DeviceArray_float64(3),) * 2,
    ]
    for a, b in pairs:
        assert a == b
        assert hash(a) == hash(b)


@pytest.mark.parametrize("bad", [4, -5, (0, 0), "a", 1.0, True, [0], (1.0,)])
def test_bad_positions(four, bad):
    with pytest.raises((IndexError, TypeError), match="ind"):
        four[bad]


def test_an_element_of_a_closed_buffer(four):
    four.close()
    with pytest.raises(hamr.FreedBuffer):
        four[0]


@pytest.mark.parametrize("place", ["malloc", "cpp", "shared"])
def test_programs_of_elements_at_random(place):
    for seed in range(scaled(150)):
        random_elements.walk(seed, place)
