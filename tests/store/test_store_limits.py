import errno
import os
import resource
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr.store import ObjectNotFound, Server, StoreFull, connect
from tests.support.processes import no_descriptors

MIB = 1 << 20


def test_a_store_that_is_full_says_by_whom(client):
    held = client.get(client.put(np.zeros(40 * MIB, "u1")))
    with pytest.raises(StoreFull) as caught:
        client.create(30 * MIB, "u1")
    error = caught.value
    assert isinstance(error, hamr.OutOfMemory)
    assert (error.memory, error.size, error.limit) == ("host", 30 * MIB, 64 * MIB)
    assert error.used >= 40 * MIB
    assert error.holders[0][0] == os.getpid()
    assert str(os.getpid()) in str(error)
    client.put(np.zeros(20 * MIB, "u1"))
    assert held[0] == 0
    del held
    with pytest.raises(StoreFull, match=r"goes if no process has it.*and it was made evictable"):
        client.create(30 * MIB, "u1")
    with pytest.raises(StoreFull, match="that never fits: the limit is less"):
        client.create(65 * MIB, "u1")


def test_the_least_recently_used_goes_first_and_none_that_is_in_use(client):
    def put(n, **options):
        return client.put(np.zeros(n * MIB, "u1"), **options)

    kept = put(10)
    first, second, third = (put(15, evictable=True) for _ in range(3))
    client.get(first)
    held = client.get(third)
    put(20)
    with pytest.raises(ObjectNotFound):
        client.get(second)
    assert client.exists(kept)
    assert client.exists(first)
    with pytest.raises(StoreFull):
        put(30)
    client.pin(first)
    with pytest.raises(StoreFull):
        put(15)
    client.pin(first, False)
    put(15)
    assert not client.exists(first)
    assert held.shape == (15 * MIB,)
    del held
    client.set_evictable(third, False)
    with pytest.raises(StoreFull):
        put(15)


def test_what_nobody_has_is_spilled_and_brought_back(tmp_path):
    folder = tmp_path / "spill"
    path = str(tmp_path / "store" / "socket")
    values = [np.random.default_rng(n).bytes(3 * MIB) for n in range(5)]
    with Server(path, limit="host=8MiB", spill=str(folder)) as server, connect(path) as client:
        ids = [client.put(np.frombuffer(value, "u1")) for value in values]
        assert server.statistics()["spilled"] == 9 * MIB
        for id, value in [*zip(ids, values, strict=True)] * 2:
            assert np.asarray(client.get(id)).tobytes() == value
        assert server.statistics()["memory"]["host"]["used"] <= 8 * MIB
        for id in ids:
            client.delete(id)
        assert server.statistics()["spilled"] == 0
    assert not [file for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize(
    "limit", ["host", "host=", "host=x", "disk=3", "host=-1", {"host": 1.5}, {"tape": 1}]
)
def test_limits_are_checked(tmp_path, limit):
    with pytest.raises((ValueError, TypeError)):
        Server(str(tmp_path / "store" / "socket"), limit=limit).close()


def test_a_process_without_descriptors_keeps_its_session(server_process):
    with connect(server_process.path) as client, connect(server_process.path) as maker:
        id = maker.put(np.full(100_000, 3.0))
        builder = client.create(100_000)
        calls = [
            lambda: client.get(id),
            lambda: client.create(100_000),
            lambda: client.put(np.zeros(100_000)),
            lambda: client.wait([id]),
            lambda: client.events(),
        ]
        for call in calls:
            with pytest.raises(OSError, match="RLIMIT_NOFILE") as caught, no_descriptors():
                call()
            assert caught.value.errno == errno.EMFILE
        builder.buffer.fill(2.0)
        assert client.get(builder.seal())[5] == 2
        assert client.get(id)[5] == 3
        assert client.wait([id]) == ([id], [])
        assert client.statistics()["connections"] == 3  # one of wait
        assert client.statistics()["breaches"] == 0


def put_all(client, count):
    for _ in range(count):
        client.put(np.zeros(1 << 16, "u1"))


def test_a_server_without_descriptors_evicts_and_refuses(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit="host=1GiB") as server, connect(path) as client:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # A quarter is left to what is no memory, as what other tests have open.
        files = 200 + 4 * len(list(Path("/proc/self/fd").iterdir()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        try:
            for _ in range(files + 100):
                client.put(np.zeros(1 << 16, "u1"), evictable=True)
            assert server.statistics()["evicted"] > 100
            with pytest.raises(StoreFull, match="RLIMIT_NOFILE") as caught:
                put_all(client, files)
            assert (caught.value.memory, caught.value.limit) == ("descriptors", files)
            with connect(path) as other:
                assert other.wait(["0" * 32], timeout=0.01) == ([], ["0" * 32])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
