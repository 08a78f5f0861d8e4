"""Element types and allocators: Python's, C's and Go's tables agree, and what users may write."""

import json

import numpy as np
import pytest

import hamr
from hamr import _native
from hamr._base.element import (
    ElementType,
    dtype_of,
    element_of,
    has_format,
    item_from_bytes,
    name_of,
)
from hamr._base.library import core
from tests.support import producers
from tests.support.producers import DTYPES, FLOAT8

TABLE = _native.element_table()
NAMED = ["bfloat16", *FLOAT8]  # types without a code in the array interface


def test_the_extension_has_the_cores_types():
    for number, (name, typestr, form, size, _) in enumerate(TABLE, 1):
        assert core().ParseElement(name) == number
        if typestr[1] != "V" and name not in FLOAT8:
            assert core().ParseElement(typestr) == number
        if form is not None:
            assert core().ParseFormat(form, size) == number


def test_all_types_are_tested():
    assert [row[0] for row in TABLE] == [*DTYPES, *NAMED]


@pytest.mark.parametrize("dtype", DTYPES)
def test_typestr_size_and_format_are_numpys(dtype):
    _, typestr, form, size, _ = TABLE[DTYPES.index(dtype)]
    assert np.dtype(typestr) == dtype
    assert typestr == np.dtype(dtype).str
    assert size == np.dtype(dtype).itemsize
    assert form == memoryview(np.zeros(1, dtype)).format


def test_allocators_are_the_cores():
    served = {name: row for name, _, _, row, _, _ in _native.backends()}
    table = _native.allocator_table()
    for backend, names in served.items():
        known = [a.name for a in hamr.Allocator if a >= 0 and table[a][5] == backend]
        assert known == list(names)
    assert int(hamr.get_host_allocator()) in (hamr.Allocator.malloc, hamr.Allocator.cuda_host)
    assert (hamr.Allocator.same, hamr.Allocator.none) == (-2, -1)


def test_allocators_and_modes_behave_as_integers():
    assert hamr.Allocator(1) is hamr.Allocator.malloc is hamr.Allocator["malloc"]
    assert hamr.Allocator.malloc == 1
    assert hamr.Allocator.malloc + 1 == 2
    assert {hamr.Allocator.cpp: 1}[0] == 1
    assert [m.name for m in hamr.Transfer] == ["async_", "sync_host", "sync"]
    assert [int(m) for m in hamr.Transfer] == [0, 1, 2]
    assert str(hamr.Allocator.malloc) == f"{hamr.Allocator.malloc}" == "malloc"
    assert f"{hamr.Allocator.malloc:d}" == json.dumps(hamr.Allocator.malloc) == "1"
    assert repr(hamr.Allocator.malloc) == "<Allocator.malloc: 1>"
    assert len(hamr.Allocator) == 20
    for wrong in (99, "malloc", None):
        with pytest.raises(ValueError, match=r"not a valid Allocator"):
            hamr.Allocator(wrong)
    with pytest.raises(ValueError, match=r"'malloc' is not a valid Allocator: .*\['malloc'\]"):
        hamr.Allocator("malloc")
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
        ("float", "float64"), ("int", "int64"), ("bool", "bool"), ("complex", "complex128"),
        ("d", "float64"), ("f", "float32"), ("e", "float16"), ("b", "int8"), ("B", "uint8"),
        ("l", "int64"), ("Q", "uint64"), ("D", "complex128"),
        (np.intc, "int32"), (np.longlong, "int64"), (np.dtype("l"), "int64"),
        *((name, name) for name in NAMED),
    ],
)  # fmt: skip
def test_other_accepted_forms(form, name):
    assert str(hamr.Buffer(1, form).dtype) == name


@pytest.mark.parametrize(
    "name",
    [
        "half",
        "single",
        "double",
        "csingle",
        "cdouble",
        "byte",
        "ubyte",
        "short",
        "ushort",
        "intc",
        "uintc",
        "int_",
        "uint",
        "long",
        "ulong",
        "longlong",
        "ulonglong",
        "intp",
        "uintp",
        "bool_",
    ],
)
def test_numpys_names(name):
    if name in ("long", "ulong", "uint") and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        expected = np.dtype({"long": "int64"}.get(name, "uint64"))  # as NumPy 2 reads them
    else:
        expected = np.dtype(name)
    assert hamr.Buffer(1, name).dtype == expected


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("nope", "nope"), ("", "dtype"), ("unsigned_int", "int"), ("char", "char.*size"),
        ("g", "g"), ("U3", "U3"),
        ("float64 ", "float64 "), ("p", "p"), ("c", "c"), ("torch.float32", "torch"),
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
    assert [name_of(number) for number in range(1, len(TABLE) + 1)] == [row[0] for row in TABLE]


def test_an_element_type_is_its_name():
    named = ElementType("float32")
    assert repr(named) == "dtype('float32')"
    assert named == "float32"
    assert np.dtype(named) == np.float32


def test_bfloat16_holds_numbers():
    buffer = hamr.Buffer(3, "bfloat16", data=[1.0, 2.5, -3.0])
    assert str(buffer) == "{1, 2.5, -3}"
    assert buffer[1].item() == 2.5
    assert buffer.astype("float32").get().tolist() == [1.0, 2.5, -3.0]
    assert buffer.view("u2").get().tolist() == [0x3F80, 0x4020, 0xC040]
    buffer.append(0.5)
    assert buffer.astype("int8").get().tolist() == [1, 2, -3, 0]
    # 1 + 2**-8 lies between two: to the even one.
    assert hamr.Buffer(1, "bfloat16", fill=1 + 2**-8).item() == 1.0


@pytest.mark.parametrize("name", producers.ADDED)
def test_numpy_takes_no_elements_of_types_without_a_format(name):
    for buffer in (hamr.Buffer(0, name), hamr.Buffer((2, 0), name)):
        assert np.asarray(buffer).shape == buffer.get().shape == buffer.shape


def test_item_from_bytes_knows_every_type_with_a_format():
    for number, (name, _, form, _, _) in enumerate(TABLE, 1):
        assert has_format(number) == (form is not None)
        if form is not None:
            content = np.asarray(hamr.Buffer((), name, fill=1)).tobytes()
            assert item_from_bytes(number, content) == 1


@pytest.mark.parametrize("dtype", NAMED)
def test_refusals_name_the_type(dtype):
    """Its typestr is that of raw bytes, and of others."""
    buffer = hamr.Buffer(2, dtype)
    with pytest.raises(BufferError, match=f"element type {dtype} has"):
        memoryview(buffer)
    with pytest.raises(AttributeError, match=f"element type {dtype} has"):
        _ = buffer.__array_interface__
    with pytest.raises(TypeError, match=f"element type {dtype} has"):
        buffer.__arrow_c_array__()
