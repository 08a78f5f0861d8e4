"""What the store costs on the host: putting, getting, and the life of small objects."""

from __future__ import annotations

import ctypes
import mmap
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from .children import Child, answer, serving, told
from .driver import Driver
from .groups import GIB, KIB, MIB, Case, Group, Libraries, Rows, rows_of, size_text
from .share import bytes_of, on_host as handed_over, shared_memory
from .store_waiting import TITLE, rows as _beside_waiting

#: Of the rate of a copy to memory that is there.
PUT_TARGET = 0.8
#: Microseconds.
GET_LIMIT = 100.0
#: Microseconds a cycle, of all processes together.
CYCLE_LIMIT = 50.0
PROCESSES = 1, 8
SMALL = KIB
_CYCLES, _QUICK_CYCLES = 2000, 20  # of a process in a round
_ROUNDS = 3
_READY_WITHIN = 60.0  # seconds


def on_host(lib: Libraries, driver: Driver | None) -> Iterator[Group | Rows]:
    """Objects of the host's memory; the server is a process of its own."""
    from hamr.store import connect

    largest = min(GIB, lib.settings.largest)
    host = 4 * largest + 64 * MIB
    with serving(host) as path, connect(path) as client:
        with serving(host, largest) as prepared, connect(prepared) as other:
            yield _put(client, other, largest)
        with ExitStack() as stack:
            sizes = sorted({n for n in (KIB, MIB, GIB) if n < largest} | {largest})
            yield Group("get an object, by its size", _gets(client, sizes, stack))
        for count in PROCESSES:
            by = f"{count} process{'es' * (count > 1)}"
            title = f"the life of an object of {size_text(SMALL)}, by {by}"
            yield Rows(title, "us", partial(_lives, path, count, lib.settings.quick))
        yield Rows(TITLE, "us", partial(_beside_waiting, path, lib.settings.quick))
    yield handed_over(min(MIB, largest), lib.settings.quick)


def _put(client: Any, other: Any, nbytes: int) -> Group:
    import numpy as np

    array, there = np.ones(nbytes, "u1"), np.ones(nbytes, "u1")

    def put(client: Any) -> None:
        client.delete(client.put(array))

    def wait() -> None:
        until = time.monotonic() + _READY_WITHIN
        while not other.statistics()["memory"]["host"]["ready"]:
            if time.monotonic() > until:
                raise RuntimeError(f"no memory was made ready within {_READY_WITHIN:g} s")
            time.sleep(0.01)

    def into_new(flags: int) -> None:
        memory = mmap.mmap(-1, nbytes, flags | mmap.MAP_ANONYMOUS)
        at = ctypes.c_char.from_buffer(memory)
        ctypes.memmove(ctypes.addressof(at), array.ctypes.data, nbytes)
        del at
        memory.close()

    def into_existing() -> None:
        ctypes.memmove(there.ctypes.data, array.ctypes.data, nbytes)

    cases = [
        Case("C: memmove to existing memory", into_existing, floor=True),
        Case("C: mmap private, memmove, munmap", partial(into_new, mmap.MAP_PRIVATE)),
        Case("C: mmap shared, memmove, munmap", partial(into_new, mmap.MAP_SHARED)),
        Case("hamr: client.delete(client.put(array))", partial(put, client), target=PUT_TARGET),
        Case(
            "hamr: the same, memory is ready", partial(put, other), prepare=wait, target=PUT_TARGET
        ),
    ]
    return Group(f"put {size_text(nbytes)}", cases, nbytes, rounds=_ROUNDS)


def _gets(client: Any, sizes: list[int], stack: ExitStack) -> list[Case]:
    import numpy as np

    cases = []
    for nbytes in sizes:
        id = client.put(np.ones(nbytes, "u1"))
        stack.callback(client.delete, id)
        peer = stack.enter_context(shared_memory(nbytes))
        text = size_text(nbytes)
        get: Callable[[], Any] = partial(client.get, id)
        cases += [
            Case(f"hamr: client.get(id), {text}", get, limit=GET_LIMIT),
            Case(f"SharedMemory(name), close(), {text}", partial(_open_by_name, peer.name)),
        ]
    return cases


def _open_by_name(name: str) -> None:
    SharedMemory(name).close()


_NAMES = {
    "hamr": "hamr: create, write, seal, get, delete",
    "peer": "SharedMemory: create, write, open by name, close, unlink",
}


def _lives(path: str, count: int, quick: bool) -> list[dict[str, Any]]:
    """Rows of both: medians of rounds in which they take turns."""
    cycles, rounds = (_QUICK_CYCLES, 1) if quick else (_CYCLES, _ROUNDS)
    took: dict[str, list[float]] = {"peer": [], "hamr": []}
    with ExitStack() as stack:
        processes: dict[str, list[Child]] = {kind: [] for kind in took}
        for kind, group in processes.items():
            for _ in range(count):
                group.append(Child.of("store.child_lives", kind, path, cycles))
                stack.callback(group[-1].end)
            for child in group:
                child.line()
        for _ in range(rounds):
            for kind, group in processes.items():
                for child in group:
                    child.tell("go")
                times = [[int(part) for part in child.line().split()] for child in group]
                nanoseconds = max(end for _, end in times) - min(start for start, _ in times)
                took[kind].append(nanoseconds / 1e3 / cycles / count)
    rows = rows_of((_NAMES[kind], statistics.median(values)) for kind, values in took.items())
    if count == max(PROCESSES):
        rows[1] |= {"limit": CYCLE_LIMIT, "met": rows[1]["value"] <= CYCLE_LIMIT}
    return rows


def child_lives(kind: str, path: str, cycles: str) -> None:
    """Make and take away objects whenever it is told to, and answer when that began and ended."""
    with _life_of(kind, path) as live:
        for _ in range(50):
            live()
        answer("ready")
        for _ in told():
            start = time.perf_counter_ns()
            for _ in range(int(cycles)):
                live()
            answer(start, time.perf_counter_ns())


@contextmanager
def _life_of(kind: str, path: str) -> Iterator[Callable[[], None]]:
    data = bytes(range(256)) * (SMALL // 256)

    def check(found: Any) -> None:
        if found[SMALL - 1] != data[-1]:
            raise SystemExit("wrong bytes")

    def in_shared_memory() -> None:
        made = SharedMemory(create=True, size=SMALL)
        bytes_of(made)[:SMALL] = data
        found = SharedMemory(made.name)
        check(bytes_of(found))
        found.close()
        made.close()
        made.unlink()

    if kind == "peer":
        yield in_shared_memory
        return

    from hamr.store import connect

    with connect(path) as client:

        def in_store() -> None:
            builder = client.create(SMALL, "u1")
            memoryview(builder.buffer)[:] = data
            id = builder.seal()
            check(memoryview(client.get(id)))
            client.delete(id)

        yield in_store
