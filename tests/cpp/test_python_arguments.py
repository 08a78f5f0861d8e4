"""hamr::buffer as arguments and results of functions that pybind11 and nanobind bind."""

import functools
import gc
import sys
import time
import weakref

import numpy as np
import pytest

import hamr
from tests.support.extension_modules import (
    CPP,
    compile_with_nanobind,
    compile_with_pybind11,
    load,
    loading,
)
from tests.support.processes import run_code, scaled

COMPILERS = {"bound_pybind11": compile_with_pybind11, "bound_nanobind": compile_with_nanobind}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles a module once."""
    return functools.cache(
        lambda name: COMPILERS[name](CPP / f"{name}.cpp", tmp_path_factory.mktemp(name))
    )


@pytest.fixture(scope="module", params=COMPILERS)
def path(request, compiled):
    return compiled(request.param)


@pytest.fixture(scope="module")
def bound(path):
    return load(path)


@pytest.fixture(scope="module")
def bound_by_pybind11(compiled):
    """Which alone gives functions pointers."""
    return load(compiled("bound_pybind11"))


def references():
    gc.collect()
    return hamr.stats()["references"]


def test_the_same_memory(bound):
    array = np.arange(6, dtype="f4").reshape(2, 3)
    buffer = hamr.buffer(array)
    for given in (array, buffer, hamr.buffer(buffer)):
        assert bound.address(given) == array.ctypes.data
        assert bound.total(given) == 15
    bound.scale(buffer, 2)
    bound.scale_alone(array, 2)
    assert array.tolist() == [[0, 4, 8], [12, 16, 20]]
    passed = bound.pass_on(buffer)
    assert type(passed) is hamr.Buffer
    assert passed.shape == (2, 3)
    np.asarray(passed)[0] = 1
    assert array[0].tolist() == [1, 1, 1]


def test_structs_are_bytes(bound):
    made = bound.make_particles(3)
    dtype = np.dtype([("mass", "f8"), ("at", "f4", 3), ("index", "i4")])
    array = np.asarray(made).view(dtype)
    assert (made.dtype, len(made), array["at"][2].tolist()) == ("uint8", 72, [2, 3, 4])
    array["mass"][1] = 4
    assert bound.mass(made) == bound.mass(array.view("u1")) == 7
    with pytest.raises(TypeError, match="13 bytes: accepted is one row of elements of 24 bytes"):
        bound.mass(np.zeros(13, "u1"))
    with pytest.raises(TypeError, match="72 bytes: accepted is one row"):
        bound.mass(np.zeros((3, 24), "u1"))
    with pytest.raises(TypeError, match="elements are float32: accepted are uint8"):
        bound.mass(np.zeros(24, "f4"))


def test_memory_of_cpp(bound):
    made = bound.make(4, 1.5)
    assert (np.asarray(made).tolist(), made.dtype) == ([1.5] * 4, "float32")
    assert made.allocator == hamr.Allocator.malloc
    adopted, before = bound.adopt(3), bound.deleted()
    view = np.asarray(adopted)
    view[:] = 4
    del adopted
    assert bound.total_of_either(view) == 4
    assert bound.deleted() == before
    del view
    gc.collect()
    assert bound.deleted() == before + 1


def test_a_container_changes_alone(bound):
    array = np.ones(3, "f4")
    assert bound.grow(array) == 6
    assert array.tolist() == [1, 1, 1]


READ_ONLY = np.ones(3, "f4")
READ_ONLY.flags.writeable = False


def test_read_only_memory(bound):
    assert bound.total(READ_ONLY) == 3
    for function in (bound.scale, bound.scale_alone):
        with pytest.raises(ValueError, match="read-only"):
            function(READ_ONLY, 2)
    assert READ_ONLY.tolist() == [1, 1, 1]


def test_other_elements_are_refused(bound):
    """Unless an overload has them. In a container no more is said than what is accepted."""
    double = np.full(3, 2.5)
    assert bound.total_of_either(double) == 2.5
    assert bound.total_of_either(np.ones(3, "f4")) == 3
    with pytest.raises(TypeError, match="are float64: accepted are float32"):
        bound.total(double)
    with pytest.raises(TypeError, match="int32"):
        bound.total_of_either(np.ones(3, "i4"))
    with pytest.raises(TypeError, match="float32"):
        bound.total_of_all([np.ones(3, "f4"), double])


@pytest.mark.parametrize("wrong", [None, 3, "text", [1.0]], ids=repr)
def test_what_has_no_elements_is_refused(wrong, bound):
    with pytest.raises(TypeError, match=r"(?s)hamr\.Buffer, .float32.*Invoked with"):
        bound.total(wrong)
    with pytest.raises(TypeError, match=r"hamr\.Buffer, .float32"):
        bound.scale(wrong, 2)


NUMBERS = np.arange(8.0)
STRIDED = {
    "every second": NUMBERS[:7:2],
    "backwards": NUMBERS[::-1],
    "transposed": NUMBERS[:6].reshape(2, 3).T,
    "a column": NUMBERS.reshape(2, 4)[:, 1],
    "repeated": np.broadcast_to(NUMBERS[:2], (3, 2)),
}


@pytest.mark.parametrize("array", STRIDED.values(), ids=STRIDED)
def test_elements_with_strides_are_read(array, bound):
    """By a copy, which functions go through from data() on."""
    for given in (array, hamr.buffer(array)):
        assert bound.sum_plainly(given) == array.sum()
        assert bound.sum_by_value(given) == array.sum()


@pytest.mark.parametrize("array", STRIDED.values(), ids=STRIDED)
def test_elements_with_strides_are_not_written(array, bound):
    """A function that may write goes through them from data() on, too."""
    before = array.copy()
    with pytest.raises(ValueError, match=r"one after the other|read-only"):
        bound.add_plainly(array, 1)
    assert (array == before).all()


def test_hamrs_errors_are_pythons(bound):
    with pytest.raises(ValueError, match="allocator is 99"):
        bound.throw_value()
    with pytest.raises(hamr.OutOfMemory) as raised:
        bound.throw_memory()
    assert raised.value.size == 1 << 52
    if not hamr.backends()["cuda"]:
        with pytest.raises(hamr.BackendUnavailable) as raised:
            bound.throw_no_device()
        assert raised.value.backend == "cuda"
    with pytest.raises(IndexError, match="not hamr's"):
        bound.throw_other()


def test_const_is_read_only(bound):
    model = bound.Model()
    for shared in (model.fixed, model.constant()):
        assert shared.readonly
        assert not np.asarray(shared).flags.writeable
        assert shared.ptr == model.field.ptr
    for shared in (model.field, model.changing()):
        np.asarray(shared)[0] += 1
    assert np.asarray(model.fixed)[:2].tolist() == [3, 1]
    assert not bound.make(2, 1).readonly


@pytest.mark.parametrize("size", [3, 7])
def test_a_member_of_another_size_leaves_arrays_alone(size, bound):
    model = bound.Model()
    array = np.asarray(model.field)
    model.field = np.arange(float(size))
    assert array.tolist() == [1] * 5
    assert np.asarray(model.field).tolist() == list(range(size))


def test_pointers(bound_by_pybind11):
    bound = bound_by_pybind11
    array = np.ones(4)
    assert bound.sum_of_pointer(array) == 4
    assert bound.sum_of_pointer(NUMBERS[::2]) == 12
    assert bound.sum_of_pointer(None) == -1
    bound.add_to_pointer(array)
    assert bound.sum_of_shared(array) == 8
    assert bound.sum_of_shared(None) == -1
    shared = bound.add_to_shared(array)
    assert shared.ptr == array.ctypes.data
    assert array.tolist() == [3] * 4
    assert np.asarray(bound.make_pointer(False)).tolist() == [3, 3]
    assert bound.make_pointer(True) is None
    for wrong in (array[::2], READ_ONLY.astype("f8"), np.ones(3, "f4")):
        if wrong.dtype == "f8" and wrong.flags.c_contiguous:
            wrong.flags.writeable = False
        with pytest.raises((ValueError, TypeError)):
            bound.add_to_shared(wrong)


def test_closed_buffers_are_refused(bound):
    closed = hamr.Buffer(3, "f4")
    closed.close()
    with pytest.raises(hamr.FreedBuffer, match="closed"):
        bound.total(closed)
    with pytest.raises((TypeError, hamr.FreedBuffer)):
        bound.total_of_all([closed])


def test_hand_overs_leak_nothing(bound):
    array, double, before = np.ones(5, "f4"), np.ones(5), references()
    buffer = hamr.buffer(array)
    counts = [sys.getrefcount(x) for x in (array, buffer, double, READ_ONLY)]
    for i in range(scaled(100_000, 200)):
        bound.pass_on(buffer)
        if i % 16 == 0:
            bound.make(3, 1)
            bound.adopt(2)
            bound.total_of_all([buffer, array])
            with pytest.raises(TypeError):
                bound.total(double)
            with pytest.raises(TypeError):
                bound.total_of_all([array, double])
            with pytest.raises(ValueError, match="read-only"):
                bound.scale(READ_ONLY, 2)
    assert [sys.getrefcount(x) for x in (array, buffer, double, READ_ONLY)] == counts
    del buffer
    assert references() == before


def test_a_thread_without_python_gives_memory_back(bound):
    """The owner goes soon after, though hamr is not called again."""
    array, before = np.ones(7, "f4"), references()
    owner = weakref.ref(array)
    bound.hold(array)
    bound.hold(bound.make(5, 1))
    del array
    gc.collect()
    assert owner() is not None
    bound.drop()
    until = time.monotonic() + 30
    while owner() is not None and time.monotonic() < until:
        time.sleep(0.001)
    assert owner() is None
    assert references() == before


def test_threads_read_an_array_at_once(bound):
    """Whichever of them has the core told of it: once."""
    before = references()
    for _ in range(scaled(300, 5)):
        array = np.arange(5, dtype="f4")
        assert bound.totals_in_threads(array, 4) == [20] * 4
    assert references() == before


HOLDING = """
import numpy, hamr
for n in range(10):
    for buffer in (numpy.ones(n, "f4"), hamr.Buffer(n, "f4"), m.make(n, 1)):
        m.hold(buffer)
"""


def test_the_interpreter_ends_while_cpp_has_buffers(path):
    """Whose destructors run afterwards."""
    run_code(loading(path) + HOLDING)
