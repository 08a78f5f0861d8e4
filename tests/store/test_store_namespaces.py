"""Processes with namespaces of their own share by the socket, as containers do."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from hamr.store import connect
from tests.support.paths import PATHS
from tests.support.processes import why_not

OWN = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc"]


MISSING = why_not([*OWN, "true"])
pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"no namespaces can be made: {MISSING}")

MAKER = """
import os, sys
import numpy as np
import hamr.store

assert os.getpid() < 100, os.getpid()  # of its own namespace
client = hamr.store.connect(sys.argv[1])
for name, count in (("large", 1 << 20), ("small", 100)):
    client.put(np.arange(count, dtype="i4"), name=name)
print("made", flush=True)
held = client.get(name="large")
wanted = client.get(name="from outside", wait=True, timeout=60)
print(int(np.asarray(wanted).sum()), flush=True)
input()
print(int(np.asarray(held)[-1]), flush=True)
input()
"""


def in_namespaces(*command):
    return subprocess.Popen(
        [*OWN, sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **PATHS},
    )


def ended(process):
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def serving(path):
    process = in_namespaces(
        "-m", "hamr", "store", "serve", "--socket", path, "--limit", "host=64MiB"
    )
    assert path in process.stdout.readline()
    return process


def test_three_namespaces_share(tmp_path):
    """Those of a server, of a maker, and of this process; the server is killed once."""
    path = str(tmp_path / "store" / "socket")
    server = serving(path)
    maker = in_namespaces("-c", MAKER, path)
    try:
        assert maker.stdout.readline() == "made\n"
        with connect(path) as client:
            assert np.asarray(client.get(name="large"))[-1] == (1 << 20) - 1
            assert np.asarray(client.get(name="small"))[99] == 99
            client.put(np.ones(1 << 16), name="from outside")
            assert maker.stdout.readline() == f"{1 << 16}\n"
        ended(server)
        server = serving(path)
        with connect(path) as client:
            found = client.get(name="large", wait=True, timeout=60)
            assert np.asarray(found)[-1] == (1 << 20) - 1
        maker.stdin.write("\n")
        maker.stdin.flush()
        assert maker.stdout.readline() == f"{(1 << 20) - 1}\n"
    finally:
        ended(maker)
        ended(server)
