"""Changes of size write nothing that another array of the same memory has."""

import numpy as np
import pytest

import hamr

BEFORE = [0, 1, 2, 3, 4]


def shrink_and_append(buffer):
    buffer.resize(2)
    buffer.append([8, 9])
    return [0, 1, 8, 9]


def shrink_and_grow(buffer):
    buffer.resize(1)
    buffer.resize(4, 7)
    return [0, 7, 7, 7]


def assign_fewer(buffer):
    buffer.assign([8, 9])
    return [8, 9]


def assign_more(buffer):
    buffer.assign(np.arange(7) + 10)
    return list(range(10, 17))


def grow(buffer):
    buffer.append(np.arange(20))
    return [0, 1, 2, 3, 4, *range(20)]


CHANGES = [shrink_and_append, shrink_and_grow, assign_fewer, assign_more, grow]


def with_room():
    buffer = hamr.buffer(np.arange(5)).copy()
    buffer.reserve(30)
    return buffer


MAKERS = {
    "own": lambda: hamr.buffer(np.arange(5)).copy(),
    "with room": with_room,
    "adopted": lambda: hamr.buffer(np.arange(5)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("change", CHANGES)
def test_sharers_have_their_elements(change, make):
    buffer = make()
    sharers = [
        np.asarray(buffer),
        buffer[:],
        hamr.buffer(buffer),
        memoryview(buffer),
        np.from_dlpack(buffer),
    ]
    after = change(buffer)
    for sharer in sharers:
        assert np.asarray(sharer).tolist() == BEFORE
    assert np.asarray(buffer).tolist() == after


def test_two_that_grow_do_not_meet():
    """One of the arrays of a memory has the room behind it."""
    one = with_room()
    other = hamr.buffer(one)
    one.append([7])
    other.append([8])
    assert (one[5].item(), other[5].item()) == (7, 8)


def test_what_nobody_shares_stays_where_it_is():
    buffer = hamr.buffer(np.arange(5)).copy()
    at = buffer.ptr
    buffer.resize(2)
    buffer.append([8, 9])
    buffer.assign([1, 2, 3])
    assert buffer.ptr == at
    assert buffer.capacity() == 5


def test_as_many_elements_are_written_in_place():
    buffer = hamr.buffer(np.arange(5)).copy()
    array = np.asarray(buffer)
    buffer.assign([5, 4, 3, 2, 1])
    assert array.tolist() == [5, 4, 3, 2, 1]
