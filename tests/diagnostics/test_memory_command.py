"""``hamr memory`` asks processes that opted in, and nobody else can."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading

import pytest

import hamr
from hamr._diagnostics import memory_server
from hamr.cli import main
from tests.support.processes import run_code


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "hamr-memory"


@pytest.fixture
def server(home):
    with contextlib.closing(hamr.serve_memory()) as found:
        yield found


def test_the_socket_is_the_users_own(home, server):
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(server.path).st_mode) == 0o600
    assert hamr.serve_memory() is server
    server.close()
    server.close()
    assert list(home.iterdir()) == []
    again = hamr.serve_memory()
    assert again is not server
    again.close()


def test_a_process_is_asked(home, server, capsys):
    held = hamr.Buffer(12345, "u1")
    assert main(["memory", str(os.getpid())]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"process {os.getpid()} ")
    assert "hamr     host" in told
    assert any(a["size"] == 12345 for a in memory_server.ask(os.getpid())["allocations"])
    del held


def test_all_processes_and_files(home, capsys, tmp_path):
    assert main(["memory"]) == 0
    assert "no process can be asked" in capsys.readouterr().out
    code = "import sys, hamr; held = hamr.ones(1000); print(1, flush=True); sys.stdin.read()"
    environment = {**os.environ, "HAMR_MEMORY": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        (home / "999999999.sock").touch()  # of a process that was killed
        (home / "unlike").touch()
        path = tmp_path / "x.html"
        assert main(["memory"]) == 0
        assert "7.8 KiB in 1 allocations" in capsys.readouterr().out
        assert main(["memory", str(child.pid), "--write", str(path)]) == 0
        assert f"Memory of process {child.pid}" in path.read_text()
        nowhere = str(tmp_path / "no" / "x.html")
        assert main(["memory", str(child.pid), "--write", nowhere]) == 1
        said = capsys.readouterr()
        assert "nothing was written" in said.err
        assert "7.8 KiB in 1 allocations" in said.out
        child.stdin.close()
    assert [p.name for p in home.iterdir()] == ["unlike"]


def test_who_has_not_opted_in(home, capsys):
    home.mkdir(0o700)
    assert main(["memory", str(os.getpid())]) == 1
    assert "has not opted in" in capsys.readouterr().err
    assert main(["memory", "1", "--write", "x.txt"]) == 2
    assert main(["memory", "--write", "x.html"]) == 2


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_refused(home, mode, capsys):
    home.mkdir()
    home.chmod(mode)
    with pytest.raises(PermissionError, match="accepted is 0700"):
        hamr.serve_memory()
    assert main(["memory"]) == 1
    assert "0700" in capsys.readouterr().err


def test_a_link_of_ones_own_to_a_folder_is_as_the_folder(home, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    home.symlink_to(elsewhere)
    with contextlib.closing(hamr.serve_memory()):
        assert memory_server.ask(os.getpid())["pid"] == os.getpid()
    elsewhere.chmod(0o755)
    with pytest.raises(PermissionError, match="accepted is 0700"):
        hamr.serve_memory()
    elsewhere.chmod(0o700)
    monkeypatch.setattr(os, "lstat", lambda path: os.stat_result((0o120777, *[1] * 9)))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with pytest.raises(PermissionError, match="belongs to user 1"):
        hamr.serve_memory()


def test_peers_that_say_nothing_or_leave(home, server):
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(server.path)
    threads = [threading.Thread(target=memory_server.ask, args=(os.getpid(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory_server.ask(os.getpid())["pid"] == os.getpid()


RUNS_OUT = """
import resource, sys, threading
import hamr
from hamr._diagnostics import memory_server

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
asked, peer_of = 0, memory_server.peer_of

def limit(number):
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, most))

def runs_out(connection):
    global asked
    asked += 1
    if asked == 1:
        limit(connection.fileno())  # all below it are in use
    if asked == 4:
        limit(1)  # poll() takes as many
        threading.Timer(0.3, limit, [most]).start()
    return peer_of(connection)

hamr.memory_snapshot()  # whose modules are files, too
memory_server.peer_of = runs_out
hamr.serve_memory()
print(1, flush=True)
sys.stdin.read()
"""


def test_a_process_that_runs_out_of_descriptors_answers(home, monkeypatch):
    monkeypatch.setattr(memory_server, "_PATIENCE", 0.5)
    with subprocess.Popen(
        [sys.executable, "-c", RUNS_OUT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        for _ in range(6):
            assert memory_server.ask(child.pid)["pid"] == child.pid
        child.stdin.close()
    assert child.returncode == 0


def test_another_users_peer_hears_nothing(home, server, monkeypatch):
    monkeypatch.setattr(memory_server, "peer_of", lambda connection: (1, os.getuid() + 1))
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(server.path)
        assert other.recv(1) == b""
    with pytest.raises(PermissionError, match="answers as user"):
        memory_server.ask(os.getpid())


def test_what_is_no_answer(home, capsys):
    home.mkdir(0o700)
    with socket.socket(socket.AF_UNIX) as liar:
        liar.bind(str(home / f"{os.getpid()}.sock"))
        liar.listen()

        def lie():
            for said in (b"", b"[]", b"{", b'{"error": "mine"}', b'{"pid": 3}'):
                connection, _ = liar.accept()
                with connection:
                    connection.sendall(said)

        thread = threading.Thread(target=lie)
        thread.start()
        for _ in range(5):
            assert main(["memory", str(os.getpid())]) == 1
            assert capsys.readouterr().err.startswith("hamr memory: process")
        thread.join()


def test_a_forked_child_does_not_answer(home):
    run_code(
        """
import os, hamr
server = hamr.serve_memory()
child = os.fork()
if child == 0:
    server.close()
    assert os.path.exists(server.path)
    own = hamr.serve_memory()
    assert own.path != server.path
    own.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
from hamr._diagnostics.memory_server import ask
assert ask(os.getpid())["pid"] == os.getpid()
"""
    )


@pytest.mark.parametrize(("said", "told"), [("2", "HAMR_MEMORY is '2'"), ("1", "0700")])
def test_what_the_environment_asks_for_wrongly(home, said, told):
    home.mkdir()
    home.chmod(0o755)
    environment = {**os.environ, "HAMR_MEMORY": said}
    done = subprocess.run(
        [sys.executable, "-c", "import hamr; print(hamr.ones(1))"],
        env=environment, capture_output=True, text=True, check=True)  # fmt: skip
    assert told in done.stderr
    assert done.stdout == "{1}\n"
