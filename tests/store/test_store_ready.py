"""Memory that a server makes ready for the next large object."""

import numpy as np
import pytest

from hamr.cli import main
from hamr.store import Server, connect
from tests.store.serving import ServerProcess
from tests.support.processes import wait_until

MIB = 1 << 20
READY = 4 * MIB


def host(client):
    return client.statistics()["memory"]["host"]


def wait_ready(client):
    wait_until(lambda: host(client)["ready"] == READY)


@pytest.fixture
def ready(tmp_path):
    """A client of a server that has ready memory."""
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit="host=64MiB", ready="4MiB"), connect(path) as client:
        yield client


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        (READY, "u1"),
        (READY - 1, "u1"),
        (READY + 1, "u1"),
        (READY // 2 - 4096, "u1"),
        (READY // 2, "i1"),
        ((3, 5, 7, 9973), "f8"),
        ((1001, 999), "c8"),
        ((1_300_001,), "f2"),
        ((7, 50_001), "c16"),
        ((2_000_003,), "?"),
        ((40 * MIB,), "u1"),
    ],
)
def test_what_is_put_is_what_is_got(ready, shape, dtype):
    values = np.resize(np.arange(251, dtype="u1"), int(np.prod(shape)) * np.dtype(dtype).itemsize)
    array = (values & 1 if dtype == "?" else values).view(dtype).reshape(shape)
    before = ready.statistics()
    for _ in range(2):
        wait_ready(ready)
        id = ready.put(array)
        found = np.asarray(ready.get(id))
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        del found
        ready.delete(id)
    after = ready.statistics()
    hits = after["ready_hits"] - before["ready_hits"]
    assert hits == (2 if array.nbytes >= READY // 2 else 0)


def test_what_is_created_is_zero_and_never_what_somebody_had(ready):
    for n in (READY, READY - 12345, READY // 2, READY + 9999):
        wait_ready(ready)
        builder = ready.create(n, "u1")
        array = np.asarray(builder.buffer)
        assert not array.any()
        array[...] = 255
        id = builder.seal()
        assert array.min() == 255
        del array, builder
        ready.delete(id)
    assert ready.statistics()["ready_hits"] == 4


def test_it_is_counted_printed_and_given_up(tmp_path, capsys):
    path = str(tmp_path / "store" / "socket")
    with ServerProcess(path, "--limit", "host=16MiB", "--ready", "4MiB"), connect(path) as client:
        wait_ready(client)
        assert host(client)["used"] == READY
        assert main(["store", "stat", "--socket", path]) == 0
        printed = capsys.readouterr().out
        assert f"memory host ready: {READY}" in printed
        assert "ready_hits: 0" in printed
        ids = [client.put(np.full(n, 7, "u1"), evictable=True) for n in (1 * MIB, 15 * MIB)]
        assert all(client.exists(id) for id in ids)
        assert client.statistics()["evicted"] == 0
        for id in ids:
            client.delete(id)
        wait_ready(client)
        assert host(client)["used"] == READY


def test_what_cannot_be_ready_is_refused(tmp_path, capsys):
    path = str(tmp_path / "store" / "socket")
    with pytest.raises(ValueError, match="Ready is 2097152: accepted is at most"):
        Server(path, limit="host=1MiB", ready="2MiB")
    with pytest.raises(ValueError, match="ready is '1 potato'"):
        Server(path, ready="1 potato")
    assert main(["store", "serve", "--socket", path, "--ready", "much"]) == 1
    assert "ready is 'much'" in capsys.readouterr().err
