"""hamr's memory of SYCL's and dpctl's, each in the other's hands, and queues of both."""

import dpctl
import dpctl.memory as usm
import numpy as np
import pytest

import hamr

NAME = "__sycl_usm_array_interface__"
KINDS = {
    "sycl_device": usm.MemoryUSMDevice,
    "sycl_shared": usm.MemoryUSMShared,
    "sycl_host": usm.MemoryUSMHost,
}


class Producer:
    """Another library's array: it has the interface, and nothing else."""

    def __init__(self, memory, **changes):
        self.memory = memory
        setattr(self, NAME, {**getattr(memory, NAME), **changes})


def test_our_memory_in_its_hands(name):
    b = hamr.Buffer((4, 6), "f4", name, fill=3)
    theirs = usm.as_usm_memory(b)
    assert type(theirs) is KINDS[name]
    assert (theirs._pointer, theirs.nbytes) == (b.ptr, 96)
    assert theirs.get_usm_type() == name.removeprefix("sycl_")
    assert theirs.sycl_queue == hamr.Stream(b.stream.ptr or 0, device="sycl:0").sycl_queue
    theirs.copy_from_host(np.arange(24, dtype="f4").tobytes())
    assert b.get().tolist() == np.arange(24).reshape(4, 6).tolist()
    part = getattr(b[1:3, ::-2], NAME)
    assert (part["shape"], part["strides"]) == ((2, 3), (6, -2))
    assert part["data"] == (b.ptr + (6 + 5) * 4, False)
    handle = b[2].get_sycl_accessible()
    row = usm.as_usm_memory(handle)
    del b, theirs, handle
    assert np.frombuffer(row.copy_to_host(), "f4").tolist() == [12, 13, 14, 15, 16, 17]


def test_what_is_pending_is_over_before_it_is_told(name):
    size = 16 << 20
    a = hamr.Buffer(size, "u1", name, fill=1)
    b = hamr.Buffer(size, "u1", name, transfer="async", stream=hamr.Stream(device="sycl"))
    for value in range(2, 12):
        a.fill(value)
        b.set(a)
    theirs, last = usm.as_usm_memory(b[-1:]), bytearray(1)
    dpctl.SyclQueue().memcpy(last, theirs, 1)  # in no order with hamr's
    assert last == b"\x0b"


def test_a_temporary_in_its_hands():
    made = hamr.buffer(np.arange(6.0)).get_sycl_accessible()
    assert made.is_temporary
    theirs = usm.as_usm_memory(made)
    assert (theirs._pointer, theirs.get_usm_type()) == (made.ptr, "device")
    assert np.frombuffer(theirs.copy_to_host(), "f8").tolist() == [0, 1, 2, 3, 4, 5]


def test_its_memory_in_ours(name):
    memory = KINDS[name](64)
    shared = hamr.buffer(memory)
    assert (shared.allocator, shared.owner) == (hamr.Allocator[name], 0)
    assert (shared.ptr, shared.source_protocol, shared.readonly) == (memory._pointer, NAME, False)
    assert shared.stream.sycl_queue == memory.sycl_queue, "hamr's work is in its queue's order"
    shared.fill(7)
    assert memory.copy_to_host().tolist() == [7] * 64
    memory.copy_from_host(bytes(range(64)))
    assert shared.get().tolist() == list(range(64))
    there = shared.get_sycl_accessible()
    assert not there.is_temporary
    assert usm.as_usm_memory(shared)._pointer == memory._pointer
    copy = shared.copy()
    assert copy.stream == shared.stream
    del shared, there, memory
    assert copy.get().tolist() == list(range(64)), "the queue is kept"
    assert usm.as_usm_memory(copy).copy_to_host().tolist() == list(range(64))


def test_all_forms_in_which_a_queue_is_named(name):
    memory = KINDS[name](64)
    queue, context = memory.sycl_queue, memory.sycl_context
    for syclobj in (queue, queue._get_capsule(), context, memory.sycl_device.filter_string):
        shared = hamr.buffer(Producer(memory, syclobj=syclobj, data=(memory._pointer, False)))
        assert (shared.allocator, shared.owner) == (hamr.Allocator[name], 0)
        shared.fill(5)
        assert usm.as_usm_memory(shared).copy_to_host().tolist() == [5] * 64


def test_streams_given_and_blocks(name):
    memory, queue = KINDS[name](64), dpctl.SyclQueue(property="in_order")
    stream = hamr.Stream(device="sycl")
    assert hamr.buffer(memory, stream=stream).stream == stream
    assert hamr.buffer(memory, queue).stream.sycl_queue == queue
    with stream:
        assert hamr.buffer(memory).stream == stream
    with hamr.Stream():
        assert hamr.buffer(memory).stream.sycl_queue == memory.sycl_queue
    assert hamr.buffer(memory, transfer="async").stream.sycl_queue == memory.sycl_queue


def test_another_context(name):
    """What the host reaches is the host's, and device memory is refused."""
    device = dpctl.SyclDevice()
    foreign = dpctl.SyclQueue(dpctl.SyclContext((device,)), device)
    memory = KINDS[name](64, queue=foreign)
    if name == "sycl_device":
        with pytest.raises(hamr.DeviceError, match="of another context") as caught:
            hamr.buffer(memory)
        assert "copy it to the host" in caught.value.__notes__[0]
    else:
        shared = hamr.buffer(memory)
        assert (shared.allocator, shared.owner) == (hamr.Allocator.malloc, -1)
        shared.fill(3)
        assert memory.copy_to_host().tolist() == [3] * 64
        assert usm.as_usm_memory(shared).sycl_context == memory.sycl_context
        there = shared.copy(name)
        assert usm.as_usm_memory(there).copy_to_host().tolist() == [3] * 64
    with pytest.raises(hamr.DeviceError, match=r"errc::invalid.*of another context"):
        hamr.Buffer(10, "f4", name, fill=3, stream=foreign)


def test_its_queues_as_streams(name):
    for properties in (None, "in_order", ("in_order", "enable_profiling")):
        queue = dpctl.SyclQueue() if properties is None else dpctl.SyclQueue(property=properties)
        b = hamr.Buffer(1000, "f4", name, fill=3, stream=queue, transfer="async")
        assert (b.stream.ptr, b.stream.device) == (queue.addressof_ref(), 0)
        for value in range(20):
            b.fill(value)
            c = b.copy()
        b.fill(-1)
        assert c.get().tolist() == [19] * 1000
        theirs = usm.as_usm_memory(b)
        assert theirs.sycl_queue == queue
        into = usm.MemoryUSMHost(4000, queue=queue)
        b.fill(8)
        queue.memcpy_async(into, theirs, 4000)
        queue.wait()
        if properties:
            assert np.frombuffer(into, "f4").tolist() == [8] * 1000


def test_addresses(name):
    memory = KINDS[name](64)
    b = hamr.Buffer.from_pointer(
        memory._pointer, 64, "u1", allocator=name, owner=memory, stream=memory.sycl_queue
    )
    b.fill(5)
    assert memory.copy_to_host().tolist() == [5] * 64
    assert usm.as_usm_memory(b)._pointer == memory._pointer
