"""What CuPy and torch have freed, and C keeps for their next allocation on the same stream."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import random
import threading

import pytest

import hamr
from hamr._base.library import core
from hamr.allocators import _core
from tests.cuda import driver
from tests.cuda.test_cuda_library_hooks import MIB, SIZES, Hooks, Model, live
from tests.cuda.test_cuda_limits import on_device
from tests.support.in_threads import in_threads
from tests.support.processes import scaled

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")

MOST = 128 * MIB  # that are kept, in bytes


class Kept(Hooks):
    """The hooks of CuPy and of all of torch; each thread has a current stream."""

    def __init__(self) -> None:
        super().__init__()
        _, library = _core.hooks()
        self.current = threading.local()
        kind = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)
        self.function = kind(lambda: self.current.stream)
        self.asked = ctypes.cast(self.function, ctypes.c_void_p)
        path = ctypes.PyDLL(library._name)
        self.cupy_alloc, self.cupy_free = path.hamr_cupy_alloc, path.hamr_cupy_free
        self.cupy_alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.cupy_alloc.restype = ctypes.c_void_p
        self.cupy_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        self.cupy_free.restype = None
        self.offer = path.hamr_cupy_offer
        self.offer.argtypes, self.offer.restype = (
            [ctypes.c_void_p, ctypes.c_size_t],
            ctypes.c_void_p,
        )
        self.all_of_torch = library.hamr_torch_alloc_or_throw
        self.all_of_torch.argtypes = self.torch_alloc.argtypes
        self.all_of_torch.restype = ctypes.c_void_p
        self.of: dict[int, int] = {}

    def alloc(self, library: int, size: int, stream: int) -> int:
        if library == _core.TORCH:
            address = self.all_of_torch(size, 0, stream)
        else:
            self.current.stream = stream
            address = self.cupy_alloc(self.asked, size, 0)
            if not address:  # as hamr.allocators does
                self.offer(_core.allocate(_core.CUPY, 0, size, stream), size)
                address = self.cupy_alloc(self.asked, size, 0)
        self.of[address] = library
        return address

    def free(self, address: int, size: int, stream: int) -> None:
        if self.of.pop(address) == _core.TORCH:
            self.torch_free(address, size, 0, stream)
        else:
            self.cupy_free(None, address, 0)


@pytest.fixture(autouse=True)
def nothing_left(needs_device):
    hamr.trim()
    before = live()
    core().KeepFreed(1)
    yield
    core().KeepFreed(-1)
    hamr.trim()
    assert live() == before


@pytest.fixture
def hooks() -> Kept:
    return Kept()


@pytest.fixture
def stream_of():
    """Makes streams that stay, or may end."""
    made = []

    def make(keep: bool = True) -> driver.Stream:
        stream = driver.Stream()
        if keep:
            core().KeepStream(0, stream.handle)
        made.append(stream)
        return stream

    yield make
    hamr.trim()
    for stream in made:
        assert core().DropStream(0, stream.handle)


def held_by(library: str) -> int:
    return hamr.memory_snapshot().by_library().get(library, {}).get("cuda:0", 0)


def is_kept(address: int) -> bool:
    """Whether the core counts memory that was freed as a library's; now it does not any more."""
    try:
        core().FreeFor(address)
    except ValueError:
        return False
    hamr.trim()  # C gives it back in vain
    return True


both = pytest.mark.parametrize("library", [_core.CUPY, _core.TORCH], ids=["cupy", "torch"])


@both
def test_the_same_stream_has_it_again_while_it_works(hooks, stream_of, emulator, library):
    one, other = stream_of(), stream_of()
    with driver.on(0):
        emulator.hold(one.handle)
    first = hooks.alloc(library, 3 * MIB, one.handle)
    driver.write_late(one, first, 100, 1)
    hooks.free(first, 3 * MIB, one.handle)
    made = hamr.stats()["allocators"]["cuda"]["made"]  # which has all given back
    first = hooks.alloc(library, 3 * MIB, one.handle)
    hooks.free(first, 3 * MIB, one.handle)
    again = hooks.alloc(library, 3 * MIB, one.handle)
    assert again == first
    elsewhere = hooks.alloc(library, 3 * MIB, other.handle)
    assert elsewhere != first
    longer = hooks.alloc(library, 3 * MIB + 1, one.handle)
    assert longer != first
    emulator.let_go()
    for address, size in ((again, 3 * MIB), (elsewhere, 3 * MIB), (longer, 3 * MIB + 1)):
        hooks.free(address, size, one.handle)
    assert hamr.stats()["allocators"]["cuda"]["made"] == made + 4


def test_many_kinds_at_once_are_not_mistaken_for_each_other(hooks, stream_of, emulator):
    """There are 64 sets of a few blocks each: some of these are in the same."""
    streams = [stream_of() for _ in range(16)]
    libraries = (_core.CUPY, _core.TORCH)
    kinds = [(n, each, s) for n in range(512, 4097, 512) for each in libraries for s in streams]
    with driver.on(0):
        for stream in streams:
            emulator.hold(stream.handle)

    def all_of_them() -> dict[int, tuple]:
        made = {hooks.alloc(each, n, s.handle): (n, each, s) for n, each, s in kinds}
        assert len(made) == len(kinds)
        held = sorted((address, n) for address, (n, _, _) in made.items())
        assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(held))
        for address, (n, _, s) in made.items():
            hooks.free(address, n, s.handle)
        return made

    before, after = all_of_them(), all_of_them()
    same = [address for address in after if address in before]
    assert all(after[address][2] is before[address][2] for address in same)
    assert sum(after[address] == before[address] for address in same) > len(kinds) // 2
    emulator.let_go()


@both
def test_a_snapshot_does_not_count_it(hooks, library):
    name = {_core.CUPY: "cupy", _core.TORCH: "torch"}[library]
    before = held_by(name)
    address = hooks.alloc(library, 5000, 0)
    assert held_by(name) == before + 5000
    hooks.free(address, 5000, 0)
    assert held_by(name) == before


@both
def test_what_is_freed_twice_is_handed_out_once(hooks, library):
    first = hooks.alloc(library, 9 * MIB, 0)
    for _ in range(3):
        hooks.of[first] = library
        hooks.free(first, 9 * MIB, 0)
    one, other = (hooks.alloc(library, 9 * MIB, 0) for _ in range(2))
    with hamr.Buffer(9 * MIB, "uint8", "cuda") as third:
        assert one == first
        assert len({one, other, third.ptr}) == 3
    for address in (one, other):
        hooks.free(address, 9 * MIB, 0)


def test_one_library_has_what_the_other_freed(hooks):
    first = hooks.alloc(_core.CUPY, 3 * MIB, 0)
    hooks.free(first, 3 * MIB, 0)
    assert hooks.alloc(_core.TORCH, 3 * MIB, 0) == first
    hooks.free(first, 3 * MIB, 0)
    with hamr.Buffer(3 * MIB, "uint8", "cuda") as buffer:
        assert buffer.ptr == first


def test_while_memory_is_recorded_each_allocation_is(hooks):
    with hamr.record_memory() as record:
        for _ in range(3):
            hooks.free(hooks.alloc(_core.CUPY, 7000, 0), 7000, 0)
    events = [e["action"] for e in record.snapshot.events if e["library"] == "cupy"]
    assert [action.partition("_")[0] for action in events] == ["alloc", "free"] * 3


def test_what_is_kept_counts_for_no_limit(hooks):
    hooks.free(hooks.alloc(_core.CUPY, 3 * MIB, 0), 3 * MIB, 0)
    hamr.set_limit(library="cupy", device=0, bytes=4 * MIB)
    try:
        address = hooks.alloc(_core.CUPY, 2 * MIB, 0)
        hooks.free(address, 2 * MIB, 0)
        address = hooks.alloc(_core.CUPY, 4 * MIB, 0)
        with pytest.raises(hamr.OutOfMemory):
            hooks.alloc(_core.CUPY, MIB, 0)
        hooks.free(address, 4 * MIB, 0)
    finally:
        hamr.set_limit(library="cupy", device=0, bytes=None)


def leave_little() -> list[hamr.Buffer]:
    """A little memory in each of several segments, as other tests leave it."""
    rows = [[hamr.Buffer(size, "u1", "cuda") for size in (1024, MIB, MIB - 1024)] for _ in range(3)]
    return [row[0] for row in rows]


def test_who_needs_memory_has_it(hooks):
    little = leave_little()
    hamr.trim()
    hamr.set_limit(device=0, bytes=on_device() + 20 * MIB)
    try:
        hooks.free(hooks.alloc(_core.CUPY, 15 * MIB, 0), 15 * MIB, 0)
        with hamr.Buffer(18 * MIB, "uint8", "cuda"):
            pass
        hooks.free(hooks.alloc(_core.CUPY, 15 * MIB, 0), 15 * MIB, 0)
        address = hooks.alloc(_core.TORCH, 18 * MIB, 0)
        hooks.free(address, 18 * MIB, 0)
    finally:
        hamr.set_limit(device=0, bytes=None)
        del little


def test_nothing_is_kept_of_a_stream_that_may_end(hooks, stream_of):
    stream = stream_of(keep=False)
    address = hooks.alloc(_core.CUPY, 3 * MIB, stream.handle)
    hooks.free(address, 3 * MIB, stream.handle)
    assert not is_kept(address)
    stream = stream_of()
    address = hooks.alloc(_core.CUPY, 3 * MIB, stream.handle)
    hooks.free(address, 3 * MIB, stream.handle)
    assert is_kept(address)


def test_a_stream_that_is_dropped_leaves_nothing(hooks, stream_of):
    stream = stream_of()
    hooks.free(hooks.alloc(_core.CUPY, 5000, stream.handle), 5000, stream.handle)
    stream.synchronize()
    assert core().DropStream(0, stream.handle)
    core().KeepStream(0, stream.handle)
    address = hooks.alloc(_core.CUPY, 5000, stream.handle)
    assert not core().DropStream(0, stream.handle)
    hooks.free(address, 5000, stream.handle)  # it stays, as it was in use
    made = hamr.stats()["allocators"]["cuda"]["made"]
    for _ in range(3):
        hooks.free(hooks.alloc(_core.CUPY, 5000, stream.handle), 5000, stream.handle)
    assert hamr.stats()["allocators"]["cuda"]["made"] == made + 3


def test_memory_of_several_streams_goes_to_the_core(hooks, stream_of, emulator):
    one, other = stream_of(), stream_of()
    first = hooks.alloc(_core.TORCH, 3 * MIB, one.handle)
    with driver.on(0):
        emulator.hold(other.handle)
    driver.write_late(other, first, 100, 1)
    hooks.record_stream(first, other.handle)
    hooks.free(first, 3 * MIB, one.handle)
    second = hooks.alloc(_core.TORCH, 3 * MIB, one.handle)
    assert second != first
    emulator.let_go()
    other.synchronize()
    hooks.free(second, 3 * MIB, one.handle)


def test_only_so_much_is_kept(hooks):
    size, count = 20 * MIB, 9
    addresses = [hooks.alloc(_core.CUPY, size + i, 0) for i in range(count)]
    for i, address in enumerate(addresses):
        hooks.free(address, size + i, 0)
    again = [hooks.alloc(_core.CUPY, size + i, 0) for i in range(count)]
    assert again[: MOST // size] == addresses[: MOST // size]
    for i, address in enumerate(again):
        hooks.free(address, size + i, 0)


def test_with_no_user_all_is_given_back(hooks):
    address = hooks.alloc(_core.CUPY, 5000, 0)
    hooks.free(address, 5000, 0)
    core().KeepFreed(-1)
    try:
        assert not is_kept(address)
        address = hooks.alloc(_core.CUPY, 5000, 0)
        hooks.free(address, 5000, 0)
        assert not is_kept(address)
    finally:
        core().KeepFreed(1)


def disturb(numbers: random.Random) -> None:
    """What has C give back what it keeps, or keep nothing for a while."""
    match numbers.randrange(4):
        case 0:
            hamr.trim()
        case 1:
            hamr.memory_snapshot()
        case 2:
            hamr.Buffer(numbers.choice(SIZES), "uint8", "cuda").close()
        case 3:
            hamr.stats()


def walk(pool: Kept, seed: int, steps: int, streams: list[driver.Stream]) -> int:
    """How often the same memory came back at once."""
    numbers = random.Random(seed)
    model, again, last = Model(streams), 0, 0
    mine: list[tuple[int, int, int]] = []
    with contextlib.ExitStack() as recording, driver.on(0):
        try:
            for step in range(steps):
                if numbers.random() < 0.05:
                    disturb(numbers)
                elif numbers.random() < 0.03:
                    recording.close()
                    if numbers.random() < 0.5:
                        recording.enter_context(hamr.record_memory())
                elif mine and (len(mine) > 12 or numbers.random() < 0.5):
                    address, stream, size = mine.pop(numbers.randrange(len(mine)))
                    model.free(address, stream)
                    pool.free(address, size, streams[stream].handle)
                    last = address
                elif numbers.random() < 0.1:
                    numbers.choice(streams).synchronize()
                else:
                    stream, size = numbers.randrange(3), numbers.choice(SIZES)
                    library = numbers.choice((_core.CUPY, _core.TORCH))
                    address = pool.alloc(library, size, streams[stream].handle)
                    model.allocated(address, size, stream)
                    again += address == last
                    driver.write_late(streams[stream], address, size // 4, step)
                    mine.append((address, stream, size))
        finally:
            for address, stream, size in mine:
                pool.free(address, size, streams[stream].handle)
            driver.do("cuCtxSynchronize")
            model.end()
    return again


@pytest.mark.parametrize("keep", [(True, True, True), (True, False, True)])
def test_random_walks_beside_a_model(hooks, stream_of, keep):
    streams = [stream_of(each) for each in keep]
    assert sum(walk(hooks, seed, 200, streams) for seed in range(max(3, scaled(20)))) > 0


def test_threads_have_no_memory_twice(hooks, stream_of):
    streams = [stream_of() for _ in range(4)]
    held: dict[int, int] = {}
    lock = threading.Lock()

    def work(number: int) -> None:
        numbers = random.Random(number)
        mine: list[tuple[int, int]] = []
        stream = streams[number % len(streams)].handle
        for _ in range(scaled(5000)):
            if mine and (len(mine) > 8 or numbers.random() < 0.5):
                address, size = mine.pop(numbers.randrange(len(mine)))
                with lock:
                    del held[address]
                hooks.free(address, size, stream)
            else:
                size = numbers.choice(SIZES[:3])
                address = hooks.alloc(numbers.choice((_core.CUPY, _core.TORCH)), size, stream)
                with lock:
                    assert address not in held
                    held[address] = size
                mine.append((address, size))
            if numbers.random() < 0.01:
                disturb(numbers)
        for address, size in mine:
            with lock:
                del held[address]
            hooks.free(address, size, stream)

    in_threads(work, 6)
