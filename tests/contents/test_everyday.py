"""What a newcomer types: messages name what was given, and printing tells what is there."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import hamr


@pytest.fixture
def b():
    return hamr.Buffer(18, "f4", fill=1)


ACCEPTED = "accepted are a number, a list of numbers, an array or a hamr.Buffer"
MESSAGES = [
    (lambda b: b.get(np.zeros(2), start=100), IndexError, "start is 100: accepted are 0 ... 18"),
    (lambda b: b.get(np.zeros(2), start=-1), IndexError, "start is -1: accepted are 0 ... 18"),
    (lambda b: b.fill("a"), TypeError, f"value is 'a', a str: {ACCEPTED}"),
    (lambda b: b.append(None), TypeError, f"x is None, a NoneType: {ACCEPTED}"),
    (lambda b: b.append("12"), TypeError, f"x is '12', a str: {ACCEPTED}"),
    (lambda b: b.__setitem__(0, "3"), TypeError, f"value is '3', a str: {ACCEPTED}"),
    (lambda b: b.set({}), TypeError, f"x is {{}}, a dict: {ACCEPTED}"),
    (lambda b: b.assign(object), TypeError, "x is <class 'object'>, a type: "),
    (lambda b: b.resize(20, "x"), TypeError, f"value is 'x', a str: {ACCEPTED}"),
    (lambda b: hamr.Buffer(3, data="abc"), TypeError, f"data is 'abc', a str: {ACCEPTED}"),
    (lambda b: hamr.Buffer(3, fill="abc"), TypeError, f"fill is 'abc', a str: {ACCEPTED}"),
    (lambda b: hamr.Buffer(3, str), TypeError, "strings.*accepted are bool, int8, .*float32"),
    (lambda b: b.fill(), TypeError, r"^fill\(\) missing"),
    (lambda b: b.reshape(copy=1), TypeError, "copy is 1"),
    (lambda b: b.__delitem__(0), TypeError, r"elements of a buffer cannot be deleted: .*resize"),
    (lambda b: b[np.ones(18, bool)], TypeError, r"mask.*numpy\.asarray\(b\)\[index\]"),
    (lambda b: b[np.array([0, 1])], TypeError, r"integers, slices.*numpy\.asarray\(b\)\[index\]"),
    (lambda b: b[[0, 1]], TypeError, r"integers, slices.*numpy\.asarray\(b\)\[index\]"),
    (lambda b: b[1.0], TypeError, "index is 1.0: accepted are integers"),
    (lambda b: hamr.buffer([1, 2, 3]), TypeError, r"list.*no memory.*hamr\.array\(\[1, 2, 3\]\)"),
    (lambda b: hamr.buffer(3.5), TypeError, r"float.*no memory.*hamr\.array\(3\.5\)"),
    (lambda b: hamr.buffer(range(3)), TypeError, r"no memory.*hamr\.array\(range\(0, 3\)\)"),
]


@pytest.mark.parametrize("number", range(len(MESSAGES)))
def test_messages(b, number):
    operation, kind, words = MESSAGES[number]
    with pytest.raises(kind, match=words) as caught:
        operation(b)
    message = str(caught.value)
    assert "memoryview" not in message
    assert "Contents" not in message
    assert "<f4" not in message
    assert b.get().tolist() == [1] * 18


def test_long_values_are_shortened(b):
    with pytest.raises(TypeError) as caught:
        b.append("x" * 10_000)
    assert len(str(caught.value)) < 400


def test_the_element_cannot_be_deleted_by_the_statement(b):
    with pytest.raises(TypeError, match="cannot be deleted"):
        del b[0]


def test_allocators_print_as_their_names(b):
    assert f"{b.allocator} {b.transfer}" == "malloc sync_host"
    assert str(b.allocator) == "malloc"
    assert f"{b.allocator:d} {b.allocator:>8}|{int(b.allocator)}" == "1   malloc|1"
    assert "%s %d" % (b.allocator, b.allocator) == "malloc 1"  # noqa: UP031
    assert str(hamr.Transfer.async_) == "async_"


def test_two_dimensions_print_as_two():
    two = hamr.buffer(np.arange(6).reshape(2, 3))
    assert str(two) == "{{0, 1, 2},\n {3, 4, 5}}"
    assert str(two[:, :1]) == "{{0},\n {3}}"
    assert str(hamr.buffer(np.arange(6).reshape(2, 3).T)) == "{{0, 3},\n {1, 4},\n {2, 5}}"
    three = hamr.buffer(np.arange(8).reshape(2, 2, 2))
    assert str(three) == "{{{0, 1},\n  {2, 3}},\n\n {{4, 5},\n  {6, 7}}}"
    assert str(hamr.Buffer((2, 0))) == str(hamr.Buffer((0, 2))) == "{}"
    assert str(hamr.buffer(np.arange(10).reshape(1, 10))) == "{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}"
    assert str(hamr.buffer(np.array([[1 + 2j, 2]]))) == "{{(1+2j), (2+0j)}}"
    shown = io.StringIO()
    with redirect_stdout(shown):
        two.print()
    assert shown.getvalue().endswith("} {{0, 1, 2},\n {3, 4, 5}}\n")


@pytest.mark.parametrize("shape", [(0, 2**61), (2**61, 0), (2, 0, 2**60)])
def test_no_elements_in_many_rows(shape, capsys):
    none = hamr.Buffer(shape, "u1")
    assert str(none) == f"{none}" == "{}"
    assert repr(none) == f"hamr.Buffer([], shape={shape}, uint8, malloc)"
    none.print()
    assert capsys.readouterr().out.endswith("{}\n")


def test_many_elements_in_two_dimensions_are_shortened():
    array = np.arange(10_000).reshape(100, 100)
    assert str(hamr.buffer(array)) == (
        "{{0, 1, 2, ..., 97, 98, 99},\n"
        " {100, 101, 102, ..., 197, 198, 199},\n"
        " {200, 201, 202, ..., 297, 298, 299},\n"
        " ...,\n"
        " {9700, 9701, 9702, ..., 9797, 9798, 9799},\n"
        " {9800, 9801, 9802, ..., 9897, 9898, 9899},\n"
        " {9900, 9901, 9902, ..., 9997, 9998, 9999}}"
    )
    narrow = str(hamr.buffer(array.reshape(5000, 2)))
    assert (
        narrow
        == "{{0, 1},\n {2, 3},\n {4, 5},\n ...,\n {9994, 9995},\n {9996, 9997},\n {9998, 9999}}"
    )
    endless = hamr.buffer(np.broadcast_to(np.float32(1), (4,) * 20))
    assert "..." in str(endless)
    assert len(str(endless)) < 10_000


def test_one_element_is_formatted_as_a_number(b):
    assert f"{b[0]:.2f}" == "1.00"
    assert f"{hamr.Buffer((), 'i4', fill=255):#x}" == "0xff"
    assert f"{hamr.Buffer((1, 1), 'i4', fill=5):03d}" == "005"
    assert f"{b[:2]}" == "{1, 1}"
    assert f"{b.get_host_accessible()[0]:.1f}" == "1.0"
    with pytest.raises(TypeError, match=r"format '\.2f'.*18 elements.*numpy\.asarray\(b\)"):
        f"{b:.2f}"


def test_buffers_and_handles_name_types_alike():
    for dtype in ("f4", "bfloat16", "?"):
        made = hamr.Buffer((2, 3), dtype)
        assert str(made.dtype) in repr(made)
        assert f"(2, 3) {made.dtype} malloc" in repr(made.get_host_accessible())
