"""The C exchange API of DLPack that hamr's types offer, in host memory."""

import ctypes
import gc

import numpy as np
import pytest

import hamr
from hamr import _native
from tests.support import dlpack_exchange_structs as exchange, dlpack_structs as dl
from tests.support.processes import run_code, run_script

TABLE = exchange.table_of(hamr.Buffer)


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters as it found them."""
    hamr.Buffer(1)

    def counters():
        gc.collect()
        host = hamr.stats()["spaces"]["host"]
        return host["live"], host["adopted"]

    before = counters()
    yield
    assert counters() == before


def test_the_table():
    assert (TABLE.version.major, TABLE.version.minor, TABLE.previous) == (1, 3, None)
    assert ctypes.addressof(exchange.table_of(hamr.Handle)) == ctypes.addressof(TABLE)
    assert ctypes.addressof(exchange.table_of(_native.Array)) == ctypes.addressof(TABLE)
    assert TABLE.borrow is None
    assert None not in (TABLE.allocate, TABLE.from_object, TABLE.to_object, TABLE.stream)


def test_tensors_of_objects():
    array = np.arange(12, dtype="i2").reshape(3, 4)[:, ::-2]
    buffer = hamr.buffer(array)
    for x in (buffer, buffer.get_host_accessible()):
        seen = exchange.from_object(x, TABLE)
        assert (seen.version, seen.flags, seen.device) == ((1, 3), 0, (1, 0))
        assert (seen.shape, seen.strides, seen.data) == ((3, 2), (4, -2), array.ctypes.data)
        np.testing.assert_array_equal(seen.array("i2"), array)
        seen.delete_with_lock()
    readonly = exchange.from_object(hamr.buffer(b"123"), TABLE)
    assert readonly.flags == dl.READ_ONLY
    readonly.delete_with_lock()


def test_tensors_outlive_their_objects():
    buffer = hamr.Buffer(1000, fill=3)
    seen = exchange.from_object(buffer, TABLE)
    buffer.close()
    refill = [hamr.Buffer(1000, fill=9) for _ in range(4)]
    assert seen.array("f8").sum() == 3000
    seen.delete_with_lock()
    del refill


def test_objects_without_a_tensor():
    closed = hamr.Buffer(3)
    closed.close()
    memory = np.zeros(9, "u1")
    between = hamr.Buffer.from_pointer(memory.ctypes.data, 2, "f4", strides=(5,))
    for x, error in (
        (closed, hamr.FreedBuffer), (between, BufferError), (3, TypeError), (memory, TypeError)
    ):  # fmt: skip
        with pytest.raises(error):
            exchange.from_object(x, TABLE)


def test_objects_of_tensors():
    made = dl.Made(np.arange(6.0).reshape(2, 3).T)
    buffer = exchange.to_object(made.address, TABLE)
    assert type(buffer) is hamr.Buffer
    np.testing.assert_array_equal(np.asarray(buffer), made.array, strict=True)
    np.asarray(buffer)[0, 0] = 50
    assert made.array[0, 0] == 50
    assert made.deleted == 0
    del buffer
    assert made.deleted == 1


def test_objects_of_tensors_of_hamrs_own():
    seen = exchange.allocate(TABLE, (2, 3), (2, 64, 1))
    seen.array("f8")[...] = 7
    buffer = exchange.to_object(seen.address, TABLE)
    assert np.asarray(buffer).tolist() == [[7] * 3] * 2


def test_tensors_that_are_refused_are_deleted():
    made = dl.Made(np.zeros(3), version=(2, 0))
    with pytest.raises(BufferError):
        exchange.to_object(made.address, TABLE)
    assert made.deleted == 1


@pytest.mark.parametrize("device", [(1, 0), (2, 0), (2, 3), (3, 0), (13, 0)])
def test_the_current_stream_is_the_default_one(device):
    assert exchange.current_stream(device, TABLE) is None


@pytest.mark.parametrize("device", [(10, 0), (4, 0), (14, 0), (0, 0), (2, -1)])
def test_devices_without_a_stream(device):
    with pytest.raises(BufferError, match=rf"device \({device[0]}, {device[1]}\): accepted are"):
        exchange.current_stream(device, TABLE)


@pytest.mark.parametrize("shape", [(), (5,), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize(
    ("code", "dtype"), [((2, 32, 1), "f4"), ((6, 8, 1), "?"), ((5, 128, 1), "c16")]
)
def test_new_tensors(shape, code, dtype):
    before = hamr.stats()["spaces"]["host"]["live"]
    seen = exchange.allocate(TABLE, shape, code)
    expected = np.ones(shape, dtype)
    assert (seen.shape, seen.dtype, seen.device) == (shape, code, (1, 0))
    assert (seen.version, seen.flags, seen.byte_offset) == ((1, 3), 0, 0)
    if expected.size:
        assert seen.strides == tuple(s // expected.itemsize for s in expected.strides)
        assert hamr.stats()["spaces"]["host"]["live"] == before + 1
        seen.array(dtype)[...] = 1
        np.testing.assert_array_equal(seen.array(dtype), expected, strict=True)
    else:
        assert seen.data is None
    dl.delete_on_thread(seen)
    assert hamr.stats()["spaces"]["host"]["live"] == before


@pytest.mark.parametrize(
    ("shape", "code", "device", "error"),
    [
        ((3,), (2, 31, 1), (1, 0), ("TypeError", "dtype")),
        ((3,), (2, 32, 4), (1, 0), ("TypeError", "dtype")),
        ((3,), (2, 32, 1), (10, 0), ("BufferError", "device")),
        ((-1,), (2, 32, 1), (1, 0), ("ValueError", "shape")),
        ((2**40, 2**40), (2, 32, 1), (1, 0), ("ValueError", "shape")),
        ((1,) * 65, (2, 32, 1), (1, 0), ("ValueError", "ndim")),
        ((2**55,), (2, 32, 1), (1, 0), ("MemoryError", "")),
    ],
)
def test_new_tensors_that_are_refused(shape, code, device, error):
    kind, text = exchange.allocate(TABLE, shape, code, device)
    assert kind == error[0]
    assert error[1] in text
    assert "\x1f" not in text


def test_new_tensors_before_hamr_is_used():
    run_code(
        """
import hamr
from tests.support import dlpack_exchange_structs as exchange
from tests.support import dlpack_structs as dl
from hamr import _native
table = exchange.table_of(hamr.Buffer)
seen = exchange.allocate(table, (3, 5))
assert seen.strides == (5, 1) and seen.data % 256 == 0
seen.array("f4")[...] = 3
assert seen.array("f4").sum() == 45
assert exchange.allocate(table, (0, 5)).data is None
kind, text = exchange.allocate(table, (3,), device=(2, 0))
assert kind == "RuntimeError" and "hamr.Buffer" in text, text
kind, text = exchange.allocate(table, (2**58,))
assert kind == "MemoryError", text
assert not _native.bound()
hamr.Buffer(3)
dl.delete_on_thread(seen)
assert hamr.stats()["references"] == 0
""",
    )


def test_without_a_driver():
    run_code(
        """
import hamr
from tests.support import dlpack_exchange_structs as exchange
hamr.Buffer(3)
kind, text = exchange.allocate(exchange.table_of(hamr.Buffer), (3,), device=(2, 0))
assert kind == "RuntimeError" and text, (kind, text)
""",
        env={"HAMR_CUDA_LIBRARY": "/nonexistent"},
    )


def test_in_a_forked_child():
    run_script("dlpack_fork")
