"""Processes that share buffers with each other and with the tests, which tell them what to do.

A test has one end of a socket, the process the other: a pickle says what to do, and what comes back
is the result.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
from typing import Any

import numpy as np

import hamr
from tests.support.paths import PATHS, ROOT


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class Sharer:
    """What a process does; each method is a word that a test sends."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.held: dict[str, Any] = {}
        self.handles: list[hamr.SharedHandle] = []
        self.children: list[int] = []

    def make(self, name, shape, dtype, allocator, device, value):
        self.held[name] = hamr.Buffer(shape, dtype, allocator, device=device, fill=value)

    def part(self, name, of, index):
        self.held[name] = self.held[of][index]

    def fill(self, name, value):
        self.held[name].fill(value)
        self.held[name].synchronize()

    def read(self, name):
        found = self.held[name]
        return found.shape, str(found.dtype), found.readonly, found.device, found.get().tolist()

    def drop(self, name):
        del self.held[name]
        gc.collect()

    def open_often(self, times):
        """Open what the test sends next again and again; the sums of its elements."""
        frame, descriptors, _, _ = socket.recv_fds(self.connection, 4096, 4)
        sums = set()
        for _ in range(times):
            found = hamr.open_shared(frame, descriptors)
            sums.add(total(found))
            del found
        for each in descriptors:
            os.close(each)
        return sums

    def drop_and_die(self, name):
        del self.held[name]
        os.kill(os.getpid(), signal.SIGKILL)

    def drop_and_fork(self, name):
        """The child is there until `end_children`, and makes no call of hamr's."""
        reader, writer = os.pipe()
        del self.held[name]
        if not os.fork():
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        os.close(reader)
        self.children.append(writer)

    def fork(self, plainly):
        """The child is there until `end_children`; plainly: C forks, and Python is not told."""
        reader, writer = os.pipe()
        if not (ctypes.PyDLL(None).fork() if plainly else os.fork()):
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        os.close(reader)
        self.children.append(writer)

    def end_children(self):
        while self.children:
            os.close(self.children.pop())
            os.wait()

    def keep(self, name, **how):
        """Make a handle that stays here."""
        self.handles.append(self.held[name].share(**how))
        return len(self.handles[-1].descriptors), self.handles[-1].copied

    def let_go(self):
        while self.handles:
            self.handles.pop().close()

    def share(self, name, **how):
        """Say whether it was a copy, and send the handle after it."""
        with self.held[name].share(**how) as handle:
            self.connection.send(pickle.dumps(handle.copied))
            handle.send(self.connection)

    def open(self, name):
        """Open what the test sends next."""
        self.held[name] = hamr.open_shared(self.connection)
        return self.held[name].ptr != 0

    def fails(self, name, **how):
        try:
            self.held[name].share(**how)
        except ValueError as error:
            return str(error)

    def live(self, allocator):
        found = hamr.stats()["allocators"].get(allocator, {"live": 0, "adopted": 0})
        return found["live"], found["adopted"]

    def files(self):
        gc.collect()
        return open_files()


def serve(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as connection:
        sharer = Sharer(connection)
        while told := connection.recv(4096):
            word, arguments, how = pickle.loads(told)
            reply = getattr(sharer, word)(*arguments, **how)
            if word != "share":
                connection.send(pickle.dumps(reply))


class Process:
    """Another process, which ends with the block; `process.read("a")` has it do so."""

    def __init__(self, **settings: str) -> None:
        self.connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(60)
        with other:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-X",
                    "faulthandler",
                    "-m",
                    "tests.support.sharers",
                    str(other.fileno()),
                ],
                pass_fds=[other.fileno()],
                cwd=ROOT,
                env={**os.environ, **PATHS, **settings},
            )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.close()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()

    def __getattr__(self, word: str) -> Any:
        if word.startswith("_"):
            raise AttributeError(word)

        def ask(*arguments: Any, **how: Any) -> Any:
            self.tell(word, *arguments, **how)
            return self.reply()

        return ask

    def tell(self, word: str, *arguments: Any, **how: Any) -> None:
        self.connection.send(pickle.dumps((word, arguments, how)))

    def reply(self) -> Any:
        told = self.connection.recv(1 << 20)
        assert told, "the process has ended"
        return pickle.loads(told)

    def values(self, name: str) -> list[Any]:
        found: list[Any] = self.read(name)[-1]
        return found

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def opens(self, handle: hamr.SharedHandle, name: str = "a") -> None:
        self.tell("open", name)
        handle.send(self.connection)
        self.reply()

    def shared(self, name: str, **how: Any) -> hamr.Buffer:
        """What it shares, opened here."""
        self.share(name, **how)
        return hamr.open_shared(self.connection)

    def hands(self, other: Process, name: str, **how: Any) -> bool:
        """Have another one open, by the same name, what this one shares; whether it was a copy."""
        copied = bool(self.share(name, **how))
        frame, descriptors, _, _ = socket.recv_fds(self.connection, 4096, 4)
        other.tell("open", name)
        socket.send_fds(other.connection, [frame], descriptors)
        for each in descriptors:
            os.close(each)
        other.reply()
        return copied


def total(buffer: hamr.Buffer) -> float:
    return float(np.asarray(buffer.get()).sum())


if __name__ == "__main__":
    serve(int(sys.argv[1]))
