"""What the program of library_walk.py keeps in order itself, between hamr and two libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.cuda import driver
from tests.cuda.scripts.walking_library import LibraryStream, order
from tests.support.dlpack_consumer import Consumed


class Root:
    """Memory, and the streams of libraries that have work on it."""

    def __init__(self) -> None:
        self.readers: list[LibraryStream] = []
        self.writers: list[LibraryStream] = []


class Held:
    """An array of hamr's and the values that it must have."""

    def __init__(
        self, array: Any, model: np.ndarray, root: Root, stream: LibraryStream | None = None
    ) -> None:
        self.array, self.model, self.root = array, model, root
        self.stream = stream  # which it was given as a plain number
        self.capsule: Consumed | None = None

    @property
    def usable(self) -> bool:
        """A stream that has ended is nothing that a caller may ask for work on."""
        return self.stream is None or not self.stream.ended

    def __str__(self) -> str:
        array = self.array
        stream = f" on {array._stream:#x}" if array._stream else ""
        return f"{array.allocator.name}:{array.device} {self.model.size} at {array.ptr:#x}{stream}"


class Ordered:
    """What is held, and what has to be over before others use the same memory."""

    def __init__(self) -> None:
        self.held: list[Held] = []

    def tell(self, stream: LibraryStream, held: Held) -> None:
        """What hamr does next with the memory comes after what a library has enqueued."""
        array = held.array
        if stream.ended:
            with driver.on(stream.device):
                driver.do("cuCtxSynchronize")
        elif array.device < 0 and not array._stream:
            stream.synchronize()
        else:
            device = held.stream.device if held.stream else max(array.device, 0)
            order(device, array._stream or driver.LEGACY, stream.device, stream.handle)

    def ready(self, held: Held, writes: bool = False) -> None:
        """Before hamr uses the memory of something."""
        for stream in held.root.writers:
            self.tell(stream, held)
        held.root.writers = [s for s in held.root.writers if not s.ended]
        if writes:
            for stream in held.root.readers:
                self.tell(stream, held)
            held.root.readers = []

    def follow(self, stream: LibraryStream, held: Held, writes: bool = False) -> None:
        """Before a library uses the memory: wait as the protocol, and the other library, ask."""
        if held.capsule is None and held.array.device >= 0:
            named = held.array.__cuda_array_interface__["stream"]
            if named is not None:
                stream.follow(named, held.array.device)
        elif held.capsule is None:
            held.array.synchronize()
        for other in (*held.root.writers, *(held.root.readers if writes else ())):
            if other.ended:
                with driver.on(other.device):
                    driver.do("cuCtxSynchronize")
            elif other is not stream:
                stream.follow(other.handle, other.device)

    def wrote(self, stream: LibraryStream, held: Held) -> None:
        """What a program tells hamr of a write by a library."""
        held.root.writers, held.root.readers = [stream], []
        self.tell(stream, held)
        for each in self.held:
            if each.root is held.root:
                each.array.changed()


def same(found: Any, model: np.ndarray) -> None:
    """What hamr has, and what it must be."""
    found = np.asarray(found)
    wrong = np.flatnonzero(found != model)
    at = wrong[0] if wrong.size else 0
    assert not wrong.size, (
        f"hamr has {found.flat[at]} for {model.flat[at]} at {at}, "
        f"{wrong.size} of {model.size} elements are wrong"
    )
