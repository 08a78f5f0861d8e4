"""__sycl_usm_array_interface__ into hamr, without SYCL: what is taken and what is refused.

test_sycl_usm_dpctl.py has the real thing.
"""

import gc
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given

import hamr
from tests.support import producers
from tests.support.usm_producers import (
    CONTEXT,
    LINE,
    NAME,
    QUEUE,
    Mute,
    Queue,
    Record,
    Usm,
    capsule,
    described,
    usm,
    without_dpctl,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_dpctl(monkeypatch):
    without_dpctl(monkeypatch)


@pytest.fixture
def dpctl(monkeypatch):
    return Record(monkeypatch)


# Into hamr.


@given(producers.arrays())
def test_arrays_are_shared(array):
    shared = hamr.buffer(usm(array))
    assert shared.source_protocol == NAME
    producers.assert_same(shared, array)
    assert shared.readonly == (not array.flags.writeable)
    assert shared.allocator is hamr.Allocator.malloc
    if array.size:
        long = [i for i, n in enumerate(array.shape) if n > 1]
        assert [shared.strides[i] for i in long] == [array.strides[i] for i in long]
        assert shared.ptr == array.ctypes.data


def test_writes_are_seen_on_both_sides():
    array = np.zeros(4, "<i4")
    shared = hamr.buffer(usm(array))
    shared[1:3] = 7
    array[3] = 5
    assert array.tolist() == [0, 7, 7, 5] == shared.get().tolist()


def test_strides_and_offset_count_elements():
    shared = hamr.buffer(usm(shape=(2,), strides=(3,), offset=1))
    assert (shared.strides, shared.ptr) == ((24,), LINE.ctypes.data + 8)
    assert shared.get().tolist() == [1, 4]
    backwards = hamr.buffer(usm(shape=(3,), strides=(-2,), offset=5))
    assert backwards.get().tolist() == [5, 3, 1]
    before = hamr.buffer(usm(data=(LINE.ctypes.data + 16, False), shape=(2,), offset=-1))
    assert before.get().tolist() == [1, 2]


@pytest.mark.parametrize("entry", ["strides", "offset"])
def test_optional_entries(entry):
    assert hamr.buffer(usm(**{entry: ...})).get().tolist() == LINE.tolist()
    assert hamr.buffer(usm(strides=None)).get().tolist() == LINE.tolist()


@pytest.mark.parametrize("typestr", ["<f8", "=f8", "|f8"])
def test_byte_orders_of_this_machine(typestr):
    """dpctl and dpnp write "|" before numbers of any size."""
    assert hamr.buffer(usm(typestr=typestr)).typestr == "<f8"


def test_numpy_integers_are_integers():
    shared = hamr.buffer(
        usm(
            shape=(np.int64(2),),
            strides=(np.int32(2),),
            offset=np.int8(1),
            version=np.uint8(1),
            data=(np.uintp(LINE.ctypes.data), np.bool_(True)),
        )
    )
    assert shared.get().tolist() == [1, 3]
    assert shared.readonly


@pytest.mark.parametrize("address", [0, 4096])
def test_empty_arrays_are_nobodys(address, dpctl):
    """Their address is not asked about: it need not be USM."""
    shared = hamr.buffer(usm(cls=Mute, shape=(0, 3), strides=None, data=(address, False), offset=9))
    assert shared.shape == (0, 3)
    assert dpctl.asked == []
    assert getattr(shared, NAME)["shape"] == (0, 3)


def test_the_producer_and_its_queue_stay_alive():
    class Memory(Queue):
        pass

    array = np.arange(3.0)
    producer = usm(array, syclobj=Memory())
    seen = [weakref.ref(producer), weakref.ref(getattr(producer, NAME)["syclobj"])]
    shared = hamr.buffer(producer)
    view = np.asarray(shared[1:])
    del producer, shared
    gc.collect()
    assert all(ref() is not None for ref in seen)
    assert view.tolist() == [1, 2]
    del view
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_it_is_asked_before_the_buffer_protocol_and_dlpack():
    class Both(np.ndarray):
        pass

    array = np.arange(3.0).view(Both)
    array.usm_type = "host"
    setattr(array, NAME, described(array))
    assert hamr.buffer(array).source_protocol == NAME


def test_other_calls_take_it_too():
    b = hamr.Buffer(6, data=usm())
    assert b.get().tolist() == LINE.tolist()
    b[...] = usm(shape=(6,), strides=(-1,), offset=5)
    assert b.get().tolist() == LINE[::-1].tolist()


# What is refused.


def wrong(error, key, **changes):
    return pytest.param(error, key, changes, id=f"{key}-{len(changes)}-{list(changes.values())!r}")


@pytest.mark.parametrize(
    ("error", "key", "changes"),
    [
        *(
            wrong(ValueError, key, **{key: ...})
            for key in ("shape", "typestr", "data", "syclobj", "version")
        ),
        wrong(ValueError, "version", version=0),
        wrong(ValueError, "version", version=2),
        wrong(TypeError, "version", version="1"),
        wrong(TypeError, "version", version=1.0),
        wrong(TypeError, "version", version=True),
        wrong(TypeError, "shape", shape=[6]),
        wrong(TypeError, "shape", shape=(6.0,)),
        wrong(ValueError, "shape", shape=(-6,)),
        wrong(ValueError, "shape", shape=(2**63,)),
        wrong(ValueError, "shape", shape=(2**62,), strides=None),
        wrong(ValueError, "shape", shape=(1,) * 65, strides=None),
        wrong(TypeError, "typestr", typestr=b"<f8"),
        wrong(TypeError, "typestr", typestr=""),
        wrong(TypeError, "typestr", typestr=">f8"),
        wrong(TypeError, "typestr", typestr="|f3"),
        wrong(TypeError, "typestr", typestr="|V8"),
        wrong(TypeError, "typestr", typestr="|O"),
        wrong(TypeError, "data", data=[1, False]),
        wrong(TypeError, "data", data=None),
        wrong(TypeError, "data", data=LINE),
        wrong(TypeError, "data", data=("1", False)),
        wrong(ValueError, "data", data=(4096,)),
        wrong(ValueError, "data", data=(-4096, False)),
        wrong(ValueError, "data", data=(2**64, False)),
        wrong(ValueError, "data", data=(0, False)),
        wrong(ValueError, "data", data=(0, False), offset=4096),
        wrong(ValueError, "data", data=(2**64 - 8, False)),
        wrong(TypeError, "strides", strides=[1]),
        wrong(TypeError, "strides", strides=(1.0,)),
        wrong(TypeError, "strides", strides=1),
        wrong(ValueError, "strides", strides=()),
        wrong(ValueError, "strides", strides=(1, 1)),
        wrong(ValueError, "strides", strides=(2**60,)),
        wrong(ValueError, "strides", strides=(-(2**60) - 1,)),
        wrong(ValueError, "strides", strides=(2**59,)),
        wrong(TypeError, "offset", offset="1"),
        wrong(TypeError, "offset", offset=None),
        wrong(ValueError, "offset", offset=2**62),
        wrong(ValueError, "offset", offset=-(2**62)),
        wrong(ValueError, "offset", data=(4096, False), offset=-512),
        wrong(ValueError, "offset", offset=2**63),
        wrong(ValueError, "mask", mask=LINE),
        wrong(TypeError, "syclobj", syclobj=None),
        wrong(TypeError, "syclobj", syclobj=1),
        wrong(TypeError, "syclobj", syclobj=object()),
        wrong(TypeError, "syclobj", syclobj=Queue),
        wrong(ValueError, "syclobj", syclobj=capsule("used_SyclQueueRef")),
        wrong(ValueError, "syclobj", syclobj=capsule("dltensor")),
    ],
)
def test_wrong_entries_are_named(error, key, changes):
    producer = usm(**changes)
    with pytest.raises(error, match=key):
        hamr.buffer(producer)
    sycl = changes.get("syclobj", getattr(producer, NAME).get("syclobj"))
    assert getattr(sycl, "waits", 0) == 0


@pytest.mark.parametrize("interface", [[], (), "", 1, LINE])
def test_what_is_no_dictionary(interface):
    with pytest.raises(TypeError, match=NAME):
        hamr.buffer(Usm(interface))


def test_an_interface_that_raises():
    class Broken:
        @property
        def __sycl_usm_array_interface__(self):
            raise OSError("no device")

    with pytest.raises(TypeError, match=rf"Broken object .*{NAME} raises OSError: no device"):
        hamr.buffer(Broken())


def test_wait_must_be_a_bool():
    with pytest.raises(TypeError, match="wait is 1"):
        hamr.buffer(usm(), wait=1)


# The kind of memory.


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_kinds_that_the_host_reaches(kind):
    producer = usm()
    producer.usm_type = kind
    assert hamr.buffer(producer).accessible("host")
    other = usm(cls=Mute)
    other.get_usm_type = lambda: kind
    assert hamr.buffer(other).accessible("host")


def test_device_memory_is_refused_with_a_way_out():
    queue = Queue()
    producer = usm(syclobj=queue)
    producer.usm_type = "device"
    with pytest.raises(hamr.BackendUnavailable, match=r"kind device.*usm_type=.*asnumpy") as raised:
        hamr.buffer(producer)
    assert raised.value.backend == "sycl"
    assert queue.waits == 0


@pytest.mark.parametrize("kind", ["unknown", "", "Shared", 1])
def test_kinds_that_there_are_not(kind):
    producer = usm()
    producer.usm_type = kind
    with pytest.raises(ValueError, match="data is of USM kind"):
        hamr.buffer(producer)


def test_without_dpctl_nobody_knows_the_kind_of_a_mute_object():
    with pytest.raises(hamr.BackendUnavailable, match=r"Mute object has no usm_type.*dpctl"):
        hamr.buffer(usm(cls=Mute))


def test_dpctl_is_asked_about_what_was_checked(dpctl):
    queue = Queue()
    assert hamr.buffer(usm(cls=Mute, syclobj=queue, offset=2, shape=(4,))).size() == 4
    (asked,) = dpctl.asked
    assert asked["data"][0] == LINE.ctypes.data + 16
    assert asked["syclobj"] is queue
    assert (asked["shape"], asked["typestr"], asked["version"]) == ((1,), "|u1", 1)


def test_a_loaded_dpctl_knows_better_than_the_object(dpctl):
    dpctl.kind = "device"
    with pytest.raises(hamr.BackendUnavailable, match="kind device"):
        hamr.buffer(usm())


def test_an_unloaded_dpctl_is_loaded_for_a_mute_object_only(dpctl, monkeypatch):
    monkeypatch.delitem(sys.modules, "dpctl.memory")
    monkeypatch.setattr(
        "hamr._protocols.sycl_usm.import_module",
        lambda name: monkeypatch.setitem(sys.modules, name, dpctl.memory),
    )
    hamr.buffer(usm())
    assert dpctl.asked == []
    assert "dpctl.memory" not in sys.modules
    hamr.buffer(usm(cls=Mute))
    assert len(dpctl.asked) == 1


def test_memory_that_sycl_does_not_know(dpctl):
    dpctl.kind = ValueError("not bound")
    with pytest.raises(ValueError, match=r"data and syclobj.*not bound"):
        hamr.buffer(usm())
    dpctl.kind = "unknown"
    with pytest.raises(ValueError, match="kind 'unknown'"):
        hamr.buffer(usm())


# The read-only flag.


@pytest.mark.parametrize("writable", [True, False])
def test_the_flag_of_dpctls_own_memory_says_nothing(dpctl, writable):
    memory = np.zeros(4, "u1").view(dpctl.memory.MemoryUSMShared)
    memory.flags.writeable = writable
    shared = hamr.buffer(memory)
    assert (shared.source_protocol, shared.ptr) == (NAME, memory.ctypes.data)
    assert shared.readonly is not writable
    assert dpctl.asked == []  # it says itself


@pytest.mark.parametrize("flag", [True, False])
def test_the_flag_of_others_is_believed(dpctl, flag):
    class Derived(dpctl.memory.MemoryUSMShared):
        @property
        def __sycl_usm_array_interface__(self):
            return described(self, data=(self.ctypes.data, flag))

    assert hamr.buffer(np.zeros(4, "u1").view(Derived)).readonly is flag
    assert hamr.buffer(usm(data=(LINE.ctypes.data, flag))).readonly is flag


# The queue.


def test_the_queue_is_waited_for_once():
    array = np.zeros(3)
    queue = Queue(then=lambda: array.fill(4))
    shared = hamr.buffer(usm(array, syclobj=queue))
    assert queue.waits == 1
    assert shared.get().tolist() == [4, 4, 4]
    np.asarray(shared.get_host_accessible())
    shared.fill(1)
    assert queue.waits == 1


def test_the_queue_is_left_to_the_caller(monkeypatch):
    queue = Queue()
    hamr.buffer(usm(syclobj=queue), wait=False)
    assert queue.waits == 0
    monkeypatch.setattr("hamr._protocols.wait_setting._waits", False)
    hamr.buffer(usm(syclobj=queue))
    assert queue.waits == 0
    hamr.buffer(usm(syclobj=queue), wait=True)
    assert queue.waits == 1


def test_what_the_wait_raises_is_raised():
    def fail():
        raise RuntimeError("a kernel failed")

    with pytest.raises(RuntimeError, match="a kernel failed"):
        hamr.buffer(usm(syclobj=Queue(then=fail)))


def test_strings_and_contexts_name_no_queue():
    class Context:
        def _get_capsule(self):
            return capsule(CONTEXT)

    for syclobj in ("opencl:cpu", Context(), capsule(CONTEXT)):
        shared = hamr.buffer(usm(syclobj=syclobj))
        assert getattr(shared, NAME)["syclobj"] is syclobj


def test_a_queue_capsule_makes_a_queue(dpctl):
    given_capsule = capsule(QUEUE)
    shared = hamr.buffer(usm(syclobj=given_capsule))
    ((used, queue),) = dpctl.queues
    assert used is given_capsule
    assert queue.waits == 1
    assert dpctl.asked[0]["syclobj"] is queue
    # dpctl has used the capsule up.
    assert getattr(shared, NAME)["syclobj"] is queue


def test_what_makes_queue_capsules_is_kept(dpctl):
    class Wrapped:
        def _get_capsule(self):
            return capsule(QUEUE)

    syclobj = Wrapped()
    shared = hamr.buffer(usm(syclobj=syclobj))
    assert dpctl.queues[0][1].waits == 1
    assert getattr(shared, NAME)["syclobj"] is syclobj


def test_a_context_capsule_makes_a_context(dpctl):
    shared = hamr.buffer(usm(syclobj=capsule(CONTEXT)))
    assert getattr(shared, NAME)["syclobj"] is dpctl.contexts[0][1]


def test_a_queue_capsule_cannot_be_waited_for_without_dpctl():
    syclobj = capsule(QUEUE)
    with pytest.raises(hamr.BackendUnavailable, match=r"syclobj is a capsule.*waited for.*dpctl"):
        hamr.buffer(usm(syclobj=syclobj))
    assert hamr.buffer(usm(syclobj=syclobj), wait=False).size() == 6


def test_a_capsule_that_dpctl_refuses(dpctl):
    def refuse(_):
        raise RuntimeError("no such platform")

    dpctl.dpctl.SyclQueue = refuse
    with pytest.raises(ValueError, match=r"syclobj has the capsule.*no such platform"):
        hamr.buffer(usm(syclobj=capsule(QUEUE)))


def test_device_of(monkeypatch):
    without_dpctl(monkeypatch)
    queue = Queue()
    assert hamr.device_of(usm(syclobj=queue)) == -1
    assert queue.waits == 0
