"""A server of the store by the command line, and other processes that use it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.paths import PATHS


class ServerProcess:
    """``hamr store serve`` at a path, after what a shell does ``before``."""

    _stdin: int | None = None

    def __init__(self, path: str, *options: str, before: str = "") -> None:
        self.path, self._options, self._before = path, options, before
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process is not None:
            self.end(signal.SIGKILL)

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "hamr", "store", "serve", "--socket", self.path]
        if self._before:  # what a shell does first
            command = ["sh", "-c", f'{self._before} && exec "$@"', "sh", *command]
        return [*command, *self._options]

    def start(self, crash_at: str = "") -> None:
        """Start it, and wait until it listens; it may end itself at a step of its own."""
        self.process = subprocess.Popen(
            self._command(),
            stdin=self._stdin,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **PATHS, "HAMR_STORE_CRASH_AT": crash_at},
        )
        assert self.process.stdout is not None
        assert self.path in self.process.stdout.readline()

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; returns its status."""
        process, self.process = self.process, None
        assert process is not None
        process.send_signal(number)
        process.communicate(timeout=30)
        return process.returncode

    def descriptors(self) -> int:
        """How many it has open."""
        assert self.process is not None
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))
