"""Reads and temporaries of a few elements beside NumPy: short_ways.py SEED STEPS.

What C does by itself it does only where the device's context is current, nothing is pending and
nobody keeps temporaries. So all of these come and go, and others' late work on the default stream,
on streams of the buffers' own and on those that handles name.
"""

import gc
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hamr
from tests.cuda import driver

KINDS = (*["numpy"] * 2, "malloc", "cpp", *["cuda"] * 3, "cuda_async", "cuda_uva", "cuda_host")
TYPES = ("f4", "f4", "f4", "f4", "c16", "?", "i1", "u8", "f2")
#: Bytes: up to where C does it, and where it asks before.
BYTES = (4, 64, 1000, 65536, 65552, 262144, 262160)
KEPT = 8


class Pair:
    """A buffer, what it should hold, and NumPy's array of the same memory, if there is one."""

    def __init__(self, buffer, model, array=None):
        self.buffer, self.model, self.array = buffer, model, array


def ready(shared, device):
    """The stream that others use the elements on, after what the interface names."""
    own, named = shared._stream or driver.LEGACY, shared.__cuda_array_interface__["stream"]
    if named not in (None, own):
        with driver.on(device):
            event = driver.get("cuEventCreate", 2)
            driver.do("cuEventRecord", event, named)
            driver.do("cuStreamWaitEvent", own, event, 0)
            driver.do("cuEventDestroy_v2", event)
    return own


class Walk:
    """Buffers, and handles of temporaries, with what they should hold."""

    def __init__(self, seed):
        self.choose, self.make = random.Random(seed), np.random.default_rng(seed)
        self.streams = [driver.Stream(d) for d in range(driver.DEVICES) for _ in range(2)]
        self.pairs, self.handles, self.said = [], [], []

    def values(self, shape, dtype):
        return self.make.integers(0, 100, shape).astype(dtype)

    def pair(self):
        kind, dtype = self.choose.choice(KINDS), self.choose.choice(TYPES)
        n = self.choose.choice(BYTES) // np.dtype(dtype).itemsize
        shape = self.choose.choice(((n,), (n,), (0,), (), (n // 4, 4), (2, n // 8, 4)))
        model = self.values(shape, dtype)
        if kind == "numpy":
            array = model.copy()
            return Pair(hamr.buffer(array), model, array)
        where = (
            {} if kind in ("malloc", "cpp") else {"device": self.choose.randrange(driver.DEVICES)}
        )
        transfer = self.choose.choice(("async", "sync_host", "sync"))
        buffer = hamr.Buffer(shape, dtype, kind, transfer=transfer, **where)
        buffer[...] = model
        return Pair(buffer, model)

    def step(self):
        self.context()
        if len(self.pairs) < KEPT:
            self.pairs.append(self.pair())
            return
        at = self.choose.randrange(KEPT)
        pair, act = self.pairs[at], self.choose.choice(self.STEPS)
        self.said = [*self.said[-30:], (act.__name__, repr(pair.buffer))]
        if act is Walk.end:
            act(self, pair)
            del self.pairs[at]
        else:
            act(self, pair)

    def context(self):
        """As beside other libraries, mostly, or in a thread that has used none."""
        if self.choose.random() < 0.3:
            device = self.choose.choice((*range(driver.DEVICES), *range(driver.DEVICES), None))
            driver.set_current(0 if device is None else driver.context(device))

    def check(self, found, expected):
        found = np.asarray(found)
        assert found.dtype == expected.dtype, self.said
        assert found.shape == expected.shape, self.said
        assert np.array_equal(found, expected), (self.said, found, expected)

    def part(self, pair):
        """Some of it, as it lies or not."""
        keys = [..., ...]
        if pair.model.ndim:
            n = len(pair.model)
            low = self.choose.randrange(n + 1)
            keys += [
                slice(low, None),
                slice(None, low),
                slice(None, None, 2),
                slice(None, None, -1),
            ]
        if pair.model.ndim > 1 and pair.model.size:
            keys += [(slice(None), 0), (..., slice(1, 3))]
        key = self.choose.choice(keys)
        turned = self.choose.random() < 0.1
        buffer, model = pair.buffer[key], pair.model[key]
        return (buffer.T, model.T) if turned else (buffer, model)

    def read(self, pair):
        buffer, model = self.part(pair)
        self.check(buffer.get(), model)

    def read_into(self, pair):
        buffer, model = self.part(pair)
        out = np.zeros(model.shape, model.dtype)
        buffer.get(out)
        self.check(out, model)

    def read_into_shared(self, pair):
        """Into memory of which somebody may keep temporaries."""
        alike = pair.model.shape, pair.model.dtype
        others = [p for p in self.pairs if p.array is not None and p is not pair]
        others = [p for p in others if (p.model.shape, p.model.dtype) == alike]
        if others:
            other = self.choose.choice(others)
            pair.buffer.get(other.array)
            other.model[...] = pair.model

    def ask(self, pair):
        """A handle: of a temporary, it has what it had."""
        buffer, model = self.part(pair)
        if self.choose.random() < 0.5:
            handle = buffer.get_host_accessible()
            self.check(handle, model)
        else:
            device = self.choose.choice((None, *range(driver.DEVICES)))
            handle = buffer.get_cuda_accessible(device)
            if device is None or self.choose.random() < 0.3:
                self.check(handle.get(), model)
        if handle.is_temporary:
            self.handles.append((handle, model.copy()))

    def look(self, pair):
        """At an old temporary, which may end then."""
        if self.handles:
            handle, model = self.handles[self.choose.randrange(len(self.handles))]
            if model.size and self.choose.random() < 0.3 and handle.device >= 0:
                self.check(driver.content(handle), model)
            else:
                self.check(handle.get(), model)
        if len(self.handles) > 5:
            del self.handles[self.choose.randrange(len(self.handles))]

    def consume(self, pair):
        """A kernel reads a handle's elements, late, when that is no more."""
        if pair.model.dtype != np.float32 or not pair.model.size:
            return
        device = self.choose.randrange(driver.DEVICES)
        target = hamr.Buffer(pair.model.shape, "f4", "cuda", device=device, fill=0)
        target.synchronize()
        handle = pair.buffer.get_cuda_accessible(device)
        stream = ready(handle, device)
        if handle.allocator.name == "cuda_host" and stream == driver.LEGACY:
            return  # of which the host knows nothing
        driver.write_late(stream, target.ptr, pair.model.size, 1, source=handle.ptr, device=device)
        if stream != driver.LEGACY:
            target.set_stream(stream)
        handle.close()
        self.pairs.append(Pair(target, np.asarray(pair.model + np.float32(1))))
        gone = self.pairs.pop(0)
        self.end(gone)

    def write_late(self, pair):
        """Others' work, on the stream that the buffer names."""
        buffer = pair.buffer
        of_cuda = buffer.allocator.name in ("cuda", "cuda_async", "cuda_uva")
        if of_cuda and pair.model.dtype == np.float32 and pair.model.size:
            value, stream = self.choose.randrange(100), ready(buffer, buffer.device)
            driver.write_late(stream, buffer.ptr, pair.model.size, value, device=buffer.device)
            buffer.changed()
            pair.model[...] = value

    def write(self, pair):
        buffer, model = self.part(pair)
        values = self.values(model.shape, model.dtype)
        source = values.copy()
        buffer[...] = source
        source[...] = 1
        model[...] = values

    def write_own(self, pair):
        """NumPy's own elements, of which hamr is told."""
        if pair.array is not None:
            pair.array[...] = pair.model[...] = self.values(pair.model.shape, pair.model.dtype)
            pair.buffer.changed()

    def exchange(self, pair):
        other = self.choose.choice(self.pairs)
        if other.model.shape == pair.model.shape and other.model.dtype == pair.model.dtype:
            pair.buffer[...] = other.buffer
            pair.model[...] = other.model.copy()

    def fill(self, pair):
        value = self.choose.randrange(2)
        pair.buffer.fill(value)
        pair.model[...] = value

    def change_on_host(self, pair):
        with pair.buffer.on_host("rw") as array:
            model = pair.model[::-1].copy() if pair.model.ndim else pair.model.copy()
            array[...] = model
            if self.pairs[0] is not pair:
                self.read(self.pairs[0])
                self.read_into(self.pairs[0])
                self.ask(self.pairs[0])
        pair.model[...] = model

    def change_on_device(self, pair):
        if pair.model.dtype != np.float32 or not pair.model.size:
            return
        with pair.buffer.on_cuda("rw") as handle:
            stream, value = handle._stream or driver.LEGACY, self.choose.randrange(100)
            device = handle.device if handle.device >= 0 else 0
            driver.write_late(stream, handle.ptr, pair.model.size, value, device=device)
            if self.pairs[0] is not pair:
                self.read(self.pairs[0])
                self.ask(self.pairs[0])
            self.check(handle.get(), np.full_like(pair.model, value))
        pair.model[...] = value

    def change_stream(self, pair):
        if pair.buffer.allocator.name in ("cuda", "cuda_async"):
            streams = [s for s in self.streams if s.device == pair.buffer.device]
            pair.buffer.set_stream(self.choose.choice([None, None, *streams]))

    def cache(self, pair):
        pair.buffer.cached(self.choose.random() < 0.5)

    def move(self, pair):
        if pair.array is None:
            kind = self.choose.choice(("cuda", "cuda", "malloc", "cuda_host", "cuda_async"))
            device = self.choose.randrange(driver.DEVICES)
            pair.buffer.move(kind, **({} if kind == "malloc" else {"device": device}))

    def swap(self, pair):
        other = self.choose.choice(self.pairs)
        if pair is not other:
            pair.buffer.swap(other.buffer)
            pair.model, other.model = other.model, pair.model
            pair.array, other.array = other.array, pair.array

    def settle(self, pair):
        pair.buffer.synchronize()

    def settle_all(self, pair):
        for each in self.pairs:
            each.buffer.synchronize()
            each.buffer.cached(False)

    def tell(self, pair):
        """The core tells what it does, for a moment."""
        hamr.set_verbose(2)
        try:
            self.ask(pair)
            self.read_into(pair)
        finally:
            hamr.set_verbose(0)

    def end(self, pair):
        if self.choose.random() < 0.5:
            self.check(pair.buffer.get(), pair.model)
        pair.buffer.close()

    STEPS = (
        *(read, *[read_into] * 2, *[read_into_shared] * 2, *[ask] * 3, *[look] * 2, consume),
        *(*[write_late] * 2, *[write] * 2, write_own, exchange, fill, change_on_host),
        *(change_on_device, change_stream, cache, move, swap, *[settle] * 2, settle_all, tell, end),
    )


def main():
    """Run what the command line says."""
    walk = Walk(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        walk.step()
    for pair in walk.pairs:
        walk.check(pair.buffer.get(), pair.model)
        pair.buffer.close()
    for handle, model in walk.handles:
        walk.check(handle.get(), model)
    walk.pairs, walk.handles = [], []
    del pair, handle
    gc.collect()
    hamr.trim()
    assert not any(row["live"] for row in hamr.stats()["allocators"].values()), hamr.stats()
    if driver.emulator is not None:
        driver.emulator.finish()
        assert driver.emulator.violations() == [], driver.emulator.violations()
        assert driver.emulator.live("memory") == 0, "memory that nobody has"
    print("OK")


main()
