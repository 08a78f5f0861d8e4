"""How an event loop is told of work that nobody can watch."""

import asyncio
from functools import partial
from operator import itemgetter
from weakref import ref

from hamr.hetero import completion
from hamr.hetero.completion import when_completed_somehow


class Unwatchable:
    """A product without an event that fails when it is asked, in no function of Python's."""

    done = property(itemgetter(0))


def test_what_an_error_was_told_of_goes_though_the_error_stays():
    errors = []

    async def telling():
        product, tell = Unwatchable(), partial(errors.append)
        there = ref(product), ref(tell)
        when_completed_somehow(product, tell)
        del product, tell
        while not errors:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)  # the loop's own callback is over
        return [reference() for reference in there]

    assert asyncio.run(telling()) == [None, None]
    assert isinstance(errors[0], TypeError)


class Later:
    """A product whose work is over after some looks, or fails then."""

    def __init__(self, looks, error=None):
        self.looks, self.error = looks, error

    @property
    def done(self):
        self.looks -= 1
        if self.looks == 0 and self.error is not None:
            raise self.error
        return self.looks <= 0


def test_few_coroutines_ask_the_device_themselves(monkeypatch):
    by_core = []

    async def completed(product):
        by_core.append(product)

    monkeypatch.setattr(completion, "completed", completed)
    most = completion._MOST_LOOKING

    async def waiting():
        for error in (None, ValueError("the device has failed")):
            del by_core[:]
            products = [Later(3, error) for _ in range(most + 2)]
            waits = map(completion.soon_completed, products)
            outcomes = await asyncio.gather(*waits, return_exceptions=True)
            assert outcomes == [error] * most + [None] * 2
            assert by_core == products[most:]
        waiter = asyncio.ensure_future(completion.soon_completed(Later(10**9)))
        await asyncio.sleep(0)
        waiter.cancel()
        assert isinstance((await asyncio.gather(waiter, return_exceptions=True))[0], BaseException)
        assert completion._told_of(asyncio.get_running_loop()).looking == 0

    asyncio.run(waiting())
