"""Random operations on aliasing buffers from many threads, with arguments that fail: nothing
crashes, nothing leaks, each buffer stays whole, and one thread's own is beside NumPy."""

import contextlib
import gc
import random
import sys
import threading

import numpy as np
import pytest

import hamr
from hamr._base.library import core
from tests.support.processes import scaled

THREADS = 4
ALLOCATORS = ["malloc", "cpp"]
TYPES = ["int8", "float32", "float64", "complex64", "uint16"]


class Failing:
    """An argument that raises, or changes a buffer, when it is asked for a number."""

    def __init__(self, act):
        self.act = act

    def __index__(self):
        self.act()
        return 2


def failed():
    raise KeyError("asked")


def operations(r, b, others):
    """One call of each kind, by name."""
    other = r.choice(others)
    n = r.choice([0, 1, 3, 17, 5000])
    array = np.arange(r.randrange(6)).astype(r.choice(TYPES))
    act = r.choice([failed, b.free, other.free, lambda: b.resize(2, 1), gc.collect])
    return [
        lambda: b.reserve(n, 1),
        lambda: b.resize(n, 2),
        lambda: b.resize((2, Failing(act)), 1),
        lambda: b.append(other if other.size() < 20000 else array),
        lambda: b.append(array),
        lambda: b.append(3),
        lambda: b.append("no"),
        lambda: b.assign(other),
        lambda: b.assign(array),
        lambda: b.set(other, 0, 0, Failing(act)),
        lambda: b.set(array, -1),
        lambda: b.fill(4),
        lambda: b.fill(array),
        lambda: b.__setitem__(slice(0, 3), 5),
        lambda: b.__setitem__(..., other),
        lambda: b.__setitem__(Failing(act), 1),
        lambda: b.move(r.choice(ALLOCATORS)),
        lambda: b.move("cuda", 99),
        lambda: b.copy(r.choice(ALLOCATORS), dtype=r.choice(TYPES)),
        lambda: b.astype(r.choice(TYPES)),
        lambda: b.reshape(Failing(act), -1),
        lambda: b.reshape(-1).append(1),
        lambda: b.swap(other),
        lambda: b.free(),
        lambda: b.get_host_accessible(),
        lambda: np.array(b).sum(),
        lambda: b[::2].fill(6),
        lambda: str(b),
        lambda: b.item(),
        lambda: b.get(np.empty(3)),
        lambda: b.synchronize(),
        lambda: b.set_stream(r.choice([None, 1])),
        lambda: hamr.buffer(b).fill(7),
        lambda: memoryview(b).release(),
    ]


EXPECTED = (ValueError, TypeError, IndexError, KeyError, BufferError, hamr.Error)


def whole(b):
    """What must be true of any buffer that nobody changes now."""
    assert b.capacity() >= b.size() == np.asarray(b).size
    assert np.array(b).nbytes == b.nbytes
    b.get_host_accessible()


def new(r):
    b = hamr.Buffer(r.randrange(9), r.choice(TYPES), r.choice(ALLOCATORS), fill=1)
    return r.choice([lambda: b, lambda: b[1:], lambda: hamr.buffer(np.ones(5))])()


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_torn_or_leaked(seed):
    gc.collect()
    before = core().LiveReferences()
    r = random.Random(seed)
    shared = [new(r) for _ in range(5)]
    shared += [b[:] for b in shared[:2]]
    errors = []

    def work(number):
        r = random.Random(f"{seed} {number}")
        own = hamr.Buffer(0, "int64")
        model = []
        try:
            for i in range(scaled(2000, 100)):
                b = r.choice(shared)
                with contextlib.suppress(*EXPECTED):
                    r.choice(operations(r, b, shared))()
                if r.random() < 0.02:
                    shared[r.randrange(len(shared))] = new(r)
                if r.random() < 0.01:
                    r.choice(shared).close()
                own.append(i)
                model.append(i)
            assert np.asarray(own).tolist() == model
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(switching)
    assert not any(thread.is_alive() for thread in threads), "a thread is stuck"
    if errors:
        raise errors[0]
    for b in shared:
        if not b._closed:
            whole(b)
    shared.clear()
    del b
    gc.collect()
    assert core().LiveReferences() == before
