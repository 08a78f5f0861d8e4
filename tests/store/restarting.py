"""Three clients of a server that is killed again and again, beside plain dictionaries."""

from __future__ import annotations

import random
import signal
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

import hamr
from hamr.store import StoreLost, connect

if TYPE_CHECKING:
    from tests.store.serving import ServerProcess

SIZES = (0, 1, 100, 5000, 60_000, 70_000, 200_000)
STEPS = ("server-noted", "server-named", "server-held", "server-learned", "server-sending")


class Held:
    """An object that some client has: what it must be."""

    def __init__(self, value: int, nbytes: int, flags: dict[str, bool]) -> None:
        self.value, self.nbytes, self.flags = value, nbytes, flags
        self.buffers: list[list[Any]] = [[], [], []]

    def is_kept(self) -> bool:
        return any(self.buffers)


class Restarts:
    """What there must be, whatever server there is."""

    def __init__(self, server: ServerProcess, seed: int, devices: tuple[int | None, ...]) -> None:
        self.server, self.choose, self.devices = server, random.Random(seed), devices
        self.clients = [connect(server.path) for _ in range(3)]
        self.objects: dict[str, Held] = {}
        self.names: dict[str, str] = {}
        self.unsure: set[str] = set()  # what a call that was lost may have done: ids and names

    def make(self, at: int) -> None:
        nbytes, value = self.choose.choice(SIZES), self.choose.randrange(256)
        flags = {key: self.choose.random() < 0.5 for key in ("evictable", "pinned")}
        device = self.choose.choice(self.devices)
        try:
            builder = self.clients[at].create(nbytes, "u1", device=device, **flags)
        except hamr.OutOfMemory:  # of a small device
            builder = self.clients[at].create(nbytes, "u1", **flags)
        written = builder.buffer  # its lease lasts until the object was got
        written.fill(value)
        found = self.clients[at].get(builder.seal())
        held = self.objects[builder.id] = Held(value, nbytes, flags)
        held.buffers[at].append(found)

    def step(self) -> None:
        at, id = self.choose.randrange(3), self.choose.choice(list(self.objects))
        change = self.choose.choice(("make", *CHANGES))
        if change == "make":
            self.make(at)
        else:
            getattr(self, change)(at, id)

    def get(self, at: int, id: str) -> None:
        self.objects[id].buffers[at].append(self.clients[at].get(id))

    def release(self, at: int, id: str) -> None:
        if self.objects[id].buffers[at]:
            self.objects[id].buffers[at].pop()

    def put_name(self, at: int, id: str) -> None:
        name = f"name {self.choose.randrange(300)}"
        self.unsure.add(name)
        self.clients[at].put_name(name, id, replace=True)
        self.unsure.discard(name)
        self.names[name] = id

    def drop_name(self, at: int, id: str) -> None:
        if self.names:
            name = self.choose.choice(list(self.names))
            self.unsure.add(name)
            self.clients[at].drop_name(name)
            self.unsure.discard(name)
            del self.names[name]

    def mark(self, at: int, id: str) -> None:
        on = self.choose.random() < 0.5
        key = self.choose.choice(("evictable", "pinned"))
        self.unsure.add(f"flags of {id}")
        if key == "pinned":
            self.clients[at].pin(id, on)
        else:
            self.clients[at].set_evictable(id, on)
        self.unsure.discard(f"flags of {id}")
        self.objects[id].flags[key] = on

    def delete(self, at: int, id: str) -> None:
        if self.choose.random() < 0.3:
            self.unsure.add(id)
            self.clients[at].delete(id)
            self.unsure.discard(id)
            self.forget(id)

    def forget(self, id: str) -> None:
        del self.objects[id]
        self.names = {name: its for name, its in self.names.items() if its != id}

    def kill(self, steps: int) -> None:
        """Have the server end at some time, or at a step of its own, and another one follow."""
        try:
            for _ in range(self.choose.randrange(20, steps)):
                self.step()
        except StoreLost:
            pass
        self.server.end(signal.SIGKILL)
        while True:
            step = self.choose.choice(("", *STEPS))
            self.server.start(f"{step}:{self.choose.randrange(4000)}" if step else "")
            if all(self.finds(client) for client in self.clients):
                break
            self.server.end(signal.SIGKILL)
        self.check()

    def finds(self, client: Any) -> bool:
        for _ in range(2):
            try:
                client.statistics()
                return True
            except StoreLost:
                pass
        return False

    def check(self) -> None:
        for id, held in list(self.objects.items()):
            if not held.is_kept() or id in self.unsure:
                self.forget(id)
        for client in self.clients:
            try:
                there = {str(info.id): info for info in client.list()}
            except StoreLost:  # it has ended at its step
                return
            self.compare(there)
        self.unsure.clear()

    def compare(self, there: dict[str, Any]) -> None:
        assert not [id for id in self.objects if id not in there], "objects were lost"
        names = {name: info.id for info in there.values() for name in info.names}
        for id, held in self.objects.items():
            flags = {"evictable": there[id].evictable, "pinned": there[id].pinned}
            if f"flags of {id}" in self.unsure:
                held.flags = flags
            assert (there[id].sealed, there[id].nbytes, flags) == (True, held.nbytes, held.flags)
        for name in {*self.names, *names} & self.unsure:
            self.names.pop(name, None)
            if names.get(name) in self.objects:
                self.names[name] = names[name]
        known = {name: id for name, id in names.items() if id in self.objects}
        assert known == self.names

    def look(self) -> None:
        """Everything that is kept has its elements."""
        for held in self.objects.values():
            for buffer in chain(*held.buffers):
                assert (buffer.get() == np.full(held.nbytes, held.value, "u1")).all()


CHANGES = ("get", "release", "put_name", "put_name", "drop_name", "mark", "mark", "delete")
