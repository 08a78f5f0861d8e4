"""Eight threads do with one buffer what they like, at random; argument: a seed.

Each element holds its own number in its low part, whoever wrote it, so whatever anybody reads
anywhere has to be consistent, and what was appended has to be there at the end, once.
"""

import itertools
import pickle
import random
import sys
import threading

import numpy as np

import hamr
from tests.support.processes import scaled

THREADS, FIRST = 8, 100
VALUE = 7


def reads(array):
    """What a view, a copy or a handle has: the value everywhere, or what was appended."""
    assert array.dtype == np.int64
    assert ((array == VALUE) | (array >= FIRST)).all(), array[:20]


def handle(b):
    with b.get_host_accessible() as found:
        reads(np.asarray(found))


def block(b):
    with b.on_host("r") as array:
        reads(array)


def dlpack(b):
    reads(np.from_dlpack(b))


def interface(b):
    described = b.__array_interface__
    assert described["typestr"] == "<i8"
    assert len(described["shape"]) == 1


def pickled(b):
    for protocol in (4, 5):
        reads(np.asarray(pickle.loads(pickle.dumps(b, protocol))))
    frames: list = []
    text = pickle.dumps(b, 5, buffer_callback=frames.append)
    reads(np.asarray(pickle.loads(text, buffers=frames)))


def attributes(b):
    assert b.nbytes % 8 == 0
    assert (len(b.shape), b.strides, b.typestr, b.itemsize) == (1, (8,), "<i8", 8)
    str(b), repr(b)


def refusals(b):
    for wrong in (lambda: b[1 << 60], lambda: b.append(object()), lambda: b.get_host_accessible(3)):
        try:
            wrong()
        except (IndexError, TypeError):
            continue
        raise AssertionError("nothing was raised")


READERS = (
    handle, block, dlpack, interface, pickled, attributes, refusals,
    lambda b: reads(np.asarray(b)),
    lambda b: reads(np.asarray(memoryview(b))),
    lambda b: reads(np.asarray(b[::-1])),
    lambda b: reads(np.asarray(b.copy())),
    lambda b: reads(np.asarray(hamr.buffer(b))),
    lambda b: reads(np.asarray(hamr.Buffer(300, "i8", fill=VALUE))),
    lambda b: reads(np.asarray(hamr.buffer(np.full(300, VALUE)))),
)  # fmt: skip


def main(seed):
    buffers = [hamr.Buffer(20, "i8", fill=VALUE) for _ in range(2)]
    passed_on, errors = [[] for _ in range(THREADS)], []
    appended = [[] for _ in range(THREADS)]
    barrier = threading.Barrier(THREADS)

    def work(number):
        chosen = random.Random(seed * THREADS + number)
        barrier.wait()
        for step in range(scaled(1500, 200)):
            b = buffers[chosen.random() < 0.2]
            what = chosen.randrange(10)
            if what < 5:
                chosen.choice(READERS)(b)
            elif what == 5:
                value = FIRST + step * THREADS + number
                b.append(value)
                appended[number].append(value)
            elif what == 6:
                b.reserve(len(b) + chosen.randrange(500))
            elif what == 7:  # an object that another thread ends
                made = chosen.choice([b.copy, b.get_host_accessible, lambda b=b: np.asarray(b)])()
                passed_on[chosen.randrange(THREADS)].append(made)
            elif what == 8:
                mine = passed_on[number]
                while mine:
                    reads(np.asarray(mine.pop()))
            else:
                buffers[0].swap(buffers[1])

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    found = sorted(int(x) for b in buffers for x in np.asarray(b) if x != VALUE)
    assert found == sorted(itertools.chain(*appended)), "what was appended is not there once"
    passed_on.clear()
    if hasattr(sys, "_is_gil_enabled"):
        print("GIL", "on" if sys._is_gil_enabled() else "off")


if __name__ == "__main__":
    main(int(sys.argv[1]))
    buffers = hamr.stats()["spaces"]["host"]["live"]
    assert buffers == 0, hamr.stats()
