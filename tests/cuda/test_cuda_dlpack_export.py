"""__dlpack__ of buffers in CUDA's memory: kinds of devices, whose work runs first, and copies."""

import gc
import weakref

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import dlpack_exchange_structs as exchange, dlpack_structs as dl
from tests.support.producers import DTYPES, cast

N = 1000
VERSION = (1, 3)
TABLE = exchange.table_of(hamr.Buffer)


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters as it found them."""
    hamr.Buffer(1)
    gc.collect()
    before = hamr.stats()["references"]
    yield
    gc.collect()
    assert hamr.stats()["references"] == before


class Tensor:
    """What a consumer has of a buffer: it deletes it in the end."""

    def __init__(self, exporter, **arguments):
        self.capsule = exporter.__dlpack__(**{"max_version": VERSION, **arguments})
        self.seen = dl.consume(self.capsule)

    def __getattr__(self, name):
        return getattr(self.seen, name)

    def __del__(self):
        if "seen" in vars(self):
            self.seen.delete_with_lock()


def sample(dtype="float32", shape=(3, 4)):
    return cast(np.arange(1, 1 + int(np.prod(shape, dtype=int))).reshape(shape), dtype)


def filled(value, kind="cuda", **arguments):
    buffer = hamr.Buffer(N, "f4", kind, fill=value, **arguments)
    buffer.synchronize()
    return buffer


def late(value, kind="cuda", device=0):
    """A buffer of zeros that a kernel on its stream is to fill."""
    stream = driver.Stream(device)
    buffer = filled(0, kind, stream=stream, device=device)
    driver.write_late(stream, buffer.ptr, N, value)
    return buffer


def first_read_by(reader, tensor, device=0):
    """The element that a consumer's kernel on its own stream finds."""
    target = driver.Array(np.zeros(N, "f4"), device=device)
    driver.write_late(reader, target.ptr, N, 0, source=tensor.data, device=device)
    with driver.on(device):
        handle = reader.handle if isinstance(reader, driver.Stream) else reader
        driver.do("cuStreamSynchronize", handle)
    if driver.emulator is not None:
        return driver.emulator.peek(target.ptr, N, "f4")[0]
    return target.read()[0]


# Where the elements are.

KINDS = {
    "cuda": lambda device: (dl.CUDA, device), "cuda_async": lambda device: (dl.CUDA, device),
    "cuda_uva": lambda device: (dl.CUDA_MANAGED, 0), "cuda_host": lambda device: (dl.CUDA_HOST, 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_devices(kind, device):
    buffer = filled(2, kind, device=device)
    tensor = Tensor(buffer)
    assert buffer.__dlpack_device__() == tensor.device == KINDS[kind](device)
    assert (tensor.data, tensor.flags, tensor.shape) == (buffer.ptr, 0, (N,))
    buffer.free()
    assert buffer.__dlpack_device__() == KINDS[kind](device)
    empty = Tensor(buffer)
    assert (empty.device, empty.data, empty.shape) == (KINDS[kind](device), None, (0,))


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "float8_e4m3fn"])
def test_types(dtype):
    buffer = hamr.Buffer((3, 4), dtype, "cuda")
    expected = {"bfloat16": (4, 16, 1), "float8_e4m3fn": (10, 8, 1)}.get(dtype) or (
        dl.CODES[np.dtype(dtype).kind], 8 * np.dtype(dtype).itemsize, 1,
    )  # fmt: skip
    for x in (buffer, buffer.get_cuda_accessible()):
        tensor = Tensor(x)
        assert (tensor.dtype, tensor.strides, tensor.device) == (expected, (4, 1), (2, 0))


def test_views(device_allocator):
    array = sample()
    view = hamr.Buffer(array.shape, "f4", device_allocator, data=array)[::-1, 1::2]
    tensor = Tensor(view)
    assert (tensor.data, tensor.shape, tensor.strides) == (view.ptr, (3, 2), (-4, 2))


def test_read_only_memory():
    made = driver.Array(sample())
    shared = hamr.buffer(driver.Only(made, data=(made.ptr, True)))
    assert Tensor(shared).flags == dl.READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        shared.__dlpack__()
    copied = Tensor(shared, max_version=None, copy=True)
    assert copied.data != made.ptr


# Whose work runs first.

STREAMS = [("handle", None), ("legacy", driver.LEGACY), ("per thread", driver.PER_THREAD)]


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva"])
@pytest.mark.parametrize("number", [s[1] for s in STREAMS], ids=[s[0] for s in STREAMS])
def test_work_on_a_named_stream_runs_after_the_buffers(kind, number):
    reader = driver.Stream() if number is None else number
    buffer = late(7, kind)
    tensor = Tensor(buffer, stream=number or reader.handle)
    assert first_read_by(reader, tensor) == 7


@pytest.mark.parametrize("kind", ["cuda", "cuda_async"])
def test_without_a_stream_it_is_the_default_one(kind):
    tensor = Tensor(late(7, kind))
    assert first_read_by(driver.LEGACY, tensor) == 7


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_without_synchronisation(emulator, kind):
    """That can be seen on the emulator alone, which does late work when it is waited for."""
    buffer = late(7, kind)
    tensor = Tensor(buffer, stream=-1)
    assert emulator.pending() == 1
    assert (emulator.peek(tensor.data, N, "f4") == 0).all()


@pytest.mark.parametrize("kind", ["cuda", "cuda_async"])
def test_the_host_does_not_wait(emulator, kind):
    buffer, reader = late(7, kind), driver.Stream()
    tensors = [Tensor(buffer), Tensor(buffer, stream=reader.handle)]
    assert emulator.pending() >= 1
    assert (emulator.peek(buffer.ptr, N, "f4") == 0).all()
    del tensors


def test_managed_memory_for_a_consumer_on_cuda_does_not_wait(emulator):
    buffer, reader = late(7, "cuda_uva"), driver.Stream()
    tensor = Tensor(buffer, stream=reader.handle)
    assert tensor.device == (dl.CUDA_MANAGED, 0)
    assert (emulator.peek(buffer.ptr, N, "f4") == 0).all()


@pytest.mark.parametrize("kind", ["cuda_uva", "cuda_host"])
def test_a_handle_of_the_host_is_on_the_host(kind):
    buffer = late(7, kind)
    tensor = Tensor(buffer.get_host_accessible())
    assert (tensor.device, tensor.array("f4").tolist()) == ((dl.CPU, 0), [7] * N)
    write = driver.Stream()
    driver.write_late(write, buffer.ptr, N, 8)
    buffer.set_stream(write.handle)
    tensor = Tensor(buffer.get_host_accessible())
    assert tensor.array("f4").tolist() == [8] * N


def test_a_handle_of_cudas_is_on_its_device(emulator):
    buffer, reader = late(7, "cuda_uva"), driver.Stream()
    handle = buffer.get_cuda_accessible(0)
    for stream in {}, {"stream": reader.handle}:
        tensor = Tensor(handle, **stream)
        assert tensor.device == (dl.CUDA, 0)
        assert (emulator.peek(handle.ptr, N, "f4") == 0).all(), "the host waited"
    assert first_read_by(reader, tensor) == 7
    assert Tensor(handle.get_host_accessible()).device == (dl.CPU, 0)
    assert Tensor(handle.get_host_accessible().get_cuda_accessible(0)).device == (dl.CUDA, 0)


@pytest.mark.parametrize("kind", ["cuda_uva", "cuda_host"])
def test_what_the_host_may_read_is_settled(kind):
    tensor = Tensor(late(7, kind))
    assert (tensor.array("f4") == 7).all()
    assert (np.from_dlpack(late(8, kind)) == 8).all()


def test_work_of_a_producer_runs_first():
    producer, reader = driver.Stream(), driver.Stream()
    made = driver.Array(np.zeros(N, "f4"), stream=producer.handle)
    driver.write_late(producer, made.ptr, N, 5)
    tensor = Tensor(hamr.buffer(made), stream=reader.handle)
    assert first_read_by(reader, tensor) == 5


def test_work_of_hamrs_runs_first(device_allocator):
    source = filled(6, "cuda", stream=hamr.Stream(device=0), transfer="async")
    target = filled(0, device_allocator, stream=hamr.Stream(device=0), transfer="async")
    target[...] = source
    reader = driver.Stream()
    assert first_read_by(reader, Tensor(target, stream=reader.handle)) == 6


@pytest.mark.parametrize("kind", ["cuda", "cuda_uva", "cuda_host"])
@pytest.mark.parametrize(
    ("stream", "error", "text"),
    [
        (0, ValueError, "stream is 0, which is ambiguous"),
        (-2, ValueError, "stream is -2"),
        (2**64, ValueError, "stream is 18446744073709551616"),
        ("1", TypeError, "stream is '1'"),
        (True, TypeError, "stream is True"),
    ],
)
def test_streams_that_are_refused(kind, stream, error, text):
    buffer = filled(1, kind)
    with pytest.raises(error, match=text):
        buffer.__dlpack__(stream=stream)


@pytest.mark.parametrize("end", ["close", "free"])
def test_pool_memory_that_a_consumer_still_uses(emulator, end):
    """Its kernel on the default stream may be pending when it deletes the tensor."""
    buffer = filled(1, "cuda_async", stream=hamr.Stream(device=0))
    tensor = Tensor(buffer, stream=driver.LEGACY)
    driver.write_late(driver.LEGACY, tensor.data, N, 3)
    getattr(buffer, end)()
    del tensor
    assert emulator.violations() == []


def test_the_stream_of_the_memory_stays_as_long_as_the_tensor():
    """Pool memory is freed in its order."""
    stream = driver.Stream()
    watch = weakref.ref(stream)
    tensor = Tensor(hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=stream), stream=-1)
    del stream
    gc.collect()
    assert watch() is not None
    del tensor
    assert watch() is None


# Where a consumer wants them.


@pytest.mark.parametrize("kind", ["cuda", "cuda_async"])
def test_to_the_host(kind):
    buffer = late(7, kind)
    tensor = Tensor(buffer, dl_device=(1, 0))
    assert (tensor.device, tensor.flags) == ((1, 0), dl.IS_COPIED | dl.READ_ONLY)
    assert Tensor(buffer, dl_device=(1, 0), copy=True).flags == dl.IS_COPIED
    assert (tensor.array("f4") == 7).all()
    if dl.NEW_NUMPY:
        assert (np.from_dlpack(buffer, device="cpu") == 7).all()
    with pytest.raises(BufferError, match=r"copy is False and dl_device is \(1, 0\).*on \(2, 0\)"):
        buffer.__dlpack__(dl_device=(1, 0), copy=False)


@pytest.mark.parametrize("copy", [False, None])
@pytest.mark.parametrize("kind", ["cuda", "cuda_host"])
def test_nothing_is_not_copied(kind, copy):
    """Without elements any device has them in place: a consumer that allows no copy takes them."""
    buffer = hamr.Buffer(0, "f4", kind)
    for exporter in (buffer, buffer.get_host_accessible(), buffer.get_cuda_accessible()):
        for device in ((1, 0), (2, 0)):
            assert Tensor(exporter, dl_device=device, copy=copy).flags == 0
            assert Tensor(exporter, dl_device=device, copy=True).flags == dl.IS_COPIED


@pytest.mark.parametrize("kind", ["cuda_uva", "cuda_host"])
@pytest.mark.parametrize("copy", [None, False])
def test_to_the_host_in_place(kind, copy):
    buffer = late(7, kind)
    tensor = Tensor(buffer, dl_device=(1, 0), copy=copy)
    assert (tensor.device, tensor.flags, tensor.data) == ((1, 0), 0, buffer.ptr)
    assert (tensor.array("f4") == 7).all()


@pytest.mark.parametrize("kind", ["cuda", "cuda_uva", "cuda_host"])
@pytest.mark.parametrize("stream", [-1, 1])
def test_the_host_has_no_streams(kind, stream):
    with pytest.raises(ValueError, match="accepted is stream=None"):
        filled(1, kind).__dlpack__(dl_device=(1, 0), stream=stream)


@pytest.mark.parametrize("kind", ["malloc", "cuda_host"])
def test_from_the_host_to_a_device(kind, device):
    buffer = hamr.Buffer(N, "f4", kind, fill=7)
    reader = driver.Stream(device)
    tensor = Tensor(buffer, dl_device=(2, device), stream=reader.handle)
    assert (tensor.device, tensor.flags) == ((2, device), dl.IS_COPIED)
    assert driver.device_of(tensor.data) == device
    assert first_read_by(reader, tensor, device) == 7
    with pytest.raises(BufferError, match="copy is False"):
        buffer.__dlpack__(dl_device=(2, device), copy=False)
    with pytest.raises(ValueError, match="ambiguous"):
        buffer.__dlpack__(dl_device=(2, device), stream=0)


@pytest.mark.multigpu
@pytest.mark.parametrize("kind", ["cuda", "cuda_async"])
@pytest.mark.parametrize(("origin", "target"), [(0, 1), (1, 0)])
def test_between_devices(kind, origin, target):
    buffer = late(7, kind, origin)
    reader = driver.Stream(target)
    tensor = Tensor(buffer, dl_device=(2, target), stream=reader.handle)
    assert (tensor.device, tensor.flags) == ((2, target), dl.IS_COPIED)
    assert driver.device_of(tensor.data) == target
    assert first_read_by(reader, tensor, target) == 7
    with pytest.raises(BufferError, match=rf"elements are on \(2, {origin}\)"):
        buffer.__dlpack__(dl_device=(2, target), copy=False)


def test_to_where_they_are(device):
    buffer = filled(1, "cuda", device=device)
    for copy in (None, False):
        tensor = Tensor(buffer, dl_device=(2, device), copy=copy)
        assert (tensor.data, tensor.flags) == (buffer.ptr, 0)


@pytest.mark.parametrize("copy", [None, False])
def test_managed_memory_is_on_every_device(copy, device):
    buffer, reader = late(7, "cuda_uva"), driver.Stream(device)
    tensor = Tensor(buffer, dl_device=(2, device), copy=copy, stream=reader.handle)
    assert (tensor.device, tensor.flags, tensor.data) == ((2, device), 0, buffer.ptr)
    assert first_read_by(reader, tensor, device) == 7
    same = Tensor(buffer, dl_device=(13, 0), copy=copy)
    assert (same.device, same.data) == ((13, 0), buffer.ptr)


@pytest.mark.parametrize(
    ("kind", "device"),
    [
        ("cuda", (3, 0)), ("cuda", (13, 0)), ("cuda_host", (13, 0)), ("cuda_uva", (3, 0)),
        ("cuda", (1, 1)), ("cuda", (2, -1)), ("cuda", (10, 0)), ("cuda_host", (3, 1)),
    ],
)  # fmt: skip
def test_devices_that_are_impossible(kind, device):
    with pytest.raises(BufferError, match=r"dl_device is .*: accepted are"):
        filled(1, kind).__dlpack__(dl_device=device)


@pytest.mark.parametrize("kind", ["malloc", "cuda", "cuda_uva"])
def test_devices_that_do_not_exist(kind):
    with pytest.raises(BufferError, match=r"dl_device is \(2, 99\), where") as caught:
        hamr.Buffer(N, "f4", kind).__dlpack__(dl_device=(2, 99))
    assert isinstance(caught.value.__cause__, ValueError)
    assert "device is 99" in str(caught.value.__cause__)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_stay_where_the_elements_are(kind, device):
    buffer, reader = late(7, kind, device), driver.Stream(device)
    tensor = Tensor(buffer, copy=True, stream=None if kind == "cuda_host" else reader.handle)
    assert (tensor.device, tensor.flags) == (KINDS[kind](device), dl.IS_COPIED)
    assert tensor.data != buffer.ptr
    if kind == "cuda_host":
        assert (tensor.array("f4") == 7).all()
    else:
        assert first_read_by(reader, tensor, device) == 7


@pytest.mark.parametrize("kind", ["malloc", *KINDS])
@pytest.mark.parametrize("target", [(1, 0), (2, 0)])
def test_copies_elsewhere_are_always_fresh(kind, target):
    buffer = filled(7, kind)
    tensor = Tensor(buffer, copy=True, dl_device=target)
    assert (tensor.device, tensor.flags) == (target, dl.IS_COPIED)
    assert tensor.data != buffer.ptr
    found = tensor.array("f4") if target == (1, 0) else driver.read(tensor.data, N, "f4")
    assert (found == 7).all()


@pytest.mark.parametrize("target", [None, (1, 0), (2, 0)])
def test_what_fails_leaves_nothing(emulator, target):
    count = driver.LARGE // 4
    buffer = hamr.Buffer(count, "f4", "cuda" if target != (2, 0) else "malloc", fill=1)
    buffer.synchronize()
    hamr.trim()
    before = hamr.stats()["references"], emulator.live("memory")
    for call in ("cuMemAllocAsync", "cuMemAlloc_v2", "cuMemAllocFromPoolAsync"):
        emulator.fail(call, 0, driver.OUT_OF_MEMORY)
    with pytest.raises(MemoryError):
        Tensor(buffer, copy=True, dl_device=target if target != (1, 0) else None)
    emulator.stop_failing()
    assert (hamr.stats()["references"], emulator.live("memory")) == before


# The exchange API.


@pytest.mark.parametrize("kind", ["cuda", "cuda_async"])
def test_exchanged_tensors_are_ordered_with_the_default_stream(emulator, kind):
    buffer = late(7, kind)
    seen = exchange.from_object(buffer, TABLE)
    assert seen.device == KINDS[kind](0)
    assert (emulator.peek(seen.data, N, "f4") == 0).all(), "the host waited"
    assert exchange.current_stream(seen.device, TABLE) is None
    assert first_read_by(driver.LEGACY, seen) == 7
    seen.delete_with_lock()


def test_exchanged_managed_memory_may_be_for_any_device(emulator):
    """The default stream of which device is meant is not known, where there are several."""
    seen = exchange.from_object(late(7, "cuda_uva"), TABLE)
    assert seen.device == (dl.CUDA_MANAGED, 0)
    settled = sum(row["backend"] == "cuda" for row in hamr.devices()) > 1
    assert (emulator.peek(seen.data, N, "f4") == (7 if settled else 0)).all()
    assert first_read_by(driver.LEGACY, seen) == 7
    seen.delete_with_lock()


def test_exchanged_pinned_memory_is_settled():
    seen = exchange.from_object(late(7, "cuda_host"), TABLE)
    assert (seen.device, (seen.array("f4") == 7).all()) == ((3, 0), True)
    seen.delete_with_lock()


@pytest.mark.parametrize(("kind", "device_type"), [("cuda", 2), ("cuda_host", 3), ("cuda_uva", 13)])
def test_new_exchanged_tensors(emulator, kind, device_type):
    hamr.trim()
    before = emulator.live("memory")
    shape = (driver.LARGE // 16, 4)
    seen = exchange.allocate(TABLE, shape, device=(device_type, 0))
    assert (seen.device, seen.strides) == ((device_type, 0), (4, 1))
    assert emulator.live("memory") > before or kind == "cuda_host"
    values = np.arange(driver.LARGE // 4, dtype="f4").reshape(shape)
    driver.write(seen.data, values)
    np.testing.assert_array_equal(driver.read(seen.data, shape, "f4"), values)
    references = hamr.stats()["references"]
    dl.delete_on_thread(seen)
    assert hamr.stats()["references"] == references - 1
    kind, text = exchange.allocate(TABLE, (3,), device=(2, 99))
    assert (kind, "99" in text) == ("ValueError", True)
    hamr.trim()
    emulator.fail("cuMemAlloc_v2", 0, driver.OUT_OF_MEMORY)
    assert exchange.allocate(TABLE, shape, device=(2, 0))[0] == "MemoryError"
