"""Arrow's C data interfaces: hamr's memory out, and others' in, by structs made here."""

import ctypes
import gc
import threading

import ml_dtypes
import numpy as np
import pytest

import hamr
from hamr._protocols import dispatch
from tests.support import arrow_structs as structs
from tests.support.arrow_structs import HostArray, Only
from tests.support.processes import run_code

DTYPES = sorted(structs.FORMATS)
METHODS = ["__arrow_c_array__", "__arrow_c_device_array__"]


def live():
    gc.collect()
    hamr.Buffer(1)  # drops what other threads have finished with
    host = hamr.stats()["spaces"]["host"]
    return host["live"], host["adopted"]


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters as it found them, and releases nothing twice."""
    before = live()
    yield
    assert live() == before
    assert structs.stray == []


def export(b, method="__arrow_c_array__"):
    """The two structs in the capsules."""
    return tuple(map(structs.inside, getattr(b, method)()))


# Out.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_the_structs_say(dtype, method, allocator):
    b = hamr.Buffer(5, dtype, allocator, data=np.arange(5))
    schema, struct = export(b, method)
    array = structs.array_of(struct)
    assert (schema.format.decode(), schema.name, schema.flags) == (structs.FORMATS[dtype], b"", 2)
    absent = schema.metadata, schema.n_children, schema.children, schema.dictionary
    assert absent == (None, 0, None, None)
    assert (array.length, array.null_count, array.offset) == (5, 0, 0)
    assert (array.n_buffers, array.n_children, array.children, array.dictionary) == (
        2,
        0,
        None,
        None,
    )
    assert (ctypes.c_void_p * 2).from_address(array.buffers)[:] == [None, b.ptr]
    assert structs.values(array, dtype) == [0, 1, 2, 3, 4]


def test_the_place_of_host_memory(allocator):
    struct = export(hamr.Buffer(3, "f4", allocator), "__arrow_c_device_array__")[1]
    assert (struct.device_type, struct.device_id, struct.sync_event) == (structs.CPU, -1, None)
    assert struct.reserved[:] == [0, 0, 0]


@pytest.mark.parametrize("method", METHODS)
def test_handles_and_parts(method):
    b = hamr.Buffer((3, 4), "i4", data=np.arange(12).reshape(3, 4))
    for x, first in ((b[1], 4), (b[1, 2:], 6), (b[2].get_host_accessible(), 8), (b[:, 1][2:], 9)):
        array = structs.array_of(export(x, method)[1])
        assert structs.data_of(array) == x.ptr == b.ptr + 4 * first
        assert structs.values(array, "i4") == np.asarray(x).tolist()


@pytest.mark.parametrize("make", [
    lambda: hamr.Buffer(0, "f4"), lambda: hamr.Buffer(9, "f4")[3:3], lambda: hamr.buffer(b""),
    lambda: hamr.buffer(np.zeros((0, 3)))[:, 1],
])  # fmt: skip
def test_no_elements(make):
    array = export(make())[1]
    assert (array.length, array.n_buffers, array.null_count) == (0, 2, 0)


def test_a_freed_buffer_is_empty():
    b = hamr.Buffer(3, "f4")
    b.free()
    array = export(b)[1]
    assert (array.length, structs.data_of(array)) == (0, 0)


REFUSED = {
    "no dimension": (lambda: hamr.Buffer((), "f4"), ValueError, r"no dimension.*buf\[None\]"),
    "two dimensions": (lambda: hamr.Buffer((2, 3)), ValueError, r"2 dimensions.*reshape"),
    "strided": (lambda: hamr.Buffer(6)[::2], ValueError, r"gaps.*copy\(\)"),
    "reversed": (lambda: hamr.Buffer(6)[::-1], ValueError, r"copy\(\)"),
    "repeated": (
        lambda: hamr.buffer(np.broadcast_to(np.zeros(1), (4,))), ValueError, r"copy\(\)",
    ),
    "bool": (lambda: hamr.Buffer(3, "?"), TypeError, r"bool.*astype\(\"uint8\"\)"),
    "complex": (lambda: hamr.Buffer(3, "c8"), TypeError, "no format in Arrow.*float64"),
    "bfloat16": (lambda: hamr.Buffer(3, ml_dtypes.bfloat16), TypeError, "no format in Arrow"),
    "float8": (lambda: hamr.Buffer(3, "float8_e4m3fn"), TypeError, "no format in Arrow"),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("make", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_shared(make, error, words, method):
    b = make()
    for x in (b, b.get_host_accessible()):
        with pytest.raises(error, match=words):
            getattr(x, method)()


@pytest.mark.parametrize("method", METHODS)
def test_a_closed_buffer(method):
    b = hamr.Buffer(3)
    handle = b.get_host_accessible()
    for x in (b, handle):
        x.close()
        with pytest.raises(hamr.FreedBuffer):
            getattr(x, method)()


def test_the_advice_of_the_messages_works():
    assert export(hamr.Buffer((), "f4")[None])[1].length == 1
    assert export(hamr.Buffer((2, 3))[0])[1].length == 3
    assert export(hamr.Buffer(6)[::2].copy())[1].length == 3
    assert export(hamr.Buffer(3, "?", fill=1).astype("uint8"))[0].format == b"C"
    assert export(hamr.Buffer(4)[3::2])[1].length == 1, "a length of one has no stride"


def test_arguments():
    b = hamr.Buffer(3, "f4")
    request = hamr.Buffer(3, "i8").__arrow_c_array__()[0]
    for method in METHODS:
        share = getattr(b, method)
        for pair in (share(None), share(request), share(requested_schema=request)):
            assert structs.inside(pair[0]).format == b"f"
        assert structs.inside(request).release, "a request stays its owner's"
        with pytest.raises(TypeError, match="requested_schema is 3"):
            share(3)
        with pytest.raises(TypeError, match="requested_schema"):
            share(share()[1])
        with pytest.raises(TypeError, match="twice"):
            share(None, requested_schema=None)
        with pytest.raises(TypeError, match="at most one positional argument"):
            share(None, None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'later'"):
        b.__arrow_c_array__(later=None)
    assert b.__arrow_c_device_array__(None, later=None, much_later=None)
    with pytest.raises(NotImplementedError, match=r"'later'.*3"):
        b.__arrow_c_device_array__(earlier=None, later=3)


# How long what went out lives.


@pytest.mark.parametrize("method", METHODS)
def test_capsules_that_nobody_consumes(method):
    b = hamr.Buffer(10, fill=1)
    before = live()
    pair = getattr(b, method)()
    b.close()
    assert live() == before
    del pair
    assert live()[0] == before[0] - 1


CHANGES = {
    "grow": lambda b: b.resize(10**6),
    "free": lambda b: b.free(),
    "close": lambda b: b.close(),
    "move": lambda b: b.move("cpp"),
    "append": lambda b: b.append(np.zeros(10**5)),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_moved_array_outlives_the_buffer(change, method):
    b = hamr.Buffer(1000, "f4", fill=2)
    before = live()
    pair = getattr(b, method)()
    moved = structs.move(pair[1])
    del pair
    change(b)
    del b
    refill = [hamr.Buffer(1000, "f4", fill=9) for _ in range(8)]
    assert structs.values(structs.array_of(moved), "f4") == [2] * 1000
    del refill
    assert live() == before
    structs.release(moved)
    assert not structs.array_of(moved).release
    assert live()[0] == before[0] - 1


def test_a_release_on_a_thread_that_python_never_saw():
    before = live()
    moved = [structs.move(hamr.Buffer(1000).__arrow_c_array__()[1]) for _ in range(20)]
    assert live()[0] == before[0] + 20
    for array in moved:
        structs.release_on_a_thread(array)
    assert live() == before


def test_a_release_ends_an_owner_of_foreign_memory():
    class Owner(bytearray):
        pass

    array = structs.move(hamr.buffer(owner := Owner(b"1234")).__arrow_c_array__()[1])
    with pytest.raises(BufferError):
        owner.append(1)
    structs.release_on_a_thread(array)
    live()
    owner.append(1)


def test_a_destructor_leaves_the_error_under_way():
    class Bad:
        def __del__(self):
            try:
                raise OSError
            except OSError:
                pass

    memory = np.ones(4)

    def share():
        pair = hamr.Buffer.from_pointer(memory.ctypes.data, 4, owner=Bad()).__arrow_c_array__()
        raise ZeroDivisionError(len(pair))

    with pytest.raises(ZeroDivisionError):
        share()


@pytest.mark.parametrize("when", ["in a handler", "after the interpreter", "never"])
def test_a_release_at_the_end(when):
    """C's exit handlers, the last one first, run when the interpreter is gone.

    The first one prints the bytes of release, of which none is left behind.
    """
    releases = {
        "in a handler": "show(); atexit.register(structs.release, moved)",
        "after the interpreter": "show(); at_exit(moved.release, at)",
        "never": "pass",
    }
    for source in ("hamr.Buffer(1000, fill=1)", "hamr.buffer(bytearray(1000))"):
        output = run_code(
            f"""
import atexit, ctypes
import hamr
from tests.support import arrow_structs as structs
from tests.support.arrow_structs import libc

def at_exit(function, argument):
    libc.__cxa_atexit(ctypes.c_void_p(function), ctypes.c_void_p(argument), None)

def show():
    at_exit(ctypes.cast(libc.puts, ctypes.c_void_p).value, at + structs.Array.release.offset)

at = libc.malloc(ctypes.sizeof(structs.Array))
moved = structs.Array.from_address(at)
ctypes.memmove(at, ctypes.byref(structs.move({source}.__arrow_c_array__()[1])), 80)
kept = {source}.__arrow_c_device_array__()
{releases[when]}
""",
        )
        assert output == ("" if when == "never" else "\n")


def test_across_a_fork():
    run_code(
        """
import gc, os
import hamr
from tests.support import arrow_structs as structs
b = hamr.Buffer(1000, "f4", fill=2)
moved = structs.move(b.__arrow_c_array__()[1])
source = structs.HostArray()
shared = hamr.buffer(source)
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
assert structs.values(moved, "f4") == [2] * 1000
assert str(shared) == "{0, 1, 2, 3, 4, 5}"
again = hamr.buffer(structs.Only(b))
assert again.ptr == b.ptr and again[9].item() == 2
structs.release(moved)
shared.close()
gc.collect()
hamr.Buffer(1)
assert source.releases == 1 and structs.stray == []
""",
    )


def test_many_threads_share_one_buffer():
    b, problems = hamr.Buffer(100, "i8", fill=7), []

    def work(number):
        try:
            for i in range(200):
                moved = structs.move(b.__arrow_c_array__()[1])
                shared = hamr.buffer(Only(b))
                assert structs.values(moved, "i8") == [7] * moved.length
                structs.release(moved)
                assert shared.size() in (100, 1000)
                if number == 0:
                    b.resize(1000 if i % 2 else 100, 7)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


# Which protocol is taken.


def test_protocols_in_their_order():
    names = [name for name, _ in dispatch.PROTOCOLS]
    assert names[-3:] == [*METHODS[::-1], "__arrow_c_stream__"]
    assert [name for name, _ in dispatch._PLAIN] == ["buffer", "__array_interface__"]

    b = hamr.Buffer(3, "f4")

    class Both(bytearray):
        __arrow_c_array__ = b.__arrow_c_array__

    assert hamr.buffer(Both(b"1234")).source_protocol == "buffer"
    both = Only(b, *METHODS)
    assert hamr.buffer(both).source_protocol == "__arrow_c_device_array__"
    both.__arrow_c_device_array__ = None
    assert hamr.buffer(both).source_protocol == "__arrow_c_array__"
    with pytest.raises(TypeError, match="__arrow_c_stream__ "):
        hamr.buffer(HostArray)  # a class


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(dtype, method):
    b = hamr.Buffer(5, dtype, data=np.arange(5))
    shared = hamr.buffer(Only(b, method), stream=None, sync="async")
    assert (shared.ptr, shared.shape, shared.dtype) == (b.ptr, (5,), np.dtype(dtype))
    assert (shared.readonly, shared.source_protocol, shared.allocator.name) == (
        True,
        method,
        "malloc",
    )
    b.close()
    assert np.asarray(shared).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        shared.fill(1)


def test_operands_of_other_operations():
    b = hamr.Buffer(3, "f4", fill=1)
    b.append(HostArray())
    b[:3] = HostArray(np.arange(3, dtype="i8"))
    assert np.asarray(b).tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5]
