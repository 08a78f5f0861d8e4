"""The steps of runtimes_walk.py, each on a buffer and on NumPy's array beside it."""

import contextlib
import gc

import numpy as np

import hamr
from tests.pairs.scripts import late_work
from tests.pairs.scripts.mixed_buffers import (
    LARGEST,
    TRANSFERS,
    TYPES,
    Held,
    Mixed,
    describe,
    space_of,
)

KEPT, HANDLES = 12, 12


class Walk(Mixed):
    """Each method is a step, but what has no argument."""

    def step(self, steps=None):
        self.touched = []
        if len(self.buffers) < KEPT:
            self.buffers.append(self.new())
            self.say("new", repr(self.buffers[-1].array))
            return
        held = self.choose.choice(self.buffers)
        act = self.choose.choice(steps or self.STEPS)
        self.say(act.__name__, self.buffers.index(held), describe(held))
        self.touched = [held]
        act(self, held)

    def read(self, held):
        array, model = self.part(held)
        way = self.choose.randrange(3)
        if way == 0:
            self.check(array.get(), model)
        elif way == 1:
            out = np.full(model.shape, 101, model.dtype)
            array.get(out)
            self.check(out, model)
        else:
            self.check(array.get_host_accessible(), model)

    def ask(self, held):
        """A handle, which is kept."""
        array, model = self.part(held) if self.choose.random() < 0.4 else (held.array, held.model)
        space = self.choose.choice(self.spaces)
        device = None
        if space == "host":
            handle = array.get_host_accessible()
        else:
            device = self.choose.choice((None, *self.devices[space]))
            refused = (
                space == "opencl" and array.allocator.name == "opencl_svm" and self.mapped(held)
            )
            if refused:
                with contextlib.suppress(ValueError):
                    handle = getattr(array, f"get_{space}_accessible")(array.device)
                    raise AssertionError("the host has it mapped")
                return
            handle = getattr(array, f"get_{space}_accessible")(-1 if device is None else device)
        own = space == space_of(array.allocator.name) and device in (None, array.device)
        self.say("handle", space, device, handle.is_temporary, hex(handle.ptr))
        if model.size:
            maps = array.allocator.name == "opencl_svm" and space == "host"
            if not maps and not array.accessible(space):
                assert handle.is_temporary, "where the buffer says that nobody reaches it"
            if (
                maps
                or (own and device is not None)
                or (space == "host" and array.accessible("host"))
            ):
                assert not handle.is_temporary, "where the buffer says that it is reached"
        self.handles.append(Held(handle, model.copy() if handle.is_temporary else model, space))
        if len(self.handles) > HANDLES:
            self.look(held)

    def look(self, held):
        """At some handle, which ends then, perhaps."""
        if not self.handles:
            return
        at = self.choose.randrange(len(self.handles))
        chosen = self.handles[at]
        self.say("look at", describe(chosen))
        if self.choose.random() < 0.7:
            self.check(chosen.array.get(), chosen.model)
        if len(self.handles) > HANDLES or self.choose.random() < 0.4:
            del self.handles[at]
            chosen.array.close()

    def late(self, held):
        """Another library writes later, on the stream that the buffer or a handle of it names."""
        array, model = held.array, held.model
        svm = array.allocator.name == "opencl_svm" and self.mapped(held)
        if array.readonly or not model.size or not array.is_contiguous or svm:
            return
        value = self.choose.choice((0, 63, 64))
        expected = np.full(model.nbytes, value, "u1").view(model.dtype).reshape(model.shape)
        way, space, device = self.choose.randrange(3), space_of(array.allocator.name), array.device
        if way == 0:
            if space == "cuda" and not self.others(held) and device >= 0:
                stream = late_work.ready(space, device, array)
                self.say("late", value, space, device, hex(stream))
                late_work.write(space, device, stream, array.ptr, value, model.nbytes)
                model[...] = expected
                array.changed()
            return
        space = self.choose.choice(sorted(self.streams))
        device = self.choose.choice(self.devices[space])
        if way == 1:
            handle = getattr(array, f"get_{space}_accessible")(device)
            if handle.readonly:
                return  # it is kept, for others as well
            lent, mode = contextlib.nullcontext(handle), "handle"
        else:
            mode = self.choose.choice(("rw", "w"))
            lent = array.on(space, mode, device)
        with lent as handle:
            stream = late_work.ready(space, device, handle)
            self.say(
                "late",
                value,
                mode,
                space,
                device,
                hex(stream),
                hex(handle.ptr),
                handle.is_temporary,
            )
            late_work.write(space, device, stream, handle.ptr, value, model.nbytes)
            if self.choose.random() < 0.3:
                self.check(handle.get(), expected)
        if mode != "handle" or not handle.is_temporary:
            model[...] = expected
        if mode == "handle":
            handle.close()
            array.changed()

    def write(self, held):
        if held.array.readonly:
            return
        array, model = self.part(held)
        values = self.values(model.shape, model.dtype)
        source = values.copy()
        array[...] = source
        source[...] = 1
        model[...] = values

    def exchange(self, held):
        """Elements of one become elements of another one, converted."""
        other = self.choose.choice([*self.buffers, *self.handles])
        n = min(held.model.size, other.model.size)
        if held.model.ndim != 1 or other.model.ndim != 1:
            if held.model.shape == other.model.shape:
                held.array[...] = other.array
                held.model[...] = other.model.copy()
            return
        n = self.choose.randint(0, n)
        to = self.choose.randint(0, held.model.size - n)
        of = self.choose.randint(0, other.model.size - n)
        step = self.choose.choice((1, 1, 1, 2, -1))
        key, from_ = np.s_[to : to + n], np.s_[of : of + n]
        source, values = other.array[from_], other.model[from_]
        if step == 2:
            key, from_ = np.s_[to : to + n : 2], np.s_[of : of + n : 2]
            source, values = other.array[from_], other.model[from_]
        elif step == -1:
            source, values = source[::-1], values[::-1]
        self.say("from", describe(other), of, to, n, step)
        held.array[key] = source
        with np.errstate(all="ignore"):
            held.model[key] = values.copy().astype(held.model.dtype)

    def together(self, held):
        targets = [h for h in self.choose.sample(self.buffers, 5) if not h.array.readonly]
        roots, chosen = set(), []
        for h in targets:
            if id(h.root()) not in roots:
                roots.add(id(h.root()))
                chosen.append(h)
        self.touched = chosen
        values = [self.values(h.model.shape, h.model.dtype) for h in chosen]
        sources = []
        for v in values:
            name, device = self.place()
            sources.append(hamr.buffer(v.copy()).copy(name, device=device))
        hamr.copy_many([h.array for h in chosen], sources)
        for h, v in zip(chosen, values, strict=True):
            h.model[...] = v

    def fill(self, held):
        array, model = self.part(held)
        value = self.choose.randrange(100)
        array.fill(value)
        model[...] = value

    def change(self, held):
        """An access that writes; meanwhile others are read."""
        array, model = self.part(held)
        space = self.choose.choice(self.spaces)
        device = None if space == "host" else self.choose.choice(self.devices[space])
        mode = self.choose.choice(("rw", "w"))
        if space != "host" and array.allocator.name == "opencl_svm" and self.mapped(held):
            return
        values = self.values(model.shape, model.dtype)
        self.say("change", space, device, mode, describe(Held(array, model)))
        try:
            access = array.on(space, mode, device)
            lent = access.__enter__()
        except hamr.BackendUnavailable:
            return
        try:
            if self.choose.random() < 0.3:
                other = self.choose.choice(self.buffers)
                if other.root() is not held.root():
                    self.check(other.array.get(), other.model)
            if space == "host":
                lent[...] = values
            else:
                inside = hamr.buffer(lent)
                if mode == "rw" and self.choose.random() < 0.5:
                    self.check(inside.get(), model)
                inside[...] = self.source(values)
                del inside
        finally:
            del lent
            access.__exit__(None, None, None)
        model[...] = values

    def source(self, values):
        name, device = self.place()
        return hamr.buffer(values.copy()).copy(name, device=device)

    def view(self, held):
        array, model = self.part(held)
        self.replace(Held(array, model))

    def replace(self, held):
        """A new one in place of another one."""
        at = self.choose.randrange(len(self.buffers))
        gone, self.buffers[at] = self.buffers[at], held
        if self.choose.random() < 0.3:
            self.checked = describe(gone)
            self.check(gone.array.get(), gone.model)
            self.checked = None
        if self.choose.random() < 0.7:
            gone.array.close()

    def again(self, held):
        self.replace(self.new())

    def copied(self, held):
        array, model = self.part(held)
        name, device = self.place()
        if self.choose.random() < 0.3:
            dtype = self.choose.choice(TYPES)
            made = array.copy(name, device=device, dtype=dtype)
            with np.errstate(all="ignore"):
                expected = model.astype(dtype)
        else:
            made, expected = array.copy(name, device=device), model.copy()
        self.say("to", name, device)
        self.replace(Held(made, np.array(expected, order="C")))

    def cast(self, held):
        array, model = self.part(held)
        dtype = self.choose.choice(TYPES)
        self.replace(Held(array.astype(dtype), np.array(model.astype(dtype), order="C")))

    def shared(self, held):
        """A buffer of a handle, which keeps the handle's memory."""
        if self.handles:
            chosen = self.choose.choice(self.handles)
            if chosen.space == "host" and "svm" in str(held.array.allocator):
                return
            made = hamr.buffer(chosen.array)
            self.check(made.get(), chosen.model)

    def own(self, held, model):
        """What the buffer has now is in other memory, or nobody else has it."""
        held.model = np.array(model, order="C")

    def move(self, held):
        name, device = self.place()
        before = held.array.allocator.name, held.array.device, held.array.ptr
        held.array.move(name, device=device)
        if before != (held.array.allocator.name, held.array.device, held.array.ptr):
            self.own(held, held.model)

    def resize(self, held):
        if held.array.readonly or held.model.ndim != 1:
            return
        way, old = self.choose.randrange(3), held.model
        if way == 0 and old.size < LARGEST:
            extra = self.values(self.choose.randrange(1, 200), old.dtype)
            held.array.append(self.source(extra))
            model = np.append(old, extra)
        elif way == 1:
            n, value = self.choose.randrange(2 * old.size + 2), self.choose.randrange(100)
            held.array.resize(n, value)
            model = np.append(old[:n], np.full(max(n - old.size, 0), value, old.dtype))
        else:
            model = self.values(self.choose.randrange(300), old.dtype)
            held.array.assign(self.source(model))
        self.say("resized", way, describe(held))
        self.check(held.array.get(), model)
        for other in self.others(held):
            # What they see may be the buffer's still, or not.
            if other in self.handles:
                self.handles.remove(other)
            else:
                self.buffers[self.buffers.index(other)] = self.new()
            if way != 2:
                self.check(other.array.get(), other.model)
            other.array.close()
        self.own(held, model)

    def change_stream(self, held):
        array = held.array
        if space_of(array.allocator.name) in self.streams:
            array.set_stream(self.stream(array.allocator.name, array.device) or 0)

    def change_transfer(self, held):
        held.array.set_transfer(self.choose.choice(TRANSFERS))

    def cache(self, held):
        held.array.cached(self.choose.random() < 0.5)

    def settle(self, held):
        held.array.synchronize()

    def swap(self, held):
        other = self.choose.choice(self.buffers)
        if other is not held:
            held.array.swap(other.array)
            held.model, other.model = other.model, held.model

    def trim(self, held):
        gc.collect()
        hamr.trim()

    def end(self, held):
        self.buffers.remove(held)
        if self.choose.random() < 0.4:
            self.check(held.array.get(), held.model)
        held.array.close()

    def check_all(self, held):
        for each in [*self.buffers, *self.handles]:
            self.checked = describe(each)
            self.check(each.array.get(), each.model)
        self.checked = None

    STEPS = (
        *(read, read, ask, ask, ask, look, look, late, late, late, write, exchange, exchange),
        *(exchange, exchange, together, fill, change, change, change, view, view, again, copied),
        *(copied, cast, shared, move, move, resize, change_stream, change_stream),
        *(change_transfer, cache, settle, swap, trim, end, check_all),
    )

    def finish(self):
        self.check_all(None)
        for each in self.choose.sample(self.buffers, len(self.buffers)) + self.handles:
            each.array.close()
        self.buffers, self.handles, self.touched, self.streams = [], [], [], {}
