"""One line of the Go code, and what it becomes to show that a test notices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """What to replace in a file, and which package's tests notice."""

    name: str
    file: str
    old: str
    new: str
    package: str = "./gobuffer"
