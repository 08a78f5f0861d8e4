"""What Python's cycle collector and finalisers may do while a device is at work."""

import gc
import weakref

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.contents import on_host

N = 1000

KINDS = ["cuda", "cuda_async", "cuda_uva", "cuda_host"]


class Foreign(driver.Stream):
    """Another library's stream that holds buffers."""


class Own(hamr.Stream):
    """hamr's, likewise."""

    @property
    def handle(self):
        return self.ptr


def references():
    gc.collect()
    return hamr.stats()["references"]


@pytest.mark.parametrize("make", [Foreign, lambda: Own(device=0)], ids=["foreign", "own"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_holds_its_buffers(kind, make):
    """Its work is not over; what others have of it is read after that all the same."""
    before = references()
    stream = make()
    stream.scratch = [
        hamr.Buffer(N, "f4", kind, fill=v, stream=stream, transfer="async") for v in (1, 2)
    ]
    target = hamr.Buffer(N, "f4", "cuda_async", fill=0)
    if kind != "cuda_host":
        value = driver.fresh_value()
        driver.write_late(stream.handle, stream.scratch[0].ptr, N, value, device=0)
    else:
        value = 1
    stream.handles = [b.get_cuda_accessible() for b in stream.scratch]
    stream.parts = [b[::2] for b in stream.scratch]
    target[...] = stream.scratch[0]
    shared = stream.scratch[1].copy()
    watch = weakref.ref(stream)
    del stream
    refill = [hamr.Buffer(N, "f4", kind, fill=9) for _ in range(4)]
    gc.collect()
    assert on_host(target).tolist() == [value] * N
    assert on_host(shared).tolist() == [2] * N
    del refill, target
    if make is Foreign:
        assert watch() is not None, "the copy is on the stream"
    del shared
    assert references() == before
    assert watch() is None


def test_memory_that_a_lost_stream_uses_outlives_its_work():
    """Pool memory goes back when the stream that the collector ended is done with it."""
    stream = Foreign()
    stream.scratch = hamr.Buffer(N, "f4", "cuda_async", fill=0)
    stream.scratch.synchronize()
    stream.scratch.set_stream(stream, "async")
    address, value = stream.scratch.ptr, driver.fresh_value()
    driver.write_late(stream, address, N, value)
    del stream
    gc.collect()
    refill = [hamr.Buffer(N, "f4", "cuda_async", fill=9, stream=driver.Stream()) for _ in range(4)]
    assert [on_host(b).tolist() for b in refill] == [[9] * N] * 4


@pytest.mark.parametrize("kind", ["cuda", "cuda_async"])
def test_asking_in_vain_keeps_nothing(kind):
    before = references()
    buffer = hamr.Buffer(N, "f4", kind, fill=1)
    for _ in range(5):
        assert not hasattr(buffer, "__array_interface__")
        buffer.append(np.ones(len(buffer), "f4"))
    assert references() == before + 1
    assert not hasattr(buffer, "__array_interface__")
    buffer.free()
    assert references() == before


@pytest.mark.parametrize(
    "through",
    [lambda b: b, lambda b: b.get_cuda_accessible(), lambda b: b[:N]],
    ids=["buffer", "handle", "view"],
)
def test_a_dictionary_is_its_takers(through):
    exporter = through(hamr.Buffer(N, "f4", "cuda", fill=1))
    again = exporter.get_cuda_accessible()
    exporter.__cuda_array_interface__.clear()
    exporter.__cuda_array_interface__["shape"] = (0,)
    for x in (exporter, again, exporter.get_cuda_accessible()):
        assert x.__cuda_array_interface__["shape"] == (N,)
        assert x.__cuda_array_interface__ is not x.__cuda_array_interface__
    assert driver.content(exporter).tolist() == [1] * N


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.swap(hamr.Buffer(7, "f8", fill=2)),
        lambda b: b.move("cuda"),
        lambda b: b.resize(4),
    ],
    ids=["swapped", "moved", "shorter"],
)
@pytest.mark.parametrize("kind", ["malloc", "cuda"])
def test_a_finaliser_may_change_what_is_brought_elsewhere(kind, change):
    """In the middle, as making objects may run it: it is brought as it was, or as it is."""
    thresholds, changed = gc.get_threshold(), 0
    with driver.on(0):
        for allocations in range(1, 10):
            buffer = hamr.Buffer(N, "f4", kind, fill=1)
            buffer.synchronize()
            pending = [buffer]

            def look(phase, info, pending=pending):
                if phase == "start" and pending:
                    change(pending.pop())

            gc.collect()
            gc.callbacks.append(look)
            gc.set_threshold(allocations)
            try:
                handle = (
                    buffer.get_host_accessible()
                    if kind == "cuda"
                    else buffer.get_cuda_accessible(0)
                )
            finally:
                gc.set_threshold(*thresholds)
                gc.callbacks.remove(look)
            changed += not pending
            found = handle.get()
            expected = np.ones(N, "f4") if found.shape == (N,) else buffer.get()
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()
    assert changed
