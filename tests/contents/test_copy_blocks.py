"""copy_blocks on the host: as NumPy's assignments by lists of indices, and what it refuses."""

import random

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view as sliding

import hamr
from tests.support.processes import scaled
from tests.support.random_blocks import Blocks


def on_host(choose, values):
    if choose.random() < 0.3:
        return hamr.buffer(values.copy())
    return hamr.Buffer(
        values.shape, values.dtype, choose.choice(("malloc", "cpp")), data=values.copy()
    )


def test_it_is_numpys_assignment():
    for seed in range(scaled(1000, 40)):
        blocks = Blocks(random.Random(seed), on_host)
        for _ in range(10):
            blocks.step()
        blocks.check()


def test_what_it_takes():
    table, pages = np.zeros((6, 2)), np.arange(8, dtype="i4").reshape(4, 2)
    assert hamr.copy_blocks(table, [5, 0], pages, (1, -1)) is None
    assert table[[5, 0]].tolist() == [[2, 3], [6, 7]]
    hamr.copy_blocks(table, range(4), hamr.buffer(pages), np.array([3, 2, 1, 0], "u2"))
    assert table[:4].tolist() == pages[::-1].tolist()
    hamr.copy_blocks(table, [], pages, [])
    hamr.copy_blocks([], [], [], [])
    hamr.copy_blocks([], [7], [], [7])
    hamr.copy_blocks(np.zeros((3, 0)), [2], np.zeros((2, 0)), [1])


class Whole(int):
    """An int by its type's base alone."""


@pytest.mark.parametrize("kind", [int, Whole, np.int8, np.uint64])
def test_lists_are_of_any_integers(kind):
    table, pages = np.zeros((6, 2)), np.arange(8, dtype="i4").reshape(4, 2)
    hamr.copy_blocks(table, [0, kind(5)], pages, (kind(2), 3))
    assert table[[0, 5]].tolist() == [[4, 5], [6, 7]]


@pytest.mark.parametrize("numbers", [(), (0, -1, 7), (2**63 - 1, -(2**63))])
def test_plain_integers_become_those_of_an_array(numbers):
    assert hamr._native.integers(numbers) == np.array(numbers, "i8").tobytes()


@pytest.mark.parametrize(
    "other", [2**63, -(2**63) - 1, 2**200, True, 1.0, None, Whole(1), np.int64(1)]
)
def test_other_numbers_are_left_to_python(other):
    assert hamr._native.integers((1, other, 2)) is None


def test_lists_share_the_indices():
    keys, values = hamr.Buffer((4, 2), fill=0), hamr.Buffer((7, 3), "f4", fill=0)
    hamr.copy_blocks(
        [keys, values], [3, 1], (np.ones((2, 2)), np.full((3, 3), 2)), hamr.array([0, 1])
    )
    assert keys.get()[[1, 3]].tolist() == [[1, 1]] * 2
    assert values.get()[[1, 3]].tolist() == [[2] * 3] * 2
    hamr.copy_blocks([keys, values], [-1], [keys, values], [0])
    assert keys.get()[3].tolist() == [0, 0]
    assert values.get()[6].tolist() == [0, 0, 0]


def test_the_last_of_a_block_wins():
    b = hamr.Buffer(4, fill=0)
    hamr.copy_blocks(b, [0, 1, 0, -4], np.arange(5.0), [1, 2, 3, 4])
    assert b.get().tolist() == [4, 2, 0, 0]


def test_all_is_read_before_it_is_written():
    b = hamr.Buffer(4, data=[0, 1, 2, 3])
    hamr.copy_blocks(b, [0, 1, 2, 3], b, [1, 2, 3, 0])
    assert b.get().tolist() == [1, 2, 3, 0]
    hamr.copy_blocks([b[:3], b[1:]], [0, 1], [b[1:], b[:3]], [0, 1])
    assert b.get().tolist() == [2, 2, 3, 0], "one after the other"


def test_all_is_read_before_blocks_that_overlap_each_other_are_written():
    found, want = np.arange(10), np.arange(10)
    for array in (found, want):
        to, of = (sliding(a, 3, writeable=True) for a in (array, array[2:]))
        if array is found:
            hamr.copy_blocks(to, [0, 1, 2, 3], of, [0, 3, 1, 2])
        else:
            to[[0, 1, 2, 3]] = of[[0, 3, 1, 2]]
    assert found.tolist() == want.tolist()


def test_blocks_are_broadcast():
    b = hamr.Buffer((3, 2, 2), fill=0)
    hamr.copy_blocks(b, [2], np.array([[[1.0, 2.0]]]), [0])
    assert b.get()[2].tolist() == [[1, 2], [1, 2]]


class Number:
    def __index__(self):
        return 2**70


def closed():
    b = hamr.Buffer((2, 2))
    b.close()
    return b


READ_ONLY = np.zeros((2, 2))
READ_ONLY.flags.writeable = False
X = np.ones((2, 2))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (lambda b: (b, [0], X, [0, 1]), ValueError, "source_index is 2 indices: accepted is one"),
        (lambda b: (b, [0, 2], X, [0, 1]), IndexError, r"destination_index\[1\] is 2: .* -2 … 1"),
        (lambda b: (b, [0, 1], X, [-3, 1]), IndexError, r"source_index\[0\] is -3: .* -2 … 1"),
        (lambda b: (b, [2**70], X, [1]), IndexError, r"destination_index\[0\] is 1180591620717"),
        (lambda b: (b, [0], X, [2**63 - 1]), IndexError, r"source_index\[0\] is 92233720368547"),
        (lambda b: (b, [-(2**63)], X, [1]), IndexError, r"destination_index\[0\] is -92233720368"),
        (lambda b: (b, [0, False], X, [1, 0]), TypeError, "destination_index has booleans: accept"),
        (
            lambda b: (b, [0, Number()], X, [1, 1]),
            IndexError,
            r"destination_index\[1\] is 11805916",
        ),
        (lambda b: (b, [1.0], X, [1]), TypeError, r"destination_index is \[1.0\]: accepted is a l"),
        (lambda b: (b, [True], X, [1]), TypeError, "destination_index has booleans: accepted is"),
        (lambda b: (b, np.ones(2), X, [1]), TypeError, "destination_index is of type float64: ac"),
        (lambda b: (b, [0, 1], X, X > 2), TypeError, "source_index is of type bool: accepted is"),
        (
            lambda b: (b, np.ones((1, 1), int), X, [1]),
            ValueError,
            r"index is of shape \[1 1\]: acc",
        ),
        (
            lambda b: (b, "01", X, [0, 1]),
            TypeError,
            "destination_index is '01': accepted is a list",
        ),
        (lambda b: (b, None, X, [0, 1]), TypeError, "destination_index is None: "),
        (lambda b: (b, [0], X, 0), TypeError, "source_index is 0: "),
        (
            lambda b: (b, [0], [X], [0]),
            TypeError,
            r"accepted are two arrays, or two lists of arrays",
        ),
        (
            lambda b: ([b, b], [0], [X], [0]),
            ValueError,
            "destination has 2 arrays and source 1: acc",
        ),
        (lambda b: (b, [0], np.ones((2, 3)), [0]), ValueError, r"blocks of shape \[3\]: .* \[2\]"),
        (lambda b: (b, [0], np.ones(2), [0]), ValueError, r"blocks of shape \[\]: .* \[2\]"),
        (
            lambda b: (b[0, 0, ...], [0], X, [0]),
            ValueError,
            "of no dimensions: accepted is one of b",
        ),
        (lambda b: (READ_ONLY, [0], X, [0]), ValueError, "read-only"),
        (lambda b: ([b, READ_ONLY], [0], [X, X], [0]), ValueError, r"destinations\[1\].*read-only"),
        (lambda b: (closed(), [0], X, [0]), hamr.FreedBuffer, "destination was closed"),
        (lambda b: (b, [0], closed(), [0]), hamr.FreedBuffer, "source was closed"),
        (lambda b: (b, closed(), X, [0]), hamr.FreedBuffer, "destination_index was closed"),
        (
            lambda b: ([b, closed()], [0], [X, X], [0]),
            hamr.FreedBuffer,
            r"destination\[1\] was clo",
        ),
        (lambda b: (b, [0], "x", [0]), TypeError, "^source is 'x': "),
        (lambda b: (b, [0], 7, [0]), TypeError, "^source is 7: "),
        (
            lambda b: (b, [0], np.ones((0, 2)), [0]),
            IndexError,
            r"source_index\[0\] is 0: accepted is n",
        ),
    ],
)
def test_what_it_refuses(arguments, error, says):
    b = hamr.Buffer((2, 2), "f8", fill=4)
    with pytest.raises(error, match=says):
        hamr.copy_blocks(*arguments(b))
    assert b.get().tolist() == [[4, 4]] * 2, "nothing was copied"


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"transfer": "later"}, ValueError),
        ({"transfer": 1.5}, TypeError),
        ({"stream": "s"}, TypeError),
    ],
)
def test_keywords_that_are_wrong(keywords, error):
    out = np.zeros(2)
    with pytest.raises(error):
        hamr.copy_blocks(out, [0], np.ones(2), [0], **keywords)
    assert out.tolist() == [0, 0]


def test_elements_that_are_in_use():
    b = hamr.Buffer(2, fill=1)
    with b.on_host("rw"), pytest.raises(hamr.InUse):
        hamr.copy_blocks(b, [0], np.zeros(2), [0])
    assert b.get().tolist() == [1, 1]


def test_many_blocks_of_several_sizes():
    """More than one thread's."""
    choose = np.random.default_rng(3)
    for size in (1, 7, 512, 1 << 14, 1 << 18):
        pool = choose.integers(0, 255, (64, size), "u1")
        to, given = choose.permutation(64)[:40], choose.integers(0, 64, 40)
        out, want = np.zeros_like(pool), np.zeros_like(pool)
        hamr.copy_blocks(out, to, pool, given)
        want[to] = pool[given]
        assert np.array_equal(out, want)
