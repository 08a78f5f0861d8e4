"""Children of a process that serves: what they keep of it ends with it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from hamr.store import ObjectNotFound, Server, StoreError, StoreLost, connect
from tests.support.paths import PATHS
from tests.support.processes import run_code, wait_until


@pytest.fixture
def forked(tmp_path):
    """A process that serves and has forked a child, which takes orders; its path; the child."""
    path = str(tmp_path / "store" / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.children", "serve_and_fork", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **PATHS},
    )
    child = int(process.stdout.readline())
    yield process, path, child
    process.kill()
    os.kill(child, signal.SIGKILL)  # which has the pipe, too
    process.communicate()


def ended(call):
    """The exception of a call that must come back: a child that keeps a socket has it wait."""
    found = []

    def run():
        try:
            call()
        except StoreError as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "the call hangs"
    return found[0] if found else None


def order(process, what):
    process.stdin.write(what + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


@pytest.mark.parametrize("end", ["killed", "closed"])
def test_a_forked_child_of_a_server_that_has_ended(forked, end):
    """Clients learn of the end, and another server has the path."""
    process, path, _ = forked
    client = connect(path)
    id = client.put(np.arange(5))
    if end == "killed":
        process.kill()
        process.wait()
    else:
        order(process, "close")
    assert isinstance(ended(lambda: client.exists(id)), StoreLost)
    assert isinstance(ended(lambda: connect(path)), StoreLost)
    with Server(path):
        assert not connect(path).exists(id)
        assert not client.exists(id)


def of_server(process, path):
    names = []
    for one in os.scandir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            names.append(os.readlink(one.path))
    return [n for n in names if "socket" in n or "memfd:hamr-shared" in n or path in n]


def test_a_forked_child_has_none_of_the_servers_descriptors(forked):
    """Its memory, its sockets and its files among them; those that the child has opened stay."""
    process, path, child = forked
    order(process, "spill")
    process.stdin.write("fork\n")
    process.stdin.flush()
    second = int(process.stdout.readline())
    try:
        for number in (child, second):
            # The child closes them a moment after its parent goes on.
            wait_until(lambda number=number: not of_server(number, path))
    finally:
        os.kill(second, signal.SIGKILL)


def test_a_program_that_serves_and_goes_to_the_background(tmp_path):
    """Its child serves the path once the parent has ended."""
    path = str(tmp_path / "store" / "socket")
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.children", "go_to_background", path, str(writer)],
        env={**os.environ, **PATHS},
        pass_fds=[writer],
    )
    os.close(writer)
    assert process.wait(60) == 0
    with open(reader) as told:
        child = int(told.readline())
        try:
            assert told.readline() == "serving\n"
            client = connect(path)
            assert client.get(client.put(np.arange(4)))[3] == 3
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_session_ends_with_close_though_a_child_has_it(server, client):
    other = connect(server.path)
    held = other.get(client.put(np.zeros(100_000)))
    if not (pid := os.fork()):
        signal.pause()
        os._exit(0)
    try:
        other.close()
        del held, other
        wait_until(lambda: server.statistics()["connections"] == 1)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with pytest.raises(ObjectNotFound):
        client.get(name="nothing")


FORKS_WHILE_READ = """
import gc, os, sys
import numpy as np
from hamr.store import Server, StoreError, connect

server = Server(sys.argv[1])
client = connect(sys.argv[1])
for i in range(4):
    client.put_name(f"n{i}", client.put(np.arange(10.0)))
some = client.get_name("n0")


def forks_at(place, ask):
    count, child = 0, None

    def told(phase, info):
        nonlocal count, child
        count += phase == "start"
        if count == place and child is None:
            child = -1  # not again, from what forking does
            child = os.fork()

    gc.collect()
    before = gc.get_threshold()
    gc.callbacks.append(told)
    gc.set_threshold(1)
    try:
        ask()
    except (StoreError, ValueError):  # in the child, whose parent has the server and the session
        if child:
            raise
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(told)
    if child == 0:
        os._exit(0)
    if child:
        assert os.waitpid(child, 0)[1] == 0, (place, ask)
    return child


for ask in (client.list, lambda: client.info(some), client.statistics, server.statistics):
    place = 1
    while forks_at(place, lambda: list(ask()) if ask == client.list else ask()):
        place += 1
"""


def test_a_finaliser_forks_while_an_answer_is_read(tmp_path):
    """The child, which has no core yet, frees what its parent's has answered, and goes on."""
    run_code(f"import sys; sys.argv[1:] = [{str(tmp_path / 'socket')!r}]" + FORKS_WHILE_READ)


def test_a_socket_that_outlives_its_server(tmp_path):
    """Another process has a copy, and reads nothing: neither clients nor a server wait for it."""
    path = tmp_path / "store" / "socket"
    path.parent.mkdir(mode=0o700)
    code = (
        "import socket, subprocess, sys\n"
        "listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "listener.bind(sys.argv[1])\n"
        "listener.listen()\n"
        "kept = [listener.fileno()]\n"
        "none = subprocess.DEVNULL\n"
        "child = subprocess.Popen(['sleep', '600'], pass_fds=kept, stdout=none, stderr=none)\n"
        "print(child.pid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    try:
        lost = ended(lambda: connect(str(path)))
        assert isinstance(lost, StoreLost)
        assert "has not answered" in str(lost)
        with Server(str(path)) as server, connect(server.path) as client:
            assert client.get(client.put(np.arange(3)))[2] == 2
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)
