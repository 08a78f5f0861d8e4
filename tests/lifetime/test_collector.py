"""Python's cycle collector: what it may collect, and what it must not see too early."""

import gc
import sys
import weakref

import numpy as np
import pytest

import hamr
from tests.support.processes import run_code
from tests.support.recorded_core import NEW

#: Since when a memoryview that is exported survives the collector (CPython's issue 77894).
#: Before, hamr hides them, and a cycle through a __buffer__ in Python stays.
SPARES_EXPORTED = sys.version_info >= (3, 12, 7)

# Cycles through what exports the memory.


class Memory(bytearray):
    """What a weak reference can watch, and a buffer can be an attribute of."""


@pytest.mark.parametrize(
    "share",
    [
        lambda m: m, memoryview, lambda m: memoryview(m)[8:40:8], lambda m: memoryview(m)[::-1],
        lambda m: memoryview(m).cast("i", [4, 4]), lambda m: memoryview(memoryview(m))[8:8],
        lambda m: memoryview(hamr.buffer(m)),
    ],
    ids=["itself", "view", "part", "backwards", "cast", "empty", "buffer"],
)  # fmt: skip
def test_memory_that_holds_a_buffer_of_itself(share):
    memory = Memory(range(64))
    memory.buffer = hamr.buffer(share(memory))
    expected = bytes(share(memory))
    assert np.asarray(memory.buffer).tobytes() == expected
    with pytest.raises(BufferError):
        memory.append(1)
    memory.buffer.close()
    memory.buffer = hamr.buffer(share(memory))
    watch = weakref.ref(memory)
    del memory
    gc.collect()
    assert watch() is None


def test_the_memory_of_a_view_is_locked_as_long_as_it_is_shared():
    memory = Memory(64)
    view = memoryview(memory)[8:40]
    shared = hamr.buffer(view)
    del view
    gc.collect()
    with pytest.raises(BufferError):
        memory.clear()
    np.asarray(shared)[:] = 7
    del shared
    memory.append(1)
    assert memory[8:40] == bytes([7]) * 32


def test_a_view_of_what_has_other_memory_by_now():
    """What the exporter would show next is not what the view has."""
    array = np.zeros(64, "u1")
    view = memoryview(array)
    first, size = array.ctypes.data, 1 << 22
    # Memory that there is room behind grows where it is.
    while array.ctypes.data == first:
        array.resize(size, refcheck=False)
        size *= 2
    shared = hamr.buffer(view)
    assert shared.ptr == first
    with pytest.raises(BufferError):
        view.release()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ is new in Python 3.12")
@pytest.mark.parametrize("share", ["p", "memoryview(p)", "memoryview(p).cast('i')"])
@pytest.mark.parametrize(
    "cycle",
    [
        "h = [hamr.buffer(share(p))]; h.append(h)",
        "h = []; h.append(h); h.append(hamr.buffer(share(p)))",
        "p.b = hamr.buffer(share(p)); h = None",
        "p.h = h = [hamr.buffer(share(p)).get_host_accessible()]; h.append(h)",
        "p.b = hamr.buffer(share(p)); p.m = memoryview(p.b); h = None",
    ],
)
def test_exporters_written_in_python_in_cycles(cycle, share):
    """The crash was in some orders only, in which the collector comes to the objects."""
    run_code(f"""
import gc, weakref, hamr
gc.disable()
class Plain:
    def __init__(self): self.data = bytearray(64)
    def __buffer__(self, flags): return memoryview(self.data)
class Releasing(Plain):
    def __release_buffer__(self, view): pass
class Keeping(Plain):
    def __buffer__(self, flags):
        self.view = memoryview(self.data)
        return self.view
class Inheriting(bytearray):
    def __buffer__(self, flags): return super().__buffer__(flags)
share = lambda p: {share}
for make in Plain, Releasing, Keeping, lambda: Inheriting(64):
    for _ in range(5):
        p = make()
        {cycle}
        watch = weakref.ref(p)
        del p, h
        gc.collect()
        assert {not SPARES_EXPORTED} or watch() is None, make
""")


# Cycles through the stream.


class Foreign:
    """Another library's stream, which ends with the object."""

    def __init__(self, log, handle=9):
        self.log, self.ptr = log, handle

    def __del__(self):
        self.log.append("ended")


def retired(core, handle):
    return ("RetireStream", handle) in core.retired


def test_a_foreign_stream_that_holds_its_buffers(core):
    """hamr does without the stream before its own finaliser runs."""

    class Checking(Foreign):
        def __del__(self):
            self.log.append(retired(core, self.ptr))

    for hold in (
        lambda s: hamr.Buffer(3, stream=s),
        lambda s: hamr.Buffer(3, stream=s).get_host_accessible(),
        lambda s: hamr.Buffer(3, stream=s)[1:],
        lambda s: hamr.Buffer(3, stream=s).copy(),
        lambda s: hamr.Stream(s),
        lambda s: (hamr.Buffer(3, stream=s), hamr.Buffer(3, stream=s)),
    ):
        del core.retired[:]
        stream = Checking(log := [])
        stream.scratch = hold(stream)
        watch = weakref.ref(stream)
        del stream
        gc.collect()
        assert watch() is None
        assert log == [True]


def test_two_objects_for_one_handle_in_cycles_of_their_own(core):
    first, second = Foreign(log := []), Foreign(log)
    first.scratch, second.scratch = hamr.Buffer(3, stream=first), hamr.Buffer(3, stream=second)
    del second
    gc.collect()
    assert log == ["ended"]
    assert core.retired == [("RetireStream", 9)]
    buffer = hamr.Buffer(3, stream=first)
    assert buffer.stream == hamr.Stream(9)
    del first, buffer
    gc.collect()
    assert log == ["ended"] * 2


def test_a_stream_of_hamrs_that_holds_its_buffers(core):
    class Working(hamr.Stream):
        pass

    before = hamr.stats()["references"]
    stream = Working(device=1)
    stream.scratch = [hamr.Buffer(3, stream=stream), hamr.Buffer(3, stream=stream)[1:]]
    watch, calls = weakref.ref(stream), len(core.calls)
    del stream
    gc.collect()
    assert watch() is None
    assert hamr.stats()["references"] == before
    assert core.retired == [("RetireStream", NEW + 1)]
    assert core.calls[calls:] == [("DestroyStream", "cuda", 1, NEW + 1)]


def test_a_stream_in_a_cycle_ends_after_its_buffers(core):
    """Finalisers of the same cycle may use both."""

    class Working(hamr.Stream):
        def __del__(self):
            self.buffer.append(1)
            assert not retired(core, self.ptr)
            found.append((int(self.buffer.stream), len(self.buffer)))

    found = []
    stream = Working(device=1)
    stream.buffer = hamr.Buffer(3, fill=1, stream=stream)
    del stream
    gc.collect()
    assert found == [(NEW + 1, 4)]
    assert retired(core, NEW + 1)


UNWATCHED = 0x5EED  # a handle that no other test uses: one that is alive has one life for all


def test_streams_that_cannot_be_watched_keep_their_cycles(core):
    """Nobody could say before it ends that it does."""

    class Unwatched:
        __slots__ = ("ptr", "scratch")

    stream = Unwatched()
    stream.ptr = UNWATCHED
    stream.scratch = [Owner(), hamr.Buffer(3, stream=stream)]
    watch = weakref.ref(stream.scratch[0])
    del stream
    gc.collect()
    assert watch() is not None
    assert not retired(core, UNWATCHED)
    watch().__dict__.clear()
    (holder,) = [r for r in gc.get_referrers(watch()) if isinstance(r, list)]
    holder.clear()
    del holder
    gc.collect()
    assert watch() is None
    assert retired(core, UNWATCHED)


class Owner:
    """What a weak reference can watch."""


def test_a_stream_that_comes_back_from_its_end_still_works(core):
    saved = []

    class Phoenix(Foreign):
        def __del__(self):
            saved.append(self)

    stream = Phoenix([])
    stream.scratch = hamr.Buffer(3, fill=1, stream=stream)
    del stream
    gc.collect()
    assert retired(core, 9)
    buffer = saved[0].scratch
    assert int(buffer.stream) == 9
    buffer.append(1)
    assert str(buffer) == "{1, 1, 1, 1}"
    del buffer
    saved.clear()
    gc.collect()


# What is half made.


def test_the_collector_leads_to_no_half_made_array():
    """CPython 3.11 collects inside C functions, wherever they make objects."""
    run_code("""
import gc, hamr, numpy as np
uses = (
    lambda x: x.__array_interface__, lambda x: x.__cuda_array_interface__, memoryview,
    lambda x: x.get_host_accessible(), lambda x: x.__dlpack__(), lambda x: x.__arrow_c_array__(),
    lambda x: x.fill(1), lambda x: x.copy(), lambda x: x[:1], str, repr, len, np.asarray,
    lambda x: x.get_cuda_accessible(), lambda x: hamr.buffer(x), lambda x: x.append(1),
    lambda x: x._empty(), lambda x: x._set_order(0, 1), lambda x: x._swap(hamr.Buffer(3)),
)
known = set()
def look(phase, info):
    if phase != "start":
        return
    for x in gc.get_objects():
        if isinstance(x, hamr._native.Array) and id(x) not in known:
            for use in uses:
                try:
                    use(x)
                except Exception:
                    pass
b, out = hamr.Buffer(10, fill=1), np.zeros(10)
works = (
    b.copy, lambda: b.astype("f4"), b.get_host_accessible, lambda: b[2:4], lambda: hamr.buffer(out),
    lambda: hamr.Buffer(3, fill=2), lambda: b.fill(3), lambda: hamr.Buffer.from_pointer(b.ptr, 3),
    lambda: hamr.from_dlpack(b), lambda: hamr._native.scalar(2.5),
)
for work in works:
    work()
known = {id(x) for x in gc.get_objects() if isinstance(x, hamr._native.Array)}
gc.callbacks.append(look)
for work in works:
    for allocations in range(1, 12):
        gc.collect()
        gc.set_threshold(allocations)
        try:
            work()
        except Exception:
            pass
        finally:
            gc.set_threshold(0)
gc.callbacks.remove(look)
assert str(hamr.Buffer(3, fill=1)) == "{1, 1, 1}"
""")
