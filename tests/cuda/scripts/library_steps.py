"""The steps of library_walk.py: what hamr and two libraries do with the same memory."""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import numpy as np

import hamr
from tests.cuda import driver
from tests.cuda.scripts.library_order import Held, Ordered, Root, same
from tests.cuda.scripts.walking_library import Library, LibraryStream, Room
from tests.support.dlpack_consumer import Consumed

ALLOCATORS = ("malloc", "cpp", "cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm")
OF_THE_HOST = ("malloc", "cpp", "cuda_host")
KEPT, TAKEN = 6, 6


class Walk(Ordered):
    """Each method of STEPS is a step, with the choices that its own seed makes."""

    def __init__(self, rooms: list[Room], count: int) -> None:
        self.rooms, self.count = rooms, count
        self.libraries = [Library("A", rooms), Library("B", rooms)]
        super().__init__()
        self.told: list[str] = []
        for room in rooms:
            room.used = 0

    def step(self, name: str, seed: int) -> None:
        self.choose = random.Random(seed)
        self.library = self.choose.choice(self.libraries)
        self.told.append(name)
        getattr(self, name)()

    def say(self, *words: object) -> None:
        self.told[-1] += " " + " ".join(map(str, words))

    # Choices.

    def values(self, count: int) -> np.ndarray:
        first = driver.fresh_value() % 4096
        return np.arange(first, first + count, dtype="f4")

    def device(self) -> int:
        return self.choose.randrange(len(self.rooms))

    def some(self) -> Held | None:
        """A buffer that may be used, or a part of one."""
        usable = [h for h in self.held if h.usable]
        if not usable:
            return None
        held = self.choose.choice(usable)
        return held if self.choose.random() < 0.8 else self.part(held)

    def part(self, held: Held) -> Held:
        key = self.choose.choice((np.s_[1:], np.s_[: self.count // 2], np.s_[::2], np.s_[...]))
        return Held(held.array[key], held.model[key], held.root, held.stream)

    def a_stream(self, device: int) -> tuple[Any, LibraryStream | None]:
        """What stream= gets, and the stream of which that keeps nothing."""
        way = self.choose.choice(("none", "own", "library's", "library's"))
        if way == "none":
            return None, None
        if way == "own":
            return hamr.Stream(device=device), None
        stream = self.library.stream(device)
        if stream.owner is None:
            return stream.handle, stream
        return stream.owner, None

    # Buffers.

    def keep(self, held: Held) -> None:
        if len(self.held) < KEPT:
            self.held.append(held)
        else:
            self.held[self.choose.randrange(KEPT)] = held

    def make(self) -> None:
        allocator, device = self.choose.choice(ALLOCATORS), self.device()
        stream, lent = self.a_stream(device)
        model = self.values(self.count)
        where = {} if allocator in OF_THE_HOST else {"device": device}
        transfer = self.choose.choice(("async", "async", "sync_host"))
        array = hamr.Buffer(
            self.count,
            "f4",
            allocator,
            data=model.copy(),
            stream=stream,
            transfer=transfer,
            **where,
        )
        held = Held(array, model, Root(), lent)
        self.say(held)
        self.keep(held)

    def adopt(self) -> None:
        """An array of a library's, which is still being written."""
        device, value = self.device(), float(driver.fresh_value() % 4096)
        stream, lent = self.a_stream(device)
        shown = self.library.array(device, self.count, value)
        if shown is None:
            return
        array = hamr.buffer(shown, stream=stream)
        held = Held(array, np.full(self.count, value, "f4"), Root(), lent)
        self.say(held)
        self.keep(held)

    def view(self) -> None:
        if held := self.some():
            self.say(held)
            self.keep(self.part(held))

    def copied(self) -> None:
        if held := self.some():
            self.ready(held)
            allocator = self.choose.choice(ALLOCATORS)
            where = {} if allocator in OF_THE_HOST else {"device": self.device()}
            array = held.array.copy(allocator, **where)
            lent = held.stream if array._stream else None
            made = Held(array, np.array(held.model), Root(), lent)
            self.say(held, "to", made)
            self.keep(made)

    def assign(self) -> None:
        """Elements of something else, as hamr copies them."""
        held, other = self.some(), self.some()
        if held and other and held.array.shape == other.array.shape and held.root is not other.root:
            self.say(held, "from", other)
            self.ready(other)
            self.ready(held, writes=True)
            held.array[...] = other.array
            held.model[...] = other.model

    def fill(self) -> None:
        if held := self.some():
            self.say(held)
            self.ready(held, writes=True)
            value = driver.fresh_value() % 4096
            held.array.fill(value)
            held.model[...] = value

    def move(self) -> None:
        """The other ones of the same memory keep it."""
        held = self.choose.choice(self.held) if self.held else None
        if held is None or not held.usable:
            return
        self.ready(held)
        before, allocator = held.array.ptr, self.choose.choice(ALLOCATORS)
        where = {} if allocator in OF_THE_HOST else {"device": self.device()}
        self.say(held, "to", allocator, where)
        held.array.move(allocator, **where)
        if held.array.ptr != before:
            held.model, held.root = np.array(held.model), Root()
        if not held.array._stream:
            held.stream = None

    def cache(self) -> None:
        if held := self.some():
            kept = self.choose.random() < 0.6
            self.say(held, kept)
            held.array.cached(kept)

    def changed(self) -> None:
        if held := self.some():
            self.say(held)
            held.array.changed()

    def read(self) -> None:
        if held := self.some():
            self.say(held)
            self.ready(held)
            same(held.array.get(), held.model)

    def drop(self) -> None:
        if self.held:
            held = self.held.pop(self.choose.randrange(len(self.held)))
            self.say(held)
            if self.choose.random() < 0.5:
                held.array.close()

    # What libraries are given.

    def given(self) -> Held | None:
        """A handle, or DLPack's capsule of one, of a buffer, a part, or a cast of it."""
        held = self.some()
        if held is None:
            return None
        self.ready(held)
        device, source = self.device(), held
        if self.choose.random() < 0.15:
            cast = held.array.astype("i4").astype("f4")
            source = Held(cast, np.array(held.model), Root(), held.stream if cast._stream else None)
        handle = source.array.get_cuda_accessible(device)
        shares = handle.ptr == source.array.ptr
        lent = source.stream if handle._stream else None
        if shares:
            taken = Held(handle, source.model, source.root, lent)
        else:
            taken = Held(handle, np.array(source.model), Root(), lent)
        self.say(source, "given to", self.library.name, "as", taken)
        if not handle.is_contiguous:
            return None
        if self.choose.random() < 0.3:
            stream = self.library.stream(max(handle.device, 0))
            taken.capsule = Consumed(handle, stream.handle)
            self.say("by DLPack")
        return taken

    def use(self, taken: Held) -> None:
        """Read, or write, on the library's own stream."""
        array = taken.array
        stream = self.library.stream(array.device)
        if taken.capsule is not None:
            taken.capsule = self.again(taken, stream)
        writes = not array.readonly and self.choose.random() < 0.3
        self.follow(stream, taken, writes)
        if writes:
            value = float(driver.fresh_value() % 4096)
            self.say("written", value, "on", hex(stream.handle))
            self.library.write(array.device, array.ptr, taken.model.size, value)
            taken.model[...] = value
            self.wrote(stream, taken)
        else:
            self.say("read on", hex(stream.handle))
            self.library.read(array.device, array.ptr, taken.model, self.told[-1])
            taken.root.readers.append(stream)

    def again(self, taken: Held, stream: LibraryStream) -> Consumed:
        """Ask anew, so that the library's stream waits for what was done meanwhile."""
        new = Consumed(taken.array, stream.handle)
        assert taken.capsule is not None
        taken.capsule.end()
        return new

    def take(self) -> None:
        """Given, used, and kept or dropped."""
        if taken := self.given():
            self.use(taken)
            if self.choose.random() < 0.4 and len(self.library.taken) < TAKEN:
                self.library.taken.append(taken)
            else:
                self.let_go(taken)

    def use_again(self) -> None:
        usable = [t for t in self.library.taken if t.usable]
        if usable:
            taken = self.choose.choice(usable)
            self.say(taken)
            self.use(taken)

    def leave(self) -> None:
        if self.library.taken:
            at = self.choose.randrange(len(self.library.taken))
            self.say(self.library.taken[at])
            self.let_go(self.library.taken.pop(at))

    def let_go(self, taken: Held) -> None:
        if taken.capsule is not None:
            if self.choose.random() < 0.5:
                taken.array.close()
            taken.capsule.end()
            taken.capsule = None
        elif self.choose.random() < 0.5:
            taken.array.close()
        self.say("let go")

    def pinned(self) -> None:
        """A library copies from or to page-locked memory, whose address it has."""
        found = [h for h in self.held if h.usable and h.array.allocator.name == "cuda_host"]
        if not found:
            return
        held, device = self.choose.choice(found), self.device()
        if not held.array.is_contiguous:
            return
        stream, writes = self.library.stream(device), self.choose.random() < 0.4
        self.ready(held, writes)
        held.array.synchronize()
        self.follow(stream, held, writes)
        if writes:
            value = float(driver.fresh_value() % 4096)
            self.say(held, "written", value, "on", hex(stream.handle))
            if self.library.fill(device, held.array.ptr, held.model.size, value):
                held.model[...] = value
                self.wrote(stream, held)
        else:
            self.say(held, "read on", hex(stream.handle))
            self.library.copy(device, held.array.ptr, held.model, self.told[-1])
            held.root.readers.append(stream)

    def lend(self) -> None:
        """A block in which libraries work: what only reads need not be over at its end."""
        held = self.some()
        if held is None or held.array.readonly:
            return
        device = self.device()
        self.say(held)
        self.ready(held, writes=True)
        with held.array.on_cuda("rw", device) as handle:
            if handle.is_contiguous:
                shares = handle.ptr == held.array.ptr
                root = held.root if shares else Root()
                lent = held.stream if handle._stream else None
                inside = Held(handle, np.array(held.model), root, lent)
                for library in self.libraries:
                    self.library = library
                    self.use(inside)
                held.model[...] = inside.model
                self.ready(inside, writes=shares)

    # The end of things.

    def end_stream(self) -> None:
        """A library ends a stream, now or with whoever has it last."""
        streams = self.library.streams
        if not streams:
            return
        stream = streams.pop(self.choose.choice(sorted(streams)))
        self.say(hex(stream.handle), "by number" if stream.owner is None else "with its object")
        if stream.owner is None:
            self.end_ordered(stream)
        beside = threading.Thread(target=hamr.trim)
        trims = self.choose.random() < 0.2
        if trims:
            self.say("while another thread trims")
            beside.start()
        if stream.owner is None:
            stream.end()
        else:
            stream.owner = None
        if trims:
            beside.join()

    def end_ordered(self, stream: LibraryStream) -> None:
        """What is given back on a stream has to be gone before that."""
        for each in (self.held, *(library.taken for library in self.libraries)):
            for held in [h for h in each if h.stream is stream]:
                if held.array.allocator.name == "cuda_async":
                    each.remove(held)
                    self.let_go(held)

    def trim(self) -> None:
        gc.collect()
        hamr.trim()

    def look(self) -> None:
        """At what a library made."""
        self.library.check(self.device() if self.choose.random() < 0.5 else None)

    def finish(self) -> None:
        """All values are right still, and everything ends, in any order."""
        self.told.append("finish")
        self.choose = random.Random(len(self.told))
        for library in self.libraries:
            library.check()
        for held in self.held:
            if held.usable:
                self.ready(held)
                same(held.array.get(), held.model)
        rest = [*self.held, *self.libraries[0].taken, *self.libraries[1].taken]
        self.choose.shuffle(rest)
        while rest:
            self.let_go(rest.pop())
        self.held = []
        for library in self.libraries:
            library.taken, library.results, library.streams = [], [], {}

    STEPS = (
        *("take", "take", "take", "take", "take", "use_again", "use_again", "leave", "leave"),
        *("make", "make", "adopt", "view", "copied", "assign", "fill", "move", "cache", "changed"),
        *("read", "drop", "drop", "pinned", "lend", "end_stream", "end_stream", "trim", "look"),
    )
