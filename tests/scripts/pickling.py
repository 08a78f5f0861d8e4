"""Buffers between processes of multiprocessing.

python -m tests.scripts.pickling fork|spawn|forkserver
"""

import multiprocessing
import pickle
import sys
from multiprocessing.shared_memory import SharedMemory

import numpy as np

import hamr

N = 100_000


def doubled(buffer):
    np.asarray(buffer)[...] *= 2
    return buffer


def write(name, content):
    """Count up in place in another process's buffer."""
    memory = SharedMemory(name)
    shared = pickle.loads(content, buffers=[memory.buf[: 8 * N]])
    assert shared[7].item() == 1
    np.asarray(shared)[...] += np.arange(N)
    # hamr holds the memory, so that it cannot go away beneath it.
    try:
        memory.close()
    except BufferError:
        pass
    else:
        raise AssertionError("the memory was closed while a buffer was in it")
    del shared
    memory.close()


def main():
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        sent = [
            hamr.Buffer(N, "f4", "cpp", fill=1),
            hamr.buffer(np.ones((30, 20))[::2]),
            hamr.Buffer((0, 2)),
        ]
        for back, buffer in zip(pool.map(doubled, sent), sent, strict=True):
            assert back.allocator == buffer.allocator
            np.testing.assert_array_equal(np.asarray(back), 2 * np.ones(buffer.shape))

    beside = []
    content = pickle.dumps(hamr.Buffer(N, fill=1), 5, buffer_callback=beside.append)
    memory = SharedMemory(create=True, size=8 * N)
    try:
        memory.buf[: 8 * N] = beside[0].raw()
        mine = pickle.loads(content, buffers=[memory.buf[: 8 * N]])
        process = context.Process(target=write, args=(memory.name, content))
        process.start()
        process.join(60)
        assert process.exitcode == 0
        np.testing.assert_array_equal(np.asarray(mine), 1 + np.arange(N))
        del mine
    finally:
        memory.close()
        memory.unlink()
    print("OK")


if __name__ == "__main__":
    main()
