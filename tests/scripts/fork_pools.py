"""hamr in multiprocessing: python -m tests.scripts.fork_pools fork|spawn|forkserver."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import hamr

inherited = [hamr.Buffer(1000, data=np.arange(1000.0)), hamr.buffer(np.arange(1000.0))]


def total(buffer, value):
    assert isinstance(buffer, hamr.Buffer)
    buffer.append(value)
    return np.asarray(buffer).sum().real, buffer


def work(value):
    own = [hamr.Buffer(100, fill=value) for _ in range(20)]
    own[0].append(own[1])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map(leaf, [value] * 4)
    assert results == [value * 10.0] * 4, results
    assert np.asarray(inherited[0]).sum() == 499500
    inherited[1].resize(10)
    return float(np.asarray(own[0]).sum())


def leaf(value):
    assert np.asarray(inherited[0]).sum() == 499500
    return float(np.asarray(hamr.Buffer(10, fill=value)).sum())


def main(method):
    context = multiprocessing.get_context(method)
    for _ in range(3):
        with context.Pool(3) as pool:
            results = list(pool.imap_unordered(leaf, range(24)))
            assert sorted(results) == [v * 10.0 for v in range(24)], results
            kinds = [(dtype, allocator) for dtype in ("f8", "i2", "c8") for allocator in (0, 1)]
            jobs = [(hamr.Buffer((2, 3), *kind, fill=3), 4) for kind in kinds]
            for (given, _), (result, changed) in zip(jobs, pool.starmap(total, jobs), strict=True):
                assert result == 22
                assert np.asarray(given).sum() == 18
                assert changed.shape == (7,)
                assert (changed.typestr, changed.allocator) == (given.typestr, given.allocator)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(work, range(4))) == [v * 200.0 for v in range(4)]
    process = context.Process(target=sys.exit, args=(hamr.Buffer(3, fill=0).item is None,))
    process.start()
    process.join(60)
    assert process.exitcode == 0, process.exitcode
    assert np.asarray(inherited[0]).sum() == 499500
    assert len(inherited[1]) == 1000


if __name__ == "__main__":
    main(sys.argv[1])
