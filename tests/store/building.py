"""A walk at random of groups that are built in place, beside plain dictionaries."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

import hamr
from hamr.store import ObjectNotFound
from tests.store.trees import same

TYPES = ("uint8", "float32", "int64", "bfloat16", "complex128")
UNIT = 512


def rounded(nbytes: int) -> int:
    return -(-max(nbytes, 1) // UNIT) * UNIT


class Build:
    """A group that is being built, and what it is to be."""

    def __init__(self, client: Any, name: str | None, device: int | None, size: int) -> None:
        self.client, self.name, self.device = client, name, device
        self.space = client.build_group(name, bytes=size, device=device)
        self.size = rounded(size) if size else 0
        self.held: list[Any] = []  # buffers
        self.values: dict[int, Any] = {}  # by address
        self.used: dict[int, int] = {}
        self.expected: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.kept: set[int] = set()  # addresses of what was added

    def free(self) -> int:
        return self.size - sum(self.used.values())

    def fits(self, nbytes: int) -> bool:
        """Whether a piece of memory between two that are used is large enough."""
        at, need = 0, rounded(nbytes)
        base = self.space._base
        for address in sorted(self.used):
            if address - base - at >= need:
                return True
            at = address - base + self.used[address]
        return self.size - at >= need

    def make(self, choose: random.Random) -> Any:
        shape = tuple(choose.randrange(1, 12) for _ in range(choose.randrange(4)))
        dtype = choose.choice(TYPES)
        nbytes = (
            int(np.prod(shape, dtype=int)) * np.dtype(dtype.replace("bfloat", "float")).itemsize
        )
        if not self.fits(nbytes):
            with pytest.raises(hamr.OutOfMemory, match=f"has {self.free()} of its {self.size} b"):
                self.space.empty(shape, dtype)
            return None
        made = self.space.empty(shape, dtype)
        assert made.ptr not in self.used
        made[...] = value = np.array(choose.randrange(100), dtype.replace("bfloat", "float"))
        self.used[made.ptr] = rounded(nbytes)
        self.values[made.ptr] = np.full(shape, value)
        self.held.append(made)
        return made

    def drop(self, choose: random.Random) -> None:
        if self.held:
            gone = self.held.pop(choose.randrange(len(self.held)))
            if gone.ptr not in self.kept:
                del self.used[gone.ptr]
                del self.values[gone.ptr]

    def add(self, choose: random.Random) -> None:
        path = choose.choice(("w", "a.b", "layers")) + str(len(self.expected))
        if self.expected and choose.random() < 0.1:
            with pytest.raises(ValueError, match="was added before"):
                self.space.add(choose.choice(list(self.expected)), 3)
            return
        found = choose.sample(self.held, min(len(self.held), choose.randrange(4)))
        if len(found) == 1 and choose.random() < 0.7:
            metadata = choose.choice((None, {"scale": 2}, 0))
            self.space.add(path, found[0], metadata)
            if metadata is not None:
                self.metadata[path] = metadata
            self.expected[path] = found[0].copy("malloc")
        else:
            tree = {"x": found, "n": choose.choice((None, 3, "text"))}
            self.space.add(path, tree)
            self.expected[path] = {**tree, "x": [each.copy("malloc") for each in found]}
        self.kept.update(each.ptr for each in found)

    def refuse(self, choose: random.Random) -> None:
        wrong: list[Any] = [np.ones(3)]
        for each in self.held:
            if each.nbytes > each.itemsize:
                wrong.append(each.reshape(-1)[1:])
            if each.ndim == 2 and min(each.shape) > 1:
                wrong.append(each.T)
        with pytest.raises(ValueError, match=r"^arrays\['"):
            self.space.add("wrong", {"y": [*self.held[:1], choose.choice(wrong)]})

    def end(self, choose: random.Random) -> None:
        how = choose.choice(("seal", "seal", "with", "abort", "error", "lost"))
        client, id, kept = self.client, self.space.id, [*self.held]
        expected = [self.values[each.ptr] for each in kept]
        if how == "error":
            with pytest.raises(ZeroDivisionError), self.space:
                raise ZeroDivisionError
        elif how == "with":
            with self.space:
                pass
        elif how != "lost":
            getattr(self.space, how)()
        if choose.random() < 0.5:
            kept.clear()
        self.held.clear()
        del self.space
        if how in ("seal", "with"):
            group = client.get_group(self.name if self.name is not None else id)
            assert group.id == id
            assert same(group.tree, self.expected)
            assert all(each.readonly and each.ptr % 256 == 0 for each in group.values())
            assert group.array_metadata == self.metadata
            client.delete(id)
        elif how == "lost":
            del kept[:]
        if how != "lost":
            with pytest.raises(ObjectNotFound):
                client.get_group(id)
        for each, value in zip(kept, expected, strict=False):
            assert same(each, each)
            assert (np.asarray(each.astype("complex128").get()) == value).all()


def walk(client: Any, seed: int, steps: int, device: int | None) -> None:
    choose = random.Random(seed)
    builds: list[Build] = []
    for step in range(steps):
        if not builds or (len(builds) < 3 and choose.random() < 0.1):
            name = f"group {step}" if choose.random() < 0.5 else None
            builds.append(Build(client, name, device, choose.choice((0, 3000, 20_000))))
        build = choose.choice(builds)
        what = choose.choice(("make", "make", "make", "drop", "add", "add", "refuse", "end"))
        if what == "end" and choose.random() < 0.7:
            continue
        getattr(build, what)(choose)
        if what == "end":
            builds.remove(build)
        elif what == "refuse":
            gc.collect()  # of what the exception's frames had
        else:
            assert build.space.free == build.free()
            assert build.space.used == build.size - build.free()
    for build in builds:
        build.space.abort()
