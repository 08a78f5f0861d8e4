"""Many objects by one call: what there is beside single calls, and what errors leave."""

import random
import signal
import threading

import numpy as np
import pytest

import hamr
from hamr.store import NameTaken, NotSealed, ObjectNotFound, StoreFull, StoreLost, connect
from tests.support.processes import scaled, wait_until

SIZES = (0, 1, 7, 1000, 20_000, 70_000)


def test_arrays_are_put_got_and_deleted(server, client):
    arrays = [
        np.arange(24, dtype="f4").reshape(2, 3, 4)[:, ::2],
        hamr.ones((0, 3), "i8"),
        [1, 2, 3],
        np.float64(3.5),
        bytearray(b"some bytes"),
        np.arange(40_000),
    ]
    arrays[2], arrays[3] = np.array(arrays[2]), np.array(arrays[3])
    ids = client.put_many(arrays, names=["a", None, "c", None, None, "f"], metadata={"step": 3})
    assert [type(id) for id in ids] == [hamr.store.ObjectID] * 6
    assert client.statistics()["leases"] == 0
    with connect(server.path) as other:
        found = other.get_many([ids[0], ids[1], "c", ids[3], ids[4], "f", "a"])
        for array, got in zip([*arrays, arrays[0]], found, strict=True):
            array = np.asarray(array)
            assert got.dtype == array.dtype.name
            assert got.shape == array.shape
            assert np.array_equal(np.asarray(got), array)
            assert got.readonly or not got.nbytes
        assert other.statistics()["leases"] == 6
        assert hamr.store.leases.find(found[0]).id == ids[0]
        copies = other.get_many(ids, "malloc")
        copies[0][...] = 1
    assert client.info(ids[1]).metadata == {"step": 3}
    client.delete_many(reversed(ids))
    assert client.statistics()["objects"] == 0
    del found, copies, got
    wait_until(lambda: client.statistics()["leases"] == 0)


def test_none_are_none(client):
    assert client.put_many([]) == []
    assert client.get_many(()) == []
    client.delete_many(iter([]))
    assert client.statistics()["objects"] == 0


def test_what_is_given_is_checked_before_anything_is_done(client):
    id = client.put(np.ones(3), name="it")
    for call, message in [
        (lambda: client.get_many("it"), "ids is 'it': accepted are several ids and names"),
        (lambda: client.get_many([id, 3]), "name is 3: accepted is a text"),
        (lambda: client.get_many(3), "ids is 3: accepted are several"),
        (lambda: client.delete_many(id), "accepted are several ids, as a list"),
        (lambda: client.delete_many([None]), "id is None"),
        (lambda: client.put_many(np.ones(3)[0]), "arrays is "),
        (lambda: client.put_many(hamr.ones(3)), "arrays is "),
        (lambda: client.put_many({"a": np.ones(3)}), r"arrays\[0\]"),
        (lambda: client.put_many([np.ones(3), "text"]), r"arrays\[1\]"),
        (lambda: client.put_many([np.ones(3)], names=[3]), "name is 3"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()
    for call, message in [
        (lambda: client.delete_many([id, "it"]), "id is 'it': accepted are 32 hexadecimal digits"),
        (lambda: client.delete_many([id] * 4001), "ids is 4001: accepted .*at most 4000"),
        (lambda: client.put_many([np.ones(3)], names=["a", "b"]), "names are 2: accepted are 1"),
        (lambda: client.put_many([np.ones(3)], names=["a" * 300]), "1 to 255 bytes"),
        (lambda: client.put_many([np.ones(3)], metadata="\0" * 40_000), "metadata"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert [info.id for info in client.list()] == [id]


def test_an_error_names_the_item_and_leaves_nothing(server, client):
    ids = client.put_many([np.full(n, n) for n in (3, 30_000, 5)], names=["a", "b", None])
    absent = hamr.store.ObjectID("0" * 32)
    full = [np.ones(1 << 20)] * 20
    with client.create(30_000) as builder, connect(server.path) as other:
        for kind, call, message in [
            (ObjectNotFound, lambda: client.get_many([*ids, absent]), f"item 3: .*{absent}"),
            (ObjectNotFound, lambda: client.get_many(["a", ids[2], "z"]), 'item 2: .*"z"'),
            (NotSealed, lambda: client.get_many(["a", builder.id]), f"item 1: .*{builder.id}"),
            (ObjectNotFound, lambda: client.delete_many([ids[0], absent]), f"item 1: .*{absent}"),
            (NotSealed, lambda: other.delete_many([ids[0], builder.id]), f"item 1: .*{builder.id}"),
            (
                NameTaken,
                lambda: client.put_many([np.ones(9)] * 3, names=["x", None, "a"]),
                'item 2: .*"a"',
            ),
            (NameTaken, lambda: client.put_many([np.ones(9)] * 2, names=["x", "x"]), "item 1: "),
            (StoreFull, lambda: client.put_many(full), r"item \d+: "),
        ]:
            with pytest.raises(kind, match=message):
                call()
            wait_until(lambda: client.statistics()["leases"] == 1)
            wait_until(lambda: client.statistics()["objects"] == 4)
            assert client.statistics()["names"] == 2
    assert sorted(info.id for info in client.list()) == sorted([*ids, builder.id])


def test_objects_of_a_session_go_with_it(server, client):
    with connect(server.path) as other:
        ids = other.put_many([np.ones(3), np.ones(30_000)], session=True, pinned=True)
        assert client.info(ids[1]).pinned
        assert client.statistics()["objects"] == 2
    wait_until(lambda: client.statistics()["objects"] == 0)


def test_threads_make_calls_for_many_at_once(server, client):
    failed = []

    def use(seed):
        try:
            for k in range(scaled(20)):
                arrays = [np.full(n, seed + k) for n in SIZES]
                ids = client.put_many(arrays)
                found = client.get_many(ids + ids)
                for array, got in zip(arrays + arrays, found, strict=True):
                    assert np.array_equal(np.asarray(got), array)
                client.delete_many(ids)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    wait_until(lambda: client.statistics()["leases"] == 0)
    assert client.statistics()["objects"] == 0


class Walk:
    """Calls for one object and for many, by two clients, beside a dictionary."""

    def __init__(self, server, seed):
        self.server, self.choose = server, random.Random(seed)
        self.clients = [connect(server.path) for _ in range(2)]
        self.things, self.names, self.kept, self.made = {}, {}, [], 0

    def some(self, most):
        known = list(self.things)
        return (
            [self.choose.choice(known) for _ in range(self.choose.randrange(most))] if known else []
        )

    def new(self):
        self.made += 1
        return np.full(self.choose.choice(SIZES), self.made % 200, "u1")

    def forget(self, ids):
        for id in set(ids):
            del self.things[id]
        self.names = {name: id for name, id in self.names.items() if id in self.things}

    def step(self):
        client = self.choose.choice(self.clients)
        match self.choose.randrange(8):
            case 0:
                array = self.new()
                self.things[client.put(array)] = array
            case 1 | 2:
                arrays = [self.new() for _ in range(self.choose.randrange(12))]
                names = [
                    f"name {self.choose.randrange(40)}" if self.choose.random() < 0.1 else None
                    for _ in arrays
                ]
                wanted = [name for name in names if name is not None]
                try:
                    ids = client.put_many(arrays, names=names)
                except NameTaken:
                    assert len(set(wanted)) < len(wanted) or set(wanted) & set(self.names)
                else:
                    assert not set(wanted) & set(self.names)
                    self.things |= zip(ids, arrays, strict=True)
                    self.names |= {n: i for n, i in zip(names, ids, strict=True) if n is not None}
            case 3:
                for id in self.some(2):
                    self.kept.append((client.get(id), id, self.things[id]))
            case 4 | 5:
                ids = self.some(20)
                wanted = [*ids, *self.choose.sample(list(self.names), len(self.names) // 2)]
                found = client.get_many(wanted)
                ids = [self.names.get(each, each) for each in wanted]
                self.kept += zip(found, ids, map(self.things.get, ids), strict=True)
            case 6:
                ids = self.some(4)
                client.delete_many(ids)
                self.forget(ids)
            case 7:
                for found, _, array in self.kept:
                    assert np.array_equal(np.asarray(found), array)
                self.kept = self.choose.sample(self.kept, len(self.kept) // 2)

    def restart(self):
        """Another server has what this process has."""
        self.server.end(signal.SIGKILL)
        for call in ("put_many", "get_many", "delete_many"):
            with pytest.raises(StoreLost):
                getattr(self.clients[0], call)(
                    [np.ones(3)] if call == "put_many" else list(self.things)
                )
            if not self.things:
                break
        kept = {id for _, id, _ in self.kept} & set(self.things)
        self.server.start()
        for client in self.clients:
            client.statistics()
        wait_until(lambda: {info.id for info in self.clients[0].list()} == kept)
        self.forget([id for id in self.things if id not in kept])

    def check(self):
        client = self.clients[0]
        wait_until(lambda: {info.id for info in client.list()} == set(self.things))
        assert {n: client.get_name(n) for n in self.names} == self.names
        for found, array in zip(client.get_many(self.things), self.things.values(), strict=True):
            assert np.array_equal(np.asarray(found), array)


@pytest.mark.parametrize("seed", range(2))
def test_walk(server_process, seed):
    walk = Walk(server_process, seed)
    for _ in range(scaled(6)):
        for _ in range(40):
            walk.step()
        walk.check()
        walk.restart()
    walk.kept.clear()
    walk.clients[0].delete_many(walk.things)
    wait_until(lambda: walk.clients[0].statistics()["leases"] == 0)
    assert walk.clients[0].statistics()["objects"] == 0
