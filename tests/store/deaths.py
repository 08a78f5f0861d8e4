"""Random steps with deaths of clients and of the server, beside plain dictionaries.

    HAMR_TEST_CUDA=emulator python -m tests.store.deaths [--steps 50000] [--seed N]

Clients and servers are killed at any moment, also while a call is under way, and leave forked
children behind. What somebody alive has, names and marks are as the last answer said, whatever has
been killed. The server has few descriptors, or a folder to spill to that is full, or devices.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hamr.store import ObjectNotFound, StoreFull, StoreLost
from tests.store.serving import ServerProcess
from tests.store.test_store_walk import STEPS, Thing, Walk
from tests.store.walkers import Process
from tests.support import emulation
from tests.support.processes import wait_until


class ForkingServer(ServerProcess):
    """A server in a program that forks; its options are the Server's, in JSON."""

    _stdin = subprocess.PIPE

    def __init__(self, path: str, command: tuple[str, ...] = (), **options: object) -> None:
        super().__init__(path)
        self._before_it = command
        self._server, self.children = json.dumps(options), []

    def _command(self) -> list[str]:
        module = "-m", "tests.store.forking", self.path, self._server
        return [*self._before_it, sys.executable, *module]

    def fork(self) -> None:
        """Leave a child behind, which lives until all is over."""
        self.process.stdin.write("fork\n")
        self.process.stdin.flush()
        self.children.append(int(self.process.stdout.readline()))
        if len(self.children) > 3:
            os.kill(self.children.pop(0), signal.SIGKILL)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


class Deaths(Walk):
    """A Walk whose server dies as its clients do."""

    def __init__(self, server: ServerProcess, seed: int, folder: Path, devices: bool) -> None:
        super().__init__(server, seed)
        self.devices = devices
        self.folder, self.kills, self.restarts = folder, 0, 0

    def step(self) -> None:
        where = self.choose.randrange(len(self.processes))
        getattr(self, self.choose.choice(MORE))(where, self.processes[where])

    def full(self, error: StoreFull, n: int) -> None:
        """There may be no room, no descriptor or no disk: the words say which."""

    def mark(self, where: int, process: Process) -> None:
        """Pins and what may be evicted: no object is evicted here, but the marks stay."""
        if thing := self.one():
            pinned = self.choose.random() < 0.5
            process("call", self.choose.randrange(2), "pin", thing.id, pinned)
            thing.pinned = pinned

    def replace(self, where: int, process: Process) -> None:
        """A name is another object's from now on, for whoever had the one before, too."""
        if self.names and (thing := self.one()):
            name = self.choose.choice(list(self.names))
            process("call", self.choose.randrange(2), "put_name", name, thing.id, True)
            self.names[name] = thing.id

    def create(self, where: int, process: Process) -> None:
        if not self.devices or self.choose.random() < 0.5:
            super().create(where, process)
            return
        before = set(self.things)
        self.made(where, process, "create", False, 0)
        for id in set(self.things) - before:
            self.things[id].on_device = True

    def get(self, where: int, process: Process) -> None:
        with contextlib.suppress(StoreFull):  # it was spilled, and all else is had
            super().get(where, process)

    def copy(self, where: int, process: Process) -> None:
        with contextlib.suppress(StoreFull):
            super().copy(where, process)

    def fork(self, where: int, process: Process) -> None:
        """A forked child has no devices."""
        keys = {k: t.what for k, t in self.kept[where].items() if not t.on_device}
        assert process("fork", keys)

    def kill_a_parent(self, where: int, process: Process) -> None:
        """Its child keeps what was mapped, and has no lease."""
        kept = self.kept[where].items()
        keys = {k: t.what for k, t in kept if t.what[0] >= 64 << 10 and not t.on_device}
        go, done = (str(self.folder / f"{name} {self.kills}") for name in ("go", "done"))
        process("leave_a_child", go, done, keys)
        self.kill(where, process)
        Path(go).touch()
        wait_until(lambda: Path(done).exists())
        assert Path(done).read_text() == "True"

    def kill(self, where: int, process: Process) -> None:
        self.kills += 1
        super().kill(where, process)

    def fork_the_server(self, where: int, process: Process) -> None:
        self.server.fork()

    def held(self) -> set[str]:
        """What somebody alive has: a lease of it, or its builder."""
        had = {t.id for kept in self.kept for t in kept.values() if not t.deleted}
        return had | {t.id for t in self.things.values() if not (t.sealed or t.deleted)}

    def restart(self, where: int = 0, process: Process | None = None) -> None:
        """Another server has what living processes have, and it is as it was."""
        self.server.end(signal.SIGKILL)
        self.again()

    def again(self, perhaps: Thing | None = None, named: str | None = None) -> None:
        """A new server; of what was under way when the old one died, either may be so."""
        self.restarts += 1
        self.server.start()
        with contextlib.suppress(StoreLost):
            self.client.statistics()
        had = self.held()
        either = {perhaps.id} & had if perhaps else set()

        def is_told() -> bool:
            there = {info.id for info in self.client.list()}
            return had - either <= there <= had

        wait_until(is_told)
        if either and not self.client.exists(perhaps.id):  # which waits for what others may tell
            had -= either
        for thing in self.things.values():
            thing.deleted = thing.deleted or thing.id not in had
        if named is not None:
            self.names.pop(named, None)
            with contextlib.suppress(ObjectNotFound):
                self.names[named] = self.client.get_name(named)
        self.names = {name: id for name, id in self.names.items() if id in had}

    def die_under_way(self, where: int, process: Process) -> None:
        """The server is killed while a call is under way."""
        thing, name = self.one(), f"name {self.choose.randrange(4)}"
        client, how = self.choose.randrange(2), self.choose.randrange(6)
        n, self.seeds = 70_000, self.seeds + 1
        perhaps = named = key = None
        if how == 0 or thing is None:
            process.begin("create", client, n, self.seeds, False)
        elif how == 1:
            process.begin("put", client, n, self.seeds)
        elif how == 2:
            process.begin("get", client, thing.id, False, key := self.key(), *thing.what)
        elif how == 3:
            perhaps = thing
            process.begin("call", client, "delete", thing.id)
        elif how == 4:
            named = name
            process.begin("call", client, "put_name", name, thing.id, True)
        elif name in self.names:
            named = name
            process.begin("call", client, "drop_name", name)
        else:
            process.begin("call", client, "statistics")
        time.sleep(self.choose.choice((0, 0.0002, 0.0005, 0.001, 0.003)))
        self.server.end(signal.SIGKILL)
        try:
            result = process.result()
        except StoreFull:
            self.again()
        except StoreLost:
            self.again(perhaps, named)
        else:
            if isinstance(result, str) and (how == 0 or thing is None):
                self.things[result] = Thing(result, n, self.seeds, where)
            elif key is not None:
                assert result
                self.kept[where][key], self.tells[key] = thing, client
            elif perhaps is not None:
                thing.deleted = True
            elif how == 4:
                self.names[name] = thing.id
            elif named is not None:
                del self.names[name]
            self.names = {n: id for n, id in self.names.items() if not self.things[id].deleted}
            self.again()

    def check(self) -> None:
        """Each name is of what it was given to last, and all that is kept is what it was."""
        there = {t.id: t.sealed for t in self.things.values() if not t.deleted}
        wait_until(lambda: {i.id: i.sealed for i in self.client.list()} == there)
        for info in self.client.list():
            assert info.nbytes == self.things[info.id].what[0]
            assert set(info.names) == {n for n, id in self.names.items() if id == info.id}
            assert info.pinned == getattr(self.things[info.id], "pinned", False)
        found = self.client.statistics()
        assert found["names"] == len(self.names)
        assert found["breaches"] == found["refused"] == 0
        for where, kept in enumerate(self.kept):
            for key, thing in kept.items():
                assert self.processes[where]("same", key, *thing.what)


MORE = [
    *(3 * STEPS),
    *("mark", "mark", "replace", "replace", "fork", "kill", "kill_a_parent"),
    *("restart", "die_under_way", "die_under_way", "fork_the_server"),
]


def few_descriptors(folder: Path) -> ServerProcess:
    before = "sh", "-c", 'ulimit -n 96; exec "$@"', "sh"
    return ForkingServer(str(folder / "socket"), before, limit="host=64MiB")


def full_disk(folder: Path) -> ServerProcess:
    """What is spilled finds a disk of 1 MiB, where a process may mount one."""
    spill = folder / "spill"
    spill.mkdir()
    mount = f"mount -t tmpfs -o size=1m,mode=0700 none {spill}"
    before = "unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"
    return ForkingServer(str(folder / "socket"), before, limit="host=4MiB", spill=str(spill))


def roomy(folder: Path) -> ServerProcess:
    return ForkingServer(str(folder / "socket"), limit="host=8MiB")


def spilled_devices(folder: Path) -> ServerProcess:
    """A device of eight units, of which objects are written to files."""
    options = {"spill": str(folder / "spill"), "spill_devices": True}
    return ForkingServer(str(folder / "socket"), limit="host=4MiB,gpu=16MiB", **options)


SERVERS = {"roomy": roomy, "few_descriptors": few_descriptors, "full_disk": full_disk}
#: Where the driver is emulated, or there is a device.
DEVICES = {"spilled_devices": spilled_devices} if emulation.CHOSEN else {}


def walk(kind: str, steps: int, seed: int) -> Deaths:
    """So many steps with a server of a kind; an AssertionError says what was lost."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        place.mkdir(mode=0o700)
        with (SERVERS | DEVICES)[kind](place) as server:
            found = Deaths(server, seed, Path(folder), kind in DEVICES)
            try:
                for number in range(steps):
                    found.step()
                    if number % 20 == 19:
                        found.check()
                found.check()
            except BaseException as error:
                print(f"{kind}, seed {seed}: {error!r}", file=sys.stderr)
                raise
            finally:
                for process in found.processes:
                    process.kill()
                found.client.close()
            return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--kind", choices=SERVERS | DEVICES)
    options = parser.parse_args()
    emulation.choose()
    done = kills = restarts = 0
    while done < options.steps:
        kinds = list(SERVERS | DEVICES)
        kind = options.kind or kinds[options.seed % len(kinds)]
        found = walk(kind, steps := min(500, options.steps - done), options.seed)
        done, options.seed = done + steps, options.seed + 1
        kills, restarts = kills + found.kills, restarts + found.restarts
        print(f"{done} steps, {kills} clients and {restarts} servers killed", flush=True)


if __name__ == "__main__":
    main()
