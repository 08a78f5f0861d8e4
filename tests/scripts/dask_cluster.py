"""Buffers in a cluster of two processes, in which nobody imports hamr for them."""

import sys

if __name__ == "__main__":  # a worker's process runs this file, too, by another name
    import dask
    import dask.array as da
    import numpy as np
    from distributed import Client, LocalCluster
    from distributed.protocol import deserialize, serialize

    import hamr
    from tests.support import producers

MEGABYTE = 1 << 20
MINUTE = "60s"


def total(b):
    import numpy

    return float(numpy.asarray(b).sum())


def doubled(b):
    import numpy

    b = b.copy()
    numpy.asarray(b)[...] *= 2
    return b


def described(b):
    return b.shape, b.strides, str(b.dtype), b.allocator.name, b.readonly, str(b)


def sums(buffers):
    return {name: total(b) for name, b in buffers.items()}


def every_layout(client):
    for dtype in [*producers.DTYPES, "bfloat16", "float8_e4m3fn"]:
        values = np.arange(24, dtype="u1").reshape(2, 3, 4)
        for name, layout in producers.LAYOUTS.items():
            if dtype in producers.DTYPES:
                sent = hamr.buffer(layout(values.astype(dtype)))
            else:  # which NumPy does not name
                bits = values.view(f"V{hamr.Buffer(0, dtype).itemsize}").copy()
                sent = hamr.Buffer.from_pointer(
                    bits.ctypes.data, bits.shape, dtype, "cpp", owner=bits
                ).copy()
            found = client.submit(described, sent, pure=False).result(MINUTE)
            back = client.submit(lambda b: b, sent, pure=False).result(MINUTE)
            assert found[0] == back.shape == sent.shape
            dense = sent.is_contiguous or sent.is_fortran_contiguous
            assert found[1] == (sent.strides if dense else sent.copy().strides), name
            assert found[2] == str(back.dtype) == str(sent.dtype)
            assert found[3] == back.allocator.name == sent.allocator.name
            assert found[4] is back.readonly is False
            assert found[5] == str(back) == str(sent)


def scatter_submit_gather(client, workers):
    buffers = [hamr.Buffer(1000, "f8", a, fill=i) for i, a in enumerate(["malloc", "cpp"])]
    futures = client.scatter(buffers)
    again = client.gather(client.map(doubled, futures))
    assert [total(b) for b in again] == [0, 2000]
    assert [b.allocator.name for b in again] == ["malloc", "cpp"]
    again[1].resize(2000, 1)
    assert total(again[1]) == 3000

    # From worker to worker.
    on_first = client.submit(doubled, buffers[1], workers=workers[:1])
    on_second = client.submit(total, on_first, workers=workers[1:])
    assert on_second.result(MINUTE) == 2000
    named = {"a": buffers[1], "b": hamr.buffer(np.arange(5))}
    assert client.submit(sums, named).result(MINUTE) == {"a": 1000, "b": 10}
    empty = client.submit(lambda b: b, hamr.Buffer((0, 3), "i2")).result(MINUTE)
    assert (empty.shape, str(empty.dtype)) == ((0, 3), "int16")


def read_only(client):
    array = np.arange(5.0)
    array.flags.writeable = False
    assert client.submit(described, hamr.buffer(array)).result(MINUTE)[4] is True


def large(client, workers):
    """72 MiB, which Dask cuts in two, leave by their own addresses, and are counted as such."""
    sent = hamr.Buffer((9, MEGABYTE), "f8", fill=1)
    _, frames = serialize(sent)
    addresses = [np.frombuffer(f, "u1").ctypes.data for f in frames[1:]]
    assert addresses == [sent.ptr]
    assert len(frames[0]) < 500
    (future,) = client.scatter([sent], workers=workers[:1])
    assert client.submit(total, future, workers=workers[1:]).result(MINUTE) == 9 * MEGABYTE
    assert client.nbytes(summary=False)[future.key] == 72 * MEGABYTE
    back = future.result(MINUTE)
    assert not back.readonly
    np.testing.assert_array_equal(np.asarray(back), np.asarray(sent))

    received = bytearray(frames[1])
    shared = deserialize(serialize(sent)[0], [frames[0], received])
    shared[0, 0] = 7
    assert np.frombuffer(received)[0] == 7


def dask_arrays(client):
    values = np.arange(35.0).reshape(5, 7)
    for buffer in (hamr.buffer(values), hamr.buffer(np.asfortranarray(values))):
        array = da.from_array(buffer, chunks=(2, 3))
        assert array.dtype == values.dtype
        np.testing.assert_array_equal(array.compute(scheduler="sync"), values)
        np.testing.assert_array_equal((array.T @ array).compute(), values.T @ values)
        assert array.sum().compute() == values.sum()
    # What it is called by tells the contents, not the object.
    names = [da.from_array(hamr.buffer(v)).name for v in (values, values.copy(), values + 1)]
    assert names[0] == names[1] != names[2]
    assert dask.base.tokenize(hamr.Buffer(3, "bfloat16", fill=1)) == dask.base.tokenize(
        hamr.Buffer(3, "bfloat16", fill=1)
    )


def main():
    dask.config.set({"distributed.worker.daemon": True, "temporary-directory": sys.argv[1]})
    with (
        LocalCluster(
            n_workers=2,
            processes=True,
            threads_per_worker=1,
            dashboard_address=None,
            host="127.0.0.1",
            memory_limit=0,
            silence_logs=40,
        ) as cluster,
        Client(cluster, timeout=MINUTE) as client,
    ):
        client.wait_for_workers(2, MINUTE)
        workers = sorted(client.scheduler_info()["workers"])
        every_layout(client)
        scatter_submit_gather(client, workers)
        read_only(client)
        large(client, workers)
        dask_arrays(client)
    print("OK")


if __name__ == "__main__":
    main()
