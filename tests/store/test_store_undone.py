"""What Ctrl-C takes the result of is undone, though the program ends, or does nothing more."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from hamr import _native
from hamr.store import connect
from tests.store.test_store_interrupts import stopped
from tests.support.paths import PATHS
from tests.support.processes import wait_until


def interrupted(function):
    """A function of the extension's, after which Ctrl-C comes before its caller has the result."""

    def late(*arguments):
        result = function(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
        return result

    return late


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("store_get", lambda c, id: lambda: c.get(id)),
        ("store_get", lambda c, id: lambda: c.get(id, wait=True)),
        ("store_create", lambda c, id: lambda: c.create(100)),
        ("store_put", lambda c, id: lambda: c.put(np.ones(100_000))),
        ("store_get_many", lambda c, id: lambda: c.get_many([id])),
        ("store_put_many", lambda c, id: lambda: c.put_many([np.ones(100_000), np.ones(2)])),
        ("store_seal", lambda c, id: c.create(100_000).seal),
        ("store_seal", lambda c, id: c.create(100).seal),
    ],
)
def test_a_reply_that_a_signal_takes(server, ctrl_c, monkeypatch, name, begin):
    ours, watching = connect(server.path), connect(server.path)
    id = watching.put(np.zeros(100_000))
    call = begin(ours, id)
    monkeypatch.setattr(_native, name, interrupted(getattr(_native, name)))
    with pytest.raises(KeyboardInterrupt):
        call()
    del call
    wait_until(lambda: watching.statistics()["leases"] == 0)
    wait_until(lambda: watching.statistics()["objects"] == 1)


@pytest.mark.parametrize("what", ["get", "get_many", "create", "put", "put_many", "seal"])
def test_a_program_that_ctrl_c_ends(server_process, what):
    """While the server stands still: what it does of the call later nobody is to have."""
    watching = connect(server_process.path)
    id = watching.put(np.zeros(100_000))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.store.children",
            "interrupted",
            server_process.path,
            what,
            id,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **PATHS},
    )
    assert process.stdout.readline() == "ready\n"
    stopped(server_process)
    process.stdin.write("go\n")
    process.stdin.flush()
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    server_process.process.send_signal(signal.SIGCONT)
    wait_until(lambda: watching.statistics()["connections"] == 1)
    found = watching.statistics()
    assert (found["objects"], found["leases"], found["unsealed"]) == (1, 0, 0)
