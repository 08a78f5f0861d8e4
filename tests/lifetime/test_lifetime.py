"""Memory lives as long as anything uses it, and no longer."""

import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import hamr
from hamr import _native
from tests.support.processes import run_code, run_script

LARGE = 5 << 20  # bytes: above 4 MiB the memory is freed without the GIL


def live():
    gc.collect()
    host = hamr.stats()["spaces"]["host"]
    return host["live"], host["adopted"]


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters as it found them."""
    hamr.Buffer(1)
    before = live()
    yield
    assert live() == before


SHARES = [np.asarray, memoryview, lambda x: np.frombuffer(x), lambda x: np.asarray(memoryview(x))]


@pytest.mark.parametrize("share", SHARES, ids=["asarray", "memoryview", "frombuffer", "both"])
@pytest.mark.parametrize(
    "through",
    [lambda b: b, lambda b: b.get_host_accessible(), lambda b: b[1:], hamr.buffer],
    ids=["buffer", "handle", "view", "wrapped"],
)
@pytest.mark.parametrize("size", [10, LARGE // 8])
def test_shared_memory_outlives_its_buffer(share, through, size):
    before = live()
    b = hamr.Buffer(size, fill=3)
    shared = share(through(b))
    del b
    refill = [hamr.Buffer(size, fill=9) for _ in range(4)]
    assert np.asarray(shared).min() == np.asarray(shared).max() == 3
    assert live()[0] == before[0] + 5
    del shared, refill
    assert live() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.resize(10**6),
        lambda b: b.resize(1),
        lambda b: b.free(),
        lambda b: b.close(),
        lambda b: b.move("cpp"),
        lambda b: b.swap(hamr.Buffer(3)),
        lambda b: b.assign(np.zeros(10**5)),
        lambda b: b.append(np.zeros(10**5)),
        lambda b: b.reserve(10**6),
    ],
    ids=["grow", "shrink", "free", "close", "move", "swap", "assign", "append", "reserve"],
)
@pytest.mark.parametrize("dtype", ["f8", "bfloat16"])
def test_changing_a_buffer_leaves_shared_memory(change, dtype):
    """bfloat16 has no format in the buffer protocol: NumPy takes it another way."""
    b = hamr.Buffer(1000, dtype, fill=2)
    array = np.asarray(b)
    kept = array.tobytes()
    change(b)
    refill = [hamr.Buffer(1000, dtype, fill=9) for _ in range(4)]
    assert array.tobytes() == kept
    assert len(refill) == 4


@pytest.mark.parametrize("share", SHARES, ids=["asarray", "memoryview", "frombuffer", "both"])
def test_closing_a_handle_leaves_arrays_made_from_it(share):
    before = live()
    with hamr.Buffer(1000, fill=2).get_host_accessible() as handle:
        shared = share(handle)
    with pytest.raises(hamr.FreedBuffer):
        memoryview(handle)
    refill = [hamr.Buffer(1000, fill=9) for _ in range(4)]
    assert np.asarray(shared).sum() == 2000
    del refill, shared
    assert live() == before, "the closed handle kept the memory"


def test_the_last_view_of_a_closed_handle_frees():
    handle = hamr.Buffer(10, fill=2).get_host_accessible()
    first, second = memoryview(handle), memoryview(handle)
    before = live()[0]
    handle.close()
    first.release()
    assert live()[0] == before
    assert second[9] == 2
    second.release()
    assert live()[0] == before - 1


class Owner(bytearray):
    """What a weak reference can watch."""


def test_an_owner_goes_with_the_last_use():
    owner = Owner(b"12345678")
    watch = weakref.ref(owner)
    b = hamr.buffer(owner)
    part = np.asarray(b[2:])
    del owner
    b.close()
    gc.collect()
    assert watch() is not None
    assert part[0] == ord("3")
    with pytest.raises(BufferError):
        watch().append(1)
    del part
    assert watch() is None


def test_cycles_are_collected():
    class Node(np.ndarray):
        pass

    watches = []
    for _ in range(3):
        array = np.zeros(100).view(Node)
        array.buffer = hamr.buffer(array)
        array.view_ = memoryview(array.buffer.get_host_accessible())
        array.handle = array.buffer.get_host_accessible()
        watches.append(weakref.ref(array))
    del array
    gc.collect()
    assert all(w() is None for w in watches)


def test_cycles_through_a_subclass_and_a_pointer():
    class Mine(hamr.Buffer):
        pass

    memory = np.ones(4)
    for _ in range(3):
        b = Mine.from_pointer(memory.ctypes.data, 4, owner=(holder := []))
        holder.append(b)
        b.itself = b
        watch = weakref.ref(b)
        del b, holder
        gc.collect()
        assert watch() is None


def test_resurrected_buffers_work():
    saved = []

    class Phoenix(hamr.Buffer):
        def __del__(self):
            saved.append(self)

    Phoenix(10, fill=1)
    assert np.asarray(saved[0]).sum() == 10
    saved[0].append(1)
    cycle = Phoenix(10, fill=1)
    cycle.itself = cycle
    del cycle
    gc.collect()
    assert np.asarray(saved[1]).sum() == 10
    del saved[1].itself
    del saved[:]


def test_weak_references():
    b = hamr.Buffer(3)
    h = b.get_host_accessible()
    ended = []
    watches = [weakref.ref(x, ended.append) for x in (b, h)]
    assert [w() for w in watches] == [b, h]
    del b, h
    assert ended == watches or ended == watches[::-1]


def test_an_owner_whose_end_uses_hamr():
    """A finaliser runs in the middle of a release, and may do anything."""
    seen = []

    class Last:
        def __del__(self):
            b = hamr.Buffer(3, fill=len(seen))
            b.append(hamr.buffer(np.ones(2)))
            seen.append(np.asarray(b).sum())

    memory = np.ones(4)
    for _ in range(3):
        b = hamr.Buffer.from_pointer(memory.ctypes.data, 4, owner=Last())
        del b
    assert seen == [2, 5, 8]


def test_an_error_under_way_survives_a_release():
    class Bad:
        def __del__(self):
            try:
                raise OSError
            except OSError:
                pass

    memory = np.ones(4)

    with pytest.raises(TypeError, match="dimensions"):
        len(hamr.Buffer.from_pointer(memory.ctypes.data, (), owner=Bad()))


def test_a_long_chain_of_owners_is_undone_without_recursion():
    b = hamr.buffer(b"123")
    for _ in range(200_000):
        b = hamr.buffer(memoryview(b))
    assert np.asarray(b)[2] == ord("3")
    del b


@pytest.mark.parametrize("size", [10, LARGE])
def test_dropping_in_another_thread(size):
    held = [hamr.Buffer(size, "u1", fill=1) for _ in range(8)] + [hamr.buffer(bytes(size))]
    held += [np.asarray(b) for b in held] + [memoryview(b) for b in held]
    threads = [threading.Thread(target=held.pop) for _ in range(len(held))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not held


def test_taken_memory_is_freed_as_what_it_is():
    """A small block from elsewhere must not be handed out again as a larger one."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
    for _ in range(64):
        hamr.Buffer.from_pointer(libc.malloc(8), 1, take=True).close()
    made = [hamr.Buffer(8) for _ in range(64)]
    assert min(libc.malloc_usable_size(b.ptr) for b in made) >= 64
    assert {b.ptr % 64 for b in made} == {0}


def test_without_the_module():
    """Arrays outlive hamr's entry in sys.modules; a second import shares the first one's memory."""
    run_code("""
import gc, sys
import numpy as np, hamr
b = hamr.Buffer(1000, fill=1); a = np.asarray(b); m = memoryview(b.get_host_accessible())
for name in [n for n in sys.modules if n.partition(".")[0] == "hamr"]:
    del sys.modules[name]
del hamr
gc.collect()
assert a.sum() == 1000 and m[999] == 1
b.append(1)
import hamr
again = hamr.buffer(b)
again.fill(2)
assert np.asarray(b).sum() == 2002 and a.sum() == 1000
assert isinstance(again, hamr.Buffer) and not isinstance(b, hamr.Buffer)
del b, again
assert a.sum() == 1000
del a, m
gc.collect()
assert hamr.stats()["references"] == 0
""")


@pytest.mark.parametrize("case", ["handlers", "globals_", "statics", "daemons", "late", "threads"])
def test_at_the_end_of_the_interpreter(case):
    """Each case is a function of scripts/exits.py, which says what it shows."""
    for _ in range(3):
        output = run_script("exits", case)
        assert output == ("ended well\n" if case in ("handlers", "late") else ""), output


def test_getrefcounts_of_owners_are_exact():
    array = np.arange(10)
    before = sys.getrefcount(array)
    many = [hamr.buffer(array) for _ in range(100)]
    many += [b[1:] for b in many] + [b.get_host_accessible() for b in many]
    assert sys.getrefcount(array) == before + 100
    del many
    assert sys.getrefcount(array) == before


class Told:
    """A consumer that keeps the buffer, and only the address of its elements."""

    def __init__(self, buffer):
        self.buffer, self.__array_interface__ = buffer, buffer.__array_interface__


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.close(),
        lambda b: b.free(),
        lambda b: b.resize(10**6, 9),
        lambda b: b.move("cpp"),
        lambda b: b.swap(hamr.Buffer(3)),
        lambda b: (b.resize(10**5, 8), b.__array_interface__, b.resize(10**6, 9)),
    ],
)
def test_who_was_told_the_address_keeps_the_memory_with_the_buffer(change):
    told = Told(hamr.Buffer(1000, "f4", fill=3))
    change(told.buffer)
    refill = [hamr.Buffer(1000, "f4", fill=9) for _ in range(64)]
    assert np.asarray(told).tolist() == [3] * 1000
    references = hamr.stats()["references"]
    del told
    gc.collect()
    assert hamr.stats()["references"] < references
    assert len(refill) == 64


def test_memoryviews_in_cycles_end_well():
    """CPython's collector clears a memoryview that it is led to, though it is exported."""
    run_code("""
import gc, weakref, hamr
class Memory(bytearray): pass
def cycle(share):
    memory = Memory(64)
    holder = [hamr.buffer(share(memory))]
    holder.append(holder)
    return weakref.ref(memory)
for share in memoryview, lambda m: memoryview(m).cast("i", [4, 4]), lambda m: m:
    for _ in range(3):
        gc.collect()
        memory = cycle(share)
        gc.collect()
        assert memory() is None
""")


def test_what_returns_none_true_or_false_returns_a_reference():
    """CPython counts those of 3.11's, whatever version's headers the extension was made with.

    From 3.14 on it gives none of these back, so that there the counts rise.
    """
    first, second = hamr.buffer(np.ones(1)), hamr.Buffer(3)
    out = np.zeros(1)

    def use():
        for _ in range(1000):
            first._swap(second)
            second._set_order(0, 1)
            _native.read_into(first, out)
            _native.adopt_buffer(hamr.Buffer, None, 0, 1)

    use()
    before = [sys.getrefcount(x) for x in (None, True, False)]
    use()
    after = [sys.getrefcount(x) for x in (None, True, False)]
    most = 500 if sys.version_info < (3, 14) else 4500
    assert all(-500 < a - b < most for a, b in zip(after, before, strict=True))
