"""What a service manager asks of ``hamr store``: activation by a socket, readiness, health."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from hamr import cli
from hamr.store import Server, StoreFull, connect, service
from tests.store.serving import ServerProcess
from tests.support.paths import PATHS
from tests.support.processes import no_descriptors, wait_until


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "run"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def listening(folder):
    """A socket as a service manager makes one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.bind(str(folder / "store.sock"))
        made.listen(16)
        yield made


def activated(listening, *options, count=1, **settings):
    """``hamr store serve`` as it is started for a socket."""
    code = (
        "import os, sys\n"
        f"os.dup2({listening.fileno()}, 3)\n"
        "os.environ['LISTEN_PID'] = str(os.getpid())\n"
        f"os.environ['LISTEN_FDS'] = '{count}'\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'hamr', 'store', 'serve', *sys.argv[1:]])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **PATHS, **settings},
        pass_fds=[listening.fileno()],
    )


def test_a_socket_starts_one_server_after_the_other(listening):
    path = listening.getsockname()
    for _ in range(2):
        process = activated(listening)
        try:
            client = connect(path)  # waits where the server has still to start
            assert client.statistics()["objects"] == 0
            assert process.stdout.readline() == f"hamr store: listening at {path}\n"
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
        assert os.path.exists(path)


def test_more_than_one_socket_is_refused(listening):
    process = activated(listening, count=2)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "LISTEN_FDS is '2': accepted is one socket" in errors


def test_another_process_s_socket_is_none_of_ours(monkeypatch):
    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert service.given_socket() == 0
    assert os.environ["LISTEN_FDS"] == "1"
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    assert service.given_socket() == 3
    assert "LISTEN_FDS" not in os.environ
    assert "LISTEN_PID" not in os.environ


def test_a_server_of_a_socket_in_this_process(listening):
    path = listening.getsockname()
    with Server(socket=os.dup(listening.fileno())) as server:
        assert server.path == path
        assert connect(path).statistics()["objects"] == 0
    with pytest.raises(ValueError, match=r"socket is \d+, no socket: accepted is a UNIX socket"):
        Server(socket=os.open("/dev/null", os.O_RDONLY))
    with pytest.raises(TypeError, match="socket is 'x'"):
        Server(socket="x")
    with pytest.raises(ValueError, match="socket is -1"):
        Server(socket=-1)


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_is_told_when_the_server_is_ready(abstract, folder, monkeypatch):
    name = f"hamr-{os.getpid()}" if abstract else str(folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name if abstract else name)
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name if abstract else name)
        with ServerProcess(str(folder / "store.sock")) as server:
            assert manager.recv(100) == b"READY=1"
            assert connect(server.path).statistics()["objects"] == 0
            assert server.end() == 0
        assert manager.recv(100) == b"STOPPING=1"


def test_a_manager_that_has_ended_does_not_matter(folder, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "nobody"))
    with ServerProcess(str(folder / "store.sock")) as server:
        assert server.end() == 0


def ping(path, *options):
    return cli.main(["store", "ping", "--socket", path, *options])


def test_ping_tells_by_its_status(folder, capsys):
    path = str(folder / "store.sock")
    assert ping(path) == service.ABSENT == 1
    assert f"no store at {path}" in capsys.readouterr().err
    before = signal.getsignal(signal.SIGALRM)
    with ServerProcess(path) as server:
        assert ping(path) == service.ANSWERS == 0
        assert f"the store at {path} has answered within" in capsys.readouterr().out
        server.process.send_signal(signal.SIGSTOP)
        assert ping(path) == service.SILENT == 3
        assert "has not answered" in capsys.readouterr().err
        assert ping(path, "--timeout", "0.1") == 3
        assert "has not answered within 0.1 s" in capsys.readouterr().err
        server.process.send_signal(signal.SIGCONT)
        assert ping(path, "--timeout", "60") == 0
    assert ping(path) == 1
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("timeout", ["0", "-1", "x", "nan"])
def test_ping_refuses_a_time_that_is_none(timeout, folder, capsys):
    with pytest.raises(SystemExit) as ended:
        ping(str(folder / "store.sock"), "--timeout", timeout)
    assert ended.value.code == 2
    assert "accepted is" in capsys.readouterr().err


def test_ping_of_a_program_that_is_no_store(listening, capsys):
    assert ping(listening.getsockname(), "--timeout", "30") == 3
    assert "has not answered" in capsys.readouterr().err


def test_ping_tells_who_has_no_descriptors(folder, capsys):
    path = str(folder / "store.sock")
    with ServerProcess(path, before="ulimit -n 64") as server:
        clients = []
        with pytest.raises(StoreFull, match="RLIMIT_NOFILE"):
            clients.extend(connect(path) for _ in range(64))
        assert ping(path) == service.FULL == 4
        assert "clients are turned away: the store is full: its process can open 64" in (
            capsys.readouterr().err
        )
        clients.clear()
        wait_until(lambda: server.descriptors() < 40)
        assert ping(path) == 0
        with no_descriptors():
            assert ping(path) == service.UNABLE == 5
        assert "this process cannot ask: " in capsys.readouterr().err


@pytest.mark.parametrize("options", [("ping", "--timeout"), ("top", "--every")])
def test_a_time_that_is_too_long_is_said_so(options, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["store", *options, "1e10"])
    assert ended.value.code == 2
    assert "'1e10' is too long: accepted are up to 9223372036 seconds" in capsys.readouterr().err


def test_the_longest_time_to_wait(server):
    assert ping(server.path, "--timeout", "9223372036") == 0
