"""What CuPy, torch and Numba call to allocate from hamr's pool: order, errors, and what is left."""

from __future__ import annotations

import ctypes
import itertools
import random

import pytest

import hamr
from hamr._base.library import core
from hamr.allocators import _core
from tests.cuda import driver
from tests.cuda.test_cuda_limits import on_device
from tests.support.in_threads import in_threads
from tests.support.processes import scaled

MIB = 1 << 20

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")


@pytest.fixture(autouse=True)
def nothing_left(needs_device):
    """What the tests take they give back."""
    hamr.trim()
    before = live()
    yield
    hamr.trim()
    assert live() == before


def live() -> int:
    rows = hamr.stats()["allocators"]
    return rows["cuda"]["live"] if "cuda" in rows else 0


class Hooks:
    """The functions as torch has them."""

    def __init__(self) -> None:
        _, library = _core.hooks()
        self.torch_alloc = library.hamr_torch_alloc
        self.torch_alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self.torch_alloc.restype = ctypes.c_void_p
        self.torch_free = library.hamr_torch_free
        self.torch_free.argtypes = [
            *(ctypes.c_void_p, ctypes.c_size_t),
            *(ctypes.c_int, ctypes.c_void_p),
        ]
        self.torch_free.restype = None
        self.record_stream = library.hamr_torch_record_stream
        self.record_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.record_stream.restype = None

    def alloc(self, library: int, size: int, stream: int) -> int:
        if library == _core.TORCH:
            return self.torch_alloc(size, 0, stream)
        return _core.allocate(library, 0, size, stream)

    def free(self, address: int, size: int, stream: int) -> None:
        self.torch_free(address, size, 0, stream)


@pytest.fixture
def hooks() -> Hooks:
    return Hooks()


@pytest.fixture
def stream_of():
    """Makes streams that the pool is told of, or not, and that end after it was told."""
    made = []

    def make(keep: bool = True) -> driver.Stream:
        stream = driver.Stream()
        if keep:
            core().KeepStream(0, stream.handle)
        made.append(stream)
        return stream

    yield make
    hamr.trim()  # nothing is being freed any more
    for stream in made:
        assert core().DropStream(0, stream.handle)


def test_the_same_stream_has_it_at_once_whichever_library_asks(hooks, stream_of, emulator):
    stream = stream_of()
    with driver.on(0):
        emulator.hold(stream.handle)
    first = hooks.alloc(_core.TORCH, 3 * MIB, stream.handle)
    driver.write_late(stream, first, 100, 1)
    hooks.free(first, 3 * MIB, stream.handle)
    second = hooks.alloc(_core.CUPY, 3 * MIB, stream.handle)
    assert second == first
    emulator.let_go()
    stream.synchronize()
    hooks.free(second, 3 * MIB, stream.handle)


def test_hamrs_own_buffers_are_of_the_same_memory(hooks):
    first = hooks.alloc(_core.TORCH, 3 * MIB, 0)
    hooks.free(first, 3 * MIB, 0)
    with hamr.Buffer(3 * MIB, "uint8", "cuda") as buffer:
        assert buffer.ptr == first


def test_another_stream_has_it_when_the_work_is_over(hooks, stream_of, emulator):
    one, other = stream_of(), stream_of()
    with driver.on(0):
        emulator.hold(one.handle)
    first = hooks.alloc(_core.TORCH, 3 * MIB, one.handle)
    driver.write_late(one, first, 100, 1)
    hooks.free(first, 3 * MIB, one.handle)
    second = hooks.alloc(_core.CUPY, 3 * MIB, other.handle)
    assert second != first
    emulator.let_go()
    one.synchronize()
    third = hooks.alloc(_core.CUPY, 3 * MIB, other.handle)
    assert third == first
    for address in (second, third):
        hooks.free(address, 3 * MIB, other.handle)


def test_a_recorded_stream_is_waited_for(hooks, stream_of, emulator):
    """torch's Tensor.record_stream, which its plug-in allocators are told of."""
    one, other, third = stream_of(), stream_of(), stream_of()
    with driver.on(0):
        emulator.hold(other.handle)
    first = hooks.alloc(_core.TORCH, 3 * MIB, one.handle)
    driver.write_late(other, first, 100, 1)
    hooks.record_stream(first, other.handle)
    hooks.free(first, 3 * MIB, one.handle)
    for user in (one, third):
        taken = hooks.alloc(_core.TORCH, 3 * MIB, user.handle)
        assert taken != first
        hooks.free(taken, 3 * MIB, user.handle)
    emulator.let_go()
    other.synchronize()
    hamr.trim()
    taken = hooks.alloc(_core.TORCH, 3 * MIB, third.handle)
    hooks.free(taken, 3 * MIB, third.handle)


def test_a_stream_that_is_not_kept_may_end_once_its_memory_is_freed(hooks):
    stream = driver.Stream()
    first = hooks.alloc(_core.TORCH, 3 * MIB, stream.handle)
    driver.write_late(stream, first, 100, 1)
    hooks.free(first, 3 * MIB, stream.handle)
    second = hooks.alloc(_core.TORCH, 3 * MIB, 0)
    assert second != first or stream.idle()
    del stream
    for _ in range(3):
        address = hooks.alloc(_core.TORCH, 3 * MIB, 0)
        hooks.free(address, 3 * MIB, 0)
    hooks.free(second, 3 * MIB, 0)


def test_streams_with_memory_are_not_dropped(hooks, stream_of):
    stream = stream_of()
    first = hooks.alloc(_core.CUPY, 100, stream.handle)
    assert not core().DropStream(0, stream.handle)
    hooks.free(first, 100, stream.handle)


def test_numbas_memory_waits_for_all_streams(hooks, stream_of):
    stream = stream_of()
    first = _core.allocate(_core.NUMBA, 0, 3 * MIB, _core.ANY_STREAM)
    driver.write_late(stream, first, 100, 1)
    _core.free(first)
    second = _core.allocate(_core.NUMBA, 0, 3 * MIB, _core.ANY_STREAM)
    assert stream.idle()
    assert second == first
    _core.free(second)


def test_odd_arguments(hooks):
    assert hooks.torch_alloc(0, 0, None) is None
    assert hooks.torch_alloc(-1, 0, None) is None
    assert hooks.torch_alloc(1, 99, None) is None
    assert hooks.torch_alloc(2**62, 0, None) is None
    hooks.torch_free(None, 0, 0, None)
    hooks.torch_free(12345, 1, 0, None)  # nobody's
    hooks.record_stream(12345, None)
    assert _core.allocate(_core.CUPY, 0, 0, 0) == 0
    with pytest.raises(ValueError, match="library is 9"):
        _core.allocate(9, 0, 1, 0)
    with pytest.raises(ValueError, match="0x3039"):
        _core.free(12345)
    address = hooks.torch_alloc(1, 0, None)
    hooks.torch_free(address, 1, 0, None)
    hooks.torch_free(address, 1, 0, None)  # twice
    with pytest.raises(ValueError, match="address"):
        _core.free(address)


def test_out_of_memory_gives_nothing_and_leaves_nothing(hooks, emulator):
    emulator.fail("cuMemAlloc_v2", 0, driver.OUT_OF_MEMORY)
    assert hooks.torch_alloc(64 * MIB, 0, None) is None
    with pytest.raises(hamr.OutOfMemory):
        _core.allocate(_core.CUPY, 0, 64 * MIB, 0)
    emulator.stop_failing()
    address = hooks.torch_alloc(64 * MIB, 0, None)
    assert address
    hooks.free(address, 64 * MIB, 0)


def test_a_limit_counts_what_libraries_have(hooks):
    try:
        hamr.set_limit(device=0, bytes=on_device() + 8 * MIB)
        address = hooks.torch_alloc(6 * MIB, 0, None)
        assert address
        assert hooks.torch_alloc(6 * MIB, 0, None) is None
        hooks.free(address, 6 * MIB, 0)
        address = hooks.torch_alloc(7 * MIB, 0, None)  # what was kept has made room
        assert address
        hooks.free(address, 7 * MIB, 0)
    finally:
        hamr.set_limit(device=0, bytes=None)


def test_who_runs_out_asks_the_callbacks(hooks):
    before = on_device()
    held = [hooks.torch_alloc(6 * MIB, 0, None)]

    @hamr.on_out_of_memory
    def relieve(device, nbytes):
        hooks.free(held.pop(), 6 * MIB, 0)
        return True

    try:
        hamr.set_limit(device=0, bytes=before + 8 * MIB)
        address = _core.allocate(_core.CUPY, 0, 6 * MIB, 0)
        assert not held
        _core.free(address)
    finally:
        relieve.remove()
        hamr.set_limit(device=0, bytes=None)


def test_many_threads(hooks, stream_of):
    streams = [stream_of() for _ in range(4)]

    def work(number: int) -> None:
        random_numbers, mine = random.Random(number), []
        stream = streams[number].handle
        for _ in range(scaled(2000)):
            if mine and random_numbers.random() < 0.5:
                hooks.free(*mine.pop(random_numbers.randrange(len(mine))), stream)
            else:
                size = random_numbers.randrange(1, 100_000)
                mine.append((hooks.torch_alloc(size, 0, stream), size))
        addresses = [address for address, _ in mine]
        assert all(addresses)
        assert len(set(addresses)) == len(addresses)
        for address, size in mine:
            hooks.free(address, size, stream)

    in_threads(work, 4)


# A walk at random beside a plain model.


class Model:
    """Who may have which bytes: events of the driver's say when work is over."""

    def __init__(self, streams: list[driver.Stream]) -> None:
        self.streams = streams
        self.held: dict[int, int] = {}  # sizes by address
        self.freed: list[tuple[int, int, int, int]] = []  # address, size, stream, event

    def allocated(self, address: int, size: int, stream: int) -> None:
        for start, length in self.held.items():
            assert address + size <= start or start + length <= address, "it is another's"
        kept = []
        for start, length, on, event in self.freed:
            if address + size <= start or start + length <= address:
                kept.append((start, length, on, event))
                continue
            code = driver.code("cuEventQuery", event) if on != stream else 0
            assert code == 0, "it was handed out on another stream before its event"
            driver.do("cuEventDestroy_v2", event)
        self.freed = kept
        self.held[address] = size

    def free(self, address: int, stream: int) -> int:
        """Called before the pool has it back."""
        size = self.held.pop(address)
        event = driver.get("cuEventCreate", 2)
        driver.do("cuEventRecord", event, self.streams[stream].handle)
        self.freed.append((address, size, stream, event))
        return size

    def end(self) -> None:
        for *_, event in self.freed:
            driver.do("cuEventDestroy_v2", event)


class Careless:
    """A pool that gives the memory freed last to whoever asks: without an event."""

    def __init__(self) -> None:
        self.free_list: list[tuple[int, int]] = []
        self.all: list[int] = []

    def alloc(self, library: int, size: int, stream: int) -> int:
        for place, (address, length) in enumerate(self.free_list):
            if length >= size:
                del self.free_list[place]
                return address
        self.all.append(driver.allocate(4 * MIB))
        return self.all[-1]

    def free(self, address: int, size: int, stream: int) -> None:
        self.free_list.append((address, 4 * MIB))

    def end(self) -> None:
        for address in self.all:
            driver.free(address)


LIBRARIES = (_core.CUPY, _core.TORCH)
SIZES = (300, 4096, 70_000, MIB, 3 * MIB)


def walk(pool, seed: int, steps: int, streams: list[driver.Stream]) -> int:
    """How often memory went from one stream to another."""
    numbers = random.Random(seed)
    model = Model(streams)
    mine: list[tuple[int, int, int]] = []  # address, stream, size
    last: dict[int, int] = {}
    moved = 0
    with driver.on(0):
        try:
            for step in range(steps):
                if mine and (len(mine) > 12 or numbers.random() < 0.5):
                    address, stream, size = mine.pop(numbers.randrange(len(mine)))
                    model.free(address, stream)
                    pool.free(address, size, streams[stream].handle)
                elif numbers.random() < 0.1:
                    numbers.choice(streams).synchronize()
                else:
                    stream, size = numbers.randrange(3), numbers.choice(SIZES)
                    address = pool.alloc(numbers.choice(LIBRARIES), size, streams[stream].handle)
                    model.allocated(address, size, stream)
                    moved += last.get(address, stream) != stream
                    last[address] = stream
                    driver.write_late(streams[stream], address, size // 4, step)
                    mine.append((address, stream, size))
        finally:
            for address, stream, size in mine:
                pool.free(address, size, streams[stream].handle)
            driver.do("cuCtxSynchronize")
            model.end()
    return moved


@pytest.mark.parametrize("keep", [(True, True, True), (False, False, False), (True, False, True)])
def test_random_walks_beside_a_model(hooks, stream_of, keep):
    """With streams that stay, with such that may end, and with both."""
    streams = [stream_of(each) for each in keep]
    seeds = itertools.count()
    moved = sum(walk(hooks, next(seeds), 150, streams) for _ in range(max(3, scaled(20))))
    while moved == 0:  # nothing was shown yet, as where all is slow that work waits for
        assert next(seeds) < 500
        moved = walk(hooks, next(seeds), 150, streams)


def walks(pool, streams: list[driver.Stream]) -> None:
    """Walk until something is wrong."""
    for seed in itertools.count():
        walk(pool, seed, 150, streams)


def test_the_model_notices_a_pool_without_events(emulator):
    pool, streams = Careless(), [driver.Stream() for _ in range(3)]
    try:
        with pytest.raises(AssertionError, match="before its event"):
            walks(pool, streams)
    finally:
        pool.end()
