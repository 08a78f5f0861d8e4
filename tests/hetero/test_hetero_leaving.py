"""Runs of a pipeline that are left before their end: what begins no more, and what is closed."""

import asyncio
import contextlib
import itertools
import threading

import pytest

from hamr.hetero import Pipeline, Producer


def raw(event):
    return event.item


def test_no_further_begin_is_called_once_the_run_is_cancelled():
    begun, goes_on = threading.Semaphore(0), threading.Event()
    calls = []

    class Slow(Producer):
        def begin(self, place):
            calls.append(place)
            begun.release()
            assert goes_on.wait(30)

        def produce(self, event, ctx): ...

    class Other(Slow):
        pass

    async def main():
        pipeline = Pipeline([Slow(), Other()], streams=3)
        running = asyncio.create_task(pipeline.run_async(range(9)))
        await asyncio.to_thread(begun.acquire)
        running.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert calls == ["cpu"]


class Numbers:
    """An asynchronous source that is no generator."""

    def __init__(self):
        self.closed = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        await asyncio.sleep(0)
        return 1

    async def aclose(self):
        await asyncio.sleep(0)
        self.closed += 1


@pytest.mark.parametrize("way", ["results", "cancelled"])
def test_an_asynchronous_source_is_closed_where_it_is_left(way):
    ended = []

    async def source():
        try:
            for i in itertools.count():
                await asyncio.sleep(0)
                yield i
        finally:
            await asyncio.sleep(0)  # as a connection that is closed
            ended.append(True)

    async def leave(given):
        if way == "results":
            async with contextlib.aclosing(Pipeline([raw]).results(given)) as results:
                async for _ in results:
                    return
        running = asyncio.create_task(Pipeline([raw]).run_async(given))
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    async def main():
        generator, numbers = source(), Numbers()
        for given in (generator, numbers):
            await leave(given)
        assert ended == [True]
        assert generator.ag_frame is None
        assert numbers.closed == 1

    asyncio.run(main())


def test_a_source_that_cannot_be_closed_is_told_of():
    told = []

    class Fails(Numbers):
        async def aclose(self):
            raise OSError("it stays open")

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context["exception"]))
        async with contextlib.aclosing(Pipeline([raw]).results(Fails())) as results:
            async for _ in results:
                return

    asyncio.run(main())
    assert [str(error) for error in told] == ["it stays open"]
