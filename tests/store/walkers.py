"""Processes that use a store as they are told, and own up to what they find."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import threading
import time
from typing import Any

import numpy as np

from hamr.store import NotSealed, StoreLost, connect

_context = multiprocessing.get_context("spawn")


def content(n: int, seed: int) -> np.ndarray:
    """What an object has."""
    return (np.arange(n, dtype="u4") * (2 * seed + 1) % 251).astype("u1")


def _host(found: Any) -> np.ndarray:
    """The elements as NumPy's array, wherever they are."""
    return found if isinstance(found, np.ndarray) else np.asarray(found.get_host_accessible())


def _same(found: Any, n: int, seed: int) -> bool:
    return bool(np.array_equal(_host(found), content(n, seed)))


class Walker:
    """What a process has: two clients of one server, objects that it makes, and buffers."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.clients = [connect(path) for _ in range(2)]
        self.builders: dict[str, Any] = {}
        self.kept: dict[int, Any] = {}
        self.written: list[Any] = []

    def create(self, client: int, n: int, seed: int, separate: bool, device: int = -1) -> str:
        where = {"device": device} if device >= 0 else {"separate": separate}
        builder = self.clients[client].create(n, "u1", **where)
        builder.buffer[...] = content(n, seed)
        self.builders[builder.id] = builder
        return str(builder.id)

    def put(self, client: int, n: int, seed: int) -> str:
        return str(self.clients[client].put(np.repeat(content(n, seed), 2)[::2]))

    def end(self, id: str, how: str, look: bool) -> None:
        """Seal, abort or forget a builder, of which an array is in use meanwhile."""
        builder = self.builders.pop(id)
        array = _host(builder.buffer) if look and how != "forget" else np.zeros(1)
        if how != "forget":
            getattr(builder, how)()
        assert array.sum() >= 0  # it is still mapped

    def get(self, client: int, id: str, unsafe: bool, key: int, n: int, seed: int) -> bool:
        found = self.clients[client].get(id, unsafe=unsafe)
        self.kept[key] = found
        return _same(found, n, seed) and found.readonly

    def peek(self, client: int, id: str, n: int, seed: int) -> bool | None:
        """Of one that is not sealed, and without keeping it; None where its maker alone has it."""
        try:
            return _same(self.clients[client].get(id, unsafe=True), n, seed)
        except NotSealed:
            return None

    def copy(self, client: int, id: str, n: int, seed: int) -> bool:
        copied = self.clients[client].get(id, "malloc")
        same = _same(copied, n, seed)
        copied[...] = 0
        return same and not copied.readonly

    def view(self, key: int, into: int) -> None:
        made, on_host = self.kept[key], self.kept[key].device < 0
        self.kept[into] = np.asarray(made) if into % 2 and on_host else made.reshape(-1)

    def mirror(self, key: int, n: int, seed: int) -> bool:
        with self.kept[key].mirror() as array:
            return _same(array, n, seed)

    def dumps(self, key: int) -> bytes:
        return pickle.dumps(self.kept[key])

    def loads(self, text: bytes, key: int, n: int, seed: int) -> bool:
        self.kept[key] = pickle.loads(text)
        return _same(self.kept[key], n, seed) and self.kept[key].readonly

    def same(self, key: int, n: int, seed: int) -> bool:
        return _same(self.kept[key], n, seed)

    def drop(self, key: int) -> None:
        del self.kept[key]
        gc.collect()

    def threads(self, id: str, n: int, seed: int) -> bool:
        """Several threads have it at once by one client, and let go of it."""
        found: list[bool] = []

        def have() -> None:
            for _ in range(5):
                found.append(_same(self.clients[0].get(id)[::-1][::-1], n, seed))

        threads = [threading.Thread(target=have) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(found) == 15 and all(found)

    def fork(self, keys: dict[int, tuple[int, int]]) -> bool:
        """A forked child finds what its parent has, and uses its parent's clients."""
        if (child := os.fork()) == 0:
            status = 1
            with contextlib.suppress(BaseException):
                same = all(_same(self.kept[key], *what) for key, what in keys.items())
                self.clients[0].list()
                status = 0 if same else 2
            os._exit(status)
        return os.waitpid(child, 0)[1] == 0

    def leave_a_child(self, go: str, done: str, keys: dict[int, tuple[int, int]]) -> None:
        """A forked child outlives this process, and looks when there is a file ``go``."""
        if os.fork():
            return
        same: object = False
        try:
            os.setsid()
            for _ in range(6000):
                if os.path.exists(go):
                    break
                time.sleep(0.01)
            same = all(_same(self.kept[key], *what) for key, what in keys.items())
        except BaseException as error:
            same = repr(error)
        finally:
            with open(f"{done}.new", "w") as file:
                file.write(str(same))
            os.rename(f"{done}.new", done)
            os._exit(0)

    def call(self, client: int, method: str, *arguments: Any) -> Any:
        return getattr(self.clients[client], method)(*arguments)

    def reopen(self, client: int) -> None:
        self.clients[client].close()
        self.clients[client] = connect(self.path)

    def find(self) -> None:
        """Each client finds the server that there is now, and tells it what it has."""
        from hamr.store.client import _clients

        for client in [*self.clients, *_clients.values()]:
            with contextlib.suppress(StoreLost):
                client.statistics()
            client.statistics()


def _serve(path: str, pipe: Any) -> None:
    walker = Walker(path)
    pipe.send(None)
    while True:
        method, arguments = pipe.recv()
        try:
            result = getattr(walker, method)(*arguments)
        except Exception as error:
            error.__traceback__ = None
            result = error
        pipe.send(result)
        del result


class Process:
    """A Walker in a process of its own."""

    def __init__(self, path: str) -> None:
        self._pipe, theirs = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(path, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._doing = "connect"
        self.result()

    def __call__(self, method: str, *arguments: Any) -> Any:
        self.begin(method, *arguments)
        return self.result()

    def begin(self, method: str, *arguments: Any) -> None:
        """Have it do something meanwhile; ``result`` is what comes of it."""
        self._pipe.send((method, arguments))
        self._doing = f"{method}{arguments}"

    def result(self) -> Any:
        assert self._pipe.poll(60), f"{self._doing} hangs"
        try:
            result = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join(10)
            status = self._process.exitcode
            raise AssertionError(f"{self._doing} ended its process: {status}") from None
        if isinstance(result, Exception):
            raise result
        return result

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
