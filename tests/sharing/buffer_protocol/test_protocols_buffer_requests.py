"""The buffer protocol in C's terms: every request to hamr's buffers, and broken exporters."""

import ctypes
import itertools

import numpy as np
import pytest

import hamr
from tests.support import producers

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 0x1, 0x4, 0x8, 0x18
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT = 0x38, 0x58, 0x98, 0x118
FULL, FULL_RO, CONTIG, CONTIG_RO, RECORDS, RECORDS_RO, STRIDED, STRIDED_RO = (
    0x11D, 0x11C, 0x9, 0x8, 0x1D, 0x1C, 0x19, 0x18,
)  # fmt: skip


class View(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


def request(exporter, flags):
    """What an exporter answers to a request."""
    view = View()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get(ctypes.py_object(exporter), ctypes.byref(view), ctypes.c_int(flags))
    answer = {
        "readonly": bool(view.readonly),
        "length": view.len,
        "format": view.format,
        # Without a shape consumers take the memory for bytes in one dimension.
        "ndim": view.ndim if flags & ND else 1,
        "shape": view.shape[: view.ndim] if view.shape else None,
        "strides": view.strides[: view.ndim] if view.strides else None,
    }
    assert not view.suboffsets
    if view.len == 0:  # strides that mean nothing
        answer["strides"] = bool(view.strides)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return answer


FLAGS = {
    "simple": SIMPLE, "writable": WRITABLE, "format": FORMAT, "nd": ND, "strides": STRIDES,
    "C": C_CONTIGUOUS, "F": F_CONTIGUOUS, "any": ANY_CONTIGUOUS, "indirect": INDIRECT,
    "full": FULL, "full ro": FULL_RO, "contig": CONTIG, "contig ro": CONTIG_RO,
    "records": RECORDS, "records ro": RECORDS_RO, "strided": STRIDED, "strided ro": STRIDED_RO,
}  # fmt: skip


def outcome(exporter, flags):
    """The answer to a request, or BufferError; NumPy raises ValueError for some."""
    try:
        return request(exporter, flags)
    except (BufferError, ValueError):
        return BufferError


EXPORTED = {
    "C": lambda: np.arange(6.0).reshape(2, 3),
    "F": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "line": lambda: np.arange(6.0),
    "strided": lambda: np.arange(12.0)[::2],
    "negative": lambda: np.arange(6.0)[::-1],
    "planes": lambda: np.zeros((2, 3, 4)).transpose(1, 0, 2),
    "read-only": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    "empty": lambda: np.zeros((0, 3)),
    "point": lambda: np.array(3.0),
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("make", EXPORTED.values(), ids=EXPORTED)
@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_requests_are_answered_as_numpy_answers_them(make, flags, share):
    source = make()
    assert outcome(share(hamr.buffer(source)), flags) == outcome(source, flags)


def test_read_only_memory_is_exported_read_only():
    for shared in (hamr.buffer(b"abc"), hamr.buffer(b"abc").get_host_accessible()):
        assert memoryview(shared).readonly
        with pytest.raises(BufferError, match="read-only"):
            request(shared, WRITABLE)
        assert not np.asarray(shared).flags.writeable


LAYOUTS = {
    **EXPORTED,
    "one": lambda: np.ones((1, 1, 1)),
    "column": lambda: np.ones((4, 1))[::2],
    "cube, Fortran": lambda: np.asfortranarray(np.ones((2, 3, 4), "i2")),
    "every other row": lambda: np.ones((4, 3), "u1")[::2],
    "empty, Fortran": lambda: np.zeros((3, 0, 2), "c16", order="F")[::-1],
    "read-only point": lambda: np.broadcast_to(np.array(True), ()),
}
REQUESTS = [
    sum(part) | shape
    for part in itertools.product((0, WRITABLE), (0, FORMAT))
    for shape in (
        SIMPLE, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT,
        C_CONTIGUOUS | F_CONTIGUOUS, INDIRECT | C_CONTIGUOUS, INDIRECT | F_CONTIGUOUS,
        INDIRECT | ANY_CONTIGUOUS,
    )
]  # fmt: skip


def asked(flags, request):
    return flags & request == request


def rule(array, flags):
    """What PEP 3118 and the C API's documentation want as an answer, or None."""
    c, f = array.flags.c_contiguous, array.flags.f_contiguous
    impossible = (
        (asked(flags, WRITABLE) and not array.flags.writeable)
        or (asked(flags, C_CONTIGUOUS) and not c)
        or (asked(flags, F_CONTIGUOUS) and not f)
        or (asked(flags, ANY_CONTIGUOUS) and not (c or f))
        or (not asked(flags, STRIDES) and not c)
    )
    if impossible:
        return None
    shaped = asked(flags, ND)
    return {
        "length": array.nbytes,
        "itemsize": array.itemsize,
        "readonly": not array.flags.writeable,
        "format": memoryview(array).format.encode() if asked(flags, FORMAT) else None,
        "ndim": array.ndim if shaped else 1,
        "shape": [*array.shape] if shaped and array.ndim else None,
        "strides": [*array.strides] if asked(flags, STRIDES) and array.ndim else None,
        "address": array.__array_interface__["data"][0],
    }


@pytest.mark.parametrize("flags", REQUESTS, ids=hex)
@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_requests_are_answered_as_the_protocol_says(make, flags, share):
    array = make()
    shared = share(hamr.buffer(array))
    view, expected = View(), rule(array, flags)
    arguments = ctypes.py_object(shared), ctypes.byref(view), ctypes.c_int(flags)
    if expected is None:
        with pytest.raises(BufferError):
            ctypes.pythonapi.PyObject_GetBuffer(*arguments)
        with pytest.raises(ValueError, match="NULL"):
            view.obj  # noqa: B018
        return
    ctypes.pythonapi.PyObject_GetBuffer(*arguments)
    found = {
        "length": view.len,
        "itemsize": view.itemsize,
        "readonly": bool(view.readonly),
        "format": view.format,
        "ndim": view.ndim,
        "shape": view.shape[: array.ndim] if view.shape else None,
        "strides": view.strides[: array.ndim] if view.strides else None,
        "address": view.buf,
    }
    assert not view.suboffsets
    if array.size == 0:  # neither means anything
        assert view.buf
        for answer in (found, expected):
            answer.update(strides=answer["strides"] is not None, address=0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    assert found == expected


def test_a_view_keeps_what_it_shows():
    buffer = hamr.Buffer((2, 3), "i4", fill=7)
    view = View()
    flags = ctypes.c_int(FULL_RO)
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(buffer), ctypes.byref(view), flags)
    buffer.resize(1000, 1)
    del buffer
    assert view.shape[:2] == [2, 3]
    assert view.strides[:2] == [12, 4]
    assert ctypes.string_at(view.buf, view.len) == np.full((2, 3), 7, "i4").tobytes()
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))


@pytest.mark.parametrize("name", ["bfloat16", *producers.FLOAT8])
def test_types_without_a_format_are_exported_where_none_is_asked_for(name):
    buffer = hamr.Buffer((2, 3), name, fill=1)
    answer = request(buffer, STRIDES)
    assert answer["shape"] == [2, 3]
    assert answer["format"] is None
    assert answer["length"] == buffer.nbytes
    with pytest.raises(BufferError, match="no format"):
        request(buffer, FULL_RO)


# Exporters written in C can answer anything.

Getter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View), ctypes.c_int)


class Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    ]


CONTENT = (ctypes.c_int32 * 6)(*range(6))
ANSWER = {"len": 24, "itemsize": 4, "readonly": 0, "ndim": 2, "format": b"i"}


@Getter
def answer(exporter, view, flags):
    fields = {
        "buf": ctypes.addressof(CONTENT), "shape": [2, 3], "strides": [12, 4], "suboffsets": None,
        **ANSWER, **Answering.fields,
    }  # fmt: skip
    for name in ("shape", "strides", "suboffsets"):
        values = fields[name]
        fields[name] = values and (ctypes.c_ssize_t * len(values))(*values)
    Answering.kept = fields
    for name, value in fields.items():
        setattr(view.contents, name, value)
    view.contents.obj = exporter
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(exporter))
    return 0


def answering_type():
    get_buffer, default_flags = 1, 1 << 18
    slots = (Slot * 2)(Slot(get_buffer, ctypes.cast(answer, ctypes.c_void_p)), Slot(0, None))
    spec = Spec(b"exporters.Answering", object.__basicsize__, 0, default_flags, slots)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(Spec))(
        ("PyType_FromSpec", ctypes.pythonapi)
    )
    made = make(ctypes.byref(spec))
    made.kept = slots, spec
    return made


Answering = answering_type()


@pytest.fixture
def answers():
    """An exporter that answers as it is told."""

    def make(**fields):
        Answering.fields = fields
        return Answering()

    yield make
    Answering.fields = {}


@pytest.mark.parametrize(
    ("fields", "shape", "strides"),
    [
        ({}, (2, 3), (12, 4)),
        ({"strides": None}, (2, 3), (12, 4)),
        ({"shape": None, "strides": None, "ndim": 1}, (6,), (4,)),
        ({"shape": None, "strides": None, "ndim": 0, "len": 4}, (), ()),
        ({"suboffsets": [-1, -1]}, (2, 3), (12, 4)),
        ({"shape": [0, 3], "len": 0, "buf": None}, (0, 3), None),
        ({"format": None, "itemsize": 1, "shape": [24], "strides": [1], "ndim": 1}, (24,), (1,)),
        ({"format": b">B", "itemsize": 1, "shape": [24], "strides": [1], "ndim": 1}, (24,), (1,)),
        ({"format": b"Zf", "itemsize": 8, "shape": [3], "strides": [8], "ndim": 1}, (3,), (8,)),
        ({"format": b"F", "itemsize": 8, "shape": [3], "strides": [8], "ndim": 1}, (3,), (8,)),
        ({"format": b"<D", "itemsize": 16, "shape": [1], "len": 16, "ndim": 1}, (1,), None),
    ],
)
def test_answers_that_are_understood(answers, fields, shape, strides):
    buffer = hamr.buffer(answers(**fields))
    assert buffer.shape == shape
    assert strides is None or buffer.strides == strides
    assert buffer.get().tobytes() == bytes(CONTENT)[: buffer.nbytes]
    code = fields.get("format", b"i")
    if code and code[-1:] in b"FfD":
        assert np.dtype(buffer.dtype).kind == "c"


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"shape": None}, ValueError, "dimensions and no shape"),
        ({"len": 20}, ValueError, "shape and its length"),
        ({"len": 28}, ValueError, "shape and its length"),
        ({"shape": [2**40, 2**40]}, ValueError, "too large"),
        ({"shape": [-2, -3]}, ValueError, "shape"),
        ({"buf": None}, ValueError, "no address"),
        ({"ndim": 65}, ValueError, r"number of dimensions is not 0 \.\.\. 64"),
        ({"ndim": -1}, ValueError, "number of dimensions"),
        ({"suboffsets": [0, -1]}, ValueError, "suboffsets"),
        ({"itemsize": 8, "len": 48}, ValueError, "elements have 4 bytes, the buffer says 8"),
        ({"format": None}, ValueError, "elements have 1 bytes, the buffer says 4"),
        ({"format": b"2h"}, TypeError, "repeat counts"),
        ({"format": b"hh"}, TypeError, "no such element type"),
        ({"format": b"(2)h"}, TypeError, "sub-arrays"),
        ({"format": b">i"}, TypeError, "big-endian"),
        ({"format": b"\xff\xfe"}, TypeError, "Answering object cannot be shared.*decode"),
    ],
)
def test_answers_that_cannot_be_right(answers, fields, error, words):
    with pytest.raises(error, match=words):
        hamr.buffer(answers(**fields))
