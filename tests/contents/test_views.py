"""Views without a copy, of buffers and of handles, beside NumPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hamr
from tests.support import producers
from tests.support.producers import assert_same

SHAPES = [(), (0,), (5,), (2, 3), (1, 4, 1), (2, 0, 3), (2, 3, 4), (1, 1)]


def ramp(shape, dtype="i4"):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def both(array):
    """A buffer that shares the array, and a handle of it."""
    shared = hamr.buffer(array)
    return shared, shared.get_host_accessible()


def assert_views(found, expected, source):
    assert type(found) is type(source)
    assert found.shape == expected.shape
    if expected.size:
        for n, step, wanted in zip(found.shape, found.strides, expected.strides, strict=True):
            assert step == wanted or n == 1
    assert found.dtype == expected.dtype
    assert np.shares_memory(np.asarray(found), expected) or expected.size == 0
    np.testing.assert_array_equal(np.asarray(found), expected)


VIEWS = {
    "T": lambda a: a.T,
    "transpose": lambda a: a.transpose(),
    "transpose None": lambda a: a.transpose(None),
    "transpose axes": lambda a: a.transpose(*range(a.ndim)[::-1]),
    "transpose tuple": lambda a: a.transpose(tuple(np.roll(range(a.ndim), 1).tolist())),
    "transpose negative": lambda a: a.transpose([k - a.ndim for k in range(a.ndim)]),
    "ravel": lambda a: a.ravel(),
    "reshape": lambda a: a.reshape(-1) if len(a.shape) != 0 else a.reshape(()),
    "squeeze": lambda a: a.squeeze(),
    "squeeze axis": lambda a: a.squeeze(tuple(k for k, n in enumerate(a.shape) if n == 1)),
    "view": lambda a: a.view(),
    "view as unsigned": lambda a: a.view("u4"),
    "view as float": lambda a: a.view(np.float32),
    "ellipsis": lambda a: a[...],
    "None": lambda a: a[None],
    "None at the end": lambda a: a[..., None],
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_views(view, shape):
    array = ramp(shape)
    for source in both(array):
        assert_views(VIEWS[view](source), VIEWS[view](array), source)
    array = array.T
    if view != "ravel":
        for source in both(array):
            if view != "reshape":
                assert_views(VIEWS[view](source), VIEWS[view](array), source)


@given(producers.arrays(), st.sampled_from(["i1", "u2", "f4", "f8", "c8", "c16", "?"]))
def test_view_as_another_type(array, dtype):
    try:
        expected = array.view(dtype)
    except ValueError:
        for source in both(array):
            with pytest.raises(ValueError, match="dtype is"):
                source.view(dtype)
        return
    for source in both(array):
        found = source.view(dtype)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert np.asarray(found).tobytes() == expected.tobytes()


def test_without_elements_there_are_no_gaps():
    array = np.zeros((0, 4), "i4")[:, ::2]
    for source in both(array):
        assert source.view("i1").shape == array.view("i1").shape == (0, 8)


def test_a_view_writes_through_and_keeps_the_memory():
    array = np.zeros(4, "f4")
    b = hamr.buffer(array)
    b.view("u4")[1] = 0x3F800000
    b.reshape(2, 2).T[0, 1] = 7
    assert array.tolist() == [0, 1, 7, 0]
    view = hamr.Buffer((2, 3), "u1", fill=1).T.view()
    assert view.get().tolist() == [[1, 1]] * 3
    assert b.view("u4").capacity() == 4
    array.flags.writeable = False
    assert hamr.buffer(array).view("u1").readonly
    assert hamr.buffer(array).T.source_protocol == hamr.buffer(array).source_protocol


def test_views_of_a_subclass():
    class Named(hamr.Buffer):
        pass

    named = Named((2, 3))
    named.name = "n"
    for view in (named.T, named.ravel(), named.view("u8"), named.squeeze(), named.transpose(1, 0)):
        assert type(view) is Named
        assert view.name == "n"


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (
            lambda b: b.transpose(0),
            ValueError,
            r"axes are \(0,\): accepted is each of 0 ... 1 once",
        ),
        (lambda b: b.transpose(0, 0), ValueError, "axes are"),
        (lambda b: b.transpose(0, 2), IndexError, "axis is 2: accepted are -2 ... 1"),
        (lambda b: b.transpose("ab"), TypeError, "axis is 'ab'"),
        (lambda b: b.squeeze(0), ValueError, "axis is 0.*size 1"),
        (lambda b: b.squeeze(5), IndexError, "axis is 5"),
        (lambda b: b.squeeze("a"), TypeError, "axis is 'a'"),
        (lambda b: b[None].squeeze((0, -3)), ValueError, r"axis is \(0, -3\).*once"),
        (lambda b: b.view("f8"), ValueError, "'float64'.*multiple of 8 bytes, not 12"),
        (lambda b: b[:, ::2].view("u1"), ValueError, "without gaps"),
        (lambda b: b[0, 0].view("u1"), ValueError, "without dimensions"),
        (lambda b: b.view("nope"), TypeError, "nope"),
        (lambda b: b.reshape(7), ValueError, "7"),
    ],
)
def test_refused(make, kind, words):
    for source in both(ramp((2, 3))):
        with pytest.raises(kind, match=words):
            make(source)


def test_a_handle_is_indexed_and_read_as_a_buffer():
    array = ramp((3, 4), "f4")
    _, handle = both(array)
    for key in (
        1,
        -1,
        slice(1, None),
        (1, slice(2)),
        (..., 0),
        (None, 1),
        (slice(None), slice(3, 0, -2)),
    ):
        assert_views(handle[key], array[key], handle)
    assert [row.get().tolist() for row in handle] == array.tolist()
    assert float(handle[1, 2]) == handle[1, 2].item() == 6
    assert (int(handle[0, 1]), bool(handle[0, 1]), len(handle)) == (1, True, 3)
    copied = handle.copy()
    assert type(copied) is hamr.Buffer
    assert_same(copied, array)
    assert not np.shares_memory(np.asarray(copied), array)
    assert_same(handle.T.astype("i2"), array.T.astype("i2"))
    out = np.zeros((3, 4), "f8")
    assert handle.get(out) is out
    assert out.tolist() == array.tolist()
    assert handle.get(np.zeros(2), start=5, n=2).tolist() == [5, 6]


def test_a_handle_has_no_copies_of_its_own():
    handle = hamr.buffer(ramp((2, 3)).T).get_host_accessible()
    with pytest.raises(ValueError, match="copy"):
        handle.reshape(6)
    with pytest.raises(ValueError, match="copy"):
        handle.ravel()
    assert_same(handle.copy().ravel(), ramp((2, 3)).T.ravel())
    with pytest.raises(ValueError, match=r"copy is True.*handle\.copy\(\)"):
        handle.reshape(3, 2, copy=True)
    with pytest.raises(TypeError):
        handle[0] = 1


def test_views_of_a_handle_keep_its_memory():
    handle = hamr.Buffer((2, 3), "i4", fill=4).get_host_accessible()
    row, turned = handle[1], handle.T
    handle.close()
    assert np.asarray(row).tolist() == [4, 4, 4]
    assert np.asarray(turned).shape == (3, 2)
    assert memoryview(row).tolist() == [4, 4, 4]
    assert not row.is_temporary
    assert row.get_host_accessible().ptr == row.ptr
