"""How soon another process has an array by a handle over a socket of the program's own."""

from __future__ import annotations

import socket
import statistics
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from .children import Child, answer, told
from .groups import MIB, Rows, rows_of, size_text

FILL = 7
_ROUNDS, _QUICK_ROUNDS = 300, 3
_TIME = struct.Struct("q")


def took(nbytes: int, rounds: int, way: str, together: int = 1, **settings: str) -> list[float]:
    """Microseconds from the sender's call to the receiver's array, of new memory each time.

    In each round ``together`` are made, and then handed over one right after the other.
    """
    told_it = nbytes, rounds, way, together
    return [int(each) / 1e3 for each in between("share", told_it, settings)]


def between(module: str, arguments: tuple[object, ...], settings: dict[str, str]) -> list[str]:
    """What a module's ``child_send`` answers, which talks to its ``child_receive`` by a socket.

    Both are processes of their own, so that the setting of pools is theirs.
    """
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    children = []
    try:
        with near, far:
            for name, end in (("receive", far), ("send", near)):
                number = end.fileno()
                told_it = number, *arguments
                child = Child.of(f"{module}.child_{name}", *told_it, sockets=[number], **settings)
                children.append(child)
        for child in children:
            child.line()
        children[1].tell("go")
        return children[1].line().split()
    finally:
        for child in children:
            child.end()


def child_send(descriptor: str, nbytes: str, rounds: str, way: str, together: str) -> None:
    """Hand memory over as often as it is to, and answer how long each took."""
    import hamr

    hand: Callable[[socket.socket, int, int], list[int]] = partial(_hand_by_handle, hamr, way)
    if way == "peer":
        hand = _hand_by_name
    with socket.socket(fileno=int(descriptor)) as connection:
        answer("ready")
        for _ in told():
            found: list[int] = []
            for _ in range(int(rounds)):
                found += hand(connection, int(nbytes), int(together))
            answer(*found)


def _hand_by_handle(
    hamr: Any, allocator: str, connection: socket.socket, nbytes: int, together: int
) -> list[int]:
    made = [hamr.Buffer(nbytes, "u1", allocator, fill=FILL) for _ in range(together)]
    for source in made:
        source.synchronize()
    found = []
    for source in made:
        start = time.perf_counter_ns()
        with source.share() as handle:
            handle.send(connection)
        found.append(_answered(connection) - start)
    connection.recv(1)  # it has let go
    return found


def _hand_by_name(connection: socket.socket, nbytes: int, together: int) -> list[int]:
    found = []
    with ExitStack() as stack:
        made = [stack.enter_context(shared_memory(nbytes, FILL)) for _ in range(together)]
        for memory in made:
            start = time.perf_counter_ns()
            connection.send(memory.name.encode())
            found.append(_answered(connection) - start)
        connection.recv(1)
    return found


def bytes_of(memory: SharedMemory) -> memoryview:
    """The bytes of memory that is not closed."""
    found = memory.buf
    assert found is not None
    return found[: memory.size]


@contextmanager
def shared_memory(nbytes: int, fill: int = 0) -> Iterator[SharedMemory]:
    """New memory of bytes that are written already."""
    memory = SharedMemory(create=True, size=nbytes)
    try:
        bytes_of(memory)[:] = bytes([fill]) * memory.size
        yield memory
    finally:
        memory.close()
        memory.unlink()


def _answered(connection: socket.socket) -> int:
    end: int = _TIME.unpack(connection.recv(_TIME.size))[0]
    return end


def child_receive(descriptor: str, nbytes: str, rounds: str, way: str, together: str) -> None:
    """Open what comes over a socket, and answer when it had the array."""
    import numpy as np

    import hamr

    asarray = _asarray(way)
    if way != "shared" and way != "peer":
        hamr.Buffer(1, "u1", hamr.Allocator[way], fill=0).synchronize()  # the driver is there
    with socket.socket(fileno=int(descriptor)) as connection:
        answer("ready")
        for _ in range(int(rounds)):
            found: list[Any] = []
            names: list[SharedMemory] = []
            for _ in range(int(together)):
                if way == "peer":
                    names.append(SharedMemory(connection.recv(256).decode()))
                    found.append(np.ndarray(int(nbytes), "u1", names[-1].buf))
                else:
                    found.append(asarray(hamr.open_shared(connection)))
                connection.send(_TIME.pack(time.perf_counter_ns()))
            for each in found:
                check(each)
            del each, found
            for memory in names:
                resource_tracker.unregister(f"/{memory.name}", "shared_memory")  # its maker's
                memory.close()
            connection.send(b".")


def check(array: Any) -> None:
    """End the process where an array's bytes are not FILL.

    They are read a MiB at a time, so that the host needs no more for it, whatever their number.
    """
    import numpy as np

    for at in range(0, array.nbytes, MIB):
        part = array[at : at + MIB]
        read = getattr(part, "get", None) or getattr(part, "cpu", None)
        if not (np.asarray(read() if read else part) == FILL).all():
            raise SystemExit("wrong bytes")


def _asarray(way: str) -> Callable[[Any], Any]:
    try:
        library = import_module("numpy" if way == "shared" else "cupy")
    except ImportError:
        return itself
    library.zeros(1)
    found: Callable[[Any], Any] = library.asarray
    return found


def itself(array: Any) -> Any:
    """The array that was opened."""
    return array


def on_host(nbytes: int, quick: bool) -> Rows:
    """Beside a name that is sent, of memory that is created by name."""
    ways = {
        "SharedMemory(create=True): name, socket, SharedMemory(name)": "peer",
        "hamr: share, send, np.asarray(open_shared(socket))": "shared",
    }

    def rows() -> list[dict[str, Any]]:
        rounds = _QUICK_ROUNDS if quick else _ROUNDS
        return rows_of(
            (operation, statistics.median(took(nbytes, rounds + 1, way)[1:]))
            for operation, way in ways.items()
        )

    return Rows(f"hand {size_text(nbytes)} of the host over to another process", "us", rows)
