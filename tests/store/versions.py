"""Processes that put versions and read them; ``python -m tests.store.versions NAME ARGUMENTS``."""

from __future__ import annotations

import contextlib
import sys

import numpy as np

from hamr.store import ObjectNotFound, StoreLost, connect

SIZE = 30_000
#: The version after which a reader ends.
LAST = 1 << 40


def version(n):
    return {"w": np.full(SIZE, n), "more": [np.full(3, n), n]}


def put(client, n, **more):
    return client.put_group(version(n), name="weights", metadata=n, replace=True, **more)


def number_of(group):
    """Which version a group is, all of it."""
    n = group.metadata
    assert (group["w"].get() == n).all()
    assert (group["more.0"].get() == n).all()
    assert group.tree["more"][1] == n
    return n


def connected(path):
    """A client, though the server may start only now."""
    while True:
        with contextlib.suppress(StoreLost):
            return connect(path)


def write(path, first, end):
    """Put versions, and print the number of each that was put."""
    client = connected(path)
    kept = None
    for n in range(int(first), int(end)):
        while True:
            with contextlib.suppress(StoreLost):
                id = put(client, n)
                with contextlib.suppress(ObjectNotFound):  # by a server that has ended since
                    kept = client.get(id)
                break
        print(n, flush=True)
    del kept


def read(path):
    """Watch until the last version, and print each; old ones may be held for a while."""
    client = connected(path)
    held, seen = [], 0
    watch = client.watch("weights")
    while True:
        try:
            held.append(client.get_group(next(watch)))
        except (StoreLost, ObjectNotFound):
            continue
        n = number_of(held[-1])
        print(n if n >= seen else f"wrong: {n} after {seen}", flush=True)
        if n == LAST:
            break
        seen, held = n, held[-(n % 4) - 1 :]
    if all(map(number_of, held)):
        print("last", flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
