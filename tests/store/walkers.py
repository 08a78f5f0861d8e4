"""Processes that use a store as they are told, and own up to what they find."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import pickle
import threading
from typing import Any

import numpy as np

from hamr.store import NotSealed, StoreLost, connect

_context = multiprocessing.get_context("spawn")


def content(n: int, seed: int) -> np.ndarray:
    """What an object has."""
    return (np.arange(n, dtype="u4") * (2 * seed + 1) % 251).astype("u1")


def _same(found: Any, n: int, seed: int) -> bool:
    return bool(np.array_equal(np.asarray(found), content(n, seed)))


class Walker:
    """What a process has: two clients of one server, objects that it makes, and buffers."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.clients = [connect(path) for _ in range(2)]
        self.builders: dict[str, Any] = {}
        self.kept: dict[int, Any] = {}
        self.written: list[Any] = []

    def create(self, client: int, n: int, seed: int, separate: bool) -> str:
        builder = self.clients[client].create(n, "u1", separate=separate)
        builder.buffer[...] = content(n, seed)
        self.builders[builder.id] = builder
        return str(builder.id)

    def put(self, client: int, n: int, seed: int) -> str:
        return str(self.clients[client].put(np.repeat(content(n, seed), 2)[::2]))

    def end(self, id: str, how: str, look: bool) -> None:
        """Seal, abort or forget a builder, of which an array is in use meanwhile."""
        builder = self.builders.pop(id)
        array = np.asarray(builder.buffer) if look and how != "forget" else np.zeros(1)
        if how != "forget":
            getattr(builder, how)()
        assert array.sum() >= 0  # it is still mapped

    def get(self, client: int, id: str, unsafe: bool, key: int, n: int, seed: int) -> bool:
        found = self.clients[client].get(id, unsafe=unsafe)
        self.kept[key] = found
        return _same(found, n, seed) and found.readonly

    def peek(self, client: int, id: str, n: int, seed: int) -> bool:
        """Of one that is not sealed, and without keeping it."""
        try:
            return _same(self.clients[client].get(id, unsafe=True), n, seed)
        except NotSealed:
            return n < 64 << 10  # in memory of which nobody but its maker has anything yet

    def copy(self, client: int, id: str, n: int, seed: int) -> bool:
        copied = self.clients[client].get(id, "malloc")
        same = _same(copied, n, seed)
        copied[...] = 0
        return same and not copied.readonly

    def view(self, key: int, into: int) -> None:
        self.kept[into] = np.asarray(self.kept[key]) if into % 2 else self.kept[key].reshape(-1)

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

    def __call__(self, method: str, *arguments: Any) -> Any:
        self._pipe.send((method, arguments))
        assert self._pipe.poll(30), f"{method}{arguments} hangs"
        result = self._pipe.recv()
        if isinstance(result, Exception):
            raise result
        return result

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
