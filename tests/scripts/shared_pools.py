"""A pool fills one shared buffer: python -m tests.scripts.shared_pools fork|spawn|forkserver."""

import multiprocessing
import sys

import numpy as np

import hamr


def fill(part, value):
    part[...] = value
    np.asarray(part)[0] = -value
    return part


def main(method):
    context = multiprocessing.get_context(method)
    whole = hamr.Buffer((64, 100), "f4", hamr.Allocator.shared, fill=0)
    with context.Pool(3) as pool:
        for _ in range(5):
            whole.fill(0)
            parts = pool.starmap(fill, [(whole[i], i + 1) for i in range(64)], chunksize=3)
            wanted = np.repeat(np.arange(1, 65, dtype="f4")[:, None], 100, axis=1)
            wanted[:, 0] *= -1
            assert np.array_equal(np.asarray(whole), wanted)
            for i, part in enumerate(parts):  # what workers send back is the same memory, too
                part.fill(i)
            assert np.array_equal(np.asarray(whole)[:, 5], np.arange(64))
    process = context.Process(target=fill, args=(whole[3], 1000))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert np.asarray(whole)[3].tolist() == [-1000.0, *[1000.0] * 99]


if __name__ == "__main__":
    main(sys.argv[1])
