"""Memory that is kept for reuse: who gets it when, and what happens at the end."""

import gc
import pickle
import time

import numpy as np
import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.cuda.hetero import streams_and_events
from tests.support.contents import on_host
from tests.support.in_threads import in_threads
from tests.support.processes import run_code

N = 1000

pytestmark = pytest.mark.usefixtures("cuda_alone", "nothing_left")

#: What takes memory or gives it back, waits, or makes a stream wait.
COSTS = ("Alloc", "Free", "HostRegister", "HostUnregister", "Synchronize", "WaitEvent")


def costs(emulator, operation):
    """The calls of a driver that reuse is to spare."""
    return {
        call: n
        for call, n in emulator.count_calls(operation).items()
        if any(what in call for what in COSTS)
    }


def scope(number=0):
    return hetero.ScopedContext(hetero.DeviceChooser(among=f"cuda:{number}").choose(0))


@pytest.fixture
def nothing_left(emulator):
    """All streams, events and memory come back."""
    gc.collect()
    hamr.trim()
    before = {name: row["live"] for name, row in hamr.stats()["allocators"].items()}
    yield
    emulator.let_go()
    emulator.finish()
    gc.collect()
    hamr.trim()
    deadline = time.monotonic() + 20  # what is pending when its allocator ends goes back by itself
    while (left := held(before)) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert left == []


def held(before):
    """What is handed out, and what more memory there is than before."""
    rows = hamr.stats()["allocators"].items()
    more = [name for name, row in rows if row["live"] != before.get(name, 0)]
    return more if streams_and_events() == (0, 0) else [*more, "streams or events"]


@pytest.fixture(params=["cuda", "cuda_async", "cuda_host"])
def caching(request, emulator):
    """An allocator of each kind of memory, all of whose blocks come back."""
    with hetero.CachingAllocator(0, allocator=request.param, limit=None) as allocator:
        yield allocator
        emulator.let_go()
        emulator.finish()
        gc.collect()
        allocator.trim()
        assert allocator.stats()[:5] == (0, 0, 0, 0, 0)


class TestWhoGetsABlock:
    def test_the_same_stream_at_once(self, emulator, caching, nothing_blocks):
        with scope() as ctx:
            block = caching.allocate(N, "f4")
            assert (block.shape, block.dtype, block.stream) == ((N,), np.float32, ctx.stream)
            assert (block.allocator, caching.stats().misses) == (caching.allocator, 1)
            address = block.ptr
            emulator.hold(ctx.stream.ptr)
            assert costs(emulator, block.close) == {}
            made = []  # fewer bytes, and of the same bin
            assert costs(emulator, lambda: made.append(caching.allocate((10, 250), "u1"))) == {}
            assert (made[0].ptr, made[0].shape) == (address, (10, 250))
            assert caching.stats().hits == 1

    def test_other_streams_after_the_event(self, emulator, caching, nothing_blocks):
        with scope() as one:
            first = caching.allocate(N)
            address = first.ptr
            emulator.hold(one.stream.ptr)
            first.close()
        with scope() as other:
            assert other.stream.ptr != one.stream.ptr
            second = caching.allocate(N)
            assert second.ptr != address
            assert (caching.stats().hits, caching.stats().misses) == (0, 2)
            emulator.let_go()
            emulator.finish()
            third = caching.allocate(N)
            assert third.ptr == address
            assert (caching.stats().hits, caching.stats().misses) == (1, 2)

    def test_work_of_hamrs_on_another_stream(self, emulator, caching, nothing_blocks):
        """A block is not reused on its own stream either while another one uses it."""
        with scope() as ctx:
            block = caching.allocate(N, "f4", transfer="async")
            address, own = block.ptr, ctx.stream
            other = hamr.Stream(device=0)
            emulator.hold(other.ptr)
            block.set_stream(other)
            block.fill(7)
            block.close()
            again = caching.allocate(N, "f4", transfer="async")
            if again.ptr == address:  # after the other one's work, on its own stream
                emulator.let_go()
                again.fill(1)
                emulator.finish()
                assert emulator.peek(address, N, "f4").tolist() == [1] * N
            emulator.let_go()
            assert own is ctx.stream

    def test_a_kernel_beyond_hamrs_sight(self, caching):
        """What a library has enqueued on the buffer's stream is before what comes next there."""
        with scope() as ctx:
            block = caching.allocate(N, "f4")
            address = block.ptr
            driver.write_late(ctx.stream.ptr, address, N, 5)
            block.close()
            block = caching.allocate(N, "f4")
            assert block.ptr == address
            block.fill(6)
            assert on_host(block).tolist() == [6] * N

    def test_a_handle_that_is_used_again(self, emulator, caching):
        """Another stream than the one that has ended, with work still to do."""
        stream = hamr.Stream(device=0)
        block = caching.allocate(N, stream=stream)
        address = block.ptr
        with driver.on(0):
            emulator.hold(stream.ptr)
        block.close()
        del block, stream
        gc.collect()
        for _ in range(4):
            stream = hamr.Stream(device=0)
            assert caching.allocate(N, stream=stream).ptr != address
        emulator.let_go()

    def test_without_a_scope(self, caching):
        block = caching.allocate(N)
        assert block.stream.ptr == 0
        block.fill(3)
        assert on_host(block).tolist() == [3] * N
        address = block.ptr
        block.close()
        assert caching.allocate(N).ptr == address

    @pytest.mark.multigpu(2)
    def test_page_locked_memory_serves_all_devices(self, emulator):
        with hetero.CachingAllocator(kind="pinned", allocator="cuda_host") as caching:
            assert caching.device == -1
            with scope(1) as ctx:
                block = caching.allocate(N)
                address = block.ptr
                emulator.hold(ctx.stream.ptr)
                block.close()
            with scope(0):
                other = caching.allocate(N)
                assert other.ptr != address
                emulator.let_go()
                emulator.finish()
                assert caching.allocate(N).ptr == address

    def test_threads(self, caching):
        def work(number):
            for i in range(20):
                with scope():
                    block = caching.allocate(N, "i4")
                    block.fill(100 * number + i)
                    assert on_host(block).tolist() == [100 * number + i] * N

        in_threads(work, 6)


class TestBuffers:
    def test_views_keep_the_memory(self, emulator, caching):
        with scope():
            block = caching.allocate((4, 5), "f4")
            block.fill(2)
            address, row = block.ptr, block[1]
            block.close()
            other = caching.allocate((4, 5), "f4")
            assert other.ptr != address
            other.fill(9)
            assert on_host(row).tolist() == [2] * 5

    def test_growth_takes_other_memory(self, caching):
        with scope():
            block = caching.allocate(4, "f4")
            block.fill(2)
            block.resize(8)
            assert on_host(block).tolist()[:4] == [2] * 4
            assert caching.stats().live == 0

    def test_no_elements(self, caching):
        assert caching.allocate(0).shape == (0,)
        assert caching.allocate((3, 0), "u1").shape == (3, 0)
        assert caching.stats().live == 0

    def test_address_given_away(self, emulator, caching, nothing_blocks):
        """Who has it uses it on the buffer's stream, by the rule: nobody waits for the device."""
        with scope() as ctx:
            block = caching.allocate(N, "f4")
            address = block.ptr
            emulator.hold(ctx.stream.ptr)
            block.close()
            assert caching.allocate(N, "f4").ptr == address
            emulator.let_go()

    def test_products(self, emulator, caching, nothing_blocks):
        with scope() as ctx:
            block = caching.allocate(N, "f4", transfer="async")
            block.fill(4)
            product = ctx.wrap(block)
            del block
        with hetero.ScopedContext(product) as ctx:
            ctx.get(product).fill(5)
        del product, ctx
        emulator.finish()
        gc.collect()
        assert caching.stats().live == 0

    def test_an_exception_gives_the_block_back(self, caching):
        def fail():
            with scope():
                caching.allocate(N).fill("no number")

        with pytest.raises(TypeError):
            fail()
        gc.collect()
        assert caching.stats().cached == 1


class TestLimits:
    def test_bins_and_statistics(self, caching):
        with scope():
            blocks = [caching.allocate(n, "u1") for n in (1, 256, 257, 5000)]
            stats = caching.stats()
            assert (stats.live, stats.live_bytes) == (4, 256 + 256 + 512 + 8192)
            assert (stats.requested_bytes, stats.limit) == (1 + 256 + 257 + 5000, None)
            del blocks
            assert (caching.stats().cached, caching.stats().cached_bytes) == (4, 9216)

    def test_the_rule(self):
        free = min(hamr.memory_info(device)[0] for device in range(driver.DEVICES))
        with hetero.CachingAllocator(0) as caching:
            assert caching.stats().limit == pytest.approx(0.8 * free, rel=0.01)

    def test_a_limit(self, emulator):
        with hetero.CachingAllocator(0, allocator="cuda", limit=1024) as caching, scope():
            blocks = [caching.allocate(512, "u1") for _ in range(4)]
            del blocks
            emulator.finish()
            caching.allocate(1, "u1").close()
            assert caching.stats().cached_bytes == 1024

    def test_no_more_memory(self, emulator):
        """What is kept is given back for it; then it is an error, and all goes on."""
        with hetero.CachingAllocator(0, allocator="cuda", limit=None) as caching, scope():
            caching.allocate(1 << 20, "u1").close()
            emulator.finish()
            assert caching.stats().cached == 1
            emulator.fail("cuMemAlloc_v2", 0, driver.OUT_OF_MEMORY)
            with pytest.raises(hamr.OutOfMemory) as caught:
                caching.allocate(16 << 20, "u1")
            assert caught.value.size == 16 << 20
            emulator.stop_failing()
            assert (caching.stats().live, caching.stats().cached) == (0, 0)
            caching.allocate(16 << 20, "u1").close()

    def test_memory_of_others_that_ran_out(self, emulator):
        with hetero.CachingAllocator(0, allocator="cuda_async", limit=None) as caching, scope():
            caching.allocate(1 << 20, "u1").close()
            emulator.finish()
            emulator.fail("cuMemAllocFromPoolAsync", 1, driver.OUT_OF_MEMORY)
            hamr.Buffer(5 << 20, "u1", "cuda_async", device=0)
            emulator.stop_failing()

    def test_hamr_trim(self, caching):
        with scope():
            caching.allocate(N).close()
        driver.emulator.finish()
        assert caching.stats().cached == 1
        hamr.trim()
        assert caching.stats().cached == 0


class TestMaking:
    def test_which_memory(self):
        with hetero.CachingAllocator("cuda:0") as caching:
            assert (caching.allocator, caching.device) == (hamr.Allocator.cuda_async, 0)
        with hetero.CachingAllocator(kind="pinned") as caching:
            assert (caching.allocator, caching.device) == (hamr.Allocator.cuda_host, -1)
        with scope(driver.DEVICES - 1), hetero.CachingAllocator() as caching:
            assert caching.device == driver.DEVICES - 1
            assert caching.allocate(1).device == driver.DEVICES - 1

    @pytest.mark.parametrize(
        ("given", "error", "words"),
        [
            ({"kind": "managed"}, ValueError, "kind is 'managed'"),
            ({"limit": -1}, ValueError, "limit is -1"),
            ({"limit": 1.5}, TypeError, "limit is 1.5"),
            ({"allocator": "malloc"}, ValueError, "allocator is malloc.*page-locked"),
            ({"allocator": "cuda", "device": "hip:0"}, ValueError, "devices of cuda"),
            ({"allocator": "nothing"}, ValueError, "allocator is 'nothing'"),
            ({"device": driver.DEVICES}, ValueError, f"device is {driver.DEVICES}"),
            ({"device": "cuda:x"}, ValueError, "cuda:x"),
        ],
    )
    def test_what_it_cannot_be(self, given, error, words):
        with pytest.raises(error, match=words):
            hetero.CachingAllocator(**given)

    def test_what_it_cannot_give(self, caching):
        with scope():
            for wrong, error in (("x", TypeError), (-1, ValueError), ((2, -1), ValueError)):
                with pytest.raises(error):
                    caching.allocate(wrong)
            with pytest.raises(TypeError):
                caching.allocate(1, "no type")
            with pytest.raises(ValueError, match="transfer"):
                caching.allocate(1, transfer="never")
            with pytest.raises((ValueError, MemoryError)):
                caching.allocate(1 << 62, "f8")

    @pytest.mark.multigpu(2)
    def test_another_device(self):
        with hetero.CachingAllocator("cuda:1") as caching:
            with scope(0) as ctx:
                with pytest.raises(hetero.DeviceMismatch, match="the scope is on"):
                    caching.allocate(1)
                with pytest.raises(hetero.DeviceMismatch, match="another device"):
                    caching.allocate(1, stream=ctx)
                with pytest.raises(hetero.DeviceMismatch, match=r"of device 0.*another device"):
                    caching.allocate(1, stream=ctx.stream)
            with scope(1) as ctx:
                assert caching.allocate(1, stream=ctx).stream is ctx.stream

    def test_no_device(self, monkeypatch):
        monkeypatch.setenv("HAMR_ACCELERATORS", "none")
        with pytest.raises(hamr.BackendUnavailable, match="no accelerator"):
            hetero.CachingAllocator()


class TestTheEnd:
    def test_closed(self):
        caching = hetero.CachingAllocator(0)
        assert not caching.closed
        caching.close()
        caching.close()
        assert caching.closed
        for use in (caching.stats, caching.trim, lambda: caching.allocate(1)):
            with pytest.raises(hamr.FreedBuffer, match="was closed"):
                use()

    def test_buffers_outlive_it(self, emulator):
        """The last one's memory goes back when its work is over, of which nobody need ask."""
        with scope() as ctx:
            caching = hetero.CachingAllocator(0, allocator="cuda_async")
            block = caching.allocate(N, "f4")
            del caching
            block.fill(2)
            assert on_host(block).tolist() == [2] * N
            emulator.hold(ctx.stream.ptr)
            del block
            emulator.let_go()
        emulator.finish()

    def test_it_cannot_be_pickled(self, caching):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(caching)

    def test_a_forked_child(self):
        output = run_code(
            """
import os
import numpy as np
import hamr
from hamr import hetero
caching = hetero.CachingAllocator(0)
block = caching.allocate(10)
pid = os.fork()
if not pid:
    for use in (lambda: caching.allocate(1), caching.stats):
        try:
            use()
        except hamr.ForkError as error:
            print("caching allocator" in str(error) or "fork" in str(error))
    caching.close()
    del block, caching
    print("child", flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
block.fill(1)
print(block.get(np.empty(10))[0], caching.stats().live)
"""
        )
        assert output.split() == ["True", "True", "child", "1.0", "1"]

    def test_the_interpreters_end(self):
        """With buffers in use, in a cycle, and with one that a thread has."""
        assert (
            run_code(
                """
from hamr import hetero
caching = hetero.CachingAllocator(0)
kept = [caching.allocate(10)]
kept.append(kept)
with hetero.ScopedContext(hetero.DeviceChooser().choose(0)) as ctx:
    product = ctx.wrap(caching.allocate(20, "f4"))
print("over")
"""
            )
            == "over\n"
        )
