"""One situation with dpctl's memory on a SYCL device.

python -m tests.scripts.sycl_usm_cases CASE
"""

import gc
import sys
import weakref

import dpctl
import dpctl.memory as usm
import numpy as np
import pytest

import hamr

NAME = "__sycl_usm_array_interface__"
KINDS = {"shared": usm.MemoryUSMShared, "host": usm.MemoryUSMHost}


class Producer:
    """Another library's array: it has the interface, and nothing else."""

    def __init__(self, memory, **changes):
        self.memory = memory
        setattr(self, NAME, {**getattr(memory, NAME), **changes})


def refused(error, obj, *words):
    with pytest.raises(error) as raised:
        hamr.buffer(obj)
    assert all(word in str(raised.value) for word in words), raised.value


def zero_copy():
    for kind, cls in KINDS.items():
        memory = cls(64)
        shared = hamr.buffer(memory)
        assert shared.source_protocol == NAME
        assert (shared.ptr, shared.nbytes, shared.typestr) == (memory._pointer, 64, "|u1")
        assert not shared.readonly
        shared.fill(7)
        assert memory.copy_to_host().tolist() == [7] * 64
        memory.copy_from_host(bytes(range(64)))
        assert shared.get().tolist() == list(range(64))
        back = usm.as_usm_memory(shared)
        assert (back._pointer, back.nbytes) == (memory._pointer, 64)
        assert back.get_usm_type() == kind
        memoryview(back)[3] = 99
        assert np.asarray(shared)[3] == 99
        again = hamr.buffer(back)
        assert again.ptr == shared.ptr
        again[0] = 42
        assert memory.tobytes()[0] == 42


def stays_alive():
    class Memory(usm.MemoryUSMShared):
        pass

    memory = Memory(1024)
    memory.copy_from_host(bytes([5]) * 1024)
    alive = weakref.ref(memory)
    shared = hamr.buffer(memory)
    del memory
    gc.collect()
    assert alive() is not None
    view = usm.as_usm_memory(shared[1000:])
    assert shared.get().tolist() == [5] * 1024
    shared.resize(5000, 1)  # moves: the view is told nothing of it
    gc.collect()
    assert alive() is not None
    assert view.tobytes() == bytes([5]) * 24
    del shared, view
    gc.collect()
    assert alive() is None


def device_memory():
    """tests/sycl has what hamr does with memory of kind device."""
    memory = usm.MemoryUSMDevice(64)
    assert hamr.buffer(memory).allocator == hamr.Allocator.sycl_device
    assert hamr.buffer(memory.copy_to_host()).size() == 64
    assert hamr.buffer(usm.MemoryUSMShared(memory, copy=True)).size() == 64


def without_library():
    """What the host reaches is the host's then, and of kind device nothing is shared."""
    for cls in KINDS.values():
        shared = hamr.buffer(cls(64))
        assert (shared.allocator, shared.owner) == (hamr.Allocator.malloc, -1)
    memory = usm.MemoryUSMDevice(64)
    words = "kind device", "looked for /nowhere/libsycl.so", "copy_to_host"
    refused(hamr.BackendUnavailable, memory, "MemoryUSMDevice", *words)
    refused(hamr.BackendUnavailable, Producer(memory), "Producer", *words, "usm_type=")


def other_producers():
    for cls in KINDS.values():
        memory = cls(96)
        memory.copy_from_host(np.arange(24, dtype="<f4").tobytes())
        whole = {"typestr": "|f4", "shape": (4, 6)}
        shared = hamr.buffer(Producer(memory, **whole, data=(memory._pointer, False)))
        assert np.asarray(shared).tolist() == np.arange(24).reshape(4, 6).tolist()
        assert not shared.readonly
        # What dpctl says of its memory's flag, said by another, is read-only.
        assert hamr.buffer(Producer(memory, **whole)).readonly
        shared[1, 2] = -1
        part = Producer(memory, typestr="<f4", shape=(3, 2), strides=(6, -3), offset=11)
        assert np.asarray(hamr.buffer(part)).tolist() == [[11, -1], [17, 14], [23, 20]]


def views():
    memory = usm.MemoryUSMHost(96)
    shared = hamr.buffer(
        Producer(memory, typestr="<f4", shape=(4, 6), data=(memory._pointer, False))
    )
    shared[...] = np.arange(24).reshape(4, 6)
    part = shared[1:3, ::-2]
    spans = usm.as_usm_memory(part)
    # From the lowest byte that the view touches to the highest.
    assert spans._pointer == memory._pointer + (6 + 1) * 4
    assert spans.nbytes == (6 + 4 + 1) * 4
    handle = shared[2].get_host_accessible()
    row = usm.as_usm_memory(handle)
    assert np.frombuffer(row, "<f4").tolist() == [12, 13, 14, 15, 16, 17]
    del shared, part, handle, memory, spans
    gc.collect()
    assert np.frombuffer(row, "<f4").tolist() == [12, 13, 14, 15, 16, 17]


def queues():
    """Adoption waits for work that is pending, in every form that a queue is named in."""
    queue = dpctl.SyclQueue()
    size = 32 << 20
    source, target = usm.MemoryUSMShared(size, queue=queue), usm.MemoryUSMShared(size, queue=queue)
    memoryview(source)[:] = np.full(size, 3, "u1")

    class Wrapped:
        def _get_capsule(self):
            return queue._get_capsule()

    forms = {
        "own": lambda: target,
        "queue": lambda: Producer(target),
        "capsule": lambda: Producer(target, syclobj=queue._get_capsule()),
        "object": lambda: Producer(target, syclobj=Wrapped()),
    }
    for name, form in forms.items():
        producer = form()
        memoryview(target)[:] = bytes(size)
        events = [queue.memcpy_async(target, source, size) for _ in range(20)]
        shared = hamr.buffer(producer)
        complete = dpctl.event_status_type.complete
        assert all(e.execution_status == complete for e in events), name
        assert shared[-1:].get().tolist() == [3]
        assert usm.as_usm_memory(shared)._pointer == target._pointer
        assert usm.as_usm_memory(shared).get_usm_type() == "shared"
    events = [queue.memcpy_async(target, source, size) for _ in range(20)]
    waited = []

    class Watched:
        def wait(self):
            waited.append(1)

        def _get_capsule(self):
            return queue._get_capsule()

    hamr.buffer(Producer(target, syclobj=Watched()), wait=False)
    assert not waited
    hamr.buffer(Producer(target, syclobj=Watched()))
    assert waited == [1]
    queue.wait()
    assert events[-1].execution_status == dpctl.event_status_type.complete


def contexts():
    memory = usm.MemoryUSMShared(64)
    context = memory.sycl_context
    for syclobj in (context, context._get_capsule()):
        shared = hamr.buffer(Producer(memory, syclobj=syclobj))
        assert usm.as_usm_memory(shared)._pointer == memory._pointer
        assert usm.as_usm_memory(shared)._pointer == memory._pointer  # a capsule is good for one
    name = memory.sycl_device.filter_string
    assert (
        hamr.buffer(Producer(memory, syclobj=name)).__sycl_usm_array_interface__["syclobj"] == name
    )


def wrong():
    memory = usm.MemoryUSMShared(64)
    plain = np.zeros(64, "u1")
    refused(ValueError, Producer(memory, data=(plain.ctypes.data, False)), "data", "syclobj")
    refused(ValueError, Producer(memory, data=(0, False)), "data")
    refused(ValueError, Producer(memory, syclobj="no such device"), "syclobj")
    refused(TypeError, Producer(memory, syclobj=memory.sycl_device), "syclobj")
    used = memory.sycl_queue._get_capsule()
    dpctl.SyclQueue(used)
    refused(ValueError, Producer(memory, syclobj=used), "syclobj", "used")
    assert hamr.buffer(Producer(memory, shape=(0,), data=(0, False))).size() == 0


def not_usm():
    shared = hamr.buffer(usm.MemoryUSMShared(8))
    assert hasattr(shared.copy(), NAME), "it stays SYCL's"
    for b in (hamr.Buffer(4), hamr.buffer(np.ones(4)), shared.copy("malloc")):
        assert not hasattr(b, NAME)
        with pytest.raises((ValueError, TypeError)):
            usm.as_usm_memory(b)


def kept_until_the_end():
    """Buffers, and dpctl's memory over them, outlive everything that is taken down at exit."""
    globals()["kept"] = [hamr.buffer(usm.MemoryUSMShared(1 << 20)) for _ in range(8)]
    globals()["views"] = [usm.as_usm_memory(b) for b in globals()["kept"]]


def leaks():
    """Memory that nobody uses goes back, in whatever direction it was shared."""
    memory = usm.MemoryUSMShared(1 << 20)
    before = sys.getrefcount(memory)
    for _ in range(300):
        shared = hamr.buffer(memory)
        hamr.buffer(usm.as_usm_memory(shared[10:])).get_host_accessible().close()
        hamr.buffer(Producer(memory)).free()
    del shared
    gc.collect()
    assert sys.getrefcount(memory) == before
    assert hamr.stats()["references"] == 0


def dpnp_arrays():
    import dpnp
    import dpnp.tensor

    for kind in KINDS:
        array = dpnp.arange(24, dtype="f4", usm_type=kind).reshape(4, 6)
        assert array.__dlpack_device__()[0] == 14
        shared = hamr.buffer(array)
        assert shared.source_protocol == NAME
        assert (shared.shape, shared.readonly) == ((4, 6), False)
        shared[1, 2] = -5
        assert float(array[1, 2]) == -5
        array[0, 0] = 9
        array.sycl_queue.wait()
        assert np.asarray(shared)[0, 0] == 9
        part = array[1:, ::-2]
        assert np.asarray(hamr.buffer(part)).tolist() == dpnp.asnumpy(part).tolist()
        # dpnp itself takes no negative strides from others, nor an offset.
        back = dpnp.asarray(shared[1:, 1::2])
        assert dpnp.asnumpy(back).tolist() == dpnp.asnumpy(array[1:, 1::2]).tolist()
        assert back.usm_type == kind
        rows = dpnp.tensor.asarray(shared[1:, 1::2], copy=False)
        shared[1, 1] = 77
        assert float(rows[0, 0]) == 77
        array.flags["W"] = False
        assert hamr.buffer(array).readonly
    for dtype in ("?", "i1", "u2", "i8", "f8", "c8", "c16"):
        array = dpnp.ones(3, dtype=dtype, usm_type="shared")
        assert hamr.buffer(array).get().tolist() == dpnp.asnumpy(array).tolist()
    assert hamr.buffer(dpnp.zeros((0, 3), usm_type="host")).shape == (0, 3)
    assert hamr.buffer(dpnp.full((), 4.0, usm_type="host")).get().tolist() == 4
    on_device = dpnp.arange(3)
    assert on_device.usm_type == "device"
    shared = hamr.buffer(on_device)
    assert (shared.allocator, shared.owner) == (hamr.Allocator.sycl_device, 0)
    assert shared.get().tolist() == [0, 1, 2]
    on_device += 5  # in the queue that hamr's work goes to as well
    assert shared.get().tolist() == [5, 6, 7]
    shared.fill(9)
    assert dpnp.asnumpy(on_device).tolist() == [9, 9, 9]
    made = hamr.Buffer(4, "f4", "sycl_device", fill=2)
    theirs = dpnp.tensor.asarray(made, copy=False)
    theirs *= 3
    theirs.sycl_queue.wait()
    assert theirs.usm_type == "device"
    assert made.get().tolist() == [6] * 4


globals()[sys.argv[1]]()
