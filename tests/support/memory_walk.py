"""Steps at random with memory, beside a plain model of what is in use, tracked and limited."""

from __future__ import annotations

import random
import threading

import pytest

import hamr

KIB = 1 << 10
HOST = ("malloc", "cpp")
OF_DEVICE = ("cuda", "cuda_async", "cuda_uva")


class Region:
    """A region as a model has it."""

    def __init__(self, track, wants):
        self.track, self.wants = track, wants
        self.allocated = self.allocations = self.freed = self.peak = 0

    def come(self, memory, size):
        if self.wants(memory):
            self.allocated += size
            self.allocations += 1
            self.peak = max(self.peak, self.allocated - self.freed)

    def gone(self, memory, size):
        if self.wants(memory):
            self.freed += size

    def check(self):
        found = tuple(getattr(self.track, n) for n in ("allocated", "allocations", "freed", "peak"))
        assert found == (self.allocated, self.allocations, self.freed, self.peak)


class Walk:
    """Steps on several threads, one after the other, beside the model."""

    def __init__(self, seed, allocators, devices=0):
        self.random, self.allocators = random.Random(seed), allocators
        self.held, self.regions = {}, []  # by number: (buffer, allocator, device, size)
        self.limit, self.last = None, 0
        self.devices = devices
        self.before = self.used()

    def used(self):
        found = {}
        for a in hamr.memory_snapshot().allocations:
            key = (a["library"], a["allocator"], a["device"])
            found[key] = found.get(key, 0) + a["size"]
        return found

    def tell(self, what, memory, size):
        for region in self.regions:
            getattr(region, what)(memory, size)

    def on_device(self, device):
        """What the limit counts."""
        mine = sum(size for _, _, d, size in self.held.values() if d == device)
        return mine + sum(
            size
            for (library, _, d), size in self.before.items()
            if library == "hamr" and d == device
        )

    def allocate(self):
        allocator = self.random.choice(self.allocators)
        device = self.random.randrange(self.devices) if self.devices else -1
        size = self.random.choice((0, 1, 100, 5 * KIB, 700 * KIB, 3 << 20))
        where = {} if device < 0 else {"device": device}
        fits = True
        if self.limit is not None:
            number, most = self.limit
            one = -1 if number == "cpu" else number
            counted = range(-1, self.devices) if number is None else [one]
            used = sum(map(self.on_device, counted))
            fits = device not in counted or not size or used + size <= most
        if not fits:
            with pytest.raises(hamr.OutOfMemory, match="for hamr") as full:
                hamr.Buffer(size, "u1", allocator, **where)
            assert full.value.size == size
            return
        buffer = hamr.Buffer(size, "u1", allocator, **where)
        self.last += 1
        self.held[self.last] = (buffer, allocator, device, size)
        self.tell("come", (allocator, device), size)

    def free(self):
        if self.held:
            buffer, allocator, device, size = self.held.pop(self.random.choice(list(self.held)))
            buffer.close()
            self.tell("gone", (allocator, device), size)

    def enter(self):
        if len(self.regions) < 4:
            device = self.random.choice((None, "cpu", *range(self.devices)))
            library = self.random.choice((None, "hamr", "torch"))
            number = -1 if device == "cpu" else device

            def wants(memory, number=number, library=library):
                return library != "torch" and number in (None, memory[1])

            track = hamr.track(device=device, library=library).__enter__()
            self.regions.append(Region(track, wants))

    def leave(self):
        if self.regions:
            region = self.regions.pop(self.random.randrange(len(self.regions)))
            region.check()
            region.track.__exit__(None, None, None)
            region.check()

    def set_limit(self):
        if self.limit is not None:
            hamr.set_limit(library="hamr", device=self.limit[0], bytes=None)
            self.limit = None
        elif self.random.random() < 0.7:
            device = self.random.choice((None, "cpu", *range(self.devices)))
            most = self.random.choice((0, 2 << 20, 5 << 20, 12 << 20))
            hamr.set_limit(library="hamr", device=device, bytes=most)
            self.limit = (device, most)

    def look(self):
        expected = dict(self.before)
        for _, allocator, device, size in self.held.values():
            key = ("hamr", allocator, device)
            expected[key] = expected.get(key, 0) + size
        found = self.used()
        keys = {*found, *expected}
        assert {k: found.get(k, 0) for k in keys} == {k: expected.get(k, 0) for k in keys}

    def step(self):
        steps = (self.allocate, self.free, self.enter, self.leave, self.set_limit, self.look)
        self.random.choices(steps, (10, 8, 1, 1, 1, 1))[0]()
        for region in self.regions[:1]:
            region.check()

    def end(self):
        while self.regions:
            self.leave()
        if self.limit is not None:
            self.set_limit()
        while self.held:
            self.free()
        self.look()


def turns(walk, count, workers):
    """The steps, each on another of some threads than the one before, perhaps."""
    failed = []
    start = [threading.Semaphore(0) for _ in range(workers)]
    done, over = threading.Semaphore(0), []

    def work(mine):
        while mine.acquire() and not over:
            try:
                walk.step()
            except BaseException as error:
                failed.append(error)
            done.release()

    threads = [threading.Thread(target=work, args=(s,)) for s in start]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            walk.random.choice(start).release()
            done.acquire()
            if failed:
                raise failed[0]
    finally:
        over.append(True)
        for s in start:
            s.release()
        for thread in threads:
            thread.join()


def walk_at_random(seed, allocators, devices=0, steps=150):
    """One walk, all of whose memory is given back at its end."""
    walk = Walk(seed, allocators, devices)
    try:
        turns(walk, steps, 3)
    finally:
        if walk.limit is not None:
            hamr.set_limit(library="hamr", device=walk.limit[0], bytes=None)
            walk.limit = None
    walk.end()
