"""DLPack tensors in CUDA's memory: where they are, what they are ordered after, how they end."""

import ctypes
import gc
import json

import numpy as np
import pytest

import hamr
from hamr import _native
from hamr._protocols import dispatch
from tests.cuda import driver
from tests.support.dlpack_producers import Producer, Tensor, exchanging, forget_ended, name_of
from tests.support.dlpack_structs import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, READ_ONLY
from tests.support.producers import assert_same, run_python

A = hamr.Allocator
KINDS = {
    "cuda": CUDA,
    "cuda_async": CUDA,
    "cuda_uva": CUDA_MANAGED,
    "cuda_host": CUDA_HOST,
}
SAMPLE = np.arange(12, dtype="f4").reshape(3, 4)
N = 1000


@pytest.fixture(autouse=True)
def unknown_types():
    """Whatever other tests have shared; and no memory of the driver's is left to them."""
    dispatch.dlpack_types.clear()
    yield
    gc.collect()
    forget_ended()


def tensor_of(array=SAMPLE, device=0, kind="cuda", **changes):
    """A tensor in memory of the driver's, which ends with it."""
    made = driver.Array(array, device=device, kind=kind)
    where = KINDS[kind], device if kind.startswith("cuda_a") or kind == "cuda" else 0
    fields = {"device": where, "data": made.ptr if made.nbytes else None, **changes}
    tensor = Tensor(array, **fields)
    tensor.memory = made
    return tensor


def current_device():
    """As CUDA's runtime has it: the first one where no context is current."""
    return driver.get("cuCtxGetDevice", kind=ctypes.c_int) if driver.current_context() else 0


class Library(Producer):
    """What a library does that keeps the rules: a consumer's stream waits for its own.

    As PyTorch it refuses what is not on the current device.
    """

    def __init__(self, tensor, stream=None):
        super().__init__(tensor)
        self.stream = stream

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        kind, number = self.tensor.device
        if kind == CUDA and current_device() != number:
            raise BufferError("the tensor's device is not the current one")
        if self.stream is not None and stream != -1:
            with driver.on(self.stream.device):
                event = driver.get("cuEventCreate", 2)
                driver.do("cuEventRecord", event, self.stream.handle)
                driver.do("cuStreamWaitEvent", stream, event, 0)
                driver.do("cuEventDestroy_v2", event)
        return self.tensor.capsule()


def late(tensor, value, stream):
    """Work on the tensor's float32 elements that is not over."""
    driver.write_late(stream, tensor.memory.ptr, tensor.array.size, value)


SHARES = {
    "from_dlpack": lambda t: hamr.from_dlpack(Producer(t)),
    "buffer": lambda t: hamr.buffer(Producer(t)),
    "capsule": lambda t: hamr.from_dlpack(t.capsule()),
    "exchange": lambda t: hamr.from_dlpack(exchanging()[0](t)),
}


@pytest.fixture(params=SHARES.values(), ids=SHARES)
def share(request):
    return request.param


# Where it is.


@pytest.mark.parametrize("kind", KINDS)
def test_kind_and_device_are_found(share, kind, device):
    tensor = tensor_of(device=device, kind=kind)
    shared = share(tensor)
    expected = -1 if kind == "cuda_host" else device
    assert (shared.allocator, shared.owner, shared.ptr) == (A[kind], expected, tensor.memory.ptr)
    assert shared.source_protocol == "__dlpack__"
    assert not shared.readonly
    assert_same(shared, SAMPLE)
    shared[1] = 7
    shared.synchronize()
    assert tensor.memory.read()[1].tolist() == [7] * 4
    del shared
    assert (tensor.ended, tensor.unused) == (1, 0)


def test_tensors_before_version_1(device):
    tensor = tensor_of(device=device, versioned=False)
    shared = hamr.from_dlpack(tensor.capsule())
    assert_same(shared, SAMPLE)
    del shared
    assert tensor.ended == 1


def test_layouts_and_offsets(share):
    turned = share(tensor_of(shape=(4, 3), strides=(1, 4)))
    assert_same(turned, SAMPLE.T)
    backwards = share(tensor_of(byte_offset=44, shape=(3, 4), strides=(-4, -1)))
    assert_same(backwards, SAMPLE[::-1, ::-1])
    assert_same(share(tensor_of(byte_offset=16, shape=(2, 4))), SAMPLE[1:])
    for shape in (0,), (3, 0):
        tensor = tensor_of(np.empty(shape, "f4"))
        empty = share(tensor)
        assert (empty.shape, empty.ptr) == (shape, 0)
        del empty
        assert tensor.ended == 1


def test_read_only_tensors(share):
    shared = share(tensor_of(flags=READ_ONLY))
    assert shared.readonly
    assert shared.__cuda_array_interface__["data"][1] is True
    with pytest.raises(ValueError, match="read-only"):
        shared.fill(1)


def test_elements_without_a_typestr(share):
    shared = share(tensor_of(np.arange(3, dtype="u2"), dtype=(4, 16, 1)))
    assert str(shared.dtype) == "bfloat16"
    assert shared.owner == 0


def test_the_drivers_word_counts(share):
    """A device that the tensor is not on, as of managed memory, whose number is always 0."""
    last = driver.DEVICES - 1
    managed = tensor_of(device=last, kind="cuda_uva")
    assert managed.device == (CUDA_MANAGED, 0)
    assert share(managed).owner == last
    assert hamr.device_of(Producer(managed)) == last
    elsewhere = tensor_of(device=last)
    elsewhere.set("device", (CUDA, 0))
    assert share(elsewhere).owner == last


def test_page_locked_memory_that_the_driver_does_not_know(share):
    shared = share(Tensor(SAMPLE.copy(), device=(CUDA_HOST, 0)))
    assert (shared.allocator, shared.owner) == (A.malloc, -1)
    assert_same(shared, SAMPLE)
    with pytest.raises(ValueError, match="shape"):
        share(Tensor(SAMPLE.copy(), device=(CUDA_HOST, 0), shape=(2, -1)))
    empty = share(Tensor(np.empty((0, 3)), device=(CUDA_HOST, 0)))
    assert (empty.allocator, empty.owner, empty.shape) == (A.malloc, -1, (0, 3))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"data": 4096}, "device memory that exists"), ({"data": None}, "NULL"),
     ({"shape": (1 << 20, 4)}, "inside the allocation"),
     ({"strides": (1 << 30, 1)}, "inside the allocation"),
     ({"byte_offset": 1 << 40}, "device memory that exists|inside"), ({"shape": (-1, 4)}, "shape"),
     ({"shape": (2**62, 4)}, "shape")],
    ids=str,
)  # fmt: skip
def test_memory_that_cannot_be_right(share, changes, words):
    tensor = tensor_of(**changes)
    with pytest.raises(ValueError, match=words):
        share(tensor)
    assert tensor.ended == 1
    capsule = tensor.capsule()
    with pytest.raises(ValueError, match=words):
        hamr.buffer(capsule)
    assert name_of(capsule) == "dltensor_versioned"
    assert tensor.ended == 1


def test_devices_that_do_not_exist():
    obj = Producer(tensor_of())
    obj.tensor.set("device", (CUDA, 99))
    for share in hamr.from_dlpack, hamr.buffer:
        with pytest.raises(ValueError, match="device is 99"):
            share(obj)
    assert obj.asked == []
    obj.tensor.memory = None  # nobody calls the deleter, by which others are forgotten


@pytest.mark.multigpu
def test_a_device_that_is_not_current_is_made_so():
    for number in 1, 0, 1:
        tensor = tensor_of(device=number)
        for share in hamr.from_dlpack, hamr.buffer, lambda x: hamr.from_dlpack(x, copy=False):
            assert_same(share(Library(tensor)), SAMPLE)
        with hamr.device(number):
            assert_same(hamr.buffer(Library(tensor)), SAMPLE)
        before = driver.current_context()
        hamr.buffer(Library(tensor))
        assert driver.current_context() == before
    made = hamr.Buffer((3, 4), "f4", "cuda", fill=0)
    made[...] = Library(tensor_of(device=1))
    assert_same(made, SAMPLE)


FIRST = """
import hamr
from tests.cuda import driver
from tests.cuda.test_cuda_dlpack_import import Library, tensor_of
print(hamr.from_dlpack(Library(tensor_of(device=driver.DEVICES - 1))).get().tolist())
"""


def test_the_first_thing_that_hamr_does_with_cuda():
    assert json.loads(run_python(FIRST).stdout) == SAMPLE.tolist()


# What it is ordered after.


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva"])
def test_the_stream_that_a_producer_is_told(kind):
    obj, mine = Producer(tensor_of(kind=kind)), driver.Stream()
    for share, said in (
        (lambda: hamr.from_dlpack(obj), 1),
        (lambda: hamr.buffer(obj), 1),
        (lambda: hamr.buffer(obj), 1),  # a type that is known now
        (lambda: hamr.buffer(obj, stream=mine), mine.handle),
        (lambda: hamr.buffer(obj, stream=1), 1),
        (lambda: hamr.buffer(obj, wait=False), -1),
        (lambda: hamr.buffer(obj, stream=mine, wait=False), -1),
    ):
        shared = share()
        assert obj.asked.pop() == {"stream": said, "max_version": (1, 3)}
        assert shared.ptr == obj.tensor.memory.ptr
    pinned = Producer(tensor_of(kind="cuda_host"))
    hamr.buffer(pinned, stream=mine)
    assert pinned.asked == [{"max_version": (1, 3)}]


def test_the_per_thread_stream_is_resolved_on_the_tensors_device(device):
    obj = Producer(tensor_of(device=device))
    shared = hamr.buffer(obj, stream=2)
    assert shared.stream.device == device
    assert obj.asked[0]["stream"] == shared.stream.ptr > 2


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva"])
@pytest.mark.parametrize("mine", [False, True])
def test_work_of_the_producer_is_over_before_hamrs(kind, mine, device):
    stream = driver.Stream(device)
    tensor = tensor_of(np.zeros(N, "f4"), device=device, kind=kind)
    late(tensor, 3, stream)
    order = driver.Stream(device) if mine else None
    shared = hamr.buffer(Library(tensor, stream), stream=order)
    assert np.asarray(shared.get_host_accessible()).tolist() == [3] * N
    late(tensor, 4, stream)
    again = hamr.buffer(Library(tensor, stream), stream=order)
    assert driver.content(again).tolist() == [4] * N
    late(tensor, 5, stream)
    target = hamr.Buffer(N, "f8", "cuda", fill=0, device=device)
    target[...] = hamr.buffer(Library(tensor, stream), stream=order)
    assert_same(target, np.full(N, 5.0))


@pytest.mark.parametrize(
    ("wait", "expected"),
    [pytest.param(False, 0, marks=pytest.mark.races), (True, 1), (None, 1)],
)
def test_it_is_left_to_the_caller(emulator, wait, expected):
    stream, mine = driver.Stream(), driver.Stream()
    tensor = tensor_of(np.zeros(N, "f4"))
    late(tensor, 1, stream)
    shared = hamr.buffer(Library(tensor, stream), stream=mine, wait=wait)
    assert np.asarray(shared.get_host_accessible())[0] == expected


@pytest.mark.parametrize("own", [True, False], ids=["a stream of its own", "the default stream"])
@pytest.mark.parametrize("mine", [False, True])
def test_the_current_stream_of_c_functions_is_waited_for(own, mine, device):
    kind, exchange = exchanging()
    stream = driver.Stream(device) if own else driver.LEGACY
    exchange.stream = stream.handle if own else 0
    tensor = tensor_of(np.zeros(N, "f4"), device=device)
    driver.write_late(stream, tensor.memory.ptr, N, 3, device=device)
    order = driver.Stream(device) if mine else None
    shared = hamr.buffer(kind(tensor), stream=order)
    assert np.asarray(shared.get_host_accessible()).tolist() == [3] * N
    driver.write_late(stream, tensor.memory.ptr, N, 4, device=device)
    assert driver.content(hamr.buffer(kind(tensor), stream=order)).tolist() == [4] * N
    assert exchange.devices == [(CUDA, device)] * 2
    hamr.buffer(kind(tensor), wait=False)
    assert len(exchange.devices) == 2


def test_c_functions_without_a_current_stream():
    kind, exchange = exchanging()
    exchange.stream = None
    tensor = tensor_of()
    with pytest.raises(BufferError, match="does not say on which stream"):
        hamr.from_dlpack(kind(tensor))
    assert (tensor.ended, tensor.unused) == (1, 0)


def test_a_capsule_is_of_the_default_stream(emulator):
    """Its producer was told of none, which means the default one."""
    tensor = tensor_of(np.zeros(N, "f4"))
    late(tensor, 6, driver.LEGACY)
    shared = hamr.from_dlpack(tensor.capsule())
    assert shared.__cuda_array_interface__["stream"] == driver.LEGACY
    assert driver.content(shared).tolist() == [6] * N


# How long it lives.


@pytest.mark.freed_again
def test_the_core_is_told_later(share):
    """Most tensors are handed on and nothing else."""
    before = _native.waiting()
    tensor = tensor_of()
    shared = share(tensor)
    assert dict(_native.waiting()) == {**dict(before), int(A.cuda): dict(before).get(2, 0) + 1}
    assert_same(shared, SAMPLE)
    assert _native.waiting() == before
    lazy = share(tensor_of())
    del lazy
    assert _native.waiting() == before
    del shared
    assert tensor.ended == 1


def test_tensors_live_exactly_as_long_as_their_memory_is_used(share):
    tensor = tensor_of()
    shared = share(tensor)
    users = [
        shared[1:], shared.get_cuda_accessible(), hamr.buffer(shared),
        hamr.buffer(driver.Only(shared)), shared[0].get_cuda_accessible(),
    ]  # fmt: skip
    shared.close()
    del shared
    while users:
        gc.collect()
        assert tensor.ended == 0
        users.pop()
    gc.collect()
    assert (tensor.ended, tensor.unused) == (1, 0)


def test_a_tensor_is_let_go_by_growth(share):
    tensor = tensor_of()
    shared = share(tensor)
    shared.append(1)
    shared.synchronize()
    gc.collect()
    assert tensor.ended == 1
    assert shared.source_protocol is None
    assert shared.get().tolist() == [*SAMPLE.ravel().tolist(), 1]


def test_failures_of_the_driver_lose_nothing(emulator, share):
    for call in "cuPointerGetAttributes", "cuEventRecord", "cuEventCreate", "cuStreamWaitEvent":
        for nth in range(1, 4):
            tensor = tensor_of()
            emulator.fail(call, nth, 1)
            shared = None
            try:
                shared = share(tensor)
                shared.__cuda_array_interface__  # noqa: B018
                np.asarray(shared.get_host_accessible())
            except (hamr.DeviceError, ValueError):
                pass
            emulator.stop_failing()
            del shared
            gc.collect()
            assert tensor.ended == 1


# hamr.from_dlpack()


def test_to_the_host(device):
    tensor = tensor_of(device=device)
    for place in -1, (CPU, 0):
        for copy in None, True:
            moved = hamr.from_dlpack(Producer(tensor), device=place, copy=copy)
            assert (moved.owner, moved.source_protocol) == (-1, None)
            assert_same(moved, SAMPLE)
        words = rf"copy is False: the elements are on CUDA device {device}"
        with pytest.raises(BufferError, match=words):
            hamr.from_dlpack(Producer(tensor), device=place, copy=False)
    assert tensor.ended == 6


def test_to_a_device(device):
    for copy in None, True:
        for place in device, (CUDA, device):
            moved = hamr.from_dlpack(Producer(Tensor(SAMPLE.copy())), device=place, copy=copy)
            assert (moved.owner, moved.allocator) == (device, A.cuda)
            assert_same(moved, SAMPLE)
    tensor = tensor_of(device=device)
    for copy in None, False:
        there = hamr.from_dlpack(Producer(tensor), device=device, copy=copy)
        assert (there.ptr, there.source_protocol) == (tensor.memory.ptr, "__dlpack__")
    copied = hamr.from_dlpack(Producer(tensor), device=device, copy=True)
    assert copied.owner == device
    assert copied.ptr != tensor.memory.ptr
    with pytest.raises(BufferError, match="copy is False: the elements are on the host"):
        hamr.from_dlpack(Producer(Tensor(SAMPLE.copy())), device=device, copy=False)
    with pytest.raises(ValueError, match=r"device is|device"):
        hamr.from_dlpack(Producer(Tensor(SAMPLE.copy())), device=99)


@pytest.mark.multigpu
def test_between_devices():
    moved = hamr.from_dlpack(Library(tensor_of(device=0)), device=1)
    assert moved.owner == 1
    assert_same(moved, SAMPLE)
    with pytest.raises(BufferError, match="CUDA device 1, and device is 0"):
        hamr.from_dlpack(Library(tensor_of(device=1)), device=0, copy=False)


def test_managed_and_page_locked_memory_to_the_host():
    pinned = tensor_of(kind="cuda_host")
    assert hamr.from_dlpack(Producer(pinned), device=-1).ptr == pinned.memory.ptr
    managed = hamr.from_dlpack(Producer(tensor_of(kind="cuda_uva")), device=-1)
    assert (managed.owner, managed.allocator) == (-1, A.malloc)
    assert_same(managed, SAMPLE)
