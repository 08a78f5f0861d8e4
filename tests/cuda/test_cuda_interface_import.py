"""__cuda_array_interface__ of other libraries: what is taken, and what is refused."""

import sys

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import Only
from tests.support.producers import assert_same, cast

A = hamr.Allocator


def sample(dtype="float32", shape=(3, 4)):
    return cast(np.arange(1, 1 + int(np.prod(shape, dtype=int))).reshape(shape), dtype)


def test_shapes_of_every_kind():
    for shape in ((), (1,), (0,), (2, 0, 3), (1, 5, 1), (2, 3, 4), (1,) * 20):
        array = sample("int32", shape)
        made = driver.Array(array)
        shared = hamr.buffer(made)
        assert shared.ptr == (made.ptr if array.size else 0)
        assert_same(shared, array)
        assert shared.__cuda_array_interface__["shape"] == shape
        assert driver.content(shared).tolist() == array.tolist()


def test_strides_of_length_one_mean_nothing():
    made = driver.Array(sample("int32", (1, 4)))
    shared = hamr.buffer(Only(made, strides=(4, 4)))
    assert_same(shared, sample("int32", (1, 4)))
    assert shared.is_contiguous
    one = driver.Array(sample("int32", (1, 1)))
    assert_same(hamr.buffer(Only(one, strides=(1 << 40, -(1 << 40)))), sample("int32", (1, 1)))


def test_strides_and_negative_strides_are_kept():
    made = driver.Array(sample("int16"))
    transposed = hamr.buffer(Only(made, shape=(4, 3), strides=(2, 8)))
    assert_same(transposed, sample("int16").T)
    assert transposed.strides == (2, 8)
    backwards = hamr.buffer(Only(made, data=(made.ptr + 22, False), strides=(-8, -2)))
    assert_same(backwards, sample("int16")[::-1, ::-1])
    repeated = hamr.buffer(Only(made, shape=(5, 4), strides=(0, 2), data=(made.ptr, True)))
    assert_same(repeated, np.broadcast_to(sample("int16")[0], (5, 4)))


def test_writing_reaches_the_foreign_array():
    made = driver.Array(sample())
    shared = hamr.buffer(made)
    shared[1:, ::2] = np.array([[5], [6]])
    shared[0] = 9
    expected = sample()
    expected[1:, ::2] = [[5], [6]]
    expected[0] = 9
    shared.synchronize()
    np.testing.assert_array_equal(made.read(), expected)
    shared.resize(100, 1)
    assert shared.ptr != made.ptr
    np.testing.assert_array_equal(made.read(), expected)


@pytest.mark.parametrize("changes", [
    {"version": 2, "stream": ...}, {"version": 2}, {"version": 3}, {"stream": ...},
    {"version": 0}, {"version": 1, "stream": ...}, {"version": 4}, {"typestr": "f4"},
    {"strides": ...}, {"mask": None}, {"descr": [("", "<f4")]}, {"extra": 7},
    {"stream": driver.LEGACY}, {"stream": driver.PER_THREAD}, {"shape": (np.int64(3), np.int64(4))},
    {"typestr": "=f4"},
], ids=str)  # fmt: skip
def test_accepted_forms(changes):
    made = driver.Array(sample())
    shared = hamr.buffer(Only(made, **changes))
    assert shared.ptr == made.ptr
    assert_same(shared, sample())


class DeviceBuffer:
    def __init__(self, made):
        self.made = made

    @property
    def __cuda_array_interface__(self):
        return {
            "data": (self.made.ptr, False),
            "shape": (self.made.nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 0,
        }


def test_a_device_buffer_of_rmm():
    """Its dictionary is of version 0, and says nothing of streams: it has bytes."""
    made = driver.Array(sample())
    for _ in range(2):  # the second time in C
        shared = hamr.buffer(DeviceBuffer(made))
        assert (shared.ptr, shared.dtype, shared.readonly) == (made.ptr, np.dtype("u1"), False)
        assert shared.source_protocol == "__cuda_array_interface__"
        assert shared.get().tobytes() == sample().tobytes()
    shared.view("f4")[:2] = 7
    shared.synchronize()
    assert made.read().ravel()[:3].tolist() == [7, 7, sample().ravel()[2]]


class IntLike:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_addresses_and_streams_may_be_integers_of_any_class():
    made, stream = driver.Array(sample()), driver.Stream()
    for number in (np.uint64, IntLike):
        shared = hamr.buffer(
            Only(made, data=(number(made.ptr), False), stream=number(stream.handle))
        )
        assert_same(shared, sample())


REFUSED = [
    ({"stream": 0}, ValueError, "stream"),
    ({"stream": -1}, ValueError, "stream"),
    ({"stream": 2**64}, ValueError, "stream"),
    ({"stream": "1"}, TypeError, "stream"),
    ({"stream": True}, TypeError, "stream"),
    ({"stream": 1.0}, TypeError, "stream"),
    ({"version": -1}, ValueError, "version"),
    ({"version": "3"}, TypeError, "version"),
    ({"version": ...}, ValueError, "version"),
    ({"shape": ...}, ValueError, "shape"),
    ({"typestr": ...}, ValueError, "typestr"),
    ({"data": ...}, ValueError, "data"),
    ({"data": None}, TypeError, "data"),
    ({"data": (1,)}, (TypeError, ValueError), "data"),
    ({"data": ("0x10", False)}, TypeError, "data"),
    ({"data": (-1, False)}, ValueError, "data"),
    ({"data": (2**64, False)}, ValueError, "data"),
    ({"data": (0, False)}, ValueError, "data"),
    ({"shape": [3, 4]}, TypeError, "shape"),
    ({"shape": (3, -4)}, ValueError, "shape"),
    ({"shape": (3.0, 4)}, TypeError, "shape"),
    ({"shape": (1,) * 65}, ValueError, "shape"),
    ({"shape": (2**62, 4)}, ValueError, "shape"),
    ({"strides": (4,)}, ValueError, "strides"),
    ({"strides": "16"}, TypeError, "strides"),
    ({"strides": (2**62, 4)}, ValueError, "strides|data"),
    ({"typestr": ">f4"}, TypeError, "typestr"),
    ({"typestr": "f"}, TypeError, "typestr"),
    ({"typestr": 4}, TypeError, "typestr"),
    ({"typestr": "<U4"}, TypeError, "typestr"),
    ({"mask": NotImplemented}, (TypeError, ValueError), "mask"),
]


@pytest.mark.parametrize(("changes", "error", "words"), REFUSED, ids=lambda x: str(x)[:40])
def test_refused_forms_name_the_entry(changes, error, words):
    made = driver.Array(sample())
    owner = Only(made, **changes)
    references = sys.getrefcount(owner)
    with pytest.raises(error, match=words):
        hamr.buffer(owner)
    assert sys.getrefcount(owner) == references
    np.testing.assert_array_equal(made.read(), sample())


@pytest.mark.parametrize("interface", [None, 3, [], (), "", {}], ids=repr)
def test_what_is_no_dictionary(interface):
    class Wrong:
        __cuda_array_interface__ = interface

    with pytest.raises((TypeError, ValueError), match=r"__cuda_array_interface__|shape|shared"):
        hamr.buffer(Wrong())


def test_attribute_errors_mean_that_there_is_none():
    class HostTensor(np.ndarray):
        @property
        def __cuda_array_interface__(self):
            raise AttributeError("this tensor is on the host")

    shared = hamr.buffer(np.arange(3.0).view(HostTensor))
    assert shared.source_protocol == "buffer"


def test_a_producers_own_error_is_told():
    class Broken:
        @property
        def __cuda_array_interface__(self):
            raise ZeroDivisionError("inside the library")

    with pytest.raises(TypeError, match="ZeroDivisionError: inside the library") as caught:
        hamr.buffer(Broken())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
