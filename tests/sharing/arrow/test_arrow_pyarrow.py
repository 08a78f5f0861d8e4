"""pyarrow, where it is installed: its arrays in hamr, and hamr's memory in its arrays."""

import gc
import importlib.util

import numpy as np
import pytest

import hamr
from tests.support.processes import run_code

if importlib.util.find_spec("pyarrow") is None:
    pytest.skip("pyarrow is not installed", allow_module_level=True)

import pyarrow as pa
import pyarrow.compute as pc

pytestmark = pytest.mark.libraries

DTYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
]  # fmt: skip


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters, and pyarrow's memory, as it found them."""

    def counters():
        gc.collect()
        hamr.Buffer(1)
        host = hamr.stats()["spaces"]["host"]
        return host["live"], host["adopted"], hamr.stats()["references"], pa.total_allocated_bytes()

    before = counters()
    yield
    assert counters() == before


def address(array):
    """Where the first element of an array is."""
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


def ones(dtype, length=9):
    return pa.array(np.arange(length).astype(dtype))


# hamr's memory in pyarrow.


@pytest.mark.parametrize("dtype", DTYPES)
def test_pyarrow_shares_a_buffer(dtype, allocator):
    b = hamr.Buffer(9, dtype, allocator, data=np.arange(9))
    for x in (b, b[2:], b.get_host_accessible()):
        array = pa.array(x)
        array.validate(full=True)
        assert (address(array), array.type, array.null_count) == (
            x.ptr,
            pa.from_numpy_dtype(dtype),
            0,
        )
        assert array.to_pylist() == np.asarray(x).tolist()
    assert pa.array(b).is_cpu


@pytest.mark.parametrize("share", [
    pa.array, lambda b: pa.array(b, pa.int32()), lambda b: pa.chunked_array(b).chunk(0),
    lambda b: pa.Array._import_from_c_capsule(*b.__arrow_c_array__()),
], ids=["array", "typed", "chunked", "capsules"])  # fmt: skip
def test_ways_to_share(share):
    b = hamr.Buffer(9, "i4", fill=3)
    assert address(share(b)) == b.ptr


CHANGES = {
    "grow": lambda b: b.resize(10**6),
    "free": lambda b: b.free(),
    "close": lambda b: b.close(),
    "move": lambda b: b.move("cpp"),
    "assign": lambda b: b.assign(np.zeros(10**5)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_array_outlives_its_buffer(change):
    b = hamr.Buffer(1000, "i8", fill=2)
    array = pa.array(b)
    part = array.slice(990)
    change(b)
    del b, array
    refill = [hamr.Buffer(1000, "i8", fill=9) for _ in range(8)]
    assert part.to_pylist() == [2] * 10
    assert len(refill) == 8


def test_large_and_empty():
    b = hamr.Buffer(5_000_000, "f8", fill=1.5)
    array = pa.array(b)
    assert pc.sum(array).as_py() == 7_500_000
    b.close()
    del b
    assert array[4_999_999].as_py() == 1.5
    for empty in (hamr.Buffer(0, "f4"), hamr.Buffer(9, "f4")[4:4]):
        array = pa.array(empty)
        array.validate(full=True)
        assert (len(array), array.type) == (0, pa.float32())


def test_columns_of_a_table():
    columns = {name: hamr.Buffer(100, name, fill=7) for name in DTYPES}
    table = pa.table({name: pa.array(b) for name, b in columns.items()})
    table.validate(full=True)
    for name, b in columns.items():
        assert address(table[name].chunk(0)) == b.ptr
        shared = hamr.buffer(table[name])
        assert (shared.ptr, shared.dtype) == (b.ptr, np.dtype(name))


@pytest.mark.parametrize(("make", "error"), [
    (lambda: hamr.Buffer((2, 3)), ValueError), (lambda: hamr.Buffer(()), ValueError),
    (lambda: hamr.Buffer(9)[::2], ValueError), (lambda: hamr.Buffer(3, "?"), TypeError),
    (lambda: hamr.Buffer(3, "c16"), TypeError), (lambda: hamr.Buffer(3, "bfloat16"), TypeError),
])  # fmt: skip
def test_errors_come_through(make, error):
    with pytest.raises(error, match=r"Arrow"):
        pa.array(make())


# pyarrow's memory in hamr.


@pytest.mark.parametrize("dtype", DTYPES)
def test_hamr_shares_an_array(dtype):
    array = ones(dtype)
    for part in (array, array.slice(2), array.slice(8, 1), array.slice(3, 4)):
        shared = hamr.buffer(part)
        assert (shared.ptr, shared.shape, shared.dtype) == (
            address(part),
            (len(part),),
            np.dtype(dtype),
        )
        assert shared.readonly
        assert np.asarray(shared).tolist() == part.to_pylist()
        # DLPack where pyarrow exports it with a version, which says that it is immutable.
        assert shared.source_protocol in ("__dlpack__", "__arrow_c_device_array__")
    assert hamr.buffer(array.slice(9)).shape == (0,)
    assert hamr.buffer(pa.array([], array.type)).shape == (0,)


def test_the_array_lives_as_long_as_its_memory_is_used():
    held = pa.total_allocated_bytes()
    shared = hamr.buffer(pc.add(ones("f8", 1000), 1))
    part = np.asarray(shared[10:])
    shared.close()
    gc.collect()
    assert pa.total_allocated_bytes() > held
    assert part[0] == 11
    again = pa.array(hamr.buffer(part))
    del part
    assert again[0].as_py() == 11
    del again
    gc.collect()
    assert pa.total_allocated_bytes() == held


def test_nulls():
    array = pa.array([1, None, 3, None], pa.int32())
    with pytest.raises(ValueError, match="2 of the Arrow array's 4 elements are null"):
        hamr.buffer(array)
    with pytest.raises(ValueError, match="are null"):
        hamr.buffer(array.slice(1))
    assert np.asarray(hamr.buffer(array.slice(2, 1))).tolist() == [3]
    for better, content in ((array.fill_null(7), [1, 7, 3, 7]), (array.drop_null(), [1, 3])):
        assert np.asarray(hamr.buffer(better)).tolist() == content


REFUSED = {
    "bool": (lambda: pa.array([True]), "uint8", lambda x: x.cast(pa.uint8())),
    "dictionary": (
        lambda: pa.array([5, 5]).dictionary_encode(), "dictionary_decode",
        lambda x: x.dictionary_decode(),
    ),
    "timestamp": (
        lambda: pa.array([1], pa.timestamp("us", "UTC")), "int64", lambda x: x.view(pa.int64()),
    ),
    "date32": (lambda: pa.array([1], pa.date32()), "int32", lambda x: x.view(pa.int32())),
    "date64": (lambda: pa.array([1], pa.date64()), "int64", lambda x: x.view(pa.int64())),
    "time32": (lambda: pa.array([1], pa.time32("ms")), "int32", lambda x: x.view(pa.int32())),
    "time64": (lambda: pa.array([1], pa.time64("ns")), "int64", lambda x: x.view(pa.int64())),
    "duration": (lambda: pa.array([1], pa.duration("s")), "int64", lambda x: x.view(pa.int64())),
    "string": (lambda: pa.array(["x"]), "'u'", None),
    "large string": (lambda: pa.array(["x"], pa.large_string()), "'U'", None),
    "view of strings": (lambda: pa.array(["x"], pa.string_view()), "'vu'", None),
    "binary": (lambda: pa.array([b"xy"], pa.binary(2)), "'w:2'", None),
    "null": (lambda: pa.nulls(3), "'n'", None),
    "decimal": (lambda: pa.array([1], pa.decimal128(5)), "'d:5,0'", None),
    "list": (lambda: pa.array([[1]]), r"'\+l'", lambda x: x.flatten()),
    "struct": (lambda: pa.array([{"a": 1}]), "columns", lambda x: x.field("a")),
    "table": (lambda: pa.table({"a": [1]}), "columns", lambda x: x["a"]),
    "record batch": (lambda: pa.record_batch({"a": [1]}), "columns", lambda x: x["a"]),
    "extension": (
        lambda: pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())),
        "'arrow.bool8'.*storage", lambda x: x.storage,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words", "instead"), REFUSED.values(), ids=REFUSED)
def test_other_types_are_refused_with_advice_that_works(make, words, instead):
    with pytest.raises(TypeError, match=words):
        hamr.buffer(make())
    if instead is not None:
        assert hamr.buffer(instead(make())).size() > 0


def test_lists_of_a_fixed_size():
    array = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2))
    shared = hamr.buffer(array)
    assert (shared.shape, shared.ptr) == ((3, 2), array.values.buffers()[1].address)
    assert np.asarray(hamr.buffer(array.slice(1))).tolist() == [[3, 4], [5, 6]]
    deep = pa.array([[[1, 2, 3]], [[4, 5, 6]]], pa.list_(pa.list_(pa.int16(), 3), 1)).slice(1)
    assert np.asarray(hamr.buffer(deep)).tolist() == [[[4, 5, 6]]]
    for nulls in ([None, [1, 2]], [[1, None], [1, 2]]):
        with pytest.raises(ValueError, match="1 of"):
            hamr.buffer(pa.array(nulls, pa.list_(pa.int16(), 2)))


def test_tensors_of_a_fixed_shape_have_their_dimensions_by_dlpack():
    values = np.arange(24.0).reshape(2, 3, 4)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    for part, expected in ((tensors, values), (tensors[1:], values[1:])):
        shared = hamr.buffer(part)
        assert (shared.source_protocol, shared.readonly) == ("__dlpack__", True)
        assert np.array_equal(np.asarray(shared), expected)
    assert hamr.buffer(tensors.storage).shape == (2, 12)
    assert hamr.buffer(tensors.to_tensor()).shape == (2, 3, 4)


def test_chunks():
    one = pa.chunked_array([[1, 2]], pa.int32())
    shared = hamr.buffer(one)
    assert (shared.ptr, shared.source_protocol) == (address(one.chunk(0)), "__arrow_c_stream__")
    assert (shared.readonly, np.asarray(shared).tolist()) == (True, [1, 2])
    two = pa.chunked_array([[1], [2]], pa.int32())
    with pytest.raises(ValueError, match=r"several chunks.*combine_chunks\(\)"):
        hamr.buffer(two)
    assert np.asarray(hamr.buffer(two.combine_chunks())).tolist() == [1, 2]
    assert np.asarray(hamr.buffer(two.slice(1))).tolist() == [2]
    assert hamr.buffer(pa.chunked_array([[], [3]], pa.int8())).size() == 1
    assert hamr.buffer(pa.chunked_array([], pa.int8())).shape == (0,)


def test_a_reader_written_in_python():
    """Its batches are made on whatever thread, which takes the GIL for it."""
    schema = pa.schema({"a": pa.int32()})

    def batches():
        yield pa.record_batch({"a": pa.array([1], pa.int32())})

    with pytest.raises(TypeError, match="columns"):
        hamr.buffer(pa.RecordBatchReader.from_batches(schema, batches()))


def test_buffers_and_tensors_go_by_the_buffer_protocol():
    raw = hamr.buffer(pa.py_buffer(b"abc"))
    assert (raw.source_protocol, raw.readonly, raw.shape) == ("buffer", True, (3,))
    tensor = pa.Tensor.from_numpy(np.arange(6.0).reshape(2, 3))
    shared = hamr.buffer(tensor)
    assert (shared.source_protocol, shared.shape) == ("buffer", (2, 3))
    with pytest.raises(TypeError, match="Int64Scalar object cannot be shared"):
        hamr.buffer(pa.scalar(3))


def test_arrays_as_operands():
    b = hamr.Buffer(2, "f4", fill=0)
    b[...] = pa.array([1, 2])
    b.append(pa.array([3.5]))
    assert np.asarray(b).tolist() == [1, 2, 3.5]


def test_at_the_end_of_the_interpreter():
    run_code("""
import sys
import pyarrow as pa, hamr
b = hamr.Buffer(5, "i4", fill=3)
kept = pa.array(b)
sys.kept = pa.array(hamr.buffer(pa.array([1, 2, 3])))
b.close()
assert kept.to_pylist() == [3] * 5
""")
