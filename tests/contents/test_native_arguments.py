"""The C extension's functions get what the package's own callers give them, and believe none."""

import gc
import threading
import weakref

import numpy as np
import pytest

import hamr
from hamr import _native
from hamr._base.library import core

MALLOC, HOST = hamr.Allocator.malloc, -1
WIDE = [2**32, 2**32 + 1, -(2**32) + 1, 2**31, -(2**31) - 1, 2**40]


@pytest.fixture
def references():
    """As many references afterwards as before."""
    gc.collect()
    before = core().LiveReferences()
    yield
    gc.collect()
    assert core().LiveReferences() == before


def arrays(buffer):
    """Each function that reads a second array, with that one to be given."""
    return [
        lambda other: _native.append(buffer, other),
        lambda other: _native.assign(buffer, other),
        lambda other: _native.set_elements(buffer, 0, other, 0, 3),
        lambda other: _native.write_elements(buffer, other),
    ]


@pytest.mark.usefixtures("references")
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("kind", ["buffer", "handle", "view", "itself"])
def test_an_array_that_may_change_is_read_as_it_is(number, kind):
    buffer, other = hamr.Buffer(3, fill=1.0), hamr.Buffer(3, fill=2.0)
    if kind == "itself":
        other = buffer
    given = {"handle": other.get_host_accessible(), "view": other[::-1]}.get(kind, other)
    value = float(np.asarray(other)[0])
    arrays(buffer)[number](given)
    assert np.asarray(buffer)[-3:].tolist() == [value] * 3
    given.close()
    with pytest.raises(hamr.FreedBuffer):
        arrays(hamr.Buffer(3))[number](given)


@pytest.mark.parametrize("number", range(4))
def test_an_array_may_be_given_up_while_it_is_read(number):
    n = 1 << 20
    for _ in range(10):
        buffer, other = hamr.Buffer(n, "float32", fill=1), hamr.Buffer(n, "float64", fill=2)
        functions = arrays(buffer)
        functions[2] = lambda x, b=buffer: _native.set_elements(b, 0, x, 0, n)
        thread = threading.Thread(target=functions[number], args=(other,))
        thread.start()
        while not buffer._changing and thread.is_alive():
            pass
        other.free()
        thread.join()
        assert np.asarray(buffer)[-1] == 2


@pytest.mark.usefixtures("references")
@pytest.mark.parametrize("wide", WIDE)
def test_numbers_that_do_not_fit_are_refused(wide):
    b = hamr.Buffer(2, fill=1.0)
    calls = [
        lambda: _native.move(b, wide, HOST),
        lambda: _native.move(b, MALLOC, wide),
        lambda: _native.copy(hamr.Buffer, b, wide, HOST, b._element),
        lambda: _native.copy(hamr.Buffer, b, MALLOC, wide, b._element),
        lambda: _native.copy(hamr.Buffer, b, MALLOC, HOST, wide),
        lambda: _native.reshape(hamr.Buffer, b, (2, 1), wide),
        lambda: _native.create(hamr.Buffer, wide, MALLOC, HOST, 0, 1, 2, None),
        lambda: _native.create(hamr.Buffer, b._element, wide, HOST, 0, 1, 2, None),
        lambda: _native.create(hamr.Buffer, b._element, MALLOC, wide, 0, 1, 2, None),
        lambda: _native.create(hamr.Buffer, b._element, MALLOC, HOST, 0, wide, 2, None),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"{wide}.*32 bits"):
            call()
    assert np.asarray(b).tolist() == [1, 1]


def test_exceptions_must_be_classes():
    for classes in [(1,) * 9, (int,) * 9, (ValueError,), None, [ValueError] * 9]:
        with pytest.raises(TypeError, match="exceptions"):
            _native.set_hooks(lambda: None, classes)
    with pytest.raises(ValueError, match="-3"):
        hamr.Buffer(-3)


@pytest.mark.usefixtures("references")
def test_changes_keep_no_argument():
    buffer, other = hamr.Buffer(3), hamr.Buffer(3)
    ended = weakref.ref(other)
    for call in arrays(buffer):
        call(other)
        with pytest.raises(TypeError):
            _native.set_elements(buffer, "a", other, 0, 3)
    del other
    assert ended() is None
