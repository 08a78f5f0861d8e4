"""The buffer protocol both ways: what exporters give hamr, and what hamr's buffers give others."""

import array
import ctypes
import gc
import importlib.util
import mmap
import pickle
import struct
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given

import hamr
from tests.support import producers
from tests.support.producers import DTYPES

# Into hamr.

EXPORTERS = {
    "bytes": (lambda: b"\x01\x02\x03", "uint8", True),
    "bytearray": (lambda: bytearray(b"\x01\x02\x03"), "uint8", False),
    "memoryview": (lambda: memoryview(b"\x01\x02\x03"), "uint8", True),
    "slice": (lambda: memoryview(b"\x01\x00\x02\x00\x03\x00")[::2], "uint8", True),
    "reversed": (lambda: memoryview(bytearray(b"\x03\x02\x01"))[::-1], "uint8", False),
    "cast": (lambda: memoryview(bytearray(b"\1\0\2\0\3\0")).cast("h"), "int16", False),
    "array b": (lambda: array.array("b", [1, 2, 3]), "int8", False),
    "array l": (lambda: array.array("l", [1, 2, 3]), "int64", False),
    "array L": (lambda: array.array("L", [1, 2, 3]), "uint64", False),
    "array q": (lambda: array.array("q", [1, 2, 3]), "int64", False),
    "array f": (lambda: array.array("f", [1, 2, 3]), "float32", False),
    "array d": (lambda: array.array("d", [1, 2, 3]), "float64", False),
    "ctypes bool": (lambda: (ctypes.c_bool * 3)(True, True, True), "bool", False),
    "ctypes char": (lambda: (ctypes.c_char * 3)(1, 2, 3), "uint8", False),
    "ctypes short": (lambda: (ctypes.c_short * 3)(1, 2, 3), "int16", False),
    "ctypes int": (lambda: (ctypes.c_int * 3)(1, 2, 3), "int32", False),
    "ctypes long": (lambda: (ctypes.c_long * 3)(1, 2, 3), "int64", False),
    "ctypes ulong": (lambda: (ctypes.c_ulong * 3)(1, 2, 3), "uint64", False),
    "ctypes size_t": (lambda: (ctypes.c_size_t * 3)(1, 2, 3), "uint64", False),
    "ctypes float": (lambda: (ctypes.c_float * 3)(1, 2, 3), "float32", False),
    "ctypes double": (lambda: (ctypes.c_double * 3)(1, 2, 3), "float64", False),
    "ctypes matrix": (lambda: ((ctypes.c_int * 3) * 2)(), "int32", False),
    "ctypes cube": (lambda: (((ctypes.c_short * 4) * 3) * 2)(), "int16", False),
    "ctypes nothing": (lambda: (ctypes.c_int * 0)(), "int32", False),
    "ctypes number": (lambda: ctypes.c_double(1), "float64", False),
    "ctypes big-endian bytes": (lambda: (ctypes.c_byte.__ctype_be__ * 3)(1, 2, 3), "int8", False),
    "anonymous map": (lambda: mmap.mmap(-1, 3), "uint8", False),
    "read-only map": (lambda: mmap.mmap(-1, 3, access=mmap.ACCESS_READ), "uint8", True),
    "pickled": (lambda: pickle.PickleBuffer(bytearray(b"abc")), "uint8", False),
    "pickled array": (lambda: pickle.PickleBuffer(np.ones((2, 3), order="F")), "float64", False),
    "cast to a matrix": (
        lambda: memoryview(bytearray(range(24))).cast("i", shape=[2, 3]),
        "int32",
        False,
    ),
    "cast to a point": (lambda: memoryview(bytearray(8)).cast("d", shape=[]), "float64", False),
    "every other, backwards": (lambda: memoryview(b"abcdef")[::-2], "uint8", True),
    "not aligned": (
        lambda: np.frombuffer(bytearray(17), "f8", offset=1, count=2),
        "float64",
        False,
    ),
    "NumPy column": (lambda: np.zeros(3, [("a", "i1"), ("b", "f8")])["b"], "float64", False),
    "NumPy half": (lambda: np.float16(1), "float16", True),
    "NumPy complex": (lambda: np.complex64(1), "complex64", True),
    "NumPy scalar": (lambda: np.float32(1), "float32", True),
    "NumPy bool": (lambda: np.bool_(True), "bool", True),
    "NumPy matrix": (lambda: np.array([[1, 2, 3]]).view(np.matrix), "int64", False),
    "record array of numbers": (lambda: np.zeros(3, "f4").view(np.recarray), "float32", False),
    "no bytes": (lambda: b"", "uint8", True),
    "no elements": (lambda: np.zeros((2, 0, 3)), "float64", False),
    "no dimensions": (lambda: np.array(1.0), "float64", False),
    "32 dimensions": (lambda: np.ones((1,) * 32), "float64", False),
}


@pytest.mark.parametrize(("make", "dtype", "readonly"), EXPORTERS.values(), ids=EXPORTERS)
def test_exporters_are_shared(make, dtype, readonly):
    exporter = make()
    buffer = hamr.buffer(exporter)
    view = memoryview(exporter)
    assert buffer.source_protocol == "buffer"
    assert np.dtype(buffer.dtype) == dtype
    assert buffer.shape == view.shape
    assert buffer.strides == view.strides or buffer.size() < 2
    assert buffer.readonly is readonly
    assert buffer.allocator is hamr.Allocator.malloc
    assert buffer.owner == -1
    assert buffer.get().tobytes() == view.tobytes()
    if not readonly and buffer.size():
        buffer.fill(7 if dtype != "bool" else False)
        assert buffer.get().tobytes() == memoryview(exporter).tobytes()
        assert memoryview(exporter).tobytes()[:1] == buffer.get().tobytes()[:1]


needs_testbuffer = pytest.mark.skipif(
    not importlib.util.find_spec("_testbuffer"), reason="no _testbuffer here"
)
big_endian = ctypes.c_int.__ctype_be__ if sys.byteorder == "little" else ctypes.c_int.__ctype_le__


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


class Rows(ctypes.Structure):
    _fields_ = [("a", (ctypes.c_int * 3) * 2)]


class Either(ctypes.Union):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


REFUSED = {
    "big-endian": (lambda: np.zeros(3, ">f8"), "'>f8'.*big-endian.*newbyteorder"),
    "ctypes big-endian": (lambda: (big_endian * 3)(), "big-endian"),
    "structured": (lambda: np.zeros(3, [("a", "f4"), ("b", "i4")]), "structured"),
    "record array": (lambda: np.zeros(3, [("a", "f4")]).view(np.recarray), "structured"),
    "void": (lambda: np.zeros(3, "V3"), "void"),
    "objects": (lambda: np.zeros(3, "O"), "objects"),
    "dates": (lambda: np.zeros(3, "M8[s]"), "dates.*int64"),
    "time differences": (lambda: np.zeros(3, "m8[ns]"), "time differences.*int64"),
    "one date": (lambda: np.datetime64("2020"), "datetime64.*int64"),
    "one time difference": (lambda: np.timedelta64(1, "s"), "timedelta64.*int64"),
    "byte strings": (lambda: np.zeros(3, "S2"), "byte strings"),
    "strings": (lambda: np.zeros(3, "U2"), "Unicode strings"),
    "array of characters": (
        lambda: array.array("u" if sys.version_info < (3, 13) else "w", "ab"),
        "Unicode strings",
    ),
    "ctypes characters": (lambda: (ctypes.c_wchar * 2)(), "Unicode strings"),
    "long double": (lambda: np.zeros(3, "g"), "long double.*float64"),
    "complex long double": (lambda: np.zeros(3, "G"), "complex long double.*complex128"),
    "ctypes long double": (lambda: (ctypes.c_longdouble * 2)(), "long double.*float64"),
    "ctypes pointers": (lambda: (ctypes.c_void_p * 2)(), "pointers"),
    "ctypes typed pointers": (lambda: (ctypes.POINTER(ctypes.c_int) * 2)(), "pointers"),
    "ctypes string pointers": (lambda: (ctypes.c_char_p * 2)(), "pointers"),
    "ctypes functions": (lambda: (ctypes.CFUNCTYPE(None) * 2)(), "pointers"),
    "ctypes objects": (lambda: (ctypes.py_object * 2)(), "Python objects"),
    "ctypes structure": (lambda: (Pair * 2)(), "structured"),
    "ctypes structure with arrays": (lambda: Rows(), "structured"),
    "cast to pointers": (lambda: memoryview(bytearray(8)).cast("P"), "pointers"),
    "masked array": (lambda: np.ma.array([1, 2], mask=[0, 1]), "mask.*filled"),
    "unmasked masked array": (lambda: np.ma.array([1, 2]), "mask.*data"),
    "class": (lambda: np.ndarray, "type object"),
    "own class": (lambda: hamr.Buffer, "type object|class"),
    "None": (lambda: None, "NoneType"),
    "int": (lambda: 3, "int object"),
    "str": (lambda: "abc", "str object"),
    "list": (lambda: [1, 2], "list object"),
    "released memoryview": (lambda: released(), "memoryview"),
}


def released():
    view = memoryview(b"abc")
    view.release()
    return view


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_shared_is_refused_by_name(make, words):
    with pytest.raises(TypeError, match=words):
        hamr.buffer(make())


def test_a_union_says_that_it_is_bytes_and_is_not():
    with pytest.raises(ValueError, match=r"format 'B': elements have 1 bytes, the buffer says 8"):
        hamr.buffer(Either())


@pytest.mark.parametrize("code", list("bBhHiIlLqQnNfd?c"))  # e: not before Python 3.12
@pytest.mark.parametrize("order", ["", "@"])
def test_native_formats(code, order):
    view = memoryview(bytearray(struct.calcsize(code))).cast(order + code)
    buffer = hamr.buffer(view)
    assert (buffer.shape, buffer.itemsize) == ((1,), view.itemsize)
    kinds = {"?": "b", "c": "u", "f": "f", "d": "f"}
    assert np.dtype(buffer.dtype).kind == kinds.get(code, "ui"[code.islower()])


@needs_testbuffer
@pytest.mark.parametrize("code", list("bBhHiIlLqQefd?"))
@pytest.mark.parametrize("order", list("<=>!"))
def test_standard_formats(code, order):
    import _testbuffer as tb

    exporter = tb.ndarray([1, 0, 1], shape=[3], format=order + code)
    size = struct.calcsize(order + code)
    if order in ">!" and size > 1:
        with pytest.raises(TypeError, match="big-endian"):
            hamr.buffer(exporter)
        return
    buffer = hamr.buffer(exporter)
    assert buffer.itemsize == size
    assert buffer.astype("i8").get().tolist() == [1, 0, 1]
    if code in "fde":
        assert np.dtype(buffer.dtype) == f"f{size}"
    elif code != "?":
        assert np.dtype(buffer.dtype) == f"{'ui'[code.islower()]}{size}"


@needs_testbuffer
def test_rows_in_separate_memory_are_refused():
    import _testbuffer as tb

    pieces = tb.ndarray(list(range(6)), shape=[2, 3], format="B", flags=tb.ND_PIL)
    assert pieces.suboffsets
    with pytest.raises(ValueError, match="suboffsets"):
        hamr.buffer(pieces)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ is new in Python 3.12")
def test_python_class_with_buffer_method():
    content = bytearray(8)
    buffer = hamr.buffer(producers.Exporter(content))
    buffer[0] = 5
    assert content[0] == 5
    with pytest.raises(BufferError):
        content.append(1)


def test_bytearray_cannot_be_resized_while_shared():
    content = bytearray(8)
    buffer = hamr.buffer(content)
    view = buffer[2:4]
    for holder in (buffer, view):
        with pytest.raises(BufferError):
            content.append(1)
        holder.close()
    content.append(1)
    assert len(content) == 9


def test_a_map_cannot_be_closed_while_shared():
    content = mmap.mmap(-1, 8)
    buffer = hamr.buffer(content)
    with pytest.raises(BufferError):
        content.close()
    buffer.close()
    content.close()


@pytest.mark.parametrize("end", ["close", "free", "move", "resize", "swap", "del"])
def test_array_array_is_released_when_its_memory_is_given_up(end):
    content = array.array("d", [1, 2, 3])
    buffer = hamr.buffer(content)
    other = hamr.Buffer(1)
    with pytest.raises(BufferError):
        content.append(1)
    match end:
        case "del":
            del buffer
        case "move":
            buffer.move("cpp")
        case "resize":
            buffer.resize(100)
        case "swap":
            buffer.swap(other)
            other.close()
        case _:
            getattr(buffer, end)()
    content.append(1)


class Owner(bytearray):
    """A bytearray that can be referred to weakly."""


@pytest.mark.parametrize(
    "share",
    [
        lambda b: b,
        lambda b: b[1:],
        lambda b: b.get_host_accessible(),
        lambda b: np.asarray(b),
        lambda b: np.asarray(b.get_host_accessible()),
        memoryview,
        hamr.buffer,
        lambda b: hamr.buffer(np.asarray(hamr.buffer(b.get_host_accessible()))),
    ],
)
def test_owner_lives_exactly_as_long_as_it_is_shared(share):
    gc.collect()
    gc.disable()
    try:
        owner = Owner(b"\x01\x02\x03")
        alive = weakref.ref(owner)
        shared = share(hamr.buffer(owner))
        del owner
        assert alive() is not None
        assert bytes(shared if isinstance(shared, memoryview) else np.asarray(shared))[-1] == 3
        del shared
        assert alive() is None
    finally:
        gc.enable()


# Out of hamr.


@pytest.mark.parametrize("dtype", DTYPES)
def test_format_and_content_of_memoryviews(dtype, allocator):
    content = np.arange(6).reshape(2, 3).astype(dtype)
    view = memoryview(producers.in_memory(content, allocator))
    assert view.itemsize == content.itemsize
    assert view.tobytes() == content.tobytes()
    np.testing.assert_array_equal(np.asarray(view), content, strict=True)
    assert view.format == memoryview(content).format
    assert np.asarray(view).dtype.char == content.dtype.char


@given(producers.arrays())
def test_numpy_gets_back_what_it_gave(source):
    for shared in (hamr.buffer(source), hamr.buffer(source).get_host_accessible()):
        back = np.asarray(shared)
        np.testing.assert_array_equal(back, source, strict=True)
        assert back.flags.writeable == source.flags.writeable
        assert not source.size or np.shares_memory(back, source)


@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_writes_are_visible_both_ways(share, allocator):
    buffer = hamr.Buffer(3, "int32", allocator, fill=0)
    array = np.asarray(share(buffer))
    array[0] = 1
    buffer[1] = 2
    assert buffer.get().tolist() == array.tolist() == [1, 2, 0]


@pytest.mark.parametrize("name", ["bfloat16", *producers.FLOAT8])
def test_types_without_a_format_say_so(name):
    buffer = hamr.Buffer(3, name)
    with pytest.raises(BufferError, match="format"):
        memoryview(buffer)
    assert not hasattr(buffer, "__array_interface__")
    assert np.asarray(buffer).itemsize == buffer.itemsize
    assert np.asarray(buffer).__array_interface__["data"][0] == buffer.ptr
