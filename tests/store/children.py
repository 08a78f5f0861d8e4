"""What other processes do with a store; ``python -m tests.store.children NAME ARGUMENTS``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

import numpy as np

from hamr.store import Server, StoreLost, connect


def totals(buffers, results):
    """The sum of each buffer that comes by a queue, until None does."""
    while (found := buffers.get()) is not None:
        results.put((float(np.asarray(found).sum()), found.readonly))


def device_totals(buffers, results):
    """The same of a device's memory, and where it is."""
    while (found := buffers.get()) is not None:
        results.put((float(found.get().sum()), found.readonly, found.device))


def make_on_device(path, device, ids):
    """Make an object that is sealed and one that is not, and wait to be killed."""
    client = connect(path)
    sealed, unsealed = (client.create(1000, "u1", device=device) for _ in range(2))
    sealed.buffer.fill(9)
    ids.put((sealed.seal(), unsealed.id))
    time.sleep(600)


def make(path, count):
    """Make objects and say so, leave one that is not sealed, have one, and wait to be killed."""
    client = connect(path)
    ids = [client.put(np.full(100_000, n)) for n in range(int(count))]
    builder = client.create(200_000)
    builder.buffer.fill(1)
    held = client.get(ids[0])
    print(*ids, builder.id, flush=True)
    time.sleep(600)
    del held


def read(path, id):
    """Print the sum of an object."""
    print(float(np.asarray(connect(path).get(id)).sum()))


def hold(path, *ids):
    """Have objects, say so, and when something is read, look at them by a new server."""
    client = connect(path)
    held = [client.get(id) for id in ids]
    print("held", flush=True)
    for line in sys.stdin:
        if line == "look\n":
            with contextlib.suppress(StoreLost):  # the first call finds the old server gone
                client.exists(ids[0])
            found = [np.asarray(client.get(id)) for id in ids]
            same = all(np.array_equal(a, b) for a, b in zip(found, held, strict=True))
            print("same" if same else "other", flush=True)


def forked():
    """A child that only waits; its number."""
    if not (pid := os.fork()):
        os.close(0)
        signal.pause()
        os._exit(0)
    return pid


def serve_and_fork(path):
    """Serve in a process that has forked a child, say which, and do what is said."""
    server = Server(path, limit="host=16MiB", spill=os.path.dirname(path))
    client = connect(path)
    ids = [client.put(np.zeros(n)) for n in (10, 1000, 500_000)]
    print(forked(), flush=True)
    for line in sys.stdin:
        if line == "close\n":
            server.close()
        elif line == "spill\n":
            ids += [client.put(np.zeros(1_000_000)) for _ in range(3)]
            assert client.statistics()["spills"]
        elif line == "fork\n":
            print(forked(), flush=True)
            continue
        print("done", flush=True)


def go_to_background(path, told):
    """Serve, and go on in a child, which says that it serves once the parent has ended."""
    server = Server(path)
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.01)
    with open(int(told), "w") as writer:
        print(os.getpid(), file=writer, flush=True)
        server = Server(path)
        print("serving", file=writer, flush=True)
        signal.pause()
    del server


def interrupted(path, what, id):
    """Make a call when something is read, which Ctrl-C ends, and with it the program."""
    client = connect(path)
    builder = client.create(100_000) if what == "seal" else None
    calls = {
        "get": lambda: client.get(id),
        "get_many": lambda: client.get_many([id] * 9),
        "create": lambda: client.create(100_000),
        "put_many": lambda: client.put_many([np.ones(100_000)] * 9),
        "put": lambda: client.put(np.ones(100_000)),
        "seal": lambda: builder.seal(),
    }
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    calls[what]()


def put_groups(path):
    """Put groups until it is killed."""
    client = connect(path)
    for n in range(1 << 30):
        client.put_group({"a": np.full(1, n), "b": [np.full(100_000, n), n]})
        print("put", flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
