"""Comparison and arithmetic: never silently False, and refused with what to write instead."""

import collections
import decimal
import fractions
import operator
import unittest.mock
import weakref

import numpy as np
import pytest

import hamr
from hamr._base.element import item_of
from hamr._buffer import reading, refusals
from tests.support import producers

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
    operator.matmul, divmod,
]  # fmt: skip
UNARY = [operator.neg, operator.pos, operator.invert, abs]


@pytest.fixture(params=["buffer", "handle"])
def three(request):
    made = hamr.Buffer(3, "f4", data=[1, 2, 3])
    return made if request.param == "buffer" else made.get_host_accessible()


@pytest.mark.parametrize("compare", COMPARISONS)
def test_an_element_compares_as_the_number_it_is(compare):
    b = hamr.Buffer(3, "i2", data=[1, 2, 3])
    for other in (0, 2, 2.0, 2.5, True, np.int8(2), np.float64(3), hamr.Buffer((), fill=2), b[2]):
        number = other.item() if hasattr(other, "item") else other
        assert bool(compare(b[1], other)) is compare(2, number)
        assert bool(compare(other, b[1])) is compare(number, 2)
    assert type(b[1] == 2) is bool


def test_a_number_is_rounded_as_the_elements_are():
    """As NumPy 2 does with Python's numbers; 0.1 in float32 is not Python's 0.1."""
    for dtype in ("f2", "f4", "f8", "bfloat16", "c8", "c16"):
        b = hamr.Buffer(2, dtype, data=[0.1, 3])
        assert b[0] == 0.1
        assert not b[0] != 0.1  # noqa: SIM202
        assert 0.1 in b
        assert 3 in b
        assert 0.2 not in b
    assert hamr.Buffer((), "f4", fill=0.1) != np.float64(0.1)
    assert hamr.Buffer((), "f4", fill=1) != 1e300
    assert hamr.Buffer((), "i1", fill=1) != 300
    assert hamr.Buffer((), "c8", fill=1j) == 1j


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_ints_are_rounded_too(dtype):
    b = hamr.Buffer(2, dtype, fill=2**53 + 1)
    assert b[0] == 2**53 + 1
    assert 2**53 + 1 in b
    assert hamr.Buffer((), "i8", fill=2**53 + 1) != 2.0**53  # exactly


def test_elements_of_other_buffers_are_not_rounded():
    """Which is the left one does not matter."""
    small, large = hamr.Buffer((), "f4", fill=0.1), hamr.Buffer((), "f8", fill=0.1)
    assert small != large
    assert large != small
    assert small[()] == small
    assert np.float32(0.1) not in hamr.Buffer(2, "f2", fill=0.1)
    assert np.float32(0.1) in hamr.Buffer(2, "f4", fill=0.1)


HALVES = [
    fractions.Fraction(1, 2), decimal.Decimal("0.5"), np.float32(0.5), np.longdouble(0.5),
    *([np.dtype("bfloat16").type(0.5)] if producers.ADDED else []),
]  # fmt: skip


@pytest.mark.parametrize("half", HALVES, ids=lambda h: type(h).__name__)
def test_whatever_is_a_number_compares(half):
    b = hamr.Buffer(3, data=[0.5, 1, 2])
    assert b[0] == half
    assert half == b[0]
    assert b[1] != half
    assert b[1] > half
    assert half < b[1]
    assert half in b
    assert half not in b[1:]


@pytest.mark.parametrize(
    "other", [fractions.Fraction(1), decimal.Decimal(1), collections.deque([1, 2, 3])], ids=repr
)
def test_what_is_no_array_is_not_silently_unequal(three, other):
    for left, right in ((three, other), (other, three)):
        with pytest.raises(TypeError, match=r"numpy\.array_equal"):
            _ = left == right


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_numpys_numbers_compare_and_reckon_as_its_arrays_do(three, kind):
    """float64 is a Python float as well."""
    assert (three == kind(2)).tolist() == (kind(2) == three).tolist() == [False, True, False]
    assert (three + kind(2)).tolist() == (kind(2) + three).tolist() == [3, 4, 5]


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("other", [1, 1.0, True, [1, 2, 3], (1, 2, 3), range(3)], ids=repr)
def test_many_elements_say_what_to_write(three, compare, other):
    for left, right in ((three, other), (other, three)):
        with pytest.raises(TypeError, match=r"numpy\.asarray\(b\)"):
            compare(left, right)


def test_buffers_are_not_compared_by_identity(three):
    for other in (hamr.Buffer(3), three[:], three[1:], three[0]):
        with pytest.raises(TypeError, match=r"numpy\.array_equal"):
            _ = three == other
        with pytest.raises(TypeError, match=r"numpy\.array_equal"):
            _ = three != other


@pytest.mark.parametrize("compare", COMPARISONS)
def test_an_array_on_the_other_side_compares(three, compare):
    array = np.array([3, 2, 1], "f4")
    expected = compare(np.array([1, 2, 3]), array)
    np.testing.assert_array_equal(compare(three, array), expected)
    np.testing.assert_array_equal(compare(array, three), compare(array, np.array([1, 2, 3])))


def test_an_array_that_does_not_compare_is_refused():
    class Array:
        __array_interface__ = np.zeros(3).__array_interface__

    with pytest.raises(TypeError, match=r"numpy\.array_equal"):
        _ = hamr.Buffer(3) == Array()


def test_what_has_no_elements_is_not_equal(three):
    for other in (None, "abc", object(), int, {}, Ellipsis, NotImplemented):
        assert not three == other  # noqa: SIM201
        assert three != other
        assert other != three
    assert three == unittest.mock.ANY
    assert three[0] != "1"


def test_a_buffer_is_found_by_its_id(three):
    other = hamr.Buffer(3, fill=1)
    table = {id(three): 1, id(other): 2}
    assert (table[id(three)], table[id(other)]) == (1, 2)
    assert [other, three].index(other) == 0


def test_a_buffer_equals_itself(three):
    """Weak references compare what they refer to."""
    assert weakref.ref(three) == weakref.ref(three)
    assert three == three
    assert not three != three  # noqa: SIM202
    three.close()
    assert three == three
    nan = hamr.Buffer((), fill=float("nan"))
    assert nan != nan


def test_an_element_is_what_it_was_when_it_was_asked_for(monkeypatch):
    """Another thread may resize the buffer, or swap it, between two looks at it."""
    made = []

    def late(array):
        made[-1].resize(3)
        return item_of(array)

    for module in (reading, refusals):
        monkeypatch.setattr(module, "item_of", late)
    for read in (
        lambda b: b.item() == 7,
        lambda b: operator.index(b) == 7,
        lambda b: b == 7,
        lambda b: hamr.Buffer((), fill=7).get() == b,
    ):
        made.append(hamr.Buffer((), "i2", fill=7))
        assert read(made[-1])


def test_in(three):
    assert 3.0 in three
    assert 2 in three
    assert np.float64(3) in three
    assert 7 not in three
    assert three[0] in three
    square = hamr.Buffer((3, 4), "u1", data=np.arange(12).reshape(3, 4))
    assert 11 in square
    assert 12 not in square
    assert 10 in square[:, ::2]
    assert 11 not in square[:, ::2]
    assert 0 not in hamr.Buffer((3, 0))
    assert True in hamr.Buffer(2, "?", data=[False, True])
    for other in ([1], "1", None, np.zeros(3), three):
        with pytest.raises(TypeError, match=r"numpy\.asarray\(b\)"):
            _ = other in three


def test_a_closed_buffer_compares_with_nothing():
    b = hamr.Buffer(())
    b.close()
    with pytest.raises(hamr.FreedBuffer):
        _ = b == 1
    with pytest.raises(hamr.FreedBuffer):
        _ = 1 in b


def test_unittest():
    case = unittest.TestCase()
    b = hamr.Buffer(2, fill=1)
    case.assertEqual(b[0], 1)  # noqa: PT009
    case.assertIn(1, b)  # noqa: PT009
    with pytest.raises(AssertionError):
        case.assertEqual(b[0], 2)  # noqa: PT009
    with pytest.raises(TypeError, match="array_equal"):
        case.assertEqual(b, [1, 1])  # noqa: PT009


@pytest.mark.parametrize("operation", ARITHMETIC, ids=lambda o: o.__name__)
def test_arithmetic_says_what_to_write(three, operation):
    for left, right in ((three, 2), (2, three), (three, three), (three, [1, 2, 3])):
        with pytest.raises(TypeError, match=r"hamr does no arithmetic: .*numpy\.asarray\(b\)"):
            operation(left, right)


@pytest.mark.parametrize("operation", UNARY, ids=lambda o: o.__name__)
def test_signs_say_what_to_write(three, operation):
    with pytest.raises(TypeError, match=r"hamr does no arithmetic: .*numpy\.asarray\(b\)"):
        operation(three)


def test_arrays_reckon_with_buffers(three):
    array = np.array([10, 20, 30], "f4")
    assert (array + three).tolist() == (three + array).tolist() == [11, 22, 33]
    assert (three - array).tolist() == [-9, -18, -27]
    array += three
    assert array.tolist() == [11, 22, 33]


def test_a_name_is_not_turned_into_an_array():
    """b += array would make b an array, and leave the buffer as it was."""
    b = hamr.Buffer(3, fill=1)
    for other in (1, np.ones(3), b):
        with pytest.raises(TypeError, match=r"numpy\.asarray\(b\).*\+="):
            b += other
    assert b.get().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name", ["tolist", "tobytes", "tofile", "fromfile", "sum", "mean", "min", "max"]
)
def test_what_is_left_to_numpy_is_absent_and_says_so(three, name):
    assert not hasattr(three, name)
    with pytest.raises(AttributeError, match=rf"{name}.*numpy"):
        getattr(three, name)
