"""Device memory in pickles, and in what Dask and mpi4py make of it."""

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import mpi, producers
from tests.support.producers import LAYOUTS, assert_same

A = hamr.Allocator
SCRIPTS = Path(__file__).resolve().parent / "scripts"
needs_distributed = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="no distributed"
)


def at(allocator, array, device=None):
    return hamr.Buffer(array.shape, array.dtype, allocator, data=array, device=device)


def out_of_band(buffer):
    beside = []
    return pickle.dumps(buffer, 5, buffer_callback=beside.append), beside


# Pickle.


@pytest.mark.parametrize("protocol", range(6))
def test_a_buffer_returns_to_its_device(device_allocator, device, protocol):
    array = np.arange(24.0).reshape(4, 6)
    sent = at(device_allocator, array, device)
    loaded = pickle.loads(pickle.dumps(sent, protocol))
    assert (loaded.allocator, loaded.device) == (device_allocator, device)
    assert driver.device_of(loaded.ptr) == device
    assert loaded.ptr != sent.ptr
    assert not loaded.readonly
    assert_same(loaded, array)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(cuda_allocator, layout, dtype):
    whole = hamr.Buffer((4, 6), dtype, cuda_allocator, data=np.arange(24).reshape(4, 6) % 2)
    part = {"strided": whole[::2, ::3], "offset": whole[1:3, 2:], "negative": whole[::-1, ::-1]}
    sent = part.get(layout, whole)
    if layout in ("fortran", "axes swapped"):
        sent = hamr._native.view(hamr.Buffer, whole, 0, (6, 4), whole.strides[::-1])
    content, beside = out_of_band(sent)
    for received in (beside, [bytearray(beside[0].raw())], [bytes(beside[0].raw())]):
        loaded = pickle.loads(content, buffers=received)
        assert loaded.allocator == cuda_allocator
        assert str(loaded) == str(sent)
        assert loaded.shape == sent.shape
        assert not loaded.readonly


def test_memory_that_the_host_reaches_is_not_copied():
    for allocator in ("cuda_host", "cuda_uva"):
        sent = hamr.Buffer(100, "f4", allocator, fill=3)
        _, (elements,) = out_of_band(sent)
        assert np.frombuffer(elements, "u1").ctypes.data == sent.ptr


def test_pending_work_is_waited_for(device_allocator):
    stream = driver.Stream()
    sent = hamr.Buffer(1000, "f4", device_allocator, stream=stream, transfer="async", fill=1)
    driver.write_late(stream, sent.ptr, 1000, 5)
    sent[0] = 5  # in the stream's order, behind what is late
    _, (elements,) = out_of_band(sent)
    np.testing.assert_array_equal(np.frombuffer(elements, "f4"), np.full(1000, 5, "f4"))


MISSING = {
    "no driver": ({"HAMR_CUDA_LIBRARY": "/nonexistent"}, "BackendUnavailable: "),
    "one device": ({"HAMR_EMULATOR_DEVICES": "1"}, "ValueError: device is 1: "),
}


@pytest.mark.multigpu
@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("protocol", [4, 5])
def test_where_its_device_is_not_nothing_is_made(kind, protocol):
    environment, expected = MISSING[kind]
    if kind == "one device" and not driver.EMULATED:
        pytest.skip("no other number of devices with a real driver")
    content = pickle.dumps(hamr.Buffer(3, "f4", "cuda", fill=1, device=1), protocol)
    done = producers.run_python(
        f"import pickle; pickle.loads({content!r})", check=False, **environment
    )
    assert done.returncode == 1
    assert expected in done.stderr.splitlines()[-1]


# Dask.


@pytest.fixture
def families():
    distributed = pytest.importorskip("distributed.protocol")
    import hamr.dask

    hamr.dask.register_cuda()
    yield distributed
    for family in (distributed.cuda.cuda_serialize, distributed.cuda.cuda_deserialize):
        del family._lookup[hamr.Buffer]


class Received:
    """Memory of another library with the bytes of a frame, such as a transport makes."""

    def __init__(self, frame):
        self.pointer = driver.allocate(frame.nbytes)
        content = driver.read(frame.ptr, frame.nbytes, "u1", frame.device)
        driver.write(self.pointer, content)
        self.__cuda_array_interface__ = {
            "shape": (frame.nbytes,), "typestr": "|u1", "data": (self.pointer, False),
            "version": 3,
        }  # fmt: skip

    def __del__(self):
        driver.free(self.pointer)


@needs_distributed
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex128", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("layout", ["c", "fortran", "strided", "empty"])
def test_frames_are_the_memory_itself(families, device_allocator, device, dtype, layout):
    import msgpack

    whole = hamr.Buffer((4, 6), dtype, device_allocator, device=device)
    bits = np.frombuffer(bytes(i % 2 for i in range(whole.nbytes)), f"V{whole.itemsize}")
    bits = bits.reshape(4, 6)
    whole[...] = hamr.Buffer.from_pointer(bits.ctypes.data, (4, 6), dtype, owner=bits)
    sent = {"strided": whole[::2], "empty": whole[:0]}.get(layout, whole)
    if layout == "fortran":
        sent = hamr._native.view(hamr.Buffer, whole, 0, (6, 4), whole.strides[::-1])

    header, frames = families.serialize(sent, serializers=("cuda", "dask", "pickle"))
    assert header["serializer"] == "cuda"
    (frame,) = frames
    assert frame.nbytes == sent.nbytes
    assert frame.device == device
    assert (frame.ptr == sent.ptr) is (layout != "strided")
    interface = frame.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"]) == ((sent.nbytes,), "|u1")
    assert not interface.get("stream")

    header = msgpack.loads(msgpack.dumps(header), use_list=False, strict_map_key=False)
    for received in (frame, Received(frame)) if layout != "empty" else (frame,):
        loaded = families.deserialize(header, [received])
        assert str(loaded.dtype) == str(sent.dtype)
        assert loaded.shape == sent.shape
        assert loaded.copy("malloc").get_host_accessible().shape == sent.shape
        assert pickle.dumps(loaded.copy("malloc"), 4) == pickle.dumps(sent.copy("malloc"), 4)
        if received is frame:
            assert loaded.allocator == device_allocator or not loaded.nbytes
        if layout != "empty":
            pointer = received.ptr if received is frame else received.pointer
            assert loaded.ptr == pointer
            assert driver.device_of(loaded.ptr) == loaded.device


def test_elements_that_repeat_are_pickled_once(device_allocator, device):
    row = hamr.Buffer(10, "f4", device_allocator, data=np.arange(10), device=device)
    sent = hamr._native.view(hamr.Buffer, row, 0, (1000, 10), (0, 4))
    content = pickle.dumps(sent, 5)
    assert len(content) < 1000
    loaded = pickle.loads(content)
    assert loaded.allocator == device_allocator
    assert (loaded.shape, loaded.strides, loaded.readonly) == ((1000, 10), (0, 4), True)
    assert_same(loaded, np.broadcast_to(np.arange(10, dtype="f4"), (1000, 10)))


@needs_distributed
def test_elements_that_repeat_are_one_frame(families):
    import msgpack

    row = hamr.Buffer(10, "f4", "cuda", data=np.arange(10))
    sent = hamr._native.view(hamr.Buffer, row, 0, (1000, 10), (0, 4))
    header, (frame,) = families.serialize(sent, serializers=("cuda",))
    assert (frame.nbytes, frame.ptr) == (40, row.ptr)
    header = msgpack.loads(msgpack.dumps(header), use_list=False, strict_map_key=False)
    loaded = families.deserialize(header, [frame])
    assert (loaded.ptr, loaded.shape, loaded.readonly) == (row.ptr, (1000, 10), True)
    assert_same(loaded, np.broadcast_to(np.arange(10, dtype="f4"), (1000, 10)))


@needs_distributed
def test_frames_are_ready(families):
    """Transports wait for no stream but, perhaps, the default one."""
    stream = driver.Stream()
    sent = hamr.Buffer(1000, "f4", "cuda", stream=stream, transfer="async", fill=1)
    _, (frame,) = families.serialize(sent, serializers=("cuda",))
    assert stream.idle()
    assert frame.ptr == sent.ptr


@needs_distributed
def test_other_transports_take_device_memory_through_the_host(families, device_allocator):
    sent = hamr.Buffer(1000, "f4", device_allocator, fill=2)
    header, frames = families.serialize(sent)
    assert header["serializer"] == "pickle"
    assert all(memoryview(frame).nbytes for frame in frames)
    loaded = families.deserialize(header, frames)
    assert loaded.allocator == device_allocator
    assert_same(loaded, np.full(1000, 2, "f4"))


@needs_distributed
def test_sizes_on_a_device():
    from dask.sizeof import sizeof

    assert sizeof(hamr.Buffer((10, 100), "f8", "cuda")) == 8000


# mpi4py.


@pytest.mark.skipif(mpi.MISSING is not None, reason=str(mpi.MISSING))
def test_mpi_is_told_the_device_address():
    """A rank of its own, since importing mpi4py starts MPI."""
    output = mpi.run_ranks(SCRIPTS / "cuda_mpi.py", 2)
    assert output == "OK\n"
