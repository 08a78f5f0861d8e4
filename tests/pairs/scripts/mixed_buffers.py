"""Buffers in the memory of all runtimes that there are, with NumPy's arrays beside them."""

import random

import numpy as np

import hamr
from tests.pairs.scripts import late_work
from tests.support import space_rows

TYPES = ("f4", "f4", "u1", "i2", "i4", "f8")
LARGEST = 5000
TRANSFERS = ("async", "async", "sync_host", "sync")
SPACE = {facts[0]: facts[5] for facts in hamr._base.allocator.FACTS}


def space_of(name):
    return SPACE[name]


def describe(held):
    a = held.array
    return f"{a.allocator.name}:{a.device} {a.dtype}{a.shape} at {a.ptr:#x} {held.space or ''}"


class Held:
    """A buffer or handle, and what it should hold: a view of what stands for the memory."""

    def __init__(self, array, model, space=None):
        self.array, self.model, self.space = array, model, space

    def root(self):
        model = self.model
        while model.base is not None:
            model = model.base
        return model


def places():
    """Each allocator on each device that has it."""
    for space in space_rows.NAMES:
        if space_rows.absent(space):
            continue
        for device in range(max(space_rows.devices(space), 1)):
            for name in space_rows.allocators(space, device):
                yield space, name, None if space == "host" else device


class Mixed:
    """Buffers of all runtimes, handles, and what is asked and checked of them."""

    def __init__(self, seed):
        self.choose, self.make = random.Random(seed), np.random.default_rng(seed)
        every = list(places())
        spaces = sorted({p[0] for p in every})
        self.places = {s: [p[1:] for p in every if p[0] == s] for s in spaces}
        self.devices = {
            s: sorted({p[2] for p in every if p[0] == s}) for s in spaces if s != "host"
        }
        self.spaces = spaces
        self.streams = {
            s: [(d, late_work.stream(s, d, i)) for d in devices for i in range(3)]
            for s, devices in self.devices.items()
            if s != "openmp"
        }
        self.buffers, self.handles, self.said, self.touched = [], [], [], []

    # What there is to choose from.

    def place(self):
        return self.choose.choice(self.places[self.choose.choice(list(self.places))])

    def values(self, shape, dtype):
        return self.make.integers(0, 100, shape).astype(dtype)

    def stream(self, name, device):
        space = space_of(name)
        if space not in self.streams or name in ("cuda_host", "hip_host"):
            return None
        return self.choose.choice([None, *(s for d, s in self.streams[space] if d == device)])

    def new(self):
        """A buffer, whose elements are on their way."""
        dtype = self.choose.choice(TYPES)
        n = self.choose.choice(
            (0, 1, 7, self.choose.randrange(300), self.choose.randrange(LARGEST))
        )
        shape = self.choose.choice(((n,), (n,), (n // 5, 5), (2, n // 6, 3), ()))
        model = self.values(shape, dtype)
        if self.choose.random() < 0.15:
            owner = model.copy()
            return Held(hamr.buffer(owner), owner)
        name, device = self.place()
        buffer = hamr.Buffer(
            shape,
            dtype,
            name,
            device=device,
            stream=self.stream(name, device),
            transfer=self.choose.choice(TRANSFERS),
        )
        buffer[...] = model
        return Held(buffer, model)

    def say(self, *words):
        self.said = [*self.said[-60:], words]

    checked = None

    def check(self, found, model):
        found = np.asarray(found)
        assert found.dtype == model.dtype, (found.dtype, model.dtype)
        assert found.shape == model.shape, (found.shape, model.shape)
        if not np.array_equal(found, model):
            wrong = np.argwhere(found != model)
            raise AssertionError(
                f"{self.checked} {len(wrong)} of {model.size} differ, first {wrong[0]}: "
                f"{found[tuple(wrong[0])]} for {model[tuple(wrong[0])]}"
            )

    def part(self, held):
        keys = [..., ...]
        if held.model.ndim:
            n = len(held.model)
            low = self.choose.randrange(n + 1)
            keys += [np.s_[low:], np.s_[:low], np.s_[::2], np.s_[::-1], np.s_[low:low]]
        if held.model.ndim > 1 and held.model.size:
            keys += [np.s_[:, 1:], np.s_[..., 0], np.s_[:, ::2]]
        key = self.choose.choice(keys)
        return held.array[key], held.model[key]

    def others(self, held):
        """What uses the same memory."""
        root = held.root()
        return [h for h in [*self.buffers, *self.handles] if h is not held and h.root() is root]

    def mapped(self, held):
        """Whether a handle has the memory mapped for the host."""
        root = held.root()
        return any(h.root() is root and h.space == "host" for h in self.handles)
