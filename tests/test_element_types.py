"""Element types and allocators: Python's, C's and Go's tables agree, and what users may write."""

import importlib
import importlib.util
import json

import numpy as np
import pytest

import hamr
from hamr import _library, _native
from hamr.element import ElementType, dtype_of, element_of, item_from_bytes, name_of
from producers import DTYPES

CORE = json.loads(_library.call("Elements"))
RAW = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


def test_the_extension_has_the_cores_table():
    assert _native.element_table() == [
        (row["typestr"], row["format"] or None, row["size"], row["dlpack"]) for row in CORE
    ]
    assert [row["number"] for row in CORE] == list(range(1, len(CORE) + 1))


def test_all_types_are_tested():
    assert [row["name"] for row in CORE] == [*DTYPES, *RAW]


@pytest.mark.parametrize("dtype", DTYPES)
def test_typestr_size_and_format_are_numpys(dtype):
    row = CORE[DTYPES.index(dtype)]
    assert np.dtype(row["typestr"]) == dtype
    assert row["typestr"] == np.dtype(dtype).str
    assert row["size"] == np.dtype(dtype).itemsize
    view = memoryview(np.zeros(1, dtype)).format
    assert row["format"] == {"l": "q", "L": "Q"}.get(view, view)


def test_allocators_are_the_cores():
    core = json.loads(_library.call("Allocators"))
    assert {a.name: int(a) for a in hamr.Allocator if a >= 0} == core
    assert (hamr.Allocator.same, hamr.Allocator.none) == (-2, -1)


def test_allocators_and_modes_behave_as_integers():
    assert hamr.Allocator(1) is hamr.Allocator.malloc is hamr.Allocator["malloc"]
    assert hamr.Allocator.malloc == 1
    assert hamr.Allocator.malloc + 1 == 2
    assert {hamr.Allocator.cpp: 1}[0] == 1
    assert [m.name for m in hamr.Transfer] == ["async_", "sync_host", "sync"]
    assert [int(m) for m in hamr.Transfer] == [0, 1, 2]
    assert str(hamr.Allocator.malloc) == f"{hamr.Allocator.malloc}" == "1"
    assert repr(hamr.Allocator.malloc) == "<Allocator.malloc: 1>"
    assert len(hamr.Allocator) == 11
    for wrong in (99, "malloc", None):
        with pytest.raises(ValueError, match=r"not a valid Allocator"):
            hamr.Allocator(wrong)
    with pytest.raises(AttributeError):
        hamr.Allocator.malloc = 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_accepted_forms(dtype):
    t = np.dtype(dtype)
    forms = [t, t.name, t.str, t.type, t.str.replace("|", "=").replace("<", "=")]
    if dtype != "bool":
        forms.append(t.str[1:])
    for form in forms:
        assert hamr.Buffer(1, form).dtype == t, form
    assert np.dtype(hamr.Buffer(1, hamr.Buffer(1, t).dtype).dtype) == t


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"),
        ("?", "bool"), ("f4", "float32"), ("i1", "int8"), ("c8", "complex64"),
        (np.intc, "int32"), (np.longlong, "int64"), (np.dtype("l"), "int64"),
        *((name, name) for name in RAW),
    ],
)  # fmt: skip
def test_other_accepted_forms(form, name):
    assert str(hamr.Buffer(1, form).dtype) == name


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("nope", "nope"), ("", "dtype"), ("float", "float.*size"), ("double", "double"),
        ("int", "int"), ("long", "long"), ("char", "char"), ("g", "g"), ("U3", "U3"),
        ("f16", "f16.*long double"), ("float128", "float128"), ("longdouble", "longdouble"),
        (">f8", ">f8.*big-endian"), (">i2", ">i2.*big-endian"), ("<f3", "<f3"), ("f4,i4", "f4,i4"),
        ("M8[s]", "M8"), ("float32 ", "float32 "), ("FLOAT32", "FLOAT32"), ("f4\0", "f4"),
        ("größe", "größe"), (None, "None"), (3, "3"), (3.5, "3.5"), ([1], "1"),
        ({}, r"\{\}"), (object, "objects"), (str, "strings"), (bytes, "strings"),
        (np.dtype([("a", "f4")]), "structured|void"), (np.dtype("V3"), "void"),
        (np.dtype(">f4"), "big-endian"), (np.dtype("O"), "objects"), (np.dtype("M8[s]"), "dates"),
        (np.longdouble, "long double"), (hamr.Buffer, "Buffer|objects"),
    ],
)  # fmt: skip
def test_refused_forms(form, words):
    with pytest.raises(TypeError, match=words):
        hamr.Buffer(1, form)
    with pytest.raises(TypeError, match=words):
        hamr.Buffer(1).copy(dtype=form) if form is not None else hamr.Buffer(1).astype(form)


def test_dtype_is_numpys_where_numpy_is_loaded():
    for name in DTYPES:
        assert dtype_of(element_of(name)) is np.dtype(name)
    assert isinstance(hamr.Buffer(1, "float8_e5m2").dtype, (ElementType, np.dtype))


def test_names_of_numbers():
    assert [name_of(row["number"]) for row in CORE] == [row["name"] for row in CORE]


def test_an_element_type_is_its_name():
    named = ElementType("float32")
    assert repr(named) == "dtype('float32')"
    assert named == "float32"
    assert np.dtype(named) == np.float32


@pytest.mark.parametrize(("name", "size"), [("float8_e4m3fn", 1), ("float8_e5m2", 1)])
def test_raw_storage_moves_but_has_no_numbers(name, size):
    raw = hamr.Buffer(3, name)
    np.asarray(raw).view("u1")[...] = [1, 2, 3]
    assert raw.itemsize == size
    assert str(raw) == "{0x01, 0x02, 0x03}"
    moved = raw.copy("cpp")
    assert np.asarray(moved).tobytes() == bytes([1, 2, 3])
    moved.append(raw[1:])
    moved[0] = raw[2]
    assert moved.get().tobytes() == bytes([3, 2, 3, 2, 3])
    with pytest.raises(TypeError, match=name):
        raw[0].item()
    with pytest.raises(TypeError, match=name):
        raw.fill(1)
    with pytest.raises(TypeError, match=name):
        raw.append(1)
    with pytest.raises(TypeError, match="float8"):
        raw.astype("float32")


def test_bfloat16_holds_numbers():
    buffer = hamr.Buffer(3, "bfloat16", data=[1.0, 2.5, -3.0])
    assert str(buffer) == "{1, 2.5, -3}"
    assert buffer[1].item() == 2.5
    assert buffer.astype("float32").get().tolist() == [1.0, 2.5, -3.0]
    assert buffer.get().view("u2").tolist() == [0x3F80, 0x4020, 0xC040]
    buffer.append(0.5)
    assert buffer.astype("int8").get().tolist() == [1, 2, -3, 0]
    # 1 + 2**-8 lies between two: to the even one.
    assert hamr.Buffer(1, "bfloat16", fill=1 + 2**-8).item() == 1.0


def test_item_from_bytes_knows_every_type():
    for row in CORE:
        if row["name"].startswith("float8"):
            continue
        raw = hamr.Buffer((), row["name"], fill=1)
        content = np.asarray(raw).tobytes()
        assert item_from_bytes(row["number"], content) == 1


ml_dtypes = importlib.util.find_spec("ml_dtypes") and importlib.import_module("ml_dtypes")


@pytest.mark.skipif(not ml_dtypes, reason="no ml_dtypes here")
@pytest.mark.parametrize("name", RAW)
def test_types_that_ml_dtypes_adds_to_numpy(name):
    added = np.dtype(getattr(ml_dtypes, name))
    for form in (added, added.type, name):
        buffer = hamr.Buffer(3, form)
        assert buffer.dtype == added
    array = np.asarray(buffer)
    array[...] = [1, 2, 0.5]
    assert array.dtype == buffer.get().dtype == added
    assert buffer.get().astype("f4").tolist() == [1, 2, 0.5]
    assert np.shares_memory(np.asarray(buffer.get_host_accessible()), array)
    assert np.asarray(buffer, dtype="f4").tolist() == [1, 2, 0.5]


@pytest.mark.skipif(not ml_dtypes, reason="no ml_dtypes here")
def test_types_of_ml_dtypes_that_hamr_lacks():
    with pytest.raises(TypeError, match="int4"):
        hamr.Buffer(3, ml_dtypes.int4)
