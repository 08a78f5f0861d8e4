"""What hamr makes of other libraries' Arrow arrays, right ones and wrong ones."""

import gc

import numpy as np
import pytest

import hamr
from tests.support import arrow_structs as structs
from tests.support.arrow_structs import Chunks, HostArray, OnDevice, Structs
from tests.support.processes import run_code

CONTENT = np.arange(200, dtype="i4")


@pytest.fixture(autouse=True)
def released_once():
    """All that a test handed out was released, and nothing twice."""
    yield
    gc.collect()
    hamr.Buffer(1)
    assert structs._in_use == {}
    assert structs.stray == []


def counts(source):
    return source.releases, source.schema_releases, source.stream_releases


@pytest.mark.parametrize("kind", [HostArray, OnDevice])
def test_an_array_is_shared_and_released_once(kind):
    source = kind(CONTENT)
    shared = hamr.buffer(source)
    assert shared.ptr == CONTENT.ctypes.data
    assert (shared.shape, shared.typestr, shared.readonly) == ((200,), "<i4", True)
    assert counts(source) == (0, 1, 0), "of the schema nothing is needed later"
    part, handle = shared[5:], shared.get_host_accessible()
    array = np.asarray(part)
    shared.close(), part.close(), handle.close()
    assert (counts(source), array[0]) == ((0, 1, 0), 5)
    del array
    assert counts(source) == (1, 1, 0)


def test_an_array_may_be_shared_again_and_again():
    source = HostArray(CONTENT)
    shared = [hamr.buffer(source) for _ in range(10)]
    del shared
    assert counts(source) == (10, 10, 0)


@pytest.mark.parametrize("dtype", sorted(structs.FORMATS))
def test_lengths_and_offsets(dtype):
    content = np.arange(100).astype(dtype)
    for offset, length in ((0, 100), (1, 99), (7, 5), (100, 0), (3, 0)):
        shared = hamr.buffer(HostArray(content, length=length, offset=offset))
        assert np.asarray(shared).tolist() == list(range(offset, offset + length))
        assert length == 0 or shared.ptr == content[offset:].ctypes.data
        assert shared.dtype == content.dtype


@pytest.mark.parametrize("buffers", [[None, None], [CONTENT.ctypes.data] * 2, [None, 1]])
def test_no_elements(buffers):
    for offset in (0, 5):
        shared = hamr.buffer(HostArray(CONTENT, length=0, offset=offset, buffers=buffers))
        assert (shared.shape, shared.size(), np.asarray(shared).tolist()) == ((0,), 0, [])


def bits(*clear, count=200):
    """A validity bitmap in which some elements are null, with wrong bits behind the last."""
    valid = np.ones(count, bool)
    valid[list(clear)] = False
    return np.concatenate([np.packbits(valid, bitorder="little"), np.zeros(8, "u1")])


def with_bitmap(bitmap, null_count=-1, **changes):
    made = HostArray(
        CONTENT, null_count=null_count, buffers=[bitmap.ctypes.data, CONTENT.ctypes.data], **changes
    )
    made.kept.append(bitmap)
    return made


def test_arrays_without_nulls():
    assert hamr.buffer(HostArray(CONTENT, null_count=-1)).size() == 200
    assert hamr.buffer(with_bitmap(bits())).size() == 200
    assert hamr.buffer(with_bitmap(bits(3), null_count=0)).size() == 200, "the count is believed"
    assert hamr.buffer(with_bitmap(bits(*range(200)), length=0, offset=200)).size() == 0


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 9, 63, 64, 65, 130])
@pytest.mark.parametrize("length", [1, 5, 64, 65, 70])
def test_the_bits_of_the_elements_are_counted_and_no_others(offset, length):
    around = [i for i in (offset - 1, offset + length) if 0 <= i < 200]
    shared = hamr.buffer(with_bitmap(bits(*around), offset=offset, length=length))
    assert np.asarray(shared).tolist() == CONTENT[offset : offset + length].tolist()
    for null in {offset, offset + length // 2, offset + length - 1}:
        with pytest.raises(ValueError, match=rf"1 of the Arrow array's {length} elements are null"):
            hamr.buffer(with_bitmap(bits(null), offset=offset, length=length))


def test_nulls_are_counted_and_what_helps_is_named():
    with pytest.raises(ValueError, match=r"3 of .* 200 elements are null.*fill_null.*drop_null"):
        hamr.buffer(with_bitmap(bits(1, 77, 199)))
    with pytest.raises(ValueError, match="2 of"):
        hamr.buffer(with_bitmap(bits(1, 77), null_count=2))


HUGE = 2**63 - 1
WRONG = {
    "length": ({"length": -1}, ValueError, "length .* -1"),
    "length and offset": ({"length": HUGE, "offset": 1}, ValueError, "offset .* 1"),
    "offset": ({"offset": -1}, ValueError, "offset .* -1"),
    "least offset": ({"offset": -HUGE - 1}, ValueError, "offset"),
    "bytes": ({"length": HUGE // 4 + 1}, ValueError, "64 bits"),
    "bytes before": ({"length": 1, "offset": HUGE // 4}, ValueError, "64 bits"),
    "address space": ({"length": HUGE // 8, "buffers": [None, 2**64 - 8]}, ValueError, "64 bits"),
    "null_count": ({"null_count": -2}, ValueError, "null_count .* -2"),
    "too many nulls": ({"null_count": 7}, ValueError, "null_count .* 7"),
    "nulls without a bitmap": ({"null_count": 1}, ValueError, "null_count .* 1.*bitmap"),
    "no data": ({"buffers": [None, None]}, ValueError, "data are NULL"),
    "no buffers": ({"buffers": None}, ValueError, "buffers are NULL"),
    "n_buffers 1": ({"n_buffers": 1}, ValueError, "n_buffers .* 1.*2"),
    "n_buffers 3": ({"n_buffers": 3}, ValueError, "n_buffers .* 3"),
    "n_buffers -1": ({"n_buffers": -1}, ValueError, "n_buffers"),
    "n_children": ({"n_children": 1}, ValueError, "n_children .* 1"),
    "dictionary": ({"dictionary": structs.Array()}, ValueError, "dictionary"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [HostArray, OnDevice])
@pytest.mark.parametrize(("changes", "error", "words"), WRONG.values(), ids=WRONG)
def test_arrays_that_cannot_be_right(changes, error, words, kind):
    source = kind(**changes)
    with pytest.raises(error, match=words):
        hamr.buffer(source)
    assert counts(source) == (1, 1, 0)


FORMATS = {
    "b": "eight bool in a byte.*uint8", "u": "'u'.*accepted are int8", "U": "'U'", "z": "'z'",
    "n": "'n'", "d:10,2": "'d:10,2'", "w:16": "'w:16'", "tdD": r"view\('int32'\).*cast\('int64'\)",
    "tdm": r"view\('int64'\)", "tts": "int32", "ttn": "int64", "tsu:UTC": r"'tsu:UTC'.*int64",
    "tDs": "int64", "tiM": "'tiM'", "+l": r"'\+l'", "+s": "columns one by one", "+w": r"'\+w'",
    "+w:": r"'\+w:'", "+w:-1": r"'\+w:-1'", "+w:3x": r"'\+w:3x'", "+w: 3": r"'\+w: 3'",
    "+w:9999999999999999999999": "9'", "": "''",
    "ii": "'ii'", "i ": "'i '", "\xff\n": r"\\xff\\n",
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), FORMATS.items(), ids=repr)
def test_formats_that_are_not_taken(text, words):
    source = HostArray(schema={"format": text.encode("latin1")})
    with pytest.raises(TypeError, match=words):
        hamr.buffer(source)
    assert counts(source) == (1, 1, 0)


SCHEMAS = {
    "no format": ({"format": None}, ValueError, "no format"),
    "children": ({"n_children": 1}, ValueError, "n_children .* 1"),
    "dictionary": ({"dictionary": structs.Schema()}, TypeError, "dictionary_decode"),
    "extension": (
        {"metadata": structs.metadata({"a": "b", "ARROW:extension:name": "arrow.uuid"})},
        TypeError, "'arrow.uuid'.*storage",
    ),
    "broken metadata": ({"metadata": bytearray(np.int32([1, -5]).tobytes())}, ValueError, "-5"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "error", "words"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_that_are_not_taken(schema, error, words):
    source = HostArray(schema=schema)
    with pytest.raises(error, match=words):
        hamr.buffer(source)
    assert counts(source) == (1, 1, 0)


@pytest.mark.parametrize("entries", [{}, {"": ""}, {"a": "b" * 99, "ARROW:extension": "x"}])
def test_other_metadata_does_not_matter(entries):
    assert hamr.buffer(HostArray(schema={"metadata": structs.metadata(entries)})).size() == 6


# Lists.


def nested(*sizes, leaf=CONTENT, offsets=(), length=None):
    """Lists of lists of fixed sizes; offsets are of the outermost first, the leaf last."""
    offsets = [*offsets, *[0] * (len(sizes) + 1 - len(offsets))]
    inner = Structs(leaf, length=leaf.size - offsets[-1], offset=offsets[-1])
    for depth in reversed(range(len(sizes))):
        count = inner.array.length // max(sizes[depth], 1) - offsets[depth]
        outer = (HostArray if depth == 0 else Structs)(
            leaf,
            {
                "format": f"+w:{sizes[depth]}".encode(),
                "n_children": 1,
                "children": [inner.schema],
            },
            length=count if length is None or depth else length,
            offset=offsets[depth],
            n_buffers=1,
            buffers=[None],
            n_children=1,
            children=[inner.array],
        )
        outer.inner = inner
        inner = outer
    return inner


#: Dimensions but one that NumPy's arrays have at most: 64 since version 2.
MOST = 63 if int(np.__version__.partition(".")[0]) >= 2 else 31


@pytest.mark.parametrize("sizes", [(2,), (200,), (1,), (5, 4), (1, 2, 3), (1,) * MOST])
def test_lists_become_dimensions(sizes):
    count = int(np.prod(sizes))
    shared = hamr.buffer(nested(*sizes))
    expected = CONTENT[: 200 // count * count].reshape(-1, *sizes)
    assert (shared.shape, shared.strides, shared.ptr) == (
        expected.shape,
        expected.strides,
        CONTENT.ctypes.data,
    )
    assert np.asarray(shared).tolist() == expected.tolist()


@pytest.mark.parametrize("offsets", [(1,), (0, 3), (2, 3), (1, 2, 3), (0, 0, 7)])
def test_offsets_of_lists_and_of_what_is_in_them(offsets):
    shared = hamr.buffer(nested(3, 4, offsets=offsets))
    a, b, c = [*offsets, 0, 0][:3]
    rows = (200 - c) // 4 - b
    expected = (
        CONTENT[c:][b * 4 :][: rows * 4].reshape(rows, 4)[: rows // 3 * 3].reshape(-1, 3, 4)[a:]
    )
    assert np.asarray(shared).tolist() == expected.tolist()


@pytest.mark.parametrize(("sizes", "shape"), [((0,), (9, 0)), ((3, 0), (9, 3, 0))])
def test_lists_of_nothing(sizes, shape):
    assert hamr.buffer(nested(*sizes, leaf=CONTENT[:0], length=0)).shape == (0, *shape[1:])
    outer = nested(0, length=9)
    assert hamr.buffer(outer).shape == (9, 0)


def test_lists_that_cannot_be_right():
    for source, error, words in (
        (nested(3, length=67), ValueError, "child is 200: its lists need 201"),
        (nested(2**40, 2**40, length=1), ValueError, "child is|64 bits"),
        (nested(*[1] * 64), ValueError, "more than 64 dimensions"),
        (nested(2**62, length=3), ValueError, "64 bits"),
    ):
        with pytest.raises(error, match=words):
            hamr.buffer(source)
    for changes, words in (
        ({"n_buffers": 2}, "n_buffers .* 2.*1"), ({"n_children": 0}, "n_children .* 0"),
        ({"children": None}, "children are NULL"), ({"children": [None]}, "children are NULL"),
    ):  # fmt: skip
        source = nested(2)
        for name, value in changes.items():
            setattr(source.array, name, source._field(value))
        with pytest.raises(ValueError, match=words):
            hamr.buffer(source)
    for changes in ({"n_children": 0}, {"n_children": 2}, {"children": None}, {"children": [None]}):
        source = nested(2)
        for name, value in changes.items():
            setattr(source.schema, name, source._field(value))
        with pytest.raises(ValueError, match=r"n_children|no format"):
            hamr.buffer(source)


def with_bitmaps(source, of_lists, of_elements, null_count=-1):
    """Lists whose bitmaps say what is null in them."""
    inner = source.inner.array
    source.kept += [of_lists, of_elements]
    source.array.null_count = inner.null_count = null_count
    source.array.buffers = source._field([of_lists.ctypes.data])
    inner.buffers = source._field([of_elements.ctypes.data, CONTENT.ctypes.data])
    return source


def test_nulls_in_lists():
    assert hamr.buffer(with_bitmaps(nested(2), bits(150), bits())).shape == (100, 2)
    with pytest.raises(ValueError, match="1 of the Arrow array's 200 elements"):
        hamr.buffer(with_bitmaps(nested(2), bits(), bits(17)))
    with pytest.raises(ValueError, match="1 of the Arrow array's 100 elements"):
        hamr.buffer(with_bitmaps(nested(2), bits(9), bits()))


def test_nulls_outside_of_the_lists_do_not_matter_though_they_are_counted():
    source = with_bitmaps(nested(2, offsets=(1,)), bits(), bits(1))
    source.inner.array.null_count = 1
    assert np.asarray(hamr.buffer(source)).tolist() == CONTENT.reshape(100, 2)[1:].tolist()


# Streams.


def test_a_stream_of_one_chunk():
    only = Structs(CONTENT)
    source = Chunks(only)
    shared = hamr.buffer(source)
    assert (shared.ptr, shared.source_protocol, shared.readonly) == (
        CONTENT.ctypes.data,
        "__arrow_c_stream__",
        True,
    )
    assert (counts(source), counts(only)) == ((0, 1, 1), (0, 0, 0))
    shared.close()
    assert counts(only) == (1, 0, 0)


def test_empty_chunks_do_not_count():
    empty, only = Structs(CONTENT[:0]), Structs(CONTENT)
    for chunks in ((empty, only), (only, empty), (empty, only, empty), (empty, empty)):
        shared = hamr.buffer(Chunks(*chunks, format=b"i"))
        assert shared.size() == (200 if only in chunks else 0)
        shared.close()
        assert empty.given == only.given == 0
    nothing = hamr.buffer(Chunks(format=b"f"))
    assert (nothing.shape, nothing.typestr) == ((0,), "<f4")


def test_streams_that_are_not_taken():
    chunks = [Structs(CONTENT[i : i + 50]) for i in range(0, 200, 50)]
    for source, error, words in (
        (Chunks(*chunks), ValueError, r"several chunks.*combine_chunks\(\)"),
        (Chunks(chunks[0], format=b"+s"), TypeError, "columns one by one"),
        (Chunks(chunks[0], failing="schema"), OSError, r"\[Errno 5\].*the disk is gone"),
        (Chunks(chunks[0], failing="end"), OSError, "the disk is gone"),
        (Chunks(format=b"u"), TypeError, "'u'"),
        (Chunks(Structs(CONTENT, null_count=3), format=b"i"), ValueError, "null_count"),
    ):
        with pytest.raises(error, match=words):
            hamr.buffer(source)
        assert source.given == 0
    assert [chunk.given for chunk in chunks] == [0, 0, 0, 0]
    assert chunks[2].releases == 0, "the rest of a long stream is not waited for"


# Capsules, devices, errors of the producer.


class Gives:
    def __init__(self, given, name="__arrow_c_array__"):
        setattr(self, name, lambda requested_schema=None: given)


def test_what_is_no_pair_of_capsules():
    source = HostArray()
    schema, array = source.__arrow_c_array__()
    for given in (
        None,
        (),
        (schema,),
        [schema, array],
        (array, schema),
        (schema, schema),
        (schema, array, None),
        (schema, 3),
        array,
        7,
    ):
        with pytest.raises(TypeError, match="tuple of two capsules, arrow_schema and arrow_array"):
            hamr.buffer(Gives(given))
        with pytest.raises(TypeError, match="arrow_device_array"):
            hamr.buffer(Gives((schema, array), "__arrow_c_device_array__"))
        with pytest.raises(TypeError, match="arrow_array_stream"):
            hamr.buffer(Gives(given, "__arrow_c_stream__"))
    assert hamr.buffer(Gives((schema, array))).size() == 6


def test_a_capsule_is_consumed_once():
    source = HostArray()
    pair = source.__arrow_c_array__()
    shared = hamr.buffer(Gives(pair))
    with pytest.raises(ValueError, match="arrow_array capsule is empty: it was consumed before"):
        hamr.buffer(Gives(pair))
    assert shared.size() == 6
    stream = Chunks(Structs()).__arrow_c_stream__()
    kept = hamr.buffer(Gives(stream, "__arrow_c_stream__"))
    with pytest.raises(ValueError, match="arrow_array_stream capsule is empty"):
        hamr.buffer(Gives(stream, "__arrow_c_stream__"))
    assert kept.size() == 6
    structs.release(structs.inside(pair[0]))
    with pytest.raises(ValueError, match="arrow_schema capsule is empty"):
        hamr.buffer(Gives((pair[0], source.__arrow_c_array__()[1])))


@pytest.mark.parametrize("number", [0, -1, 4, 7, 10, 11, 14, 16, 2**31 - 1])
def test_devices_that_hamr_does_not_know(number):
    with pytest.raises(BufferError, match=f"device_type .* {number}: accepted are 1 "):
        hamr.buffer(OnDevice(device_type=number))


@pytest.mark.parametrize("number", [structs.CUDA, structs.CUDA_HOST, structs.CUDA_MANAGED])
@pytest.mark.parametrize("event", [None, 5])
def test_without_a_driver(number, event):
    run_code(
        f"""
import hamr
from tests.support import arrow_structs
source = arrow_structs.OnDevice(device_type={number}, device_id=0, event={event})
try:
    hamr.buffer(source)
except hamr.BackendUnavailable:
    assert source.releases == 1
else:
    raise AssertionError
""",
        env={"HAMR_CUDA_LIBRARY": "/nonexistent"},
    )


def test_an_event_in_host_memory_cannot_be_right():
    with pytest.raises(ValueError, match="sync_event"):
        hamr.buffer(OnDevice(event=0))


def test_a_producers_own_errors_come_through():
    class Broken:
        def __arrow_c_array__(self, requested_schema=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hamr.buffer(Broken())

    class Shy:
        @property
        def __arrow_c_device_array__(self):
            raise OSError("not today")

    with pytest.raises(OSError, match="not today"):
        hamr.buffer(Shy())


@pytest.mark.parametrize("make", [HostArray, OnDevice, lambda: Chunks(HostArray(), HostArray())])
def test_the_device_of_what_has_arrows_interfaces_alone(make):
    source = make()
    assert hamr.device_of(source) == -1
    del source


def test_the_device_of_what_hamr_cannot_read():
    with pytest.raises(TypeError, match="share the columns one by one"):
        hamr.device_of(OnDevice(schema={"format": b"+s"}))
    with pytest.raises(TypeError, match="x is"):
        hamr.device_of(HostArray)
