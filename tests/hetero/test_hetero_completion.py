"""How an event loop is told of work that nobody can watch."""

import asyncio
from functools import partial
from operator import itemgetter
from weakref import ref

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
