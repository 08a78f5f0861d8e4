"""bfloat16 and float8 as ml_dtypes adds them to NumPy: sharing arrays, scalars, dtypes."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hamr
from tests.support import producers
from tests.support.producers import ADDED, Interface, interface_of, ml_dtypes

pytestmark = pytest.mark.skipif(not ADDED, reason="no ml_dtypes here")
every_name = pytest.mark.parametrize("name", ADDED)

SMALL = ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"]
LESS_THAN_A_BYTE = [name for name in SMALL if hasattr(ml_dtypes, name)]


def bits(array):
    return array.view(f"u{array.dtype.itemsize}")


@every_name
def test_dtypes(name):
    added = np.dtype(getattr(ml_dtypes, name))
    for form in (added, added.type, name):
        buffer = hamr.Buffer(3, form)
        assert buffer.dtype == added
        assert hamr.Buffer(1).astype(form).dtype == added
        assert hamr.Buffer(1).copy(dtype=form).dtype == added
    assert hamr.Buffer(1, buffer.dtype).dtype is added
    assert buffer.get_host_accessible().dtype == added


@every_name
def test_numpy_takes_buffers(name):
    added = np.dtype(name)
    buffer = hamr.Buffer((2, 3), name, fill=1)
    array = np.asarray(buffer)
    array[...] = [[1, 2, 0.5], [4, 8, 0.25]]
    assert array.dtype == buffer.get().dtype == added
    assert buffer.get().astype("f4").tolist() == [[1, 2, 0.5], [4, 8, 0.25]]
    assert np.shares_memory(np.asarray(buffer.get_host_accessible()), array)
    assert np.asarray(buffer, dtype="f4").tolist() == [[1, 2, 0.5], [4, 8, 0.25]]
    part = np.asarray(buffer[:, ::-2])
    assert np.shares_memory(part, array)
    assert part.astype("f4").tolist() == [[0.5, 1], [0.25, 4]]
    out = np.zeros((2, 3), name)
    assert buffer.get(out) is out
    assert np.array_equal(bits(out), bits(array))


@every_name
def test_arrays_are_shared(name):
    array = np.arange(1, 9).astype(name).reshape(2, 4)
    for source in (array, array.T, array[:, ::2], array[::-1], array[:0], array[0, 0:1], array[()]):
        buffer = hamr.buffer(source)
        assert buffer.dtype == source.dtype
        assert buffer.shape == source.shape
        assert buffer.strides == source.strides or source.size < 2
        assert buffer.source_protocol == "__array_interface__"
        assert not buffer.readonly
        assert not source.size or buffer.ptr == source.__array_interface__["data"][0]
        assert np.array_equal(bits(buffer.get()), bits(np.ascontiguousarray(source)))
    hamr.buffer(array)[0, 1] = 4
    assert array[0, 1] == 4
    array.flags.writeable = False
    assert hamr.buffer(array).readonly
    with pytest.raises(ValueError, match="read-only"):
        hamr.buffer(array).fill(1)


@given(st.data())
def test_numpy_gets_back_what_it_gave(data):
    source = data.draw(producers.arrays(data.draw(st.sampled_from(ADDED))))
    for shared in (hamr.buffer(source), hamr.buffer(source).get_host_accessible()):
        back = np.asarray(shared)
        assert back.dtype == source.dtype
        assert back.shape == source.shape
        assert back.tobytes() == source.tobytes()
        assert back.flags.writeable == source.flags.writeable
        assert not source.size or np.shares_memory(back, source)


@given(st.data(), producers.allocators, producers.layouts)
def test_layouts_of_both_sides(data, allocator, layout):
    name = data.draw(st.sampled_from(ADDED))
    source = data.draw(producers.arrays(name))
    target = producers.LAYOUTS[layout](np.zeros(source.shape, name))
    hamr.buffer(target)[...] = hamr.Buffer(source.shape, name, allocator, data=source)
    assert target.tobytes() == source.tobytes()


@every_name
def test_arrays_and_lists_of_scalars_as_operands(name):
    number = getattr(ml_dtypes, name)
    array = np.array([1, 2, 4], name)
    buffer = hamr.Buffer(3, "f4", data=array)
    buffer[...] = array + array
    buffer.append(array)
    buffer.set(array, at=1, start=2)
    assert buffer.get().tolist() == [2, 4, 8, 1, 2, 4]
    buffer.assign([number(2), number(8)])
    assert buffer.get().tolist() == [2, 8]
    same = hamr.Buffer(0, name)
    same.append(array)
    assert same.get().tobytes() == array.tobytes()


@every_name
def test_scalars_are_values(name):
    number = getattr(ml_dtypes, name)
    buffer = hamr.Buffer(2, number, fill=number(2))
    buffer.append(number(4))
    buffer[0] = number(1)
    buffer.resize(4, number(0.5))
    buffer.reserve(6, number(8))
    assert buffer.astype("f4").get().tolist() == [1, 2, 4, 0.5]
    wide = hamr.Buffer(2, "f4", data=[number(2), number(8)])
    wide.append(number(4))
    wide[0] = number(0.5)
    assert wide.get().tolist() == [0.5, 8, 4]
    buffer.fill(number(0.5))
    assert bits(buffer.get()).tolist() == [bits(np.array(number(0.5))).item()] * 4
    with pytest.raises(ValueError, match="nan does not fit int8"):
        hamr.Buffer(1, "int8").fill(number("nan"))


@every_name
def test_a_shared_scalar_keeps_its_value(name):
    number = getattr(ml_dtypes, name)
    shared = [hamr.buffer(number(2**i)) for i in (0, 1, 2)]
    gc.collect()
    others = [np.zeros((), name) for _ in range(100)]
    assert [b.item() for b in shared] == [1, 2, 4]
    assert all(b.shape == () and b.dtype == np.dtype(name) and b.readonly for b in shared)
    assert len(others) == 100


@every_name
def test_pickling(name):
    source = hamr.buffer(np.arange(1, 7).astype(name).reshape(2, 3)[:, ::2])
    again = pickle.loads(pickle.dumps(source))
    assert again.dtype == source.dtype
    assert again.shape == (2, 2)
    assert again.get().tobytes() == source.get().tobytes()


def test_the_array_lives_as_long_as_its_buffer():
    array = np.zeros(3, "bfloat16")
    alive = weakref.ref(array)
    buffer = hamr.buffer(array)
    del array
    assert alive() is not None
    del buffer
    assert alive() is None


@pytest.mark.parametrize("name", LESS_THAN_A_BYTE)
def test_elements_of_less_than_a_byte_are_refused_by_name(name):
    number = getattr(ml_dtypes, name)
    for use in (
        lambda: hamr.Buffer(3, number),
        lambda: hamr.Buffer(3, np.dtype(number)),
        lambda: hamr.buffer(np.zeros(3, number)),
        lambda: hamr.buffer(number(1)),
        lambda: hamr.Buffer(3).fill(number(1)),
        lambda: hamr.Buffer(3).assign([number(1)]),
        lambda: hamr.Buffer(3).astype(number),
    ):
        with pytest.raises(TypeError, match=rf"{name}.*do not fill whole bytes"):
            use()


def test_big_endian_arrays_are_refused():
    swapped = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")
    for use in (lambda: hamr.Buffer(3, swapped), lambda: hamr.buffer(np.zeros(3, swapped))):
        with pytest.raises(TypeError, match="big-endian"):
            use()


def test_the_typestr_alone_says_nothing():
    array = np.zeros(3, "bfloat16")
    with pytest.raises(TypeError, match="void elements"):
        hamr.buffer(interface_of(array))
    named = interface_of(array)
    named.dtype = array.dtype
    assert hamr.buffer(named).dtype == array.dtype
    # One that does not fit the dtype.
    for typestr in ("<V1", "<V4", "|V2", "<f2", "<u2"):
        other = interface_of(array, typestr=typestr)
        other.dtype = array.dtype
        if typestr[1] == "V":
            with pytest.raises(TypeError, match="void elements"):
                hamr.buffer(other)
        else:
            assert hamr.buffer(other).typestr == typestr
    for dtype in (np.dtype("V2"), np.dtype([("a", "u2")]), "bfloat16", None):
        other = interface_of(array)
        other.dtype = dtype
        with pytest.raises(TypeError, match="structured and void elements"):
            hamr.buffer(other)


def test_descriptions_are_checked_as_of_other_types():
    array = np.zeros(4, "bfloat16")
    for changes in ({"shape": (-1,)}, {"strides": (2, 2)}, {"data": (0, False)}, {"mask": array}):
        wrong = interface_of(array, **changes)
        wrong.dtype = array.dtype
        with pytest.raises((ValueError, TypeError), match=next(iter(changes))):
            hamr.buffer(wrong)
    short = Interface(shape=(9,), typestr="<V2", version=3, data=bytearray(8))
    short.dtype = array.dtype
    with pytest.raises(ValueError, match="bytes"):
        hamr.buffer(short)
