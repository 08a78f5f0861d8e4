"""A fork wherever an operation may run Python code: python -m tests.scripts.fork_anywhere.

The places are where the collector runs, which the interpreter calls when objects are made
(CPython 3.12: between two instructions only), and where an argument's __index__ does.
"""

import gc
import os

import numpy as np

import hamr
from hamr import _native
from tests.scripts import forking


def content(buffer):
    return np.asarray(buffer).ravel().tolist()


class Index:
    """A number that says when it is asked for."""

    def __init__(self, number, told):
        self.number, self.told = number, told

    def __index__(self):
        self.told()
        return self.number


class Shared:
    """An array that says when it is asked for."""

    def __init__(self, array, told):
        self.array, self.told = array, told

    @property
    def __array_interface__(self):
        self.told()
        return self.array.__array_interface__


SOURCE = np.arange(4.0)


def fresh():
    return hamr.buffer(SOURCE.copy()), hamr.Buffer(3, "f4", "cpp", fill=2)


def copied_many(b, c, told):
    d = hamr.Buffer(3, "f8", fill=1)
    hamr.copy_many([d, b, b[:3]], [c, Shared(SOURCE[::-1], told), d])
    return content(b), content(d)


def copied_blocks(b, c, told):
    index = Shared(np.array([1, 0]), told)
    hamr.copy_blocks([b, b], index, [Shared(SOURCE[::-1], told), c], index)
    return content(b)


def changed(change):
    def work(b, c, told):
        change(b, c, told)
        return content(b)

    return work


#: Runtimes that the parent uses: some do not work in a forked child.
USED = {name for name, facts in hamr.backends().items() if facts["available"] and name != "host"}


def backends():
    """What there is, but for what a forked child says otherwise.

    Of HIP's libraries, what the parent has loaded is tried first.
    """
    found = {name: facts for name, facts in hamr.backends().items() if name not in USED}
    return {
        name: {key: fact for key, fact in facts.items() if name != "hip" or key != "tried"}
        for name, facts in found.items()
    }


#: What each makes of two buffers.
OPERATIONS = {
    "append": changed(lambda b, c, told: b.append(c)),
    "append a number": changed(lambda b, c, told: b.append(5)),
    "append itself": changed(lambda b, c, told: _native.append(b, b)),
    "assign": changed(lambda b, c, told: b.assign(c)),
    "assign as it is": changed(lambda b, c, told: _native.assign(b, c)),
    "set": changed(lambda b, c, told: b.set(c, Index(1, told), 1, 2)),
    "fill": changed(lambda b, c, told: b.fill(7)),
    "write": changed(lambda b, c, told: b.__setitem__(slice(0, 3), c)),
    "copy many": copied_many,
    "copy blocks": copied_blocks,
    "resize": changed(lambda b, c, told: b.resize((Index(3, told), 3), c[0])),
    "reserve": changed(lambda b, c, told: b.reserve(Index(50, told))),
    "move": changed(lambda b, c, told: b.move("cpp", Index(-1, told))),
    "copy": lambda b, c, told: content(c.copy("malloc", dtype="int16")),
    "reshape": lambda b, c, told: content(b.reshape(2, Index(2, told))),
    "reshape a copy": lambda b, c, told: content(c[::-1].reshape(1, 3, copy=True)),
    "text": lambda b, c, told: str(b),
    "item": lambda b, c, told: c[Index(1, told)].item(),
    "create": lambda b, c, told: content(hamr.Buffer(Index(5, told), "int32", fill=3)),
    "share": lambda b, c, told: content(hamr.buffer(memoryview(bytearray(8)))),
    "interface": lambda b, c, told: _native.check_interface(
        "<f8", (Index(2, told), 3), (24, Index(8, told)), 8, 0, -1, False, 3
    ),
    "pointer": lambda b, c, told: content(
        hamr.Buffer.from_pointer(SOURCE.ctypes.data, (Index(2, told),), owner=SOURCE)
    ),
    "host": lambda b, c, told: content(c.get_host_accessible()),
    "settle": lambda b, c, told: (b.synchronize(), _native.settled(b), content(b)),
    "backends": lambda b, c, told: backends(),
    "statistics": lambda b, c, told: sorted(hamr.stats()),
    "a reply": lambda b, c, told: kinds_of_rows(),
    "refuse": lambda b, c, told: refused(b.reshape, 5),
    "refuse a change": lambda b, c, told: refused(b.set, 1, 9),
    "unavailable": lambda b, c, told: refused(b.copy, "cuda"),
}


def kinds_of_rows():
    """What the rows of a reply are, which are made anew: collecting all leaves none for reuse."""
    gc.collect()
    return sorted({type(row).__name__ for row in _native.memory_snapshot()})


def refused(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def fork_at(place, operation, shift):
    """The operation's result where the process forks at a place; whether there is such a one."""
    b, c = fresh()
    count, started = 0, None

    def told(phase="start", info=None):
        nonlocal count, started
        if phase == "start":
            count += 1
        if count == place and phase == "start":
            started = False  # not again, from what forking does
            reading, writing = os.pipe()
            started = os.fork(), reading, writing

    before = gc.get_threshold()
    gc.callbacks.append(told)
    gc.set_threshold(1)
    moved = [[] for _ in range(shift)]  # the collector then comes at other places
    try:
        result = operation(b, c, told)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(told)
    del moved
    if not started:
        return result, False
    child, reading, writing = started
    if not child:
        os.close(reading)
        again = fresh()
        done = repr(result), repr(operation(*again, lambda: None))
        os.write(writing, repr(done).encode())
        os._exit(0)
    os.close(writing)
    told_by_child = forking.outcome(child, reading, patience=20)
    expected = repr((repr(result), repr(operation(*fresh(), lambda: None))))
    assert told_by_child == expected, f"at {place}: {told_by_child} in place of {expected}"
    return result, True


def fork_everywhere(operation, shift):
    expected = operation(*fresh(), lambda: None)
    place, found = 0, True
    while found:
        place += 1
        result, found = fork_at(place, operation, shift)
        assert result == expected, f"at {place}: {result} in place of {expected}"
    return place


def main():
    for name, operation in OPERATIONS.items():
        for shift in (0, 1):
            try:
                places = fork_everywhere(operation, shift)
            except AssertionError as error:
                raise AssertionError(f"{name} {error}") from None
            print(name, places)
    gc.collect()
    assert hamr.stats()["references"] == 0, hamr.stats()


if __name__ == "__main__":
    hamr.Buffer(3)
    main()
