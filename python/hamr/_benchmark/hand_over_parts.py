"""Where the time goes in which another process gets an array: each step, and the message alone."""

from __future__ import annotations

import os
import socket
import statistics
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

from .children import Child, answer, serving, told
from .groups import MIB, rows_of
from .share import FILL, _asarray, between, check

#: Every library's way begins with such a message, and the process awake that waits for it.
ALONE = "a message of as many bytes alone"
_TIMES = struct.Struct("3q")
_TIME = struct.Struct("q")
_LONGEST = 4097
_MOST_DESCRIPTORS = 2
_now = time.perf_counter_ns


def by_handle(nbytes: int, rounds: int, allocator: str) -> list[dict[str, Any]]:
    """The steps of a handle over a socket, as rows: medians in microseconds."""
    steps = ALONE, "share()", "send … recv", "open_shared(bytes, descriptors)", "asarray", "sum"
    settings = {"HAMR_CUDA_POOL_SHARED": "1"}
    found = between("hand_over_parts", (nbytes, rounds + 1, allocator), settings)
    return _rows(steps, [[int(n) for n in text.split(":")] for text in found[1:]])


def _rows(steps: Iterable[str], rounds: list[list[int]]) -> list[dict[str, Any]]:
    columns = zip(steps, zip(*rounds, strict=True), strict=True)
    return rows_of((step, statistics.median(each) / 1e3) for step, each in columns)


def child_send(descriptor: str, nbytes: str, rounds: str, allocator: str) -> None:
    """Hand memory over, and a message alone, in turn; answer what each step took."""
    import hamr

    with socket.socket(fileno=int(descriptor)) as connection:
        answer("ready")
        for _ in told():
            answer(*[_hand(hamr, connection, int(nbytes), allocator) for _ in range(int(rounds))])


def _hand(hamr: Any, connection: socket.socket, nbytes: int, allocator: str) -> str:
    source = _new(hamr, nbytes, allocator)
    start = _now()
    handle = source.share()
    shared = _now()
    with handle:
        handle.send(connection)
        length = len(handle.to_bytes())
    woke, opened, had = _TIMES.unpack(connection.recv(_TIMES.size))
    connection.recv(1)  # it has let go
    source = _new(hamr, nbytes, allocator)  # it has slept as long
    begun = _now()
    connection.send(bytes(length))
    alone = _TIME.unpack(connection.recv(_TIME.size))[0] - begun
    steps = alone, shared - start, woke - shared, opened - woke, had - opened, had - start
    return ":".join(map(str, steps))


def _new(hamr: Any, nbytes: int, allocator: str) -> Any:
    source = hamr.Buffer(nbytes, "u1", allocator, fill=FILL)
    source.synchronize()
    return source


def child_receive(descriptor: str, nbytes: str, rounds: str, allocator: str) -> None:
    """Open what comes over a socket, and answer when each step was over."""
    import hamr

    asarray = _asarray(allocator)
    hamr.Buffer(
        int(nbytes), "u1", hamr.Allocator[allocator], fill=0
    ).synchronize()  # the driver is there
    with socket.socket(fileno=int(descriptor)) as connection:
        answer("ready")
        for _ in range(int(rounds)):
            frame, numbers, _, _ = socket.recv_fds(connection, _LONGEST, _MOST_DESCRIPTORS)
            woke = _now()
            opened = hamr.open_shared(frame, numbers)
            then = _now()
            array: Any = asarray(opened)
            had = _now()
            for number in numbers:
                os.close(number)
            check(array)
            del array, opened
            connection.send(_TIMES.pack(woke, then, had))
            connection.send(b".")
            connection.recv(_LONGEST)
            connection.send(_TIME.pack(_now()))


def by_store(nbytes: int, rounds: int, synchronize: Callable[[], None]) -> list[dict[str, Any]]:
    """The steps of an object of the store, whose id goes by a pipe, as rows."""
    from hamr.store import connect

    steps = ALONE, "seal()", "write … read", "get(id)", "asarray", "sum"
    took: list[list[int]] = []
    with serving(MIB) as path, connect(path) as client:
        child = Child.of("hand_over_parts.child_get", path)
        try:
            child.line()
            for _ in range(rounds + 1):
                builder = client.create(nbytes, "u1", device=0)
                builder.buffer.fill(FILL)
                synchronize()
                start = _now()
                id = builder.seal()
                sealed = _now()
                child.tell(id)
                woke, got, had = map(int, child.line().split())
                client.delete(id)
                builder = client.create(nbytes, "u1", device=0)
                builder.buffer.fill(FILL)
                synchronize()
                begun = _now()
                child.tell("-" * len(id))
                alone = int(child.line()) - begun
                builder.abort()
                steps_took = sealed - start, woke - sealed, got - woke, had - got, had - start
                took.append([alone, *steps_took])
        finally:
            child.end()
    return _rows(steps, took[1:])


def child_get(path: str) -> None:
    """Have each object whose id it is told, and answer when each step was over."""
    from hamr.store import connect

    asarray = _asarray("cuda")
    with connect(path) as client:
        answer("ready")
        for id in told():
            woke = _now()
            if id.startswith("-"):
                answer(woke)
                continue
            found = client.get(id)
            got = _now()
            array: Any = asarray(found)
            had = _now()
            check(array)
            answer(woke, got, had)
            del array, found
