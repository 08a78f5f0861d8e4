"""__sycl_usm_array_interface__ out of hamr, and both ways at random, without SYCL."""

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import hamr
from hamr import _native
from hamr._protocols import dispatch
from tests.support import producers
from tests.support.usm_producers import LINE, NAME, Queue, usm, without_dpctl


@pytest.fixture(autouse=True)
def _no_dpctl(monkeypatch):
    without_dpctl(monkeypatch)


def test_only_memory_that_came_so_goes_so():
    others = [
        hamr.Buffer(3),
        hamr.Buffer(0),
        hamr.buffer(np.ones(3)),
        hamr.buffer(producers.interface_of(np.ones(3))),
        hamr.Buffer.from_pointer(LINE.ctypes.data, 6, owner=LINE),
        hamr.Buffer(3).get_host_accessible(),
        hamr.buffer(usm()).copy(),
        hamr.buffer(usm()).astype("f4"),
    ]
    for other in others:
        assert not hasattr(other, NAME)
        with pytest.raises(AttributeError, match=rf"{NAME}: this memory is not USM"):
            getattr(other, NAME)


@given(producers.arrays())
def test_what_is_said_is_what_came(array):
    producer = usm(array)
    shared = hamr.buffer(producer)
    for made in (shared, shared.get_host_accessible(), hamr.buffer(shared)):
        said = getattr(made, NAME)
        assert said["shape"] == array.shape
        assert said["data"] == (shared.ptr, not array.flags.writeable)
        assert (said["offset"], said["version"]) == (0, 1)
        assert said["syclobj"] is getattr(producer, NAME)["syclobj"]
        assert (said["strides"] is None) == array.flags.c_contiguous
        producers.assert_same(hamr.buffer(usm(array, **said)), array)


def test_views_and_handles_say_where_they_are():
    array = np.arange(24.0).reshape(4, 6)
    shared = hamr.buffer(usm(array))
    part = shared[1:, ::-2]
    said = getattr(part, NAME)
    assert said["data"][0] == array[1:, ::-2].ctypes.data
    assert (said["shape"], said["strides"]) == ((3, 3), (6, -2))
    handle = part.get_host_accessible()
    assert getattr(handle, NAME) == said
    handle.close()
    with pytest.raises(hamr.FreedBuffer):
        getattr(handle, NAME)


def test_strides_between_elements_cannot_be_said():
    shared = hamr.buffer(usm())
    odd = _native.view(hamr.Buffer, shared, 0, (2,), (12,))
    with pytest.raises(AttributeError, match=r"strides are \(12,\) bytes"):
        getattr(odd, NAME)


def test_new_memory_is_no_usm():
    shared = hamr.buffer(usm(np.arange(6.0)))
    assert hasattr(shared, NAME)
    shared.resize(3)
    assert getattr(shared, NAME)["shape"] == (3,)
    shared.resize(100)
    assert not hasattr(shared, NAME)
    for end in (lambda b: b.free(), lambda b: b.append(np.ones(100))):
        other = hamr.buffer(usm(np.arange(6.0)))
        end(other)
        assert not hasattr(other, NAME)
    a, b = hamr.buffer(usm()), hamr.Buffer(3)
    a.swap(b)
    assert [hasattr(x, NAME) for x in (a, b)] == [False, True]


def test_who_was_told_the_address_keeps_the_memory_with_the_buffer():
    producer = usm(np.arange(3.0))
    alive = weakref.ref(producer)
    shared = hamr.buffer(producer)
    del producer
    address = getattr(shared, NAME)["data"][0]
    shared.resize(1000)
    gc.collect()
    assert alive() is not None
    assert shared.ptr != address
    del shared
    gc.collect()
    assert alive() is None


def test_asking_whether_it_is_usm_keeps_nothing():
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    b = hamr.Buffer.from_pointer(LINE.ctypes.data, 6, owner=owner)
    assert not hasattr(b, NAME)
    del owner
    b.resize(100)
    gc.collect()
    assert alive() is None


def test_the_reader_is_not_imported_before_it_is_needed():
    script = (
        "import sys, hamr; assert not hasattr(hamr.Buffer(3), '__sycl_usm_array_interface__');"
        "hamr.buffer(bytes(3)); print('hamr._protocols.sycl_usm' in sys.modules)"
    )
    assert producers.run_python(script).stdout.split() == ["False"]


# At random.

ARENA = np.arange(4096, dtype="u4").view("u1")
BASE = ARENA.ctypes.data
TYPES = ["|b1", "|i1", "|u1", "<i2", "|i4", "=i8", "<u8", "|f2", "<f4", "|f8", "|c8", "<c16"]


@given(st.data())
def test_random_layouts(data):
    """Whatever the interface says, hamr's elements are those that NumPy finds there."""
    typestr = data.draw(st.sampled_from(TYPES))
    dtype = np.dtype("=" + typestr[1:])
    shape = tuple(data.draw(st.lists(st.integers(0, 5), max_size=4)))
    strides = data.draw(
        st.none()
        | st.lists(st.integers(-20, 20), min_size=len(shape), max_size=len(shape)).map(tuple)
    )
    offset = data.draw(st.integers(-400, 400))
    start = data.draw(st.integers(0, 64)) * 16 + 6400
    fields = {"typestr": typestr, "shape": shape, "strides": strides, "offset": offset}
    shared = hamr.buffer(usm(ARENA, **fields, data=(BASE + start, False)))
    steps = None if strides is None else tuple(s * dtype.itemsize for s in strides)
    first = start + offset * dtype.itemsize
    assert shared.ptr == BASE + first
    ends = [
        (n - 1) * s for n, s in zip(shape, steps or shared.strides, strict=True) if math.prod(shape)
    ]
    low = first + sum(e for e in ends if e < 0)
    high = first + sum(e for e in ends if e > 0) + dtype.itemsize
    assume(low >= 0 and high <= ARENA.size)
    wanted = np.ndarray(shape, dtype, ARENA, first, steps)
    assert np.asarray(shared).tobytes() == wanted.tobytes()
    assert hamr.buffer(usm(ARENA, **getattr(shared, NAME))).get().tobytes() == wanted.tobytes()


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 2**64]),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.lists(st.integers() | st.floats() | st.text(max_size=2), max_size=4).map(tuple),
    st.just(LINE),
    st.just(Queue),
)
KEYS = ["shape", "typestr", "data", "strides", "offset", "version", "syclobj", "mask"]


@given(st.dictionaries(st.sampled_from(KEYS), JUNK | st.just(...), min_size=1, max_size=3))
def test_random_dictionaries(changes):
    """They are shared at an address that can be right, or refused by a changed entry's name."""
    producer = usm(**{"data": (2**40, False), **changes})
    try:
        shared = hamr.buffer(producer)
    except (TypeError, ValueError) as error:
        refused = str(error)
    else:
        assert shared.source_protocol == NAME
        assert getattr(shared, NAME)["shape"] == shared.shape
        return
    # An entry that is right in itself may not suit the others.
    named = set(changes)
    if "shape" in named:
        named.add("strides")
    if named & {"shape", "strides", "offset", "typestr"}:
        named.add("data")
    assert any(key in refused for key in named), refused


def test_the_dispatcher_knows_the_name():
    module = __import__("hamr._protocols.sycl_usm", fromlist=["NAME"])
    assert (module.NAME, "sycl_usm") in dispatch.PROTOCOLS
