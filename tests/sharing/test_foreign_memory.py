"""Pointers of ctypes and cffi, functions that free, and buffers as ctypes' arguments."""

import ctypes
import gc
import importlib.util
import threading
from multiprocessing import shared_memory

import numpy as np
import pytest

import hamr
from tests.scripts import forking

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
c_free = ctypes.CDLL(None).free
cffi_is_absent = importlib.util.find_spec("cffi") is None


class Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double), ("y", ctypes.c_double)]


def as_pointer(a):
    return ctypes.cast(a, ctypes.POINTER(ctypes.c_double))


@pytest.mark.parametrize(
    "pointer_to",
    [
        lambda a: a,
        as_pointer,
        lambda a: ctypes.cast(a, ctypes.c_void_p),
        lambda a: ctypes.cast(a, ctypes.c_char_p),
        lambda a: ctypes.cast(a, ctypes.POINTER(Pair)),
        lambda a: Pair.from_buffer(a),
    ],
    ids=["array", "pointer", "void", "char", "pointer to struct", "struct"],
)
def test_pointers_of_ctypes(pointer_to):
    array = (ctypes.c_double * 2)(1.5, 2.5)
    pointer = pointer_to(array)
    b = hamr.Buffer.from_pointer(pointer, 2, "f8")
    assert b.ptr == ctypes.addressof(array)
    del pointer
    gc.collect()
    b[1] = 7
    assert list(array) == [1.5, 7.0]
    del array
    gc.collect()
    assert str(b) == "{1.5, 7}"


@pytest.mark.skipif(cffi_is_absent, reason="cffi is not installed")
def test_pointers_of_cffi():
    import cffi

    ffi = cffi.FFI()
    array = ffi.new("double[2]", [1.5, 2.5])
    for pointer in (array, ffi.cast("double *", array), ffi.cast("void *", array)):
        b = hamr.Buffer.from_pointer(pointer, 2, "f8", owner=array)
        assert str(b) == "{1.5, 2.5}"
    for sized in (array, ffi.new("double[]", 2)):
        with pytest.raises(ValueError, match="pointer is an array of 16 bytes"):
            hamr.Buffer.from_pointer(sized, 3, "f8")
    with pytest.raises(TypeError, match="pointer is <cdata 'int' 3>: accepted are an int"):
        hamr.Buffer.from_pointer(ffi.cast("int", 3), 2)
    b = hamr.Buffer.from_pointer(ffi.new("double[2]", [3, 4]), 2)  # which is kept
    gc.collect()
    assert str(b) == "{3, 4}"


@pytest.mark.parametrize(
    "wrong", [True, 1.5, "0x10", None, ctypes.c_double(3), ctypes.c_size_t(3), b"12345678"]
)
def test_what_is_no_pointer_is_refused(wrong):
    with pytest.raises(TypeError, match=r"^pointer is .*: accepted are an int, a pointer"):
        hamr.Buffer.from_pointer(wrong, 1)


@pytest.mark.parametrize(
    ("shape", "more"),
    [(5, {}), ((2, 3), {}), (2, {"strides": (16,)}), (2, {"strides": (-4,)})],
)
def test_elements_beyond_the_end_of_an_array_are_refused(shape, more):
    array = (ctypes.c_float * 4)(1, 2, 3, 4)
    freed = []
    with pytest.raises(ValueError, match="pointer is an array of 16 bytes"):
        hamr.Buffer.from_pointer(array, shape, "f4", free=freed.append, **more)
    assert not freed  # it is the caller's
    assert hamr.Buffer.from_pointer(array, 4, "f4").get().tolist() == [1, 2, 3, 4]
    assert hamr.Buffer.from_pointer(array, 2, "f4", strides=(12,)).get().tolist() == [1, 4]
    assert hamr.Buffer.from_pointer(array, (0, 9), "f4").shape == (0, 9)


def test_no_memory_is_refused():
    for pointer in (0, ctypes.c_void_p(), ctypes.POINTER(ctypes.c_int)()):
        with pytest.raises(ValueError, match="NULL"):
            hamr.Buffer.from_pointer(pointer, 3)


class Library:
    """A C library's memory, and how often it was told to take it back."""

    def __init__(self):
        self.freed = []
        self.array = np.arange(4.0)
        self.lock = threading.Lock()

    def free(self, pointer):
        assert self.lock.acquire(timeout=20)
        self.freed.append((pointer, threading.get_ident()))
        self.lock.release()

    def buffer(self, **named):
        return hamr.Buffer.from_pointer(self.array.ctypes.data, 4, free=self.free, **named)


def test_free_is_called_once_when_nothing_uses_the_memory():
    library = Library()
    b = library.buffer()
    view, array, handle = b[1:], np.asarray(b), b.get_host_accessible()
    for step in (b.close, lambda: None):
        step()
        assert library.freed == []
    del view, handle, b
    gc.collect()
    assert library.freed == []
    assert array.sum() == 6
    del array
    gc.collect()
    assert library.freed == [(library.array.ctypes.data, threading.get_ident())]


def test_free_on_another_thread_and_under_no_lock():
    library = Library()
    b = library.buffer()
    with library.lock:  # held while another thread drops the buffer, and while hamr works
        thread = threading.Thread(target=b.free)
        thread.start()
        other = hamr.Buffer(100, fill=1)
        other.resize(1000)
        assert library.freed == []
    thread.join(30)
    assert [t for _, t in library.freed] == [thread.ident]


def test_free_may_use_hamr():
    seen = []

    def free(pointer):
        seen.append(pointer)
        b.resize(7, 3)
        hamr.Buffer(10, fill=2).append(b)

    array = np.zeros(4)
    b = hamr.Buffer.from_pointer(array.ctypes.data, 4, free=free)
    b.resize(100)  # leaves the memory
    assert seen == [array.ctypes.data]
    assert b.size() in (7, 100)


def test_free_of_c():
    """A function of ctypes gets 64 bits of an address that was given as an int."""
    for kind in (int, ctypes.c_void_p):
        b = hamr.Buffer.from_pointer(kind(libc.malloc(800)), 100, free=c_free)
        b.fill(1)
        b.close()


def test_after_an_error_the_memory_is_the_callers():
    library = Library()
    for wrong in ({"dtype": "nope"}, {"strides": (3,) * 3}, {"device": "x"}, {"allocator": "x"}):
        with pytest.raises((ValueError, TypeError)):
            library.buffer(**wrong)
    with pytest.raises(ValueError, match="take=True goes with none of owner"):
        library.buffer(take=True)
    with pytest.raises(TypeError, match="free is 3: accepted is a function"):
        hamr.Buffer.from_pointer(1, 1, free=3)
    gc.collect()
    assert library.freed == []


def test_the_owner_lasts_until_free_was_called():
    class Owner:
        pass

    alive = []
    owner = Owner()
    owner.finish = lambda pointer, o=alive: o.append(pointer)
    array = np.zeros(2)
    b = hamr.Buffer.from_pointer(array.ctypes.data, 2, owner=owner, free=owner.finish)
    b.close()
    assert alive == [array.ctypes.data]


def test_an_exception_in_free_is_nobodys(recwarn):
    def free(pointer):
        raise RuntimeError("no")

    caught = []
    array = np.zeros(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.unraisablehook", caught.append)
        hamr.Buffer.from_pointer(array.ctypes.data, 2, free=free).close()
    assert [str(c.exc_value) for c in caught] == ["no"]


def test_a_forked_child_frees_its_own_copy():
    library = Library()
    b = library.buffer()

    def child():
        b.close()
        assert len(library.freed) == 1

    assert forking.outcome(*forking.start(child), patience=60) == "done"
    assert library.freed == []
    b.close()
    assert len(library.freed) == 1


# Buffers as arguments.


@pytest.mark.parametrize("declared", [None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)])
def test_a_buffer_passes_to_c(declared):
    memset = ctypes.CDLL(None).memset
    memset.restype = ctypes.c_void_p
    if declared is not None:
        memset.argtypes = [declared, ctypes.c_int, ctypes.c_size_t]
    b = hamr.Buffer(4, "f8", fill=1)
    for argument in (b, b.get_host_accessible(), b[1:]):
        b.fill(1)
        assert memset(argument, 0, ctypes.c_size_t(8)) == argument.ptr
        assert float(argument[0] if isinstance(argument, hamr.Buffer) else b[0]) == 0
    assert float(b[0]) == 1


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f4", "f8"])
def test_pointers_are_to_the_elements_type(dtype):
    b = hamr.Buffer(3, dtype, fill=1)
    pointer = b._as_parameter_
    assert pointer[1] == 1
    assert np.dtype(pointer._type_) == b.dtype
    b.close()
    assert pointer[2] == 1  # it keeps the memory


@pytest.mark.parametrize("dtype", ["f2", "c8", "bfloat16"])
def test_pointers_to_what_ctypes_does_not_have(dtype):
    b = hamr.Buffer(3, dtype, fill=1)
    assert b._as_parameter_.value == b.ptr


# Shared memory of multiprocessing.


def test_shared_memory_as_elements():
    memory = shared_memory.SharedMemory(create=True, size=80)
    try:
        b = hamr.buffer(memory, dtype="f8", transfer="sync")
        assert (b.shape, b.dtype, b.readonly) == ((10,), np.float64, False)
        assert b.source_protocol == "buffer"
        assert b.transfer == hamr.Transfer.sync
        b.fill(3)
        assert np.frombuffer(memory.buf, "f8").sum() == 30
        other = shared_memory.SharedMemory(memory.name)
        again = hamr.buffer(other, dtype="f8").reshape(2, 5)
        again[1, 4] = 7
        del other, again  # without a word about exported pointers
        gc.collect()
        assert float(b[9]) == 7
        with pytest.raises(ValueError, match=r"of 8 bytes, and the object has 79"):
            hamr.buffer(memory.buf[:79], dtype="f8")
        with pytest.raises(TypeError, match=r"hamr.buffer\(obj, dtype="):
            hamr.buffer(memory)
        b.close()
    finally:
        memory.unlink()
        memory.close()


def test_dtype_is_of_bytes():
    assert str(hamr.buffer(np.arange(3.0).tobytes(), dtype="f8")) == "{0, 1, 2}"
    assert hamr.buffer(bytes(8), dtype="f8").readonly
    for wrong in (np.zeros(3), np.zeros((2, 8), "u1"), np.zeros(16, "u1")[::2]):
        with pytest.raises(TypeError, match="accepted are bytes without gaps"):
            hamr.buffer(wrong, dtype="f8")
