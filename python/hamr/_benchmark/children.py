"""Processes that a benchmark talks to while it measures, and a server of the store in one."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from .processes import SECONDS

_CODE = "import sys; from hamr._benchmark import {0}; {0}.{1}(*sys.argv[1:])"


class Child:
    """A process that is told lines by its standard input, and answers by its output."""

    def __init__(self, *command: object, sockets: Iterable[int] = (), **settings: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=[*sockets],
            env={**os.environ, **settings},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._read = b""

    @classmethod
    def of(
        cls, function: str, *arguments: object, sockets: Iterable[int] = (), **settings: str
    ) -> Self:
        """A process that calls ``module.function`` of this folder with texts.

        It inherits ``sockets``, and has environment variables of its own.
        """
        code = _CODE.format(*function.split("."))
        return cls("-c", code, *arguments, sockets=sockets, **settings)

    def tell(self, text: str) -> None:
        """Send it a line, of which it knows when this returns, or about then."""
        os.write(self._to, text.encode() + b"\n")

    def line(self) -> str:
        """Its next line; a RuntimeError where it has ended, or is silent for too long."""
        while b"\n" not in self._read:
            ready, _, _ = select.select([self._from], [], [], SECONDS)
            got = os.read(self._from, 1 << 16) if ready else b""
            if not got:
                state = "it ended" if ready else f"silent for {SECONDS} s"
                raise RuntimeError(f"a process of the benchmark says nothing: {state}")
            self._read += got
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def end(self) -> None:
        """End it, now if it does not by itself when there are no lines any more."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def told() -> Iterator[str]:
    """In a child: what it is told, line by line, each as soon as it was sent."""
    while text := os.read(0, 1 << 16):
        yield text.decode().rstrip("\n")


def answer(*values: object) -> None:
    """In a child: answer by a line."""
    os.write(1, " ".join(map(str, values)).encode() + b"\n")


@contextmanager
def serving(host: int, ready: int = 0, *more: str) -> Iterator[str]:
    """A store in a process of its own, for so many bytes of the host's; its path.

    ``more`` are options of ``hamr store serve``, the last of each of which holds.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store", "socket")
        options = "--socket", path, "--limit", f"host={host}", "--ready", str(ready), *more
        server = _Server("-m", "hamr", "store", "serve", *options)
        try:
            server.line()
            yield path
        finally:
            server.end()


class _Server(Child):
    def end(self) -> None:
        self._process.terminate()
        super().end()
