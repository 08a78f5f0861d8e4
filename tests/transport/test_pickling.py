"""Pickling by protocol 5: elements out of band, shared on both sides. NumPy is the measure."""

import copy
import importlib
import math
import multiprocessing
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hamr
from hamr._buffer.buffers import _rebuild
from tests.support import processes, producers
from tests.support.producers import DTYPES, assert_same

# What version 0.2 wrote for Buffer((2, 3), "bfloat16", "cpp", fill=1.5) and Buffer(0, "i2").
VERSION_0_2 = [
    b"\x80\x04\x95H\x00\x00\x00\x00\x00\x00\x00\x8c\x0bhamr.buffer\x94\x8c\x08_rebuild\x94\x93"
    b"\x94(C\x0c\xc0?\xc0?\xc0?\xc0?\xc0?\xc0?\x94K\x02K\x03\x86\x94\x8c\x08bfloat16\x94K\x00J"
    b"\xff\xff\xff\xfft\x94R\x94.",
    b"chamr.buffer\n_rebuild\np0\n(c__builtin__\nbytes\np1\n(tRp2\n(I0\ntp3\nVint16\np4\nI1\nI-1"
    b"\ntp5\nRp6\n.",
]


def out_of_band(buffer):
    """The pickle, and the memory of the elements beside it."""
    beside = []
    content = pickle.dumps(buffer, 5, buffer_callback=beside.append)
    (elements,) = map(memoryview, beside)
    return content, elements


def address(view):
    return np.frombuffer(view, "u1").ctypes.data


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda m: np.frombuffer(m, "u1")])
@given(array=producers.arrays(broadcast=False))
def test_elements_are_shared_on_both_sides(kind, array):
    sent = hamr.buffer(array)
    content, elements = out_of_band(sent)
    assert elements.nbytes == array.nbytes
    assert len(content) < 200
    dense = array.flags.c_contiguous or array.flags.f_contiguous
    if array.size:
        assert (address(elements) == sent.ptr) is dense
    received = kind(elements)
    loaded = pickle.loads(content, buffers=[received])
    assert type(loaded) is hamr.Buffer
    assert_same(loaded, array)
    if array.size:
        assert loaded.ptr == address(received)
        assert loaded.strides == (sent.strides if dense else sent.copy().strides)
    assert not loaded.readonly
    assert loaded.source_protocol == "buffer"


@given(array=producers.arrays(), writable=st.booleans(), received=st.sampled_from("wrn"))
def test_read_only_is_what_numpy_makes_it(array, writable, received):
    """r and w: the receiver's memory is read-only or not; n: the elements are in the pickle."""
    array = array.copy("K")
    array.flags.writeable = writable
    found = []
    for sent in (array, hamr.buffer(array)):
        beside = []
        callback = None if received == "n" else beside.append
        content = pickle.dumps(sent, 5, buffer_callback=callback)
        beside = [(bytes if received == "r" else bytearray)(memoryview(b)) for b in beside]
        loaded = pickle.loads(content, buffers=beside)
        assert_same(hamr.buffer(loaded), array)
        found.append(not hamr.buffer(loaded).readonly)
    dense = array.flags.c_contiguous or array.flags.f_contiguous
    if array.size and dense:
        assert found[0] is found[1]


@pytest.mark.parametrize("allocator", producers.ALLOCATORS, ids=lambda a: a.name)
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_element_type(dtype, allocator):
    buffer = hamr.Buffer((2, 3), dtype, allocator)
    bits = np.frombuffer(bytes(range(buffer.nbytes)), f"V{buffer.itemsize}").reshape(2, 3)
    source = hamr.Buffer.from_pointer(bits.ctypes.data, (2, 3), dtype, owner=bits)
    if dtype == "bool":
        source = hamr.Buffer((2, 3), dtype, data=[[True, False, True], [False, True, True]])
    buffer[...] = source
    content, elements = out_of_band(buffer)
    for loaded in (
        pickle.loads(content, buffers=[bytearray(elements)]),
        *(pickle.loads(pickle.dumps(buffer, protocol)) for protocol in range(6)),
    ):
        assert str(loaded.dtype) == str(buffer.dtype)
        assert loaded.typestr == buffer.typestr
        assert loaded.allocator == allocator
        assert out_of_band(loaded)[1] == elements


def test_the_sender_may_go_on():
    """What was pickled stays as long as the elements beside it, whatever the buffer does."""
    buffer = hamr.Buffer(1000, fill=1)
    content, elements = out_of_band(buffer)
    buffer.resize(100_000, 2)
    buffer.close()
    del buffer
    assert_same(pickle.loads(content, buffers=[elements]), np.ones(1000))


def test_the_receiver_may_go_on():
    """Received memory is kept, and locked, for as long as the buffer uses it."""
    content, elements = out_of_band(hamr.Buffer(10, fill=1))
    received = bytearray(elements)
    loaded = pickle.loads(content, buffers=[received])
    loaded[0] = 7
    assert np.frombuffer(received)[0] == 7
    with pytest.raises(BufferError):
        received.append(1)
    shared = np.asarray(loaded)
    loaded.append(3)  # beyond what was received: new memory
    assert loaded.source_protocol is None
    assert loaded.size() == 11
    loaded[0] = 8
    assert shared[0] == 7
    del shared, loaded
    received.append(1)


def test_elements_at_odd_addresses():
    """As parts of a message have them."""
    content, elements = out_of_band(hamr.Buffer(3, data=[1.0, 2, 3]))
    message = b"x" + bytes(elements)
    loaded = pickle.loads(content, buffers=[memoryview(message)[1:]])
    assert_same(loaded, np.array([1.0, 2, 3]))
    assert_same(loaded.astype("i2"), np.array([1, 2, 3], "i2"))


@pytest.mark.parametrize(
    ("received", "error", "match"),
    [
        (bytes(23), ValueError, "content has 23 bytes: .* are 24"),
        (bytes(25), ValueError, "content has 25 bytes"),
        (np.zeros(6)[::2], ValueError, "with gaps"),
        (5, TypeError, "int object cannot be shared"),
    ],
)
def test_wrong_elements_are_refused(received, error, match):
    content, _ = out_of_band(hamr.Buffer(3))
    with pytest.raises(error, match=match):
        pickle.loads(content, buffers=[received])


def test_elements_that_are_not_given():
    content, _ = out_of_band(hamr.Buffer(3))
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(content)


@pytest.mark.parametrize(
    ("content", "expected", "described"),
    [
        (
            VERSION_0_2[0],
            hamr.Buffer((2, 3), "bfloat16", "cpp", fill=1.5),
            (b"\xc0?" * 6, (2, 3), "bfloat16", 0, -1),
        ),
        (VERSION_0_2[1], hamr.Buffer(0, "i2"), (b"", (0,), "int16", 1, -1)),
    ],
    ids=["bfloat16", "empty"],
)
def test_pickles_of_version_0_2(content, expected, described):
    loaded = pickle.loads(content)
    assert repr(loaded).rpartition(" at ")[0] == repr(expected).rpartition(" at ")[0]
    assert str(loaded) == str(expected)
    assert not loaded.readonly
    # It loads what is written now.
    assert expected.__reduce_ex__(4) == expected.__reduce__() == (_rebuild, described)


def test_an_allocator_of_version_0_2():
    loaded = pickle.loads(b"\x80\x04\x8c\x0ehamr.allocator\x8c\tAllocator\x93K\x02\x85R.")
    assert loaded is hamr.Allocator.cuda


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_name_no_private_module(protocol):
    for value in (hamr.Buffer(3, fill=1), hamr.Allocator.cpp, hamr.OutOfMemory("no room")):
        content = pickle.dumps(value, protocol)
        assert b"hamr" in content
        assert b"hamr._" not in content
        assert repr(pickle.loads(content)).split(" at ")[0] == repr(value).split(" at ")[0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_handles_stay_in_their_process(protocol):
    handle = hamr.Buffer(3).get_host_accessible()
    with pytest.raises(TypeError, match=r"hamr.Handle .* pickle the buffer.*copy\(\)"):
        pickle.dumps(handle, protocol)
    with pytest.raises(TypeError, match=r"hamr.Handle"):
        copy.copy(handle)
    assert_same(pickle.loads(pickle.dumps(hamr.buffer(handle))), np.asarray(handle))


@pytest.mark.parametrize("begun", [False, True])
def test_accesses_stay_in_their_process(begun):
    """A copy without the slots of its original was asked for them for ever."""
    access = hamr.Buffer(3, fill=1).on_host("rw")
    if begun:
        access.__enter__()
    said = r'hamr access .*on_host\("rw"\).* pickle the buffer'
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match=said):
            pickle.dumps(access, protocol)
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=said):
            copied(access)
    if begun:
        access.__exit__(None, None, None)


def test_an_access_whose_slots_are_not_set():
    """As a library makes one that copies objects in its own way."""
    empty = object.__new__(type(hamr.Buffer(3).on_host("rw")))
    for name in ("_space", "_open", "shape", "__setstate__"):
        with pytest.raises(AttributeError, match="access has no"):
            getattr(empty, name)
    del empty  # pytest makes an error of what __del__ raises


def test_a_pool_of_processes_refuses_an_access():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answer = pool.apply_async(len, (hamr.Buffer(3).on_host("rw"),))
        with pytest.raises(TypeError, match="pickle the buffer"):
            answer.get(60)


class Named(hamr.Buffer):
    """A subclass that pickles in its own way."""

    def __reduce__(self):
        return str, (str(self),)


@pytest.mark.parametrize("protocol", range(6))
def test_a_subclass_may_have_a_way_of_its_own(protocol):
    assert pickle.loads(pickle.dumps(Named(2, fill=3), protocol)) == "{3, 3}"


def test_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    b = hamr.Buffer(3, "f4", fill=2)
    beside = []
    content = cloudpickle.dumps(lambda: b, protocol=5, buffer_callback=beside.append)
    assert [address(x) for x in beside] == [b.ptr]
    assert_same(pickle.loads(content, buffers=beside)(), np.full(3, 2, "f4"))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_between_processes(method):
    """By queues and pools, and in shared memory that both sides have as a buffer."""
    assert processes.run_script("pickling", method).endswith("OK\n")


REPEATED = {
    "a row": lambda: np.broadcast_to(np.arange(10.0), (2000, 10)),
    "a number": lambda: np.broadcast_to(np.float32(3), (50, 60)),
    "columns": lambda: np.broadcast_to(np.arange(6.0)[::2, None], (3, 400)),
    "between": lambda: np.broadcast_to(np.arange(8, dtype="i2").reshape(4, 1, 2), (4, 500, 2)),
}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("make", REPEATED.values(), ids=REPEATED)
def test_elements_that_repeat_are_sent_once(make, protocol):
    array = make()
    content = pickle.dumps(hamr.buffer(array), protocol)
    assert len(content) < 800
    loaded = pickle.loads(content)
    assert type(loaded) is hamr.Buffer
    assert_same(loaded, array)
    assert loaded.readonly
    assert [n if s else 1 for n, s in zip(loaded.shape, loaded.strides, strict=True)] == [
        n if s else 1 for n, s in zip(array.shape, array.strides, strict=True)
    ]


@pytest.mark.parametrize("make", REPEATED.values(), ids=REPEATED)
def test_the_frames_of_elements_that_repeat_are_of_one(make):
    array = make()
    content, elements = out_of_band(hamr.buffer(array))
    pairs = zip(array.shape, array.strides, strict=True)
    assert elements.nbytes == array.itemsize * math.prod(n for n, stride in pairs if stride)
    assert_same(pickle.loads(content, buffers=[bytearray(elements)]), array)


class Labelled(hamr.Buffer):
    pass


def test_elements_that_repeat_in_a_subclass():
    row = Labelled(3, "f4", data=[1, 2, 3])
    source = Labelled.from_pointer(row.ptr, (5, 3), "f4", strides=(0, 4), owner=row)
    source.name = "row"
    loaded = pickle.loads(pickle.dumps(source, 5))
    assert (type(loaded), loaded.name, loaded.shape) == (Labelled, "row", (5, 3))
    assert np.array_equal(np.asarray(loaded), np.tile(np.float32([1, 2, 3]), (5, 1)))


def test_axes_of_one_element_and_none_at_all_repeat_nothing():
    for array in (np.broadcast_to(np.ones(3), (1, 3)), np.broadcast_to(np.ones(3), (0, 3))):
        loaded = pickle.loads(pickle.dumps(hamr.buffer(array), 5))
        assert_same(loaded, array)


@pytest.mark.parametrize(("shape", "error"), [((2, 4), ValueError), ((3,), ValueError)])
def test_what_does_not_repeat_is_refused(shape, error):
    repeated = importlib.import_module("hamr._buffer.pickling").repeated
    with pytest.raises(error, match="accepted is one that repeats"):
        repeated(hamr.Buffer, hamr.Buffer((1, 3)), shape)
    with pytest.raises(TypeError, match="accepted is a hamr"):
        repeated(hamr.Buffer, np.ones((1, 3)), (2, 3))
