"""Buffers that keep temporaries, where there is no device: what a program may write everywhere."""

import copy
import pickle

import numpy as np
import pytest

import hamr


def test_what_the_host_reaches_is_never_a_temporary():
    buffer = hamr.Buffer(4, "f4", fill=1)
    assert buffer.is_cached is False
    assert buffer.cached() is buffer
    assert buffer.is_cached is True
    handle = buffer.get_host_accessible()
    assert (handle.is_temporary, handle.readonly, handle.ptr) == (False, False, buffer.ptr)
    np.asarray(handle)[0] = 5
    assert buffer.changed() is None
    assert str(buffer) == "{5, 1, 1, 1}"
    with buffer.on_host("rw") as array:
        array[1] = 6
    assert str(buffer) == "{5, 6, 1, 1}"
    assert buffer.cached(False) is buffer
    assert not buffer.is_cached


def test_what_is_made_from_a_buffer_does_not_keep():
    buffer = hamr.Buffer((2, 2), fill=1).cached()
    made = [
        buffer[0], buffer.reshape(4), buffer.T, buffer.copy(), buffer.astype("i4"),
        copy.copy(buffer), copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer)),
        hamr.buffer(buffer),
    ]  # fmt: skip
    assert not any(each.is_cached for each in made)
    assert not hasattr(buffer.get_host_accessible(), "is_cached")


def test_it_stays_with_the_object():
    buffer, other = hamr.Buffer(2, fill=1).cached(), hamr.Buffer(3, fill=2)
    buffer.swap(other)
    assert (buffer.is_cached, other.is_cached) == (True, False)
    assert (str(buffer), str(other)) == ("{2, 2, 2}", "{1, 1}")
    buffer.resize(100)
    buffer.append(1)
    buffer.move("cpp")
    buffer.free()
    assert buffer.is_cached


@pytest.mark.parametrize("on", [1, None, "yes"])
def test_it_is_on_or_off(on):
    buffer = hamr.Buffer(2)
    with pytest.raises(TypeError, match=r"on is .*: accepted are True and False"):
        buffer.cached(on)
    assert not buffer.is_cached


def test_a_closed_buffer_keeps_nothing():
    buffer = hamr.Buffer(2).cached()
    buffer.close()
    with pytest.raises(hamr.FreedBuffer):
        buffer.cached()
    with pytest.raises(hamr.FreedBuffer):
        buffer.changed()


def test_memory_that_the_core_does_not_know_may_change():
    array = np.arange(3.0)
    shared = hamr.buffer(array)
    array[0] = 7
    shared.changed()
    assert str(shared.cached()) == "{7, 1, 2}"
    empty = hamr.Buffer(0).cached()
    empty.changed()
    empty.free()
    empty.changed()


def test_nothing_is_counted_as_kept():
    row = hamr.stats()["spaces"].get("host", {"kept": 0, "reused": 0})
    assert (row["kept"], row["reused"]) == (0, 0)
