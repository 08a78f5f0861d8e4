"""Processes and threads that do at random what a store can do, beside what a dictionary has."""

import random
import signal
import time

import numpy as np
import pytest

from hamr.store import NotSealed, ObjectNotFound, StoreFull, StoreLost, connect
from tests.store.serving import ServerProcess
from tests.store.walkers import Process
from tests.support.processes import scaled, wait_until

MIB = 1 << 20
SIZES = (0, 1, 10, 1000, 65_000, 70_000, 400_000)


class Thing:
    """An object, as it should be."""

    def __init__(self, id, n, seed, maker):
        self.id, self.what, self.maker = id, (n, seed), maker
        self.sealed = self.deleted = self.on_device = False


class Walk:
    """What there must be; ``kept`` has for each process what its buffers are of."""

    def __init__(self, server, seed):
        self.server, self.choose = server, random.Random(seed)
        self.client = connect(server.path)
        self.processes = [Process(server.path) for _ in range(2)]
        self.kept = [{} for _ in self.processes]
        self.tells = {}  # which of its clients has it, by the keys of what is kept
        self.things, self.names, self.seeds, self.keys = {}, {}, 0, 0

    def one(self, sealed=True, deleted=False):
        found = [t for t in self.things.values() if (t.sealed, t.deleted) == (sealed, deleted)]
        return self.choose.choice(found) if found else None

    def step(self):
        where = self.choose.randrange(len(self.processes))
        getattr(self, self.choose.choice(STEPS))(where, self.processes[where])

    def made(self, where, process, method, *options):
        n, self.seeds = self.choose.choice(SIZES), self.seeds + 1
        client = self.choose.randrange(2)
        try:
            id = process(method, client, n, self.seeds, *options)
        except StoreFull as full:
            self.full(full, n)
            self.delete(where, process)
            return
        self.things[id] = thing = Thing(id, n, self.seeds, where)
        thing.sealed = method == "put"

    def full(self, error, n):
        assert error.used + n > 4 * MIB - 600_000, error  # slabs are made as a whole

    def create(self, where, process):
        self.made(where, process, "create", self.choose.random() < 0.3)

    def put(self, where, process):
        self.made(where, process, "put")

    def end(self, where, process):
        mine = [t for t in self.things.values() if not t.sealed and t.maker == where]
        if mine:
            thing, how = (
                self.choose.choice(mine),
                self.choose.choice(("seal", "seal", "abort", "forget")),
            )
            process("end", thing.id, how, True)
            thing.sealed = how == "seal"
            if not thing.sealed:
                del self.things[thing.id]
                wait_until(lambda: not self.client.exists(thing.id))
                with pytest.raises(ObjectNotFound):
                    self.client.get(thing.id)

    def seal(self, where, process):
        for thing in list(self.things.values()):
            if not thing.sealed and thing.maker == where:
                process("end", thing.id, "seal", False)
                thing.sealed = True

    def get(self, where, process):
        if thing := self.one():
            key, client = self.key(), self.choose.randrange(2)
            assert process("get", client, thing.id, False, key, *thing.what)
            self.kept[where][key], self.tells[key] = thing, client

    def get_what_is_not_there(self, where, process):
        if (thing := self.one(sealed=False)) is not None:
            with pytest.raises(NotSealed):
                process("get", 0, thing.id, False, 0, *thing.what)
            found = process("peek", self.choose.randrange(2), thing.id, *thing.what)
            # Small ones lie in memory of their makers; a device may still be writing the others.
            assert found or thing.on_device or (found is None and thing.what[0] < 64 << 10)
        if (thing := self.one(deleted=True)) is not None:
            with pytest.raises(ObjectNotFound):
                process("get", 0, thing.id, True, 0, *thing.what)

    def key(self):
        self.keys += 2
        return self.keys + self.choose.randrange(2)

    def use(self, where, process):
        """What is kept is what it was, whatever has become of the object."""
        if not self.kept[where]:
            return
        key = self.choose.choice(list(self.kept[where]))
        thing = self.kept[where][key]
        assert process("same", key, *thing.what)
        chosen = self.choose.random()
        if chosen < 0.4:
            process("drop", key)
            del self.kept[where][key]
        elif not key % 2 and chosen < 0.6:
            assert process("mirror", key, *thing.what)
        elif not key % 2 and chosen < 0.8:
            self.kept[where][into := self.key()] = thing
            self.tells[into] = self.tells[key]
            process("view", key, into)
        elif not key % 2 and not thing.deleted and thing.what[0]:
            text, to = process("dumps", key), self.choose.randrange(len(self.processes))
            assert len(text) < 400
            into = self.key() & ~1
            assert self.processes[to]("loads", text, into, *thing.what)
            self.kept[to][into], self.tells[into] = thing, "pickles"

    def copy(self, where, process):
        if thing := self.one():
            assert process("copy", self.choose.randrange(2), thing.id, *thing.what)
            assert process("threads", thing.id, *thing.what)

    def delete(self, where, process):
        if thing := self.one():
            # By force only what nobody has: a new server may have no room for what did not count.
            held = any(thing in kept.values() for kept in self.kept)
            process("call", 0, "delete", thing.id, not held and self.choose.random() < 0.3)
            thing.deleted = True
            self.names = {name: id for name, id in self.names.items() if id != thing.id}

    def name(self, where, process):
        name = f"name {self.choose.randrange(4)}"
        if name in self.names:
            assert process("call", 1, "get_name", name) == self.names.pop(name)
            process("call", 0, "drop_name", name)
        elif thing := self.one():
            process("call", self.choose.randrange(2), "put_name", name, thing.id)
            self.names[name] = thing.id

    def reopen(self, where, process):
        """What a closed client had not sealed is given up, and what it had stays mapped."""
        self.seal(where, process)
        process("reopen", client := self.choose.randrange(2))
        for key, thing in list(self.kept[where].items()):
            # Its lease has ended: a small object's place is another's once it is deleted.
            if self.tells[key] == client and thing.what[0] < 64 << 10:
                process("drop", key)
                del self.kept[where][key]
        self.tells |= {key: None for key in self.kept[where] if self.tells[key] == client}

    def kill(self, where, process):
        process.kill()
        self.processes[where], self.kept[where] = Process(self.server.path), {}
        for thing in list(self.things.values()):
            if not thing.sealed and thing.maker == where:
                del self.things[thing.id]

    def restart(self):
        """Another server has what living processes have."""
        for where, process in enumerate(self.processes):
            self.seal(where, process)
        had = {t.id for kept in self.kept for t in kept.values() if not t.deleted}
        self.server.end(signal.SIGKILL)
        with pytest.raises(StoreLost):
            self.client.statistics()
        self.server.start()
        for process in self.processes:
            process("find")
        self.client.statistics()
        # Clients that were closed tell of what somebody still has by them, without a call.
        wait_until(lambda: {info.id for info in self.client.list()} == had)
        for thing in self.things.values():
            thing.deleted = thing.id not in had
        self.names = {name: id for name, id in self.names.items() if id in had}

    def check(self):
        """What there is, and what the server counts, is what there must be."""
        there = {t.id: t.sealed for t in self.things.values() if not t.deleted}
        wait_until(lambda: {i.id: i.sealed for i in self.client.list()} == there)
        for info in self.client.list():
            assert info.nbytes == self.things[info.id].what[0]
            assert set(info.names) == {n for n, id in self.names.items() if id == info.id}
        found = self.client.statistics()
        assert found["objects"] >= len(there)
        assert found["unsealed"] == sum(not sealed for sealed in there.values())
        assert found["names"] == len(self.names)
        assert found["memory"]["host"]["used"] <= 4 * MIB
        assert found["breaches"] == found["refused"] == 0
        for where, kept in enumerate(self.kept):
            for key, thing in kept.items():
                assert self.processes[where]("same", key, *thing.what)


ENDS = ("seal", "seal", "abort", "forget")
STEPS = [
    *("create", "put", "end", "end", "get", "get", "get", "use", "use", "use", "copy", "delete"),
    *("get_what_is_not_there", "name", "name", "reopen"),
]


def all_is_ready(client, ready):
    """Whether what is used is what is made ready, in whole pages."""
    host = client.statistics()["memory"]["host"]
    return host["used"] == host["ready"] >= ready and (host["ready"] > 0) == (ready > 0)


def fewest_descriptors(server):
    """How many a server has open when it has noticed that connections have ended."""
    counts = []
    for _ in range(5):
        time.sleep(0.02)
        counts.append(server.descriptors())
    return min(counts)


def wait_until_ready(server, ready):
    with connect(server.path) as client:
        wait_until(lambda: all_is_ready(client, ready))


@pytest.mark.parametrize("ready", [0, 300_000])
def test_random_steps_beside_a_dictionary(tmp_path, ready):
    options = "--limit", "host=4MiB", "--ready", str(ready)
    with ServerProcess(str(tmp_path / "store" / "socket"), *options) as server:
        wait_until_ready(server, ready)
        baseline = fewest_descriptors(server)
        walk = Walk(server, seed := random.randrange(1 << 30))
        try:
            for part in range(scaled(6, 2)):
                for _ in range(40):
                    walk.step()
                walk.check()
                if part % 2:
                    walk.restart()
                    baseline = None
                else:
                    walk.kill(0, walk.processes[0])
                walk.check()
            for process in walk.processes:
                process.kill()
            walk.kept = [{}, {}]
            for info in walk.client.list():
                if info.sealed:
                    walk.client.delete(info.id)
            wait_until(lambda: walk.client.statistics()["objects"] == 0)
            figures = walk.client.statistics()
            assert figures["leases"] == figures["names"] == figures["unsealed"] == 0
            wait_until(lambda: all_is_ready(walk.client, ready))
            walk.client.close()
            if baseline is None:
                server.end(signal.SIGTERM)
                server.start()
                wait_until_ready(server, ready)
                baseline = fewest_descriptors(server)
            wait_until(lambda: server.descriptors() == baseline)
        except BaseException as error:
            error.add_note(f"seed {seed}") if hasattr(error, "add_note") else print(seed)
            raise
        finally:
            for process in walk.processes:
                process.kill()


def test_what_is_copied_is_ones_own(client):
    id = client.put(np.arange(5))
    copied = client.get(id, "malloc")
    assert client.info(id).leases == 0
    copied[0] = 7
    assert client.get(id)[0] == 0
