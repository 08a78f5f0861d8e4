"""The service of examples/weights_server; tests.store.weights_walk is the long walk."""

import importlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import hamr.store
from tests.support.documents import blocks_of
from tests.support.paths import ROOT
from tests.support.processes import launch, scaled, wait_until

pytest.importorskip("safetensors")

from tests.store.weights_walk import walk

EXAMPLE = ROOT / "examples" / "weights_server"
UNITS = sorted((EXAMPLE / "units").iterdir())
PAGE = ROOT / "docs" / "operations.md"
# The example's, whose folder the walk has put on the path.
ask, demo, worker = map(importlib.import_module, ("ask", "demo", "worker"))


def test_whatever_is_killed_one_copy_serves():
    walk(scaled(6, 4), 4 << 20, None, random.randrange(1 << 30))


@pytest.fixture
def weights(client):
    client.put_group({"w": np.arange(6, dtype="f4").reshape(2, 3), "bias": np.ones(2)}, name="w")
    return worker.Weights(client.get_group("w"))


def test_a_product(weights):
    assert weights.product(*weights.operands("w", [1, 2, 3])) == [8, 26]


@pytest.mark.parametrize(
    ("path", "vector", "error"),
    [
        ("w", [1, 2], ValueError),
        ("w", 1, ValueError),
        ("w", "text", ValueError),
        ("w", None, ValueError),
        ("w", [[1, 2, 3]], ValueError),
        ("w", [1, [2], 3], ValueError),
        ("w", {}, TypeError),
        ("w", [1, 2, 10**400], OverflowError),
        ("bias", [1], ValueError),
        ("none", [1], KeyError),
        ([], [1], TypeError),
    ],
)
def test_what_a_request_has_wrong(weights, path, vector, error):
    with pytest.raises(error):
        weights.operands(path, vector)


@contextmanager
def running(server, name, *arguments):
    """A program of the example, whose lines can be read, and which is killed in the end."""
    with subprocess.Popen(
        [sys.executable, EXAMPLE / name, *arguments],
        env={**os.environ, "HAMR_STORE": server.path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def test_a_loader_looks_at_the_file_anew(server, client, tmp_path):
    model = tmp_path / "model.safetensors"
    demo.save(model, 1, layers=1)
    with running(server, "loader.py", model) as loader:
        lines = loader.stdout
        assert lines.readline() == f"loader: loaded {(first := client.get_name('weights'))}\n"
        loader.send_signal(signal.SIGHUP)
        assert lines.readline() == f"loader: found {first}\n"
        model.write_bytes(b"no weights")
        loader.send_signal(signal.SIGHUP)
        assert lines.readline().startswith(f"loader: {first} stays: ")
        demo.save(model, 2, layers=1)
        loader.send_signal(signal.SIGHUP)
        assert lines.readline() == f"loader: loaded {client.get_name('weights')}\n"
        wait_until(lambda: [info.leases for info in client.list()] == [1])
        assert client.get_name("weights") != first
        loader.terminate()
        assert loader.wait() == -signal.SIGTERM


def test_a_worker_answers_after_requests_that_are_none(server, client, tmp_path):
    client.put_group({"w": np.eye(3, dtype="f4")}, name="weights")
    path = str(tmp_path / "worker.sock")
    with running(server, "worker.py", path):
        assert demo.eventually(lambda: ask.ask(path, "w", [1, 2, 3]))["product"] == [1, 2, 3]
        for line in (b"", b"\n", b"[" * 100_000 + b"\n", b"7\n", b"\xff\n", b'{"array": "w"}\n'):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)
                assert "error" in json.loads(connection.makefile().readline())
        with socket.socket(socket.AF_UNIX) as connection:  # who does not wait for the answer
            connection.connect(path)
        assert ask.ask(path, "w", [1, 2, 3])["product"] == [1, 2, 3]


class Lost:
    """A client whose server is started again while a worker goes over to a new version."""

    def __init__(self, groups):
        self.groups, self.asked = groups, 0

    @contextmanager
    def watch(self, name):
        yield iter(["new"])

    def get_group(self, id):
        self.asked += 1
        if self.asked == 1:
            raise hamr.store.StoreLost
        if self.asked > 2:
            raise EOFError
        return self.groups[id]


def test_a_worker_takes_a_version_though_the_server_was_lost_meanwhile(client, weights, tmp_path):
    client.put_group({"w": np.ones(3)}, name="new")
    with worker.Worker(str(tmp_path / "worker.sock"), weights) as it:
        with pytest.raises(EOFError):
            it.follow(Lost({"new": client.get_group("new")}), "w")
        assert it.weights.id == client.get_name("new")


def test_a_worker_that_cannot_follow_ends(server, client, tmp_path):
    client.put_group({"w": np.eye(3, dtype="f4")}, name="weights")
    code = "import worker; worker.Worker.take = None; worker.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "worker.sock"],
        env={**os.environ, "HAMR_STORE": server.path, "PYTHONPATH": str(EXAMPLE)},
        stderr=subprocess.PIPE,
    ) as program:
        demo.eventually((tmp_path / "worker.sock").is_socket)
        client.put_group({"w": np.eye(3, dtype="f4")}, name="weights", replace=True)
        assert b"not callable" in program.communicate(timeout=30)[1]
        assert program.returncode == 1


def test_who_sends_slowly_is_let_go(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(worker.Request, "timeout", 0.2)
    path = str(tmp_path / "worker.sock")
    with worker.Worker(path, weights) as it, socket.socket(socket.AF_UNIX) as connection:
        thread = threading.Thread(target=it.handle_request)
        thread.start()
        connection.connect(path)
        with suppress(BrokenPipeError):
            while True:  # a test that times out
                connection.sendall(b" ")
                time.sleep(0.01)
        thread.join()


@pytest.mark.parametrize("model", ["", "none"])
def test_a_loader_says_what_it_does_not_find(server, tmp_path, model):
    with running(server, "loader.py", tmp_path / model) as loader:
        assert loader.stdout.read().startswith("loader: ")
        assert loader.wait() == 1


def test_one_supervisor_runs_in_a_folder(tmp_path):
    command = [sys.executable, EXAMPLE / "supervisor.py", tmp_path, "none", "--workers", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        supervisor.stdout.readline()
        found = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert (found.returncode, "another one runs in" in found.stderr) == (1, True)
        supervisor.stdout.close()  # its next line ends it, and what it has started
        assert supervisor.wait(30) != 0


def test_a_supervisor_ends_though_its_server_does_not_start(tmp_path):
    command = [sys.executable, EXAMPLE / "supervisor.py", tmp_path, "none", "--limit", "nothing"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        while "ended with" not in supervisor.stdout.readline():
            pass
        supervisor.terminate()
        assert supervisor.wait() == 0


def test_the_demo(tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLE / "demo.py")]
    status, output = launch(command, 60, {"TMPDIR": str(tmp_path)})
    lines = output.splitlines()
    assert (status, lines[-1]) == (0, "all ended: 0"), output
    told = [line.partition(":")[0] for line in lines if ", right: True, loads: 1, " in line]
    assert told == ["started", "worker-0 killed", "server killed", "loader killed"], output
    assert any(line.startswith("a new version: used by both workers") for line in lines), output
    assert not list(tmp_path.iterdir())


def test_the_units_of_the_store_are_those_of_the_page():
    """But for what Prometheus needs."""
    shown = [block.text.strip() for block in blocks_of(PAGE) if block.language == "ini"]
    units = [path.read_text().strip() for path in UNITS if path.name.startswith("hamr-store.")]
    assert sorted(units) == sorted(text.replace(" --metrics 127.0.0.1:9431", "") for text in shown)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_accepts_the_units(tmp_path):
    """With programs that are there, wherever this test is run."""
    for path in UNITS:
        text = re.sub(r"%h/.local/bin/hamr|python3", sys.executable, path.read_text())
        (tmp_path / path.name).write_text(text)
    command = ["systemd-analyze", "--user", "verify", *map(str, sorted(tmp_path.iterdir()))]
    status, output = launch(command, 60, {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert (status, output) == (0, "")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_the_units_start_what_there_is(path):
    for name, options in re.findall(r"%h/weights_server/(\w+\.py)(.*)", path.read_text()):
        given = [sys.executable, str(EXAMPLE / name), *shlex.split(options), "--help"]
        assert launch(given, 60)[0] == 0
