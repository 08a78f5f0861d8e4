"""Any numbers in Arrow's structs: an error in words, or an array, never a crash.

Pointers are NULL or right: what a wrong one points to, nobody can tell.
"""

import gc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hamr
from tests.support import arrow_structs as structs
from tests.support.arrow_structs import Chunks, HostArray, OnDevice, Structs

ACCEPTED_ERRORS = (TypeError, ValueError, BufferError, OSError)
CONTENT = np.arange(1024, dtype="u1")
ROOM = CONTENT.nbytes // 8  # elements of the largest type

numbers = st.one_of(
    st.integers(-2, 4),
    st.integers(0, ROOM),
    st.sampled_from([2**31, 2**32, 2**60, 2**62, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
formats = st.one_of(
    st.sampled_from([f.encode() for f in structs.FORMATS.values()]),
    st.sampled_from([b"b", b"u", b"+w:2", b"+w:0", b"+s", b"tsu:", b"w:3", b""]),
    st.binary(max_size=5).filter(lambda text: 0 not in text),
    st.integers(0, 2**70).map(lambda n: f"+w:{n}".encode()),
)
bitmaps = st.binary(min_size=ROOM, max_size=ROOM).map(lambda b: np.frombuffer(b, "u1"))


def rarely(draw, right, wrong):
    return draw(wrong) if draw(st.integers(0, 9)) == 0 else draw(right)


@st.composite
def described(draw, kind, depth=0):
    """A schema and an array of which a few fields are wrong, with lists at most of them."""
    bitmap = draw(st.one_of(st.none(), bitmaps))
    lists = depth < 3 and draw(st.integers(0, 2)) == 0
    schema = {"format": rarely(draw, st.sampled_from([b"C", b"i", b"g"]), formats)}
    offset = draw(st.integers(0, ROOM // 2))
    changes = {
        "offset": rarely(draw, st.just(offset), numbers),
        "length": rarely(draw, st.integers(0, ROOM // 2), numbers),
        "null_count": rarely(draw, st.sampled_from([0, 0, -1]), numbers),
        "n_buffers": rarely(draw, st.just(1 if lists else 2), numbers),
        "buffers": [None if bitmap is None else bitmap.ctypes.data, CONTENT.ctypes.data],
    }
    inner = None
    if lists:
        inner = draw(described(Structs, depth + 1))
        size = rarely(draw, st.integers(0, 3), st.integers(0, 2**63))
        schema |= {"format": f"+w:{size}".encode(), "children": [inner.schema]}
        schema["n_children"] = rarely(draw, st.just(1), numbers)
        changes |= {"children": [inner.array], "n_children": rarely(draw, st.just(1), numbers)}
    for key in ("buffers", "children"):
        if key in changes and draw(st.integers(0, 19)) == 0:
            changes[key] = None
    if draw(st.integers(0, 19)) == 0:
        schema["metadata"] = structs.metadata(
            draw(st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3))
        )
    made = kind(CONTENT, schema, **changes)
    made.kept += [bitmap, inner]
    if made.array.offset + made.array.length > 8 * ROOM:
        made.array.null_count = 0  # else the bitmap is believed to be as long
    return made


def bounded(array, bytes_each):
    """Whether the elements lie in the memory that there is, and the bits in the bitmap."""
    while True:
        if array.length > ROOM or array.offset > ROOM:
            return False
        if not array.children or array.n_children != 1:
            return (array.offset + array.length) * bytes_each <= CONTENT.nbytes
        child = structs.ctypes.c_void_p.from_address(array.children).value
        array = structs.Array.from_address(child)


def adopt(source, made):
    """What is accepted lies in the memory, and can be read."""
    try:
        shared = hamr.buffer(source)
    except ACCEPTED_ERRORS:
        return
    assert shared.readonly
    if shared.size() and bounded(made.array, shared.itemsize):
        assert CONTENT.ctypes.data <= shared.ptr
        assert shared.ptr + shared.nbytes <= CONTENT.ctypes.data + CONTENT.nbytes
        assert np.asarray(shared.copy()).tobytes() == np.asarray(shared).tobytes()


@pytest.fixture(autouse=True)
def released_once():
    yield
    gc.collect()
    assert structs._in_use == {}
    assert structs.stray == []


@pytest.mark.parametrize("kind", [HostArray, OnDevice])
@given(data=st.data())
@settings(max_examples=300)
def test_structs(kind, data):
    made = data.draw(described(kind))
    if kind is OnDevice:
        made.device_type = data.draw(
            st.one_of(st.just(structs.CPU), st.integers(-(2**31), 2**31 - 1))
        )
        if made.device_type in (structs.CUDA, structs.CUDA_HOST, structs.CUDA_MANAGED):
            made.device_type = structs.CPU  # where a driver is, it is asked
        made.device_id = data.draw(numbers)
    adopt(made, made)


@given(data=st.data())
@settings(max_examples=100)
def test_streams(data):
    chunks = data.draw(st.lists(described(Structs), max_size=3))
    fields = {"format": data.draw(formats)}
    source = Chunks(
        *chunks, failing=data.draw(st.sampled_from(["", "", "schema", "end"])), **fields
    )
    try:
        shared = hamr.buffer(source)
    except ACCEPTED_ERRORS:
        return
    assert shared.readonly
    assert sum(chunk.array.length > 0 for chunk in chunks) <= 1
