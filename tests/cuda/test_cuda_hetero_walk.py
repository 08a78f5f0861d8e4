"""Contexts and products at random, beside a model of who waits for whom and who has which stream.

What a stream has after held work is blocked, and so is what waits for that, and nothing else is.
Contents are written late: who reads without having waited finds something else.
"""

from __future__ import annotations

import asyncio
import gc
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.cuda.hetero import streams_and_events
from tests.support.contents import on_host
from tests.support.in_threads import in_threads
from tests.support.processes import scaled

N = 5
STEPS = 120  # of each walk

pytestmark = pytest.mark.usefixtures("cuda_alone")


@dataclass(eq=False)
class Held:
    """Something that has a stream."""

    item: Any
    handle: int
    value: float = 0
    blocked: bool = False


class Walk:
    def __init__(self, seed, emulator):
        self.random, self.emulator = random.Random(seed), emulator
        self.choosers = [hetero.DeviceChooser(among=f"cuda:{i}") for i in range(driver.DEVICES)]
        self.contexts, self.products, self.others = [], [], []  # of Held
        self.blocked = set()  # handles of streams
        self.foreign = []
        # Before anything is held: to make one waits for the device.
        self.arrays = [
            [driver.Array(np.zeros(N, "f4"), device) for _ in range(STEPS // 2)]
            for device in range(driver.DEVICES)
        ]
        self.used = []

    def run(self, steps):
        actions = [
            (self.new_context, 4), (self.successor, 5), (self.of_a_number, 2), (self.of_foreign, 1),
            (self.produce, 10), (self.consume, 8), (self.consume_in_threads, 1), (self.migrate, 1),
            (self.hold, 2), (self.let_go, 1), (self.check, 4), (self.wait, 2),
            (self.keep_buffer, 2), (self.drop, 14), (self.trim, 1), (gc.collect, 0.3),
        ]  # fmt: skip
        for _ in range(steps):
            (action,) = self.random.choices([a for a, _ in actions], [n for _, n in actions])
            action()
            del action

    def pick(self, among):
        return self.random.choice(among) if among else None

    def live(self):
        return {held.handle for held in self.contexts + self.products + self.others}

    def add(self, ctx, before):
        """A context whose stream is out of the cache if ``before``, the streams had, is given."""
        handle = ctx.stream.ptr
        if before is not None:
            assert handle not in before, "somebody has the stream"
            assert handle not in self.blocked, "the stream has work"
        self.contexts.append(Held(ctx, handle))

    def new_context(self):
        before = self.live()
        token = self.pick(self.choosers).choose(0)
        self.add(hetero.ScopedContext(token), before)
        if self.random.random() < 0.3:
            self.others.append(Held(token, token.stream.ptr))

    def successor(self):
        if product := self.pick(self.products):
            taken, before = product.item._taken, self.live()
            ctx = hetero.ScopedContext(product.item)
            assert (ctx.stream.ptr == product.handle) == (not taken)
            assert product.item._taken
            self.add(ctx, before if taken else None)

    def of_a_number(self):
        """Another Stream of the same handle keeps it, too."""
        if held := self.pick(self.contexts):
            number = hamr.Stream(held.handle, device=held.item.device)
            self.add(hetero.ScopedContext(hetero.Token(number)), None)

    def of_foreign(self):
        device = self.random.randrange(driver.DEVICES)
        self.foreign.append(stream := driver.Stream(device))
        token = hetero.Token(hamr.Stream(stream.handle, device=device))
        self.add(hetero.ScopedContext(token), None)

    def write(self, held, source=None):
        """A new product of a context, of what another one has."""
        device, value = held.item.device, float(driver.fresh_value() % 1000)
        made = self.arrays[device].pop()
        self.used.append(made)
        given = source.item_content.ptr if source else 0
        driver.write_late(held.handle, made.ptr, N, value, given, 1, device)
        if source:
            value += source.value
        product = held.item.wrap(made)
        self.keep(held, product, made, value)

    def keep(self, held, product, content, value):
        kept = Held(product, held.handle, value, held.handle in self.blocked)
        kept.item_content = content
        self.products.append(kept)

    def produce(self):
        if held := self.pick(self.contexts):
            if self.random.random() < 0.5:
                with held.item:
                    self.write(held)
            else:
                self.write(held)

    def get(self, held, product):
        got = held.item.get(product.item)
        assert got is product.item_content
        if held.handle != product.handle and product.blocked:
            self.blocked.add(held.handle)

    def here(self, held):
        return [p for p in self.products if p.item.place == held.item.place]

    def consume(self):
        held = self.pick(self.contexts)
        if held and (product := self.pick(self.here(held))):
            if self.random.random() < 0.5:
                with held.item:
                    self.get(held, product)
            else:
                self.get(held, product)
            self.write(held, product)

    def consume_in_threads(self):
        held = self.pick(self.contexts)
        products = held and self.here(held)
        if products:
            chosen = [self.pick(products) for _ in range(4)]

            def one(i):
                for _ in range(5):
                    held.item.get(chosen[i].item)
                    held.item.wrap(None)

            in_threads(one, 4)
            for product in chosen:
                self.get(held, product)
            self.write(held, chosen[0])

    def migrate(self):
        held = self.pick(self.contexts)
        far = held and [
            p for p in self.products if p.item.place != held.item.place and not p.blocked
        ]
        if far and not self.blocked:
            product = self.pick(far)
            with pytest.raises(hetero.DeviceMismatch):
                held.item.get(product.item)
            moved = held.item.get(product.item, migrate=True)
            assert moved.device == held.item.device
            assert on_host(moved).tolist() == [product.value] * N

    def hold(self):
        if held := self.pick(self.contexts):
            with driver.on(held.item.device):
                self.emulator.hold(held.handle)
            self.blocked.add(held.handle)

    def let_go(self):
        self.emulator.let_go()
        self.emulator.finish()  # else the next hold would hold this one's work again
        self.blocked.clear()
        for product in self.products:
            product.blocked = False

    def check(self):
        """A stream is blocked or not, and so are its products; contents are those written."""
        if held := self.pick(self.contexts):
            behind = held.item.wrap(None)
            if held.handle in self.blocked:
                assert not behind.done
            else:
                held.item.stream.synchronize()
                assert behind.done
        for product in self.products:
            if product.blocked:
                assert not product.item.done
            elif product.handle not in self.blocked:
                hamr.Stream(product.item.stream).synchronize()
                assert product.item.done
                address, device = product.item_content.ptr, product.item.device
                assert device == driver.device_of(address)
                assert self.emulator.peek(address, N, "f4").tolist() == [product.value] * N

    def wait(self):
        """Coroutines that wait are told if they can be."""
        chosen = self.random.sample(self.contexts, min(4, len(self.contexts)))
        blocked = [c.item for c in chosen if c.handle in self.blocked]
        free = [c.item for c in chosen if c.handle not in self.blocked]

        async def main():
            cannot = [asyncio.ensure_future(ctx.done()) for ctx in blocked]
            await asyncio.gather(*(ctx.done() for ctx in free * 2))
            await asyncio.sleep(0)
            assert not any(task.done() for task in cannot)
            for task in cannot:
                task.cancel()
            await asyncio.gather(*cannot, return_exceptions=True)

        asyncio.run(main())

    def keep_buffer(self):
        held = self.pick(self.contexts)
        if held and not self.blocked:  # CUDA's pools may order streams among each other
            stream = held.item.stream
            made = hamr.Buffer(
                N, "f4", "cuda_async", device=held.item.device, stream=stream, transfer="async"
            )
            self.others.append(Held(made, held.handle))

    def drop(self):
        kind = self.pick([self.contexts, self.products, self.products, self.others])
        if kind:
            kind.pop(self.random.randrange(len(kind)))

    def trim(self):
        if not self.blocked:  # it waits for the devices
            hamr.trim()


@pytest.mark.parametrize("seed", range(scaled(100, 10)))
def test_walk(emulator, seed):
    before = streams_and_events()
    walk = Walk(seed, emulator)
    try:
        walk.run(STEPS)
        walk.let_go()
        emulator.finish()
        walk.check()
    finally:
        emulator.let_go()
        emulator.finish()
    walk.contexts, walk.products, walk.others = [], [], []
    assert streams_and_events() == before
