"""Repeat something many times on several threads.

python -m tests.scripts.leaks CASE CYCLES THREADS


Prints resident memory before and after, in KiB, and fails if it grew or if a
counter of hamr's is not what it was.
"""

import contextlib
import copy
import gc
import itertools
import os
import pickle
import sys
import threading

import numpy as np

import hamr
from tests.support import arrow_structs, dlpack_exchange_structs as exchange, dlpack_structs as dl

TABLE = exchange.table_of(hamr.Buffer)

# A leak of 42 bytes in each of 100,000 cycles is seen. Less is let pass: Go's heap
# may grow to 4 MiB before its first collection, and each thread's part of C's heap
# keeps a few pages that it had no need of while warming up.
ALLOWED_KIB = 4096


def create():
    """Memory of hamr's own, shared with NumPy, freed."""
    b = hamr.Buffer(16, "f4", fill=1.0)
    a = np.asarray(b)
    del b
    a[0] = 2


def create_cpp():
    np.asarray(hamr.Buffer(300, "u1", hamr.Allocator.cpp))


array = np.arange(12.0).reshape(3, 4)


def adopt():
    """Foreign memory, shared again, let go."""
    np.asarray(hamr.buffer(array))
    hamr.buffer(b"bytes")


def dlpack_taken():
    """Tensors that are shared, or were consumed already."""
    capsule = array.__dlpack__()
    np.asarray(hamr.from_dlpack(capsule))
    hamr.from_dlpack(array, copy=False)
    try:
        hamr.buffer(capsule)
    except ValueError:
        return
    raise AssertionError("did not fail")


def handles():
    b = hamr.Buffer(4, "f4")
    with b.get_host_accessible() as h, memoryview(h) as m:
        m.tolist()
    np.asarray(b.get_host_accessible())
    b.pointer()


def slices():
    b = hamr.buffer(array)
    b[1:, ::-1][0][..., None]
    for row in b:
        row[1]


class Exporter:
    def __init__(self):
        self.__array_interface__ = array.__array_interface__


class Bytes:
    __array_interface__ = {"shape": (2,), "typestr": "<i2", "data": b"1234", "version": 3}


def interface():
    assert hamr.buffer(Exporter()).__array_interface__
    hamr.buffer(Bytes())


def contents():
    b = hamr.Buffer(10, fill=1)
    b.resize(40, 2)
    b.append(array)
    b.append(3)
    b.set(b[:5], 10)
    b[3:6] = 7
    b.reserve(200)
    c = b.copy(dtype="i4")
    c.assign(b)
    hamr.copy_many([c, b[:2], array.copy()], [b, b[2:4], array])
    with contextlib.suppress(TypeError):
        hamr.copy_many([c, array], [b, 7])
    hamr.copy_blocks([c, array], [0, -1], [b, array], hamr.buffer(np.array([1, 0])))
    with contextlib.suppress(IndexError):
        hamr.copy_blocks(c, [0, 10**9], b, [0, 0])
    c.move("cpp")
    c.swap(b)
    b.fill(1.5)
    b.free()
    b.resize((2, 3), 0)
    b.close()
    str(c), repr(c), c[0].item()


def pickles():
    pickle.loads(pickle.dumps(hamr.buffer(array), 4))


class Named(hamr.Buffer):
    """A subclass with an attribute."""


def subclasses():
    """Views, copies and pickles that carry it; streams of ever other handles."""
    b = Named(6, fill=1)
    b.name = ["x"]
    for derived in (b[1:], b.copy(), copy.deepcopy(b), pickle.loads(pickle.dumps(b, 5))):
        assert derived.name == ["x"]
    derived.set_stream(next(handles_of_streams))


handles_of_streams = itertools.count(10)


def pickles_out_of_band():
    for source in (hamr.buffer(array), strided):
        beside = []
        content = pickle.dumps(source, 5, buffer_callback=beside.append)
        pickle.loads(content, buffers=beside).append(1)
        pickle.loads(content, buffers=[bytes(beside[0].raw())])


class Arrow:
    def __init__(self, source):
        self.__arrow_c_array__ = source.__arrow_c_array__


def arrow():
    """Capsules that are consumed, or not, and a release by the consumer's end."""
    b = hamr.Buffer(16, "f4")
    b.__arrow_c_device_array__()
    shared = hamr.buffer(Arrow(hamr.buffer(Arrow(b))))
    b.close()
    np.asarray(shared)


class Once:
    given = hamr.Buffer(3).__arrow_c_array__()

    def __arrow_c_array__(self):
        return self.given


def dlpack():
    """Capsules that nobody uses, and ones that NumPy does."""
    b = hamr.Buffer(16, "f4")
    b.__dlpack__(), b.__dlpack__(max_version=(1, 0))
    np.from_dlpack(b)
    hamr.buffer(array).__dlpack__(copy=None)


def dlpack_deleted():
    """Tensors that are deleted without Python's lock."""
    b = hamr.Buffer(16, "f4")
    dl.consume(b.__dlpack__(max_version=(1, 0))).delete()
    dl.delete_on_thread(dl.consume(b.__dlpack__()))


def dlpack_exchanged():
    exchange.from_object(hamr.Buffer(16, "f4"), TABLE).delete()
    exchange.allocate(TABLE, (4, 4)).delete()
    exchange.allocate(TABLE, (4, -4))


class Shy:
    @property
    def __array_interface__(self):
        raise OSError


def wrong(**changes):
    class Wrong:
        __array_interface__ = {**array.__array_interface__, **changes}

    return Wrong()


closed = hamr.Buffer(3)
closed.close()
readonly = hamr.buffer(b"1234")
strided = hamr.buffer(array)[:, ::2]
once = Once()
hamr.buffer(once).close()
nulls = arrow_structs.HostArray(null_count=3)
FAILING = [
    lambda: hamr.Buffer(-1),
    lambda: hamr.Buffer(2**60),
    lambda: hamr.Buffer(2**55, "u1"),
    lambda: hamr.Buffer(2**70),
    lambda: hamr.Buffer((3, "x")),
    lambda: hamr.Buffer(3, "nothing"),
    lambda: hamr.Buffer(3, "i8", fill=2**100),
    lambda: hamr.Buffer(3, fill=2**20000),
    lambda: hamr.Buffer(3, fill="x"),
    lambda: hamr.Buffer(3, data=np.zeros(4)),
    lambda: hamr.Buffer(3, allocator="cuda"),
    lambda: hamr.buffer(3),
    lambda: hamr.buffer(np.array(["x"])),
    lambda: hamr.buffer(Shy()),
    lambda: hamr.buffer(wrong(shape=(2**62, 4))),
    lambda: hamr.buffer(wrong(typestr="<q9")),
    lambda: hamr.buffer(wrong(data=(0, False))),
    lambda: hamr.buffer(wrong(strides=(1,))),
    lambda: hamr.buffer(wrong(shape=("x",))),
    lambda: hamr.Buffer.from_pointer(0, 10),
    lambda: hamr.Buffer.from_pointer(1, 10, readonly=np.zeros(3)),
    lambda: closed.append(1),
    lambda: closed.shape,
    lambda: memoryview(closed),
    lambda: len(hamr.buffer(np.array(1.0))),
    lambda: readonly.fill(1),
    lambda: readonly.resize(2**61),
    lambda: strided.append(object()),
    lambda: strided.get(np.zeros(7)),
    lambda: strided[5],
    lambda: strided["x"],
    lambda: strided.set(array, 3),
    lambda: np.frombuffer(strided),
    lambda: strided.__arrow_c_array__(),
    lambda: hamr.Buffer(3, "?").__arrow_c_device_array__(),
    lambda: readonly.__arrow_c_array__(3),
    lambda: hamr.buffer(once),
    lambda: hamr.buffer(nulls),
    lambda: np.asarray(readonly).__setitem__(0, 1),
    lambda: readonly.__dlpack__(),
    lambda: strided.__dlpack__(dl_device=(2, 0), max_version=(1, 0)),
    lambda: strided.__dlpack__(dl_device=(9, 0)),
    lambda: strided.__dlpack__(stream=1),
    lambda: strided.__dlpack__(max_version=(1, "x")),
    lambda: closed.__dlpack__(),
    lambda: exchange.from_object(closed, TABLE),
]


def errors():
    for failing in FAILING:
        try:
            failing()
        except (TypeError, ValueError, IndexError, MemoryError, BufferError, OSError):
            continue
        except hamr.BackendUnavailable:
            continue
        raise AssertionError(f"did not fail: {failing.__code__.co_firstlineno}")


def resident() -> int:
    gc.collect()
    hamr.trim()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def repeat(cycle, count, threads):
    problems = []

    def work():
        try:
            for _ in range(count // threads):
                cycle()
        except BaseException as error:
            problems.append(error)
            raise

    started = [threading.Thread(target=work) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not problems, problems


def counters():
    totals = hamr.stats()
    host = totals["spaces"]["host"]
    return host["live"], host["current"], host["adopted"], totals["references"]


def main():
    cycle, count, threads = globals()[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    references = sys.getrefcount(array)
    gc.freeze()  # each OutOfMemory collects garbage: it need not look at the modules, too
    at_first = counters()
    # Growth that ends is let pass where it comes first. Of a short run it is most of the time.
    repeat(cycle, max(count // 10, min(2 * count, 20_000)), threads)
    before = resident()
    repeat(cycle, count, threads)
    after = resident()
    print(f"{sys.argv[1]}: {before} KiB before, {after} KiB after {count} cycles")
    assert counters() == at_first, (counters(), at_first)
    assert sys.getrefcount(array) == references
    assert after - before < ALLOWED_KIB, f"{after - before} KiB more"


main()
