"""hamr/python.h: the same memory on both sides, over Python's limited API."""

import gc
import shutil
import sys
import threading
import weakref

import numpy as np
import pytest

import hamr
from hamr._base.library import library_path
from tests.support.c_programs import PROGRAMS
from tests.support.extension_modules import (
    compile_in_c,
    compile_with_cython,
    load,
    loading,
)
from tests.support.processes import launch, run_code, scaled


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return compile_in_c(PROGRAMS / "exchange.c", tmp_path_factory.mktemp("exchange"))


@pytest.fixture(scope="module")
def exchange(path):
    return load(path)


def references():
    gc.collect()
    return hamr.stats()["references"]


GRID = np.arange(24, dtype="f4").reshape(2, 3, 4)
ARRAYS = {
    "contiguous": GRID,
    "transposed": GRID.T,
    "reversed": GRID[::-1, :, ::2],
    "six dimensions": np.zeros((1, 2, 1, 3, 1, 2), "c8"),
    "no dimensions": np.array(3.5),
    "no elements": np.zeros((0, 4), "i2"),
    "bool": np.array([True, False]),
    "float16": np.ones(3, "f2"),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_c_has_what_python_has(array, exchange):
    buffer = hamr.buffer(array)
    for given in (array, buffer):
        address, element, allocator, device, _, stream, read_only, shape, strides = exchange.facts(
            given
        )
        assert (element, shape, strides) == (array.dtype.name, array.shape, buffer.strides)
        assert (allocator, device, stream) == (buffer.allocator.value, buffer.owner, 0)
        assert not read_only
        if array.size:
            assert address == array.__array_interface__["data"][0]
    back = exchange.round_trip(array)
    assert type(back) is hamr.Buffer
    assert (back.shape, back.strides, back.dtype) == (buffer.shape, buffer.strides, buffer.dtype)
    if array.size:
        assert np.shares_memory(np.asarray(back), array)


def test_what_one_side_writes_the_other_sees(exchange):
    buffer = hamr.Buffer(4, "int64", fill=1)
    back = exchange.round_trip(buffer)
    np.asarray(back)[2] = 5
    buffer[0] = 7
    assert np.asarray(back).tolist() == np.asarray(buffer).tolist() == [7, 1, 5, 1]
    exchange.keep(buffer)
    del buffer
    back.close()
    assert np.asarray(exchange.get_kept()).tolist() == [7, 1, 5, 1]
    exchange.keep(None)


def test_a_change_of_one_container_leaves_the_other(exchange):
    buffer = hamr.Buffer(4, "float32", fill=1)
    back = exchange.round_trip(buffer)
    buffer.resize(1000)
    buffer[:] = 3
    assert np.asarray(back).tolist() == [1, 1, 1, 1]


def test_read_only_memory_stays_so(exchange):
    array = np.ones(3)
    array.flags.writeable = False
    assert exchange.facts(array)[6]
    back = exchange.round_trip(array)
    with pytest.raises(ValueError, match="read-only"):
        back[0] = 2
    assert exchange.facts(b"abc")[6]


def test_a_handle_is_shared_as_what_it_is_of(exchange):
    buffer = hamr.Buffer(3, "float64", fill=2)
    with buffer.get_host_accessible() as handle:
        assert np.asarray(exchange.round_trip(handle)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("wrong", [None, 3, "text", [1.0], object()], ids=repr)
def test_what_has_no_elements_is_refused(wrong, exchange):
    before = references()
    with pytest.raises(TypeError, match=type(wrong).__name__):
        exchange.facts(wrong)
    assert references() == before


def test_errors_are_those_of_hamr(exchange):
    closed = hamr.Buffer(3)
    closed.close()
    with pytest.raises(hamr.FreedBuffer, match="closed"):
        exchange.facts(closed)
    with pytest.raises(hamr.FreedBuffer, match="released before"):
        exchange.released()
    with pytest.raises(ValueError, match="buffer is NULL"):
        exchange.get_kept()
    with pytest.raises(hamr.OutOfMemory) as told:
        exchange.too_much()
    assert told.value.size == 1 << 50


def test_hand_overs_leak_nothing(exchange):
    """In two threads, of memory of both sides, and where nothing comes of it."""
    array, wrong, before = np.ones(5), object(), references()
    counts = [sys.getrefcount(x) for x in (array, wrong, hamr.Buffer, hamr.buffer)]

    def work(count):
        buffer = hamr.buffer(array)
        for i in range(count):
            exchange.round_trip(exchange.round_trip(buffer))
            exchange.round_trip(hamr.Buffer(3))
            if i % 8 == 0:
                exchange.round_trip(array)
                with pytest.raises(TypeError):
                    exchange.facts(wrong)

    threads = [threading.Thread(target=work, args=(scaled(50_000, 100),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert references() == before
    assert [sys.getrefcount(x) for x in (array, wrong, hamr.Buffer, hamr.buffer)] == counts


def test_the_owner_of_memory_lasts_as_long_as_c_has_it(exchange):
    array = np.arange(3.0)
    alive = weakref.ref(array)
    exchange.keep(array)
    del array
    gc.collect()
    assert alive() is not None
    assert np.asarray(exchange.get_kept()).tolist() == [0, 1, 2]
    exchange.keep(None)
    assert alive() is None


def adopted():
    return hamr.stats()["allocators"].get("malloc", {"adopted": 0})["adopted"]


def test_an_array_is_counted_before_the_core_has_to_do_with_it(exchange):
    """Once, whether C alone has it, or Python as well."""
    array = np.arange(3.0)
    exchange.facts(array)  # from now on its type is known
    before = references(), adopted()
    counted = before[0] + 1, before[1] + 1
    exchange.keep(array)
    assert (references(), adopted()) == counted
    back = exchange.get_kept()
    assert (references(), adopted()) == counted
    exchange.keep(None)
    assert (references(), adopted()) == counted
    back[0] = 5
    assert array.tolist() == [5, 1, 2]
    del back
    assert (references(), adopted()) == before
    for kept in (array, array, None):  # without the core
        exchange.keep(kept)
    assert (references(), adopted()) == before


def test_arrays_that_the_buffer_protocol_refuses(exchange):
    """What they are is asked again, each time."""
    structured = np.zeros(3, [("a", "i4")])
    dates = np.zeros(3, "M8[s]")
    exchange.facts(np.zeros(3))
    for wrong in (structured, dates, structured):
        with pytest.raises((TypeError, ValueError)):
            exchange.facts(wrong)
    swapped = np.arange(3, dtype=">i4")
    with pytest.raises((TypeError, ValueError)):
        exchange.facts(swapped)


UNTOLD = """
import gc, os, weakref
import numpy as np
import hamr

def count():
    gc.collect()
    return hamr.stats()["references"]

m.facts(np.zeros(1))
array = np.arange(1000.0)
alive = weakref.ref(array)
m.keep(array)
assert count() == 1
rows = hamr.stats()["allocators"]
assert {name: row["adopted"] for name, row in rows.items()} == {"malloc": 1}
pid = os.fork()
if not pid:
    status = 1
    try:
        assert count() == 0
        del array
        m.keep(None)
        hamr.Buffer(1)
        gc.collect()
        assert alive() is None
        other = np.ones(3)
        m.keep(other)
        assert count() == 1
        assert np.shares_memory(np.asarray(m.get_kept()), other)
        m.keep(None)
        status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    os._exit(status)
assert os.waitpid(pid, 0)[1] == 0
assert count() == 1
assert np.shares_memory(np.asarray(m.get_kept()), array)
"""


def test_a_forked_child_lets_its_arrays_go(path):
    """Those that the parent's core had nothing to do with."""
    run_code(loading(path) + UNTOLD)


def test_the_core_is_told_at_once_while_it_is_traced(path):
    """So that what is printed has each array in it."""
    code = loading(path) + "import hamr, numpy as np\nm.facts(np.zeros(2))\n"
    told = "hamr.set_verbose(True)\nm.keep(np.zeros(321, 'u1'))\nhamr.set_verbose(False)\n"
    for more, count in ((told, 1), ("m.keep(np.zeros(321, 'u1'))\n", 0)):
        _, printed = launch([sys.executable, "-c", code + more], 60)
        assert printed.count("adopt malloc device -1 size 321") == count


FORKED = """
import gc, os, signal
import numpy as np
import hamr

def waited(pid):
    assert os.waitpid(pid, 0)[1] == 0

def child():
    global own, back, array_back
    signal.alarm(60)
    try:
        m.get_kept()
        raise AssertionError
    except hamr.ForkError as error:
        assert "before fork" in str(error)
    again = m.round_trip(own)
    del own, array_back
    gc.collect()
    filler = [hamr.Buffer(1000, "u1", fill=9) for _ in range(50)]
    assert np.asarray(again).tolist() == np.asarray(back).tolist() == [4] * 1000
    assert np.asarray(m.round_trip(array)).tolist() == [1, 2, 3]
    m.keep(hamr.Buffer(3, fill=2))
    assert np.asarray(m.get_kept()).tolist() == [2, 2, 2]

own = hamr.Buffer(1000, "u1", fill=4)
back = m.round_trip(own)
m.keep(own)
array = np.array([1, 2, 3])
array_back = m.round_trip(array)
for deep in range(2):
    pid = os.fork()
    if not pid:
        status = 1
        try:
            if deep:
                m.round_trip(own)
                inner = os.fork()
                if inner:
                    waited(inner)
                else:
                    child()
            else:
                child()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(status)
    waited(pid)
assert np.asarray(m.get_kept()).tolist() == [4] * 1000
"""


def test_a_forked_child_frees_nothing_twice(path):
    """Of memory that both sides had."""
    run_code(loading(path) + FORKED)


def test_the_interpreter_ends_while_c_has_buffers(path):
    code = "import sys, numpy\nm.keep(numpy.ones(1000))\nsys.mine = m.get_kept()\n"
    run_code(loading(path) + code)


OTHER_VERSION = """
import ctypes, hamr
new = ctypes.pythonapi.PyCapsule_New
new.restype = ctypes.py_object
table = (ctypes.c_uint32 * 2)(99, 8)
hamr._C_API = new(ctypes.byref(table), b"hamr._C_API", None)
try:
    m.round_trip(hamr.Buffer(1))
except ImportError as error:
    print(error)
"""


def test_an_extension_of_another_version_is_refused(path):
    """In words."""
    assert "is of version 99" in run_code(loading(path) + OTHER_VERSION)


OTHER_LIBRARY = """
import ctypes, sys
ctypes.CDLL({copy!r})
import hamr
for function in (m.round_trip, m.facts):
    try:
        function(hamr.Buffer(1))
    except ImportError as error:
        print(error)
"""


def test_another_file_of_the_library_is_refused(path, tmp_path):
    """Its handles would look the same."""
    copy = shutil.copy(library_path(), tmp_path)
    said = run_code(loading(path) + OTHER_LIBRARY.format(copy=str(copy)))
    assert said.count("another file of hamr's library") == 2


def test_cython(tmp_path):
    """By hamr's .pxd."""
    cythonized = load(compile_with_cython(PROGRAMS / "cythonized.pyx", tmp_path))
    array = np.arange(3.0)
    scaled_in_place = cythonized.scale(array, 2)
    assert array.tolist() == [0, 2, 4]
    assert np.shares_memory(np.asarray(scaled_in_place), array)
    assert np.asarray(cythonized.make(2)).tolist() == [1.5, 1.5]
    numbers = np.arange(7.0)
    grid = numbers[:6].reshape(2, 3)
    for given in (numbers, numbers[::2], numbers[::-2], grid.T, grid[:, 1]):
        assert cythonized.total(given) == given.sum()
    with pytest.raises(TypeError, match="NoneType"):
        cythonized.scale(None, 2)
    with pytest.raises(ValueError, match="must not be negative"):
        cythonized.make(-1)
