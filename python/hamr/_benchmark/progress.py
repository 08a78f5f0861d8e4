"""A line on a terminal that tells how far a measurement is; nothing where there is no terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

WIDTH = 24  # characters


class Bar:
    """Parts with the seconds that each may take, and what is being measured."""

    def __init__(self, expected: list[float], stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.expected, self.done = expected, 0
        self.started = self.part_started = time.monotonic()

    def part(self, number: int) -> None:
        """The part of this number begins."""
        self.done, self.part_started = number, time.monotonic()

    def show(self, title: str) -> None:
        """What is measured next."""
        if not self.shown:
            return
        now = time.monotonic()
        full = round(WIDTH * self.fraction(now - self.part_started))
        head = f"[{'#' * full}{'.' * (WIDTH - full)}] {now - self.started:4.0f} s  "
        room = shutil.get_terminal_size().columns - 1
        self.stream.write(f"\r\x1b[K{head + title:.{max(room, 1)}}")
        self.stream.flush()

    def fraction(self, seconds: float) -> float:
        """How much is done, when the present part has taken so many seconds."""
        if self.done >= len(self.expected):
            return 1.0
        part = self.expected[self.done]
        before = sum(self.expected[: self.done])
        return (before + min(seconds, 0.95 * part)) / sum(self.expected)

    def end(self) -> None:
        """Take the line away."""
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
