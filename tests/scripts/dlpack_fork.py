"""DLPack's tensors of a parent in its forked child, and the child's own.

python -m tests.scripts.dlpack_fork
"""

import threading

import numpy as np

import hamr
from hamr import _native
from tests.scripts import forking
from tests.support import dlpack_exchange_structs as exchange, dlpack_structs as dl

TABLE = exchange.table_of(hamr.Buffer)


def tensors(buffer):
    return [
        dl.consume(buffer.__dlpack__()),
        dl.consume(buffer.__dlpack__(max_version=(1, 0))),
        exchange.from_object(buffer, TABLE),
    ]


def inherited():
    """The parent's tensors are read and deleted in every way, without loading the library."""
    own, adopted = hamr.Buffer(100, fill=2), hamr.buffer(np.full(100, 2.0))
    made = [*tensors(own), *tensors(adopted), *tensors(hamr.Buffer(100, fill=2))]
    allocated = exchange.allocate(TABLE, (100,), (2, 64, 1))
    allocated.array("f8")[...] = 2
    capsule, array = own.__dlpack__(), np.from_dlpack(own)

    def child():
        nonlocal capsule, array
        assert array.sum() == 200
        assert all(t.array("f8").sum() == 200 for t in [*made, allocated])
        deletes = [dl.Seen.delete_with_lock, dl.Seen.delete, dl.delete_on_thread]
        for i, tensor in enumerate(made):
            deletes[i % 3](tensor)
        allocated.delete()
        capsule = array = None
        more = [*tensors(own), *tensors(adopted)]
        fresh = exchange.allocate(TABLE, (10,))
        fresh.array("f4")[...] = 1
        assert not _native.bound()
        hamr.Buffer(10, fill=1)
        for tensor in [*more, fresh]:
            dl.delete_on_thread(tensor)
        own.close()
        np.from_dlpack(hamr.Buffer(3))
        assert hamr.stats()["references"] == 0, hamr.stats()

    for _ in range(5):
        forking.run(child)
    for tensor in [*made, allocated]:
        tensor.delete()


def while_deleting():
    """A child of a parent whose threads are deleting has nothing of theirs to wait for."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            dl.delete_on_thread(dl.consume(hamr.Buffer(10).__dlpack__()))

    def child():
        for _ in range(20):
            dl.delete_on_thread(dl.consume(hamr.Buffer(10).__dlpack__()))
        _native.end_owners()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            forking.run(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


inherited()
while_deleting()
