"""Arrow's C device data interface: a device's memory out, and others' in."""

import gc

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import arrow_structs as structs
from tests.support.arrow_structs import OnDevice, Only
from tests.support.processes import run_code

A = hamr.Allocator
N = 1000
TYPES = {
    "cuda": structs.CUDA,
    "cuda_async": structs.CUDA,
    "cuda_vmm": structs.CUDA,
    "cuda_uva": structs.CUDA_MANAGED,
    "cuda_host": structs.CUDA_HOST,
}
#: What other libraries' memory is here.
FOREIGN_TYPES = [name for name in TYPES if name != "cuda_vmm"]


@pytest.fixture(autouse=True)
def released_once(no_violations):
    """Foreign arrays are released, and nothing twice."""
    yield
    gc.collect()
    hamr.Buffer(1)
    assert structs._in_use == {}
    assert structs.stray == []


def export(x):
    """The device array that an object's capsule holds."""
    return structs.inside(x.__arrow_c_device_array__()[1])


def content(struct):
    """What a consumer reads that waits for nothing, on a stream of its own."""
    reader = driver.Stream(max(struct.device_id, 0))
    array = np.empty(struct.array.length, "f4")
    at = structs.data_of(struct.array)
    with driver.on(reader.device):
        driver.do("cuMemcpyAsync", array.ctypes.data, at, array.nbytes, reader.handle)
    reader.synchronize()
    return array.tolist()


# Out.


def test_the_place(cuda_allocator, device):
    b = hamr.Buffer(N, "f4", cuda_allocator, device=device, fill=3)
    place = TYPES[cuda_allocator.name], 0 if cuda_allocator == A.cuda_host else device
    cases = [(b, place), (b[10:], place)]
    # A handle is where its consumer is.
    if b.accessible("host"):
        cases.append((b.get_host_accessible(), (1, -1)))
    if b.accessible("cuda"):
        cases.append((b.get_cuda_accessible(device), (2, device)))
    for x, expected in cases:
        struct = export(x)
        assert (struct.device_type, struct.device_id) == expected
        assert (struct.sync_event, struct.reserved[:]) == (None, [0, 0, 0])
        assert structs.data_of(struct.array) == x.ptr
        assert content(struct) == [3] * x.size()


def test_where_the_host_reaches_it_there_is_the_other_interface(cuda_allocator):
    b = hamr.Buffer(N, "f4", cuda_allocator, fill=3)
    if cuda_allocator in (A.cuda_uva, A.cuda_host):
        array = structs.inside(b.__arrow_c_array__()[1])
        assert structs.data_of(array) == b.ptr
        assert structs.values(array, "f4") == [3] * N
        return
    with pytest.raises(ValueError, match=r"get_host_accessible\(\).*__arrow_c_device_array__"):
        b.__arrow_c_array__()
    array = structs.inside(b.get_host_accessible().__arrow_c_array__()[1])
    assert structs.values(array, "f4") == [3] * N


def test_no_elements(cuda_allocator):
    for b in (hamr.Buffer(0, "f4", cuda_allocator), hamr.Buffer(4, "f4", cuda_allocator)[2:2]):
        struct = export(b)
        assert (struct.array.length, struct.device_type) == (0, TYPES[cuda_allocator.name])
        assert struct.device_id >= 0
        assert hamr.buffer(Only(b, "__arrow_c_device_array__")).shape == (0,)


@pytest.mark.parametrize("own_stream", [False, True])
def test_work_of_hamrs_is_over(cuda_allocator, own_stream):
    stream = hamr.Stream(device=0) if own_stream else None
    for share in ("__arrow_c_device_array__", "__arrow_c_array__"):
        value = driver.fresh_value()
        b = hamr.Buffer(N, "f4", cuda_allocator, stream=stream, transfer="async", fill=value)
        if share == "__arrow_c_device_array__":
            assert content(export(b)) == [value] * N
        elif b.accessible("host"):
            array = structs.inside(b.__arrow_c_array__()[1])
            assert structs.values(array, "f4") == [value] * N


@pytest.mark.parametrize("on", ["its stream", "the default stream"])
def test_work_of_others_on_the_buffers_stream_is_over(device_allocator, on):
    stream = driver.Stream() if on == "its stream" else None
    b = hamr.Buffer(N, "f4", device_allocator, stream=stream and stream.handle, fill=0)
    for x in (b, b.get_cuda_accessible()):
        value = driver.fresh_value()
        driver.write_late(stream or driver.LEGACY, b.ptr, N, value)
        assert content(export(x)) == [value] * N
    b.close()
    x.close()
    b = x = None


def test_an_error_of_the_device_is_raised(emulator):
    b = hamr.Buffer(N, "f4", "cuda", fill=1, transfer="async", stream=hamr.Stream(device=0))
    for call in ("cuStreamSynchronize", "cuStreamQuery"):
        emulator.fail(call, 0, driver.ILLEGAL_ADDRESS)
    with pytest.raises(hamr.DeviceError, match="ILLEGAL_ADDRESS"):
        b.__arrow_c_device_array__()
    emulator.stop_failing()
    assert content(export(b)) == [1] * N


def test_the_memory_lives_until_its_release(device_allocator):
    b = hamr.Buffer(N, "f4", device_allocator, fill=3)
    moved = structs.move(b.__arrow_c_device_array__()[1])
    references = hamr.stats()["references"]
    b.resize(5 * N, 9)
    b.close()
    assert content(moved) == [3] * N
    structs.release_on_a_thread(moved)
    hamr.Buffer(1)
    assert hamr.stats()["references"] == references - 1


def test_what_cannot_be_shared(device_allocator):
    for make, error in (
        (lambda: hamr.Buffer((2, 3), "f4", device_allocator), ValueError),
        (lambda: hamr.Buffer(6, "f4", device_allocator)[::2], ValueError),
        (lambda: hamr.Buffer(6, "?", device_allocator), TypeError),
    ):
        with pytest.raises(error, match="Arrow"):
            make().__arrow_c_device_array__()


# In.


class Foreign(OnDevice):
    """A foreign library's memory on a device, which ends with the last release."""

    def __init__(self, values, device=0, kind="cuda", **changes):
        self.memory = driver.Array(values, device, kind)
        fields = {
            "buffers": [None, self.memory.ptr],
            "device_type": TYPES[kind],
            "device_id": device,
            **changes,
        }
        super().__init__(values, **fields)


VALUES = np.arange(N, dtype="f4")


@pytest.mark.parametrize("kind", FOREIGN_TYPES)
def test_foreign_memory_is_shared(kind, device):
    source = Foreign(VALUES, device, kind)
    before = driver.Array.live
    shared = hamr.buffer(source)
    assert (shared.ptr, shared.shape, shared.typestr) == (source.memory.ptr, (N,), "<f4")
    assert (shared.allocator.name, shared.readonly) == (kind, True)
    assert shared.owner == (-1 if kind == "cuda_host" else device)
    assert shared.source_protocol == "__arrow_c_device_array__"
    part = shared[5:]
    del source
    shared.close()
    assert np.asarray(part.get_host_accessible()).tolist() == VALUES[5:].tolist()
    assert driver.Array.live == before
    part.close()
    gc.collect()
    assert driver.Array.live == before - 1


@pytest.mark.parametrize("kind", FOREIGN_TYPES)
def test_there_and_back(kind):
    b = hamr.Buffer(N, "f4", kind, data=VALUES)
    shared = hamr.buffer(Only(b, "__arrow_c_device_array__"))
    assert (shared.ptr, shared.allocator.name, shared.readonly) == (b.ptr, kind, True)
    b.close()
    assert np.asarray(shared.get_host_accessible()).tolist() == VALUES.tolist()


def test_lengths_offsets_and_lists():
    part = Foreign(VALUES, length=10, offset=7)
    shared = hamr.buffer(part)
    assert shared.ptr == part.memory.ptr + 28
    assert np.asarray(shared.get_host_accessible()).tolist() == VALUES[7:17].tolist()
    assert hamr.buffer(Foreign(VALUES, length=0, offset=7)).shape == (0,)
    assert hamr.buffer(Foreign(VALUES, length=0, buffers=[None, None])).shape == (0,)


@pytest.mark.multigpu(2)
def test_another_device_than_the_memorys():
    with pytest.raises(ValueError, match=r"device .*1"):
        hamr.buffer(Foreign(VALUES, device_id=1))
    assert hamr.buffer(Foreign(VALUES, kind="cuda_host", device_id=1)).owner == -1


REFUSED = {
    "beyond the end": ({"length": 1 << 30}, ValueError, "reach"),
    "no memory": ({"buffers": [None, 4096]}, ValueError, "no runtime"),
    "NULL": ({"buffers": [None, None]}, ValueError, "NULL"),
    "device_id": ({"device_id": -1}, ValueError, "device_id .* -1"),
    "large device_id": ({"device_id": 1 << 40}, ValueError, "device_id"),
    "nulls": ({"null_count": 3, "buffers": [1, 1]}, ValueError, "3 of"),
    "unknown nulls": ({"null_count": -1, "buffers": [1, 1]}, ValueError, "null_count .* -1"),
}


@pytest.mark.parametrize(("changes", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(changes, error, words):
    source = Foreign(VALUES, **changes)
    with pytest.raises(error, match=words):
        hamr.buffer(source)
    assert (source.releases, source.schema_releases) == (1, 1)


class Late(Foreign):
    """Memory that a foreign library is still writing to, and its event after that."""

    def __init__(self, kind="cuda", device=0):
        self.value, self.stream = driver.fresh_value(), driver.Stream(device)
        with driver.on(device):
            self.handle = driver.get("cuEventCreate", 2)
        super().__init__(np.zeros(N, "f4"), device, kind, event=self.handle)
        driver.write_late(self.stream, self.memory.ptr, N, self.value)
        with driver.on(device):
            driver.do("cuEventRecord", self.handle, self.stream.handle)

    def __del__(self):
        self.stream.synchronize()
        with driver.on(self.stream.device):
            driver.do("cuEventDestroy_v2", self.handle)


@pytest.mark.parametrize("kind", FOREIGN_TYPES)
@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("read", ["host", "copy", "part"])
def test_a_producers_event_comes_first(kind, own_stream, device, read):
    source = Late(kind, device)
    stream = hamr.Stream(device=device) if own_stream else None
    shared = hamr.buffer(source, stream=stream, sync="async")
    result = {"host": shared, "copy": shared.copy("cuda"), "part": shared[:]}[read]
    assert np.asarray(result.get_host_accessible()).tolist() == [source.value] * N


def test_the_caller_is_not_blocked(emulator):
    source = Late()
    shared = hamr.buffer(source)
    assert emulator.pending() > 0
    assert driver.content(shared).tolist() == [source.value] * N


def test_an_event_is_not_waited_for_on_request(emulator):
    source = Late()
    shared = hamr.buffer(source, wait=False)
    assert emulator.peek(shared.ptr, N, "f4").tolist() == [0] * N
    assert shared.__cuda_array_interface__["stream"] is None
    source.stream.synchronize()
    assert np.asarray(shared.get_host_accessible()).tolist() == [source.value] * N


def test_an_event_that_was_never_made():
    assert hamr.buffer(Foreign(VALUES, event=0)).size() == N


def test_a_bad_event_is_an_error(emulator):
    source = Late()
    emulator.fail("cuStreamWaitEvent", 1, driver.INVALID_VALUE)
    with pytest.raises(hamr.DeviceError, match="INVALID_VALUE"):
        hamr.buffer(source)
    assert source.releases == 1


def test_a_forked_child():
    run_code(
        """
import os
import hamr
b = hamr.Buffer(10, "f4", "cuda", fill=1)
pair = b.__arrow_c_device_array__()
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    try:
        b.__arrow_c_device_array__()
    except hamr.ForkError:
        del pair
        os._exit(0)
    os._exit(1)
"""
    )


def test_at_the_end_of_the_interpreter():
    run_code(
        """
import ctypes
import hamr
from tests.support import arrow_structs as structs
for allocator in ("cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm"):
    moved = structs.move(hamr.Buffer(10, "f4", allocator).__arrow_c_device_array__()[1])
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(moved))
    address = ctypes.c_void_p(ctypes.addressof(moved))
    structs.libc.__cxa_atexit(ctypes.c_void_p(moved.array.release), address, None)
""",
    )


@pytest.mark.parametrize("device", range(driver.DEVICES))
def test_the_device_of_what_has_this_interface_alone(device):
    buffer = hamr.Buffer(10, "f4", "cuda", fill=1, device=device)
    alone = structs.Only(buffer, "__arrow_c_device_array__")
    assert hamr.device_of(alone) == device
