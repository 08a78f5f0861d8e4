"""``with stream:``: which stream buffers take that are made without ``stream=``."""

import asyncio
import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

import hamr
from tests.support.recorded_core import foreign

NO_STREAM = -2


def now():
    """The stream of a new buffer."""
    return hamr.Buffer(3).stream.ptr


MAKERS = {
    "constructor": lambda: hamr.Buffer(3),
    "fill": lambda: hamr.Buffer(3, fill=1.5),
    "large integer": lambda: hamr.Buffer(3, "u8", fill=2**64 - 1),
    "data": lambda: hamr.Buffer(3, data=np.arange(3)),
    "allocator": lambda: hamr.Buffer(3, "f4", "cpp", transfer="sync"),
    "from_pointer": lambda: hamr.Buffer.from_pointer(np.zeros(3).ctypes.data, 3),
    "buffer": lambda: hamr.buffer(np.zeros(3)),
    "buffer of bytes": lambda: hamr.buffer(b"12345678", dtype="f8"),
    "buffer of a buffer": lambda: hamr.buffer(hamr.Buffer(3, stream=8)),
    "buffer of a capsule": lambda: hamr.buffer(np.zeros(3).__dlpack__()),
    "buffer, transfer": lambda: hamr.buffer(np.zeros(3), transfer="sync"),
    "from_dlpack": lambda: hamr.from_dlpack(np.zeros(3)),
    "from_dlpack of a capsule": lambda: hamr.from_dlpack(np.zeros(3).__dlpack__()),
    "from_dlpack, copied": lambda: hamr.from_dlpack(np.zeros(3), copy=True),
    "upstream's": lambda: hamr.buffer_float(hamr.Allocator.malloc, 3),
    "upstream's, filled": lambda: hamr.buffer_float(hamr.Allocator.malloc, 3, 1.5),
    "upstream's, converted": lambda: hamr.buffer_float(np.zeros(3)),
    "make_buffer": lambda: hamr.make_buffer("malloc", 3, 1.0),
    "zeros": lambda: hamr.zeros(3),
    "full": lambda: hamr.full(3, 2.5),
    "array": lambda: hamr.array([1, 2, 3]),
    "array of an array": lambda: hamr.array(np.zeros(3)),
    "asarray": lambda: hamr.asarray(np.zeros(3)),
    "zeros_like": lambda: hamr.zeros_like(hamr.Buffer(3, stream=8)),
    "a view": lambda: hamr.Buffer(3)[1:],
    "a copy": lambda: hamr.Buffer(3).copy(),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_is_made_inside_takes_the_stream(core, make):
    stream = hamr.Stream(9)
    with stream as entered:
        assert entered is stream
        inside = make()
    assert inside.stream is stream
    assert make().stream.ptr == 0


def test_the_stream_given_comes_first(core):
    with hamr.Stream(9):
        assert hamr.Buffer(3, stream=7).stream.ptr == 7
        assert hamr.Buffer(3, stream=0).stream.ptr == 0
        assert hamr.buffer(np.zeros(3), 7).stream.ptr == 7
        assert hamr.buffer_float(hamr.Allocator.malloc, hamr.Stream(7), 3).stream.ptr == 7
        assert hamr.Buffer.from_pointer(4096, 0, stream=7).stream.ptr == 7


def test_buffers_made_before_keep_theirs(core):
    plain, own = hamr.Buffer(3), hamr.Buffer(3, stream=7)
    with hamr.Stream(9):
        for buffer, stream in (plain, 0), (own, 7):
            buffer.resize(1000)
            assert [b.stream.ptr for b in (buffer, buffer[1:], buffer.copy())] == [stream] * 3


def test_blocks_nest(core):
    outer, inner = hamr.Stream(9), hamr.Stream(8)
    with outer:
        with inner, outer, hamr.Stream():
            assert now() == 0
        with inner:
            with inner:
                assert now() == 8
            assert now() == 8
        assert now() == 9
    assert now() == 0


def test_an_exception_ends_a_block(core):
    stream = hamr.Stream(9)
    with pytest.raises(KeyError, match="x"), stream:
        raise KeyError("x")
    assert now() == 0


def test_a_block_waits_for_nothing(core):
    core.busy = 10
    stream = hamr.Stream(device=1)
    with stream:
        hamr.Buffer(3)
    assert [call[0] for call in core.calls] == ["NewStream"]


def test_upstreams_name_and_other_libraries_streams(core):
    given = foreign(ptr=9)
    with hamr.stream(given) as stream:
        assert now() == 9
    assert stream._owner is given


def test_blocks_that_end_in_another_order(core):
    first, second, third = (hamr.Stream(number) for number in (7, 8, 9))
    stacks = [ExitStack() for _ in range(3)]
    for stack, stream in zip(stacks, (first, second, third), strict=True):
        stack.enter_context(stream)
    stacks[1].close()
    assert now() == 9
    stacks[2].close()
    assert now() == 7
    stacks[0].close()
    assert now() == 0


def test_a_generators_block(core):
    stream = hamr.Stream(8)

    def made():
        with stream:
            yield now()

    with hamr.Stream(9):
        generator = made()
        assert next(generator) == 8
    generator.close()
    assert now() == 0


def test_a_block_that_was_not_begun(core):
    stream = hamr.Stream(9)
    with pytest.raises(RuntimeError, match=r"hamr\.Stream\(0x9\): the block ends in another"):
        stream.__exit__(None, None, None)
    with hamr.Stream(9):  # equal, and not the same
        with pytest.raises(RuntimeError, match="the block ends in another"):
            stream.__exit__(None, None, None)
        assert now() == 9


def test_a_handle_that_is_no_streams_begins_no_block(core):
    core.places[12345] = NO_STREAM
    with pytest.raises(ValueError, match=r"stream is .*0x3039.*: accepted is the handle"):
        hamr.Stream(12345).__enter__()
    assert now() == 0


# Threads and tasks.


@pytest.mark.skipif(
    getattr(sys.flags, "thread_inherit_context", 0), reason="threads inherit the context"
)
def test_other_threads_are_outside(core):
    with hamr.Stream(9), ThreadPoolExecutor() as pool:
        assert pool.submit(now).result() == 0


def test_each_thread_has_blocks_of_its_own(core):
    barrier = threading.Barrier(4)

    def work(number):
        barrier.wait()
        found = []
        for _ in range(100):
            with hamr.Stream(number):
                found.append(now())
        return found

    with ThreadPoolExecutor(4) as pool:
        for number, found in zip(range(10, 14), pool.map(work, range(10, 14)), strict=True):
            assert found == [number] * 100
    assert now() == 0


def test_a_block_ended_by_another_thread(core):
    stream = hamr.Stream(9)
    with ThreadPoolExecutor() as pool:
        pool.submit(stream.__enter__).result()
        with pytest.raises(RuntimeError, match="the block ends in another thread or task"):
            stream.__exit__(None, None, None)


def test_a_block_of_a_coroutine_that_is_never_resumed(core):
    """It ends where the coroutine is closed, in no block; pytest would tell of an error."""

    async def work(entered):
        with hamr.Stream(9):
            entered.append(now())
            await asyncio.get_running_loop().create_future()

    entered = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    task = loop.create_task(work(entered))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    del task, loop
    gc.collect()
    assert (entered, now()) == ([9], 0)


def test_tasks_do_not_see_each_others_blocks(core):
    async def work(number):
        found = []
        for _ in range(20):
            with hamr.Stream(number):
                await asyncio.sleep(0)
                found.append(now())
            await asyncio.sleep(0)
            found.append(now())
        return set(found)

    async def main():
        return await asyncio.gather(*(work(number) for number in range(10, 14)))

    assert asyncio.run(main()) == [{0, number} for number in range(10, 14)]


def test_tasks_and_their_threads_begin_in_the_blocks_of_their_maker(core):
    async def later():
        await asyncio.sleep(0)
        return now(), await asyncio.to_thread(now)

    async def main():
        with hamr.Stream(9):
            task = asyncio.create_task(later())
        assert now() == 0
        return await task

    assert asyncio.run(main()) == (9, 9)


def test_a_stream_lives_as_long_as_its_block(core):
    given = foreign(ptr=9)
    alive = weakref.ref(given)
    stack = ExitStack()
    stack.enter_context(hamr.Stream(given))
    del given
    gc.collect()
    assert alive() is not None
    assert now() == 9
    stack.close()
    gc.collect()
    assert alive() is None


# Streams of the process that this one was forked from.


def test_a_block_of_the_parents_is_none_in_a_child(core, monkeypatch):
    with hamr.Stream(9):
        monkeypatch.setattr(hamr._native, "generation", lambda: 99)
        assert now() == 0
    monkeypatch.undo()
    assert now() == 0


def test_a_stream_of_the_parents_begins_no_block(core, monkeypatch):
    stream = hamr.Stream(9)
    monkeypatch.setattr(hamr._native, "generation", lambda: 99)
    with pytest.raises(hamr.ForkError, match="before fork"):
        stream.__enter__()
    assert now() == 0
