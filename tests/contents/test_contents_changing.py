"""What changes a buffer's contents, beside NumPy: every operation, type, layout and value."""

import operator
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import hamr
from tests.support import producers
from tests.support.contents import on_host
from tests.support.producers import DTYPES, assert_same, cast, in_memory

# What a user may pass where hamr takes an array, made from a NumPy array.
ARRAY_KINDS = {
    "array": lambda a: a,
    "list": lambda a: a.tolist(),
    "buffer": lambda a: in_memory(a, hamr.Allocator.malloc),
    "cpp buffer": lambda a: in_memory(a, hamr.Allocator.cpp),
    "shared buffer": hamr.buffer,
    "handle": lambda a: hamr.buffer(a).get_host_accessible(),
    "interface": lambda a: producers.interface_of(a),
}
# What a user may pass where hamr takes one value.
VALUE_KINDS = {
    "Python": lambda x: x.item(),
    "NumPy": lambda x: x,
    "array": np.asarray,
    "array of one": lambda x: np.full((1, 1), x),
    "list of one": lambda x: [x.item()],
    "buffer": lambda x: hamr.buffer(np.asarray(x)),
    "handle": lambda x: hamr.buffer(np.asarray(x)).get_host_accessible(),
}
array_kinds = st.sampled_from(sorted(ARRAY_KINDS))
value_kinds = st.sampled_from(sorted(VALUE_KINDS))


@st.composite
def operands(draw, shape=None):
    """An array of tame numbers, so that every type holds them, and a form of it."""
    array = draw(producers.arrays(shape=shape, tame=True))
    kind = draw(array_kinds)
    # A list tells no shape without dimensions, nor one with a zero before the end.
    if kind == "list" and (array.ndim == 0 or 0 in array.shape[:-1]):
        kind = "array"
    given_as = ARRAY_KINDS[kind](array)
    # A list keeps numbers, not their type; an empty one has float64 elements, as in NumPy.
    return np.asarray(given_as) if kind == "list" else array, given_as


def refused(buffer, content, operand, write):
    """Whether a write was to be refused: complex numbers in a list are no real ones."""
    other, given_as = operand
    complex_list = isinstance(given_as, list) and other.size and other.dtype.kind == "c"
    if not complex_list or content.dtype.kind in "cb":
        return False
    with pytest.raises(TypeError, match="accepted are real numbers"):
        write(given_as)
    assert_same(buffer, content)
    return True


@st.composite
def values(draw):
    """A number that every type holds, as NumPy has it, and a form of it."""
    scalar = np.dtype(draw(producers.dtypes)).type(draw(st.integers(0, 127)))
    if scalar.dtype.kind == "c":  # refused by real types
        scalar = scalar.real
    return scalar, VALUE_KINDS[draw(value_kinds)](scalar)


@st.composite
def buffers(draw, tame=False, broadcast=False):
    """A buffer with an array of the same content: its own memory, or a share of an array's."""
    array = draw(producers.arrays(tame=tame, broadcast=broadcast))
    if draw(st.booleans()):
        return hamr.buffer(array), array.copy()
    return in_memory(array, draw(producers.allocators)), array.copy()


@given(buffers(), operands())
def test_append(pair, operand):
    buffer, content = pair
    other, given_as = operand
    place = buffer.allocator, buffer.transfer, buffer.dtype
    if refused(buffer, content, operand, buffer.append):
        return
    buffer.append(given_as)
    if other.size:
        content = np.concatenate([content.ravel(), cast(other, content.dtype).ravel()])
    assert_same(buffer, content)
    assert (buffer.allocator, buffer.transfer, buffer.dtype) == place
    assert buffer.capacity() >= buffer.size()


@given(buffers(), values())
def test_append_of_a_value(pair, value):
    buffer, content = pair
    scalar, given_as = value
    buffer.append(given_as)
    assert_same(buffer, np.append(content.ravel(), cast(scalar, content.dtype)))


@pytest.mark.parametrize("source", ["owned", "shared"])
def test_capacity_doubles_from_eight(source, allocator):
    buffer = hamr.Buffer(0, "int16", allocator)
    if source == "shared":
        buffer = hamr.buffer(np.zeros(0, "int16"))
    seen = []
    for i in range(70):
        buffer.append(i)
        if buffer.capacity() not in seen:
            seen.append(buffer.capacity())
    assert seen == [8, 16, 32, 64, 128]
    assert_same(buffer, np.arange(70, dtype="int16"))


@given(buffers())
def test_append_of_itself(pair):
    buffer, content = pair
    buffer.append(buffer)
    if content.size:
        assert_same(buffer, np.concatenate([content.ravel(), content.ravel()]))


@given(buffers(), operands())
def test_assign(pair, operand):
    buffer, content = pair
    other, given_as = operand
    place = buffer.allocator, buffer.transfer, buffer.dtype
    if refused(buffer, content, operand, buffer.assign):
        return
    buffer.assign(given_as)
    assert_same(buffer, cast(other, content.dtype))
    assert (buffer.allocator, buffer.transfer, buffer.dtype) == place


@given(buffers(), producers.shapes, st.one_of(st.none(), values()))
def test_resize(pair, shape, value):
    buffer, content = pair
    scalar, given_as = value or (None, None)
    buffer.resize(shape, given_as)
    assert buffer.shape == shape
    kept = min(content.size, buffer.size())
    found = on_host(buffer).ravel()
    np.testing.assert_array_equal(found[:kept], content.ravel()[:kept], strict=True)
    if value and shape != content.shape:
        expected = np.full(buffer.size() - kept, cast(scalar, content.dtype))
        np.testing.assert_array_equal(found[kept:], expected, strict=True)
    assert buffer.capacity() >= buffer.size()


@given(buffers(), st.integers(0, 40), st.one_of(st.none(), values()))
def test_reserve_keeps_everything_and_fills_new_room(pair, n, value):
    buffer, content = pair
    scalar, given_as = value or (None, None)
    before = buffer.capacity()
    buffer.reserve(n, given_as)
    assert_same(buffer, content)
    assert buffer.capacity() >= n
    if value and buffer.capacity() > max(before, content.size):
        room = buffer.capacity()
        address = buffer.ptr
        buffer.resize(room)
        assert buffer.ptr == address
        expected = np.full(room - content.size, cast(scalar, content.dtype))
        np.testing.assert_array_equal(on_host(buffer)[content.size :], expected)


@given(buffers(), operands(), st.data())
def test_set_of_a_run(pair, operand, data):
    buffer, content = pair
    other, given_as = operand
    start = data.draw(st.integers(0, other.size))
    n = data.draw(st.integers(0, min(other.size - start, content.size)))
    at = data.draw(st.integers(0, content.size - n))
    address = buffer.ptr
    if refused(buffer, content, operand, buffer.set):
        return
    buffer.set(given_as, at, start, n)
    content.reshape(-1)[at : at + n] = cast(other, content.dtype).ravel()[start : start + n]
    assert_same(buffer, content)
    assert buffer.ptr == address


@given(buffers(), st.data())
def test_set_takes_all_by_default(pair, data):
    buffer, content = pair
    n = data.draw(st.integers(0, content.size))
    at = data.draw(st.integers(0, content.size - n))
    buffer.set(np.ones(n), at=at)
    content.reshape(-1)[at : at + n] = 1
    assert_same(buffer, content)


@given(buffers(), values())
def test_fill(pair, value):
    buffer, content = pair
    scalar, given_as = value
    buffer.fill(given_as)
    assert_same(buffer, np.full_like(content, cast(scalar, content.dtype), order="C"))


@given(producers.arrays(broadcast=False), values(), st.data())
def test_setitem_of_a_value(array, value, data):
    scalar, given_as = value
    key = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
    expected = array.copy()
    hamr.buffer(array)[key] = given_as
    expected[key] = cast(scalar, array.dtype)
    np.testing.assert_array_equal(array, expected, strict=True)


@given(buffers(), st.data())
def test_setitem_broadcasts(pair, data):
    buffer, content = pair
    shape = content.shape
    key = data.draw(hnp.basic_indices(shape))
    # What broadcasts to a shape: its last dimensions, some of them of length 1.
    part = content[key].shape
    part = part[data.draw(st.integers(0, len(part))) :]
    part = tuple(data.draw(st.sampled_from([1, n])) for n in part)
    other, given_as = operand = data.draw(operands(shape=part))
    if refused(buffer, content, operand, partial(operator.setitem, buffer, key)):
        return
    buffer[key] = given_as
    content[key] = cast(other, content.dtype)
    assert_same(buffer, content)


@given(producers.arrays(shape=(7,), broadcast=False), st.data())
def test_writing_between_overlapping_views(array, data):
    buffer, expected = hamr.buffer(array), array.copy()
    to, start = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    step = data.draw(st.sampled_from([1, -1]))
    buffer[to : to + 3] = buffer[start : start + 3][::step]
    expected[to : to + 3] = expected[start : start + 3][::step].copy()
    assert_same(buffer, expected)


@given(buffers(broadcast=True), producers.allocators)
def test_move(pair, allocator):
    buffer, content = pair
    address, there = buffer.ptr, buffer.allocator == allocator
    buffer.move(allocator)
    assert buffer.allocator == allocator
    assert_same(buffer, content)
    if there:
        assert buffer.ptr == address


def test_move_to_the_same_does_nothing(allocator):
    buffer = hamr.Buffer(3, "int8", allocator)
    address = buffer.ptr
    for to in (allocator, hamr.Allocator.same, allocator.name, int(allocator)):
        buffer.move(to)
        assert buffer.ptr == address
    buffer.move("same", device=-1)
    assert (buffer.allocator, buffer.ptr) == (allocator, address)


@given(buffers(broadcast=True), buffers(broadcast=True))
def test_swap(first, second):
    a, a_content = first
    b, b_content = second
    a_place, b_place = [(x.allocator, x.ptr, x.readonly, x.source_protocol) for x in (a, b)]
    a.swap(b)
    assert_same(a, b_content)
    assert_same(b, a_content)
    assert [(x.allocator, x.ptr, x.readonly, x.source_protocol) for x in (b, a)] == [
        a_place,
        b_place,
    ]
    a.swap(a)
    assert_same(a, b_content)


def test_swap_of_many_dimensions():
    a, b = hamr.Buffer((1, 2, 1, 2, 1, 2), "i4", fill=1), hamr.Buffer(3, "f8", fill=2)
    a.swap(b)
    assert_same(a, np.full(3, 2.0))
    assert_same(b, np.ones((1, 2, 1, 2, 1, 2), "i4"))


@given(buffers(), values())
def test_free_then_use_again(pair, value):
    buffer, content = pair
    scalar, given_as = value
    place = buffer.allocator, buffer.owner, buffer.dtype
    buffer.free()
    assert_same(buffer, np.zeros(0, content.dtype))
    assert buffer.capacity() == 0
    assert buffer.ptr == 0
    buffer.resize(3, given_as)
    assert_same(buffer, np.full(3, cast(scalar, content.dtype)))
    assert (buffer.allocator, buffer.owner, buffer.dtype) == place
    assert buffer.source_protocol is None


@given(producers.arrays(broadcast=False), st.sampled_from(["append", "resize", "reserve"]))
def test_growing_a_share_leaves_the_owner_alone(array, operation):
    before = array.copy()
    array.setflags(write=False)
    buffer = hamr.buffer(array)
    if operation == "append":
        buffer.append(np.ones(3))
    else:
        getattr(buffer, operation)(array.size + 3, 1)
    assert not buffer.readonly
    buffer.fill(1)
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("operation", ["append", "resize", "assign"])
def test_growing_a_view_leaves_what_lies_behind_it_alone(operation, allocator):
    buffer = hamr.Buffer(6, "int32", allocator, data=range(6))
    view = buffer[1:3]
    {"append": view.append, "resize": lambda x: view.resize(4, 9), "assign": view.assign}[
        operation
    ]([9, 9, 9])
    assert_same(buffer, np.arange(6, dtype="int32"))


def test_what_is_shared_outlives_growth(allocator):
    buffer = hamr.Buffer(4, "float32", allocator, data=range(4))
    handle = buffer.get_host_accessible()
    array = np.asarray(buffer)
    buffer.resize(1000, 5)
    buffer.free()
    assert array.tolist() == [0, 1, 2, 3]
    assert np.asarray(handle).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_the_ends_of_each_type(dtype, allocator):
    t = np.dtype(dtype)
    if t.kind in "iu":
        ends = [int(np.iinfo(t).min), int(np.iinfo(t).max)]
    elif t.kind in "fc":
        ends = [float(np.finfo(t).min), float(np.finfo(t).max)]
    else:
        ends = [False, True]
    for end in ends:
        filled = hamr.Buffer(3, dtype, allocator, fill=end)
        assert_same(filled, np.full(3, end, t))
        filled.append(end)
        filled[0] = end
        filled.set(end, at=1)
        assert_same(filled, np.full(4, end, t))
