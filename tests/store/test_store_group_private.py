"""Private groups on the host, which share the group's pages until they are written to."""

import copy
import os
import pickle

import numpy as np
import pytest

import hamr
from hamr.store import Server, connect
from tests.support.processes import wait_until

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20


@pytest.fixture
def client(tmp_path):
    with (
        Server(str(tmp_path / "store" / "socket"), limit={"host": "80MiB"}) as server,
        connect(server.path) as client,
    ):
        yield client


def private_bytes(address):
    """What memory the mapping that has an address takes of its own."""
    facts = {}
    with open("/proc/self/smaps") as lines:
        for line in lines:
            first, *rest = line.split()
            if not first.endswith(":"):
                begin, end = (int(part, 16) for part in first.split("-"))
                here = begin <= address < end
            elif here and rest[-1:] == ["kB"]:
                facts[first] = facts.get(first, 0) + int(rest[0]) * 1024
    return facts["Anonymous:"]


def mappings():
    with open("/proc/self/maps") as lines:
        return sum("memfd:hamr-store" in line for line in lines)


def test_a_private_group_takes_memory_for_what_is_written_alone(client):
    id = client.put_group({str(i): np.full(MIB, i, "u1") for i in range(64)})
    group = client.get_group(id, private=True)
    shared = client.get_group(id)
    address = group["0"].ptr
    assert private_bytes(address) == 0
    assert all((np.asarray(group[path]) == np.asarray(shared[path])).all() for path in group)
    assert private_bytes(address) == 0
    group["5"].fill(200)
    np.asarray(group["9"])[:PAGE] = 100
    assert private_bytes(address) == MIB + PAGE
    assert (np.asarray(group["5"]) == 200).all()
    for other in (shared, client.get_group(id, private=True, only=["5", "9"])):
        assert [(np.asarray(other[path]) == int(path)).all() for path in ("5", "9")] == [True, True]


def test_a_private_group_keeps_the_lease_and_no_more(client):
    before = mappings()
    id = client.put_group({"a": np.arange(300_000), "b": np.ones(4)})
    array = client.get_group(id, private=True, only=["a"])["a"]
    client.delete(id)
    assert client.statistics()["leases"] == 1
    assert mappings() > before
    array[:] = 7
    del array
    wait_until(lambda: client.statistics()["leases"] == 0)
    wait_until(lambda: mappings() == before)


def test_a_private_array_goes_elsewhere_as_it_was_written(client):
    id = client.put_group({"a": np.arange(300_000)})
    array = client.get_group(id, private=True)["a"]
    array[:] = 7
    loaded = pickle.loads(pickle.dumps(array))
    assert (np.asarray(loaded) == 7).all()
    again = client.get_group(client.put_group({"a": array}))["a"]
    assert (np.asarray(again) == 7).all()
    assert (np.asarray(hamr.open_shared(array.share())) == 7).all()
    copied = client.get_group(id, "cpp", private=True)["a"]
    assert not copied.readonly
    assert (np.asarray(copied) == np.arange(300_000)).all()


def test_a_child_has_a_private_group_of_its_own(client):
    group = client.get_group(client.put_group({"a": np.arange(300_000)}), private=True)
    array = np.asarray(group["a"])
    array[0] = 1
    pid = os.fork()
    if pid == 0:
        array[1] = 9
        os._exit(0 if array[:3].tolist() == [1, 9, 2] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert array[:3].tolist() == [1, 1, 2]


def test_a_private_group_that_was_spilled_outlives_the_server(tmp_path):
    path, spill = str(tmp_path / "store" / "socket"), str(tmp_path / "spilled")
    with Server(path, limit={"host": "8MiB"}, spill=spill) as server, connect(path) as client:
        first, _ = (client.put_group({"a": np.full(5 * MIB, i, "u1")}) for i in (1, 2))
        assert server.statistics()["spills"] == 1
        array = np.asarray(client.get_group(first, private=True)["a"])
        array[PAGE] = 7
        server.close()
        array[5] = 8
        assert array[:6].tolist() == [1, 1, 1, 1, 1, 8]
        assert (array[PAGE], array[-1]) == (7, 1)


def test_a_pickle_and_a_copy_of_a_group_have_its_arrays_once(client):
    id = client.put_group({"a": np.arange(300_000), "b": np.arange(3), "c": 7}, metadata=[1])
    private = client.get_group(id, private=True, only=["b", "c"])
    private["b"][0] = 5
    assert len(pickle.dumps(private)) < 2000
    assert len(pickle.dumps(client.get_group(id, "cpp", only=["b"]))) < 2000
    for again in (pickle.loads(pickle.dumps(private)), copy.copy(private), copy.deepcopy(private)):
        assert (again.id, again.tree["c"], again.metadata) == (id, 7, [1])
        assert again["b"].get().tolist() == [5, 1, 2]
    shared = pickle.loads(pickle.dumps(client.get_group(id)))
    assert shared["b"].get().tolist() == [0, 1, 2]
