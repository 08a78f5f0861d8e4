"""Every allocator on every device: content operations beside NumPy."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import producers
from tests.support.processes import run_script, scaled
from tests.support.producers import DTYPES, LAYOUTS, assert_same, cast

SCRIPTS = Path(__file__).resolve().parent / "scripts"

A = hamr.Allocator
HOST = [A.cpp, A.malloc, A.cuda_host]
ON_DEVICE = [A.cuda, A.cuda_async, A.cuda_uva, A.cuda_vmm]
#: Every allocator, and each device of those that have one.
PLACES = [(a, -1) for a in HOST] + [
    (a, i) for a in ON_DEVICE for i in range(max(driver.DEVICES, 1))
]
#: For what does not depend on the number of the device.
FEW_PLACES = [(a, -1) for a in HOST] + [(a, max(driver.DEVICES, 1) - 1) for a in ON_DEVICE]


def name(place):
    return place[0].name if place[1] < 0 else f"{place[0].name}:{place[1]}"


@pytest.fixture(params=FEW_PLACES, ids=name)
def place(request):
    return request.param


def at(place, array):
    """A buffer at a place with the array's elements."""
    allocator, device = place
    return hamr.Buffer(array.shape, array.dtype, allocator, data=array, device=device)


def sample(dtype, shape=(3, 4)):
    return cast(np.arange(1, 1 + int(np.prod(shape))).reshape(shape), dtype)


def assert_at(buffer, place):
    allocator, device = place
    assert (buffer.allocator, buffer.owner, buffer.device) == (allocator, device, device)


# Where memory is.


@pytest.mark.parametrize("place", PLACES, ids=name)
def test_memory_is_where_it_was_asked_for(place):
    allocator, device = place
    buffer = hamr.Buffer(100, "f4", allocator, device=device, fill=2)
    assert_at(buffer, place)
    handle = buffer.get_host_accessible()
    assert handle.is_temporary == (not buffer.host_accessible())
    assert np.asarray(handle).tolist() == [2] * 100
    if allocator in ON_DEVICE:
        assert driver.device_of(buffer.ptr) == device
    assert buffer.host_accessible() == (allocator not in (A.cuda, A.cuda_async, A.cuda_vmm))
    assert buffer.cuda_accessible() == (allocator in ON_DEVICE)


def test_no_device_is_the_current_one(cuda_allocator):
    buffer = hamr.Buffer(3, "f4", cuda_allocator, fill=1)
    assert buffer.owner == (-1 if cuda_allocator == A.cuda_host else 0)
    upstream = hamr.buffer_float(cuda_allocator, 3, 1.0)
    assert upstream.owner == buffer.owner
    assert str(upstream) == "{1, 1, 1}"


@pytest.mark.parametrize("number", [driver.DEVICES, 1000, 2**31 - 1])
def test_devices_out_of_range(cuda_allocator, number):
    accepted = f"0 … {driver.DEVICES - 1}"
    host = hamr.Buffer(3, fill=1)
    with pytest.raises(ValueError, match=rf"device is {number}: .*{accepted}"):
        hamr.Buffer(3, "f4", cuda_allocator, device=number)
    with pytest.raises(ValueError, match=f"device is {number}"):
        host.copy(cuda_allocator, device=number)
    with pytest.raises(ValueError, match=f"device is {number}"):
        host.move(cuda_allocator, device=number)
    assert_at(host, (A.malloc, -1))
    assert str(host) == "{1, 1, 1}"


@pytest.mark.parametrize("number", [-2, 2**31, 2**70])
def test_devices_that_are_none(cuda_allocator, number):
    with pytest.raises(ValueError, match="device is"):
        hamr.Buffer(3, "f4", cuda_allocator, device=number)


def test_sizes_that_nothing_has(device_allocator):
    with pytest.raises(hamr.OutOfMemory) as caught:
        hamr.Buffer(1 << 60, "u1", device_allocator)
    assert caught.value.size == 1 << 60
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(ValueError, match=r"shape|count|size"):
        hamr.Buffer(1 << 62, "f8", device_allocator)
    assert str(hamr.Buffer(2, "u1", device_allocator, fill=1)) == "{1, 1}"


def test_empty_buffers_take_no_memory(cuda_allocator):
    before = hamr.stats()["allocators"].get(cuda_allocator.name, {}).get("current", 0)
    empty = hamr.Buffer((0, 3), "f8", cuda_allocator)
    assert (empty.ptr, empty.nbytes, str(empty)) == (0, 0, "{}")
    assert hamr.stats()["allocators"][cuda_allocator.name]["current"] == before
    empty.resize(3, 4)
    assert str(empty) == "{4, 4, 4}"
    assert empty.allocator == cuda_allocator


def test_stats_count_device_memory(cuda_allocator):
    counts = lambda: hamr.stats()["allocators"].get(cuda_allocator.name, {})  # noqa: E731
    before = counts()
    buffer = hamr.Buffer(1000, "f4", cuda_allocator)
    assert counts()["current"] - before.get("current", 0) == 4000
    assert hamr.stats()["spaces"]["cuda"]["live"] >= 1
    buffer.close()
    assert counts()["current"] == before.get("current", 0)


# Between places.


@pytest.mark.parametrize("to", PLACES, ids=name)
@pytest.mark.parametrize("place", PLACES, ids=name)
def test_copies_moves_and_assignments_between_all_places(place, to):
    array = sample("float32")
    source = at(place, array)
    copied = source.copy(to[0], device=to[1])
    assert_at(copied, to)
    assert copied.ptr != source.ptr
    assert_same(copied, array)
    converted = source.copy(to[0], device=to[1], dtype="int16")
    assert_same(converted, array.astype("int16"))
    target = hamr.Buffer(2, "float64", to[0], device=to[1], fill=9)
    target.assign(source)
    assert_at(target, to)
    assert_same(target, array.astype("float64"))
    target.append(source)
    assert_same(target, np.tile(array.ravel(), 2).astype("float64"))
    target[3:6] = source[1, ::-1][:3]
    target.set(source, at=20, start=8, n=4)
    expected = np.tile(array.ravel(), 2).astype("float64")
    expected[3:6] = array[1, ::-1][:3]
    expected[20:] = array.ravel()[8:]
    assert_same(target, expected)
    source.move(to[0], device=to[1])
    assert_at(source, to)
    assert_same(source, array)


def test_moving_to_the_same_place_does_nothing(place):
    buffer = at(place, sample("i4"))
    address = buffer.ptr
    buffer.move("same")
    buffer.move(place[0], device=place[1])
    with hamr.device(max(place[1], 0)):
        buffer.move(place[0])
    assert buffer.ptr == address
    assert_same(buffer, sample("i4"))


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_numpy_arrays_of_every_layout_go_there_and_back(place, layout):
    array = LAYOUTS[layout](sample("float64", (3, 4, 5)))
    buffer = hamr.Buffer(array.shape, array.dtype, place[0], device=place[1])
    buffer[...] = array
    assert_same(buffer, array)
    out = LAYOUTS[layout](np.zeros((3, 4, 5)))
    assert buffer.get(out) is out
    np.testing.assert_array_equal(out, array)
    shared = hamr.buffer(array).copy(place[0], device=place[1])
    assert_same(shared, array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type(place, dtype):
    array = sample(dtype)
    buffer = at(place, array)
    assert_same(buffer, array)
    assert str(buffer) == producers.text_of(array)
    for to in DTYPES:
        if np.dtype(dtype).kind == "c" and np.dtype(to).kind != "c":
            continue
        assert_same(buffer.astype(to), cast(array, to))
    wide = "complex128" if array.dtype.kind == "c" else "float64"
    assert_same(buffer[:, ::2].astype(wide), cast(array[:, ::2], wide))


# Contents, one operation after the other beside an array.


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64", "complex128"])
def test_filling(place, dtype):
    buffer, expected = at(place, sample(dtype)), sample(dtype)
    for value in (1, 0, np.float32(1)):
        buffer.fill(value)
        expected[...] = value
        assert_same(buffer, expected)
    created = hamr.Buffer((5, 7), dtype, place[0], device=place[1], fill=1)
    assert_same(created, np.ones((5, 7), dtype))


@pytest.mark.parametrize("value", [1, 0x01020304, -2, 0x7FEDCBA987654321])
def test_filling_with_every_byte_of_a_pattern(place, value):
    dtype = "int64" if abs(value) > 2**31 else "int32"
    for n in (1, 2, 3, 1000, 70001):
        assert_same(
            hamr.Buffer(n, dtype, place[0], device=place[1], fill=value), np.full(n, value, dtype)
        )


def test_filling_an_element_of_sixteen_bytes(place):
    value = complex(1.5, -2.25)
    buffer = hamr.Buffer(1001, "complex128", place[0], device=place[1], fill=value)
    assert_same(buffer, np.full(1001, value))
    buffer[1::3] = -value
    expected = np.full(1001, value)
    expected[1::3] = -value
    assert_same(buffer, expected)


def test_growing_and_shrinking(place):
    buffer, expected = at(place, sample("int16", (12,))), sample("int16", (12,))
    buffer.resize(20, 7)
    expected = np.append(expected, np.full(8, 7, "int16"))
    assert_same(buffer, expected)
    buffer.reserve(100)
    assert buffer.capacity() >= 100
    address = buffer.ptr
    buffer.append(np.arange(5))
    assert buffer.ptr == address
    expected = np.append(expected, np.arange(5, dtype="int16"))
    assert_same(buffer, expected)
    buffer.append(3)
    buffer.append(buffer)
    expected = np.append(expected, np.int16(3))
    expected = np.append(expected, expected)
    assert_same(buffer, expected)
    buffer.resize((4, 5))
    assert_same(buffer, expected[:20].reshape(4, 5))
    buffer.resize(3)
    buffer.resize(6, 9)
    assert_same(buffer, np.append(expected[:3], [9, 9, 9]).astype("int16"))
    buffer.free()
    assert (buffer.size(), buffer.allocator) == (0, place[0])
    buffer.append([1.5, 2.5])
    assert_same(buffer, np.array([1, 2], "int16"))
    assert_at(buffer, place)


KEYS = [
    np.s_[1], np.s_[1:], np.s_[::2], np.s_[::-1], np.s_[:, 1], np.s_[:, ::-2], np.s_[..., 0],
    np.s_[-1, -1], np.s_[1:1], np.s_[2:0:-1, 1::2], np.s_[None, ..., 3],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading_and_writing_views(place, key):
    array = sample("float32")
    buffer = at(place, array)
    assert_same(buffer[key], array[key])
    assert_same(buffer[key].copy("malloc"), array[key])
    buffer[key] = -1
    array[key] = -1
    assert_same(buffer, array)
    part = cast(np.arange(array[key].size).reshape(array[key].shape), "int64")
    buffer[key] = part
    array[key] = part
    assert_same(buffer, array)


def test_writing_through_a_transposed_foreign_array(place):
    """Fortran order and a transposition are described by strides alone."""
    array = np.asfortranarray(sample("int32", (4, 6)))
    buffer = at(place, np.zeros((6, 4), "int32"))
    buffer[...] = array.T
    assert_same(buffer, array.T)
    buffer[1:3] = hamr.buffer(array)[:, 2:4].copy(place[0], device=place[1])[:2, :1]
    expected = array.T.copy()
    expected[1:3] = array[:2, 2:3]
    assert_same(buffer, expected)


def test_overlapping_writes(place):
    array = sample("int32", (9,))
    buffer = at(place, array)
    buffer[2:7] = buffer[0:5]
    expected = array.copy()
    expected[2:7] = array[0:5]
    assert_same(buffer, expected)
    buffer[0:9] = buffer[::-1]
    assert_same(buffer, expected[::-1])


def test_single_elements(place):
    buffer = at(place, sample("float32"))
    assert buffer[1, 2].item() == 7
    assert (float(buffer[0, 0]), int(buffer[2, 3]), bool(buffer[0, 1])) == (1.0, 12, True)
    assert complex(buffer[0, 2]) == 3
    assert [row[0].item() for row in buffer] == [1, 5, 9]
    with pytest.raises(ValueError, match="12 elements"):
        buffer.item()
    with pytest.raises(IndexError):
        buffer[3]
    with pytest.raises(ValueError, match="-1"):
        at(place, sample("uint8")).fill(-1)


def test_text(place):
    buffer = hamr.Buffer(2000, "int32", place[0], device=place[1], data=np.arange(2000))
    assert str(buffer).startswith("{0, 1, 2, ")
    assert "1999" in str(buffer)
    assert len(str(buffer)) < 1000
    assert place[0].name in repr(buffer)


def test_printing_tells_where(place, capfd):
    at(place, sample("int32", (3,))).print()
    printed = capfd.readouterr().out
    assert f"allocator={place[0].name}, owner={place[1]}, size=3" in printed
    assert printed.endswith("{1, 2, 3}\n")


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "bfloat16", "float8_e4m3fn"])
def test_pickling_and_copying(place, dtype):
    buffer = hamr.Buffer((2, 3), dtype, place[0], device=place[1])
    buffer[...] = np.arange(6).reshape(2, 3)
    for again in (pickle.loads(pickle.dumps(buffer)), copy.copy(buffer), copy.deepcopy(buffer)):
        assert_at(again, place)
        assert again.shape == (2, 3)
        assert again.typestr == buffer.typestr
        assert again.ptr != buffer.ptr
        assert str(again) == str(buffer)


def test_swapping_places():
    first, second = at(PLACES[0], sample("i4")), at((A.cuda, 0), sample("f8", (2,)))
    first.swap(second)
    assert_at(first, (A.cuda, 0))
    assert_at(second, PLACES[0])
    assert_same(first, sample("f8", (2,)))
    assert_same(second, sample("i4"))


def test_large_arrays_in_many_pieces(place):
    """More than any staging memory holds at once."""
    array = np.arange(3 << 20, dtype="float64")
    buffer = at(place, array)
    assert_same(buffer, array)
    assert_same(buffer[::-3].astype("float32"), array[::-3].astype("float32"))


# Shapes.


def test_reshape_stays_where_the_memory_is(place):
    array = sample("float32", (4, 6))
    buffer = at(place, array)
    view = buffer.reshape(8, -1)
    assert view.ptr == buffer.ptr
    assert_at(view, place)
    view[...] = -array.reshape(8, 3)
    np.testing.assert_array_equal(buffer.get(), -array)
    part = buffer[:, ::4]
    with pytest.raises(ValueError, match="copy is False"):
        part.reshape(2, 4, copy=False).close()
    for made in (part.reshape(2, 4), part.reshape(2, 4, copy=True)):
        assert_at(made, place)
        np.testing.assert_array_equal(made.get(), -array[:, ::4].reshape(2, 4))


@pytest.mark.parametrize("check", ["", "raise"])
@pytest.mark.parametrize("seed", range(2))
def test_a_walk_with_forks_and_captures(seed, check):
    said = run_script(
        "parked_walk", seed, scaled(2000, 300), folder=SCRIPTS, env={"HAMR_CHECK": check}
    )
    assert said.endswith("done\n")
