import multiprocessing
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from hamr.store import (
    ObjectNotFound,
    Server,
    StoreError,
    StoreLost,
    StoreRefused,
    connect,
)
from tests.store import children
from tests.support.paths import PATHS
from tests.support.processes import scaled, wait_until

ENVIRONMENT = {**os.environ, **PATHS}


def child(*arguments, before=()):
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tests.store.children", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
    )


def output_of(*arguments, before=()):
    process = child(*arguments, before=before)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_queues_carry_ids(client, method):
    context = multiprocessing.get_context(method)
    buffers, results = context.Queue(), context.Queue()
    process = context.Process(target=children.totals, args=(buffers, results))
    process.start()
    values = [np.arange(n, dtype="f8") for n in (10, 100_000)]
    for value in values:
        found = client.get(client.put(value))
        buffers.put(found)
        buffers.put(found[::2])
        assert results.get(timeout=60) == (value.sum(), True)
        assert results.get(timeout=60) == (value[::2].sum(), True)
    buffers.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_a_forked_child_has_what_its_parent_had_and_a_connection_of_its_own(server, client):
    found = client.get(client.put(np.arange(100_000)))
    before = server.statistics()["connections"]
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        status = 1
        try:
            assert np.asarray(found).sum() == np.arange(100_000).sum()
            id = client.put(np.ones(7))
            del found
            os.write(writer, id.encode())
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert np.asarray(client.get(os.read(reader, 32).decode())).sum() == 7
    assert client.info(found_id(client, found)).leases == 1
    assert server.statistics()["connections"] == before


def mappings():
    return Path("/proc/self/maps").read_text().count("memfd:")


def test_a_child_forked_after_sealing_has_nothing_of_it(client):
    for _ in range(5):
        builder = client.create(100_000)
        before = mappings()
        builder.seal()
        if not (pid := os.fork()):
            os._exit(mappings() >= before)
        assert os.waitpid(pid, 0)[1] == 0
        assert client.statistics()["leases"] == 0


def found_id(client, found):
    return next(info.id for info in client.list() if info.nbytes == found.nbytes)


def test_what_a_killed_process_made_is_there_and_what_it_had_not_sealed_is_not(server_process):
    client = connect(server_process.path)
    baseline = client.statistics()["memory"]["host"]["used"], server_process.descriptors()
    for _ in range(scaled(10, 2)):
        process = child("make", server_process.path, 3)
        *ids, unsealed = process.stdout.readline().split()
        assert client.exists(unsealed)
        assert client.info(ids[0]).leases == 1
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        wait_until(lambda: not client.exists(unsealed))  # noqa: B023
        with pytest.raises(ObjectNotFound):
            client.get(unsealed)
        for n, id in enumerate(ids):
            assert (np.asarray(client.get(id)) == n).all()
            client.delete(id)
        wait_until(lambda: client.statistics()["leases"] == 0)
    wait_until(lambda: client.statistics()["memory"]["host"]["used"] == baseline[0])
    wait_until(lambda: server_process.descriptors() == baseline[1])


def test_a_server_that_is_started_again_knows_what_processes_have(server_process):
    client = connect(server_process.path)
    ids = [client.put(np.full(n, n)) for n in (3, 1000, 300_000)]
    lost = client.put(np.zeros(5))
    client.put_name("kept", ids[0])
    held = [client.get(id) for id in ids]
    other = child("hold", server_process.path, *ids[1:])
    assert other.stdout.readline() == "held\n"
    server_process.end(signal.SIGKILL)
    with pytest.raises(StoreLost) as caught:
        client.exists(ids[0])
    assert caught.value.path == server_process.path
    assert [int(one[0]) for one in held] == [3, 1000, 300_000]
    server_process.start()
    for id in ids:
        wait_until(lambda: client.exists(id))  # noqa: B023
        assert client.info(id).sealed
    assert client.get_name("kept") == ids[0]
    with pytest.raises(ObjectNotFound):
        client.get(lost)
    output, _ = other.communicate("look\n", timeout=60)
    assert output == "same\n"
    assert np.array_equal(client.get(ids[2]), np.full(300_000, 300_000))


def test_a_path_has_one_server(server, tmp_path):
    with pytest.raises(StoreRefused, match=server.path):
        Server(server.path)
    with pytest.raises(StoreLost, match="nowhere"):
        connect(str(tmp_path / "nowhere"))
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o777)
    open_folder.chmod(0o777)
    with pytest.raises(StoreRefused, match="open"):
        Server(str(open_folder / "socket"))


def test_the_socket_is_the_users_alone(server):
    folder, socket = os.stat(os.path.dirname(server.path)), os.stat(server.path)
    assert folder.st_mode & 0o777 == 0o700
    assert socket.st_mode & 0o777 == 0o600


def nobody():
    """Another user, where this one may become others."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    return pwd.getpwnam("nobody").pw_uid


def test_another_user_is_refused():
    uid = nobody()
    with tempfile.TemporaryDirectory() as folder, Server(f"{folder}/store/socket") as server:
        # The file system would refuse already; that the server does, too, is what is asked.
        for path, mode in ((folder, 0o755), (f"{folder}/store", 0o755), (server.path, 0o666)):
            os.chmod(path, mode)
        assert_refused(server, uid)


def assert_refused(server, uid):
    program = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        f"os.setuid({uid})\n"
        "try:\n"
        "    s.connect(sys.argv[1])\n"
        "    s.settimeout(20)\n"
        "    s.send(b'x' * 16)\n"
        "    print(s.recv(100))\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, server.path],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout in ("b''\n", "ConnectionResetError\n", "BrokenPipeError\n")
    assert server.statistics()["refused"] == 1


def test_processes_in_other_namespaces_share_by_the_socket(server, client):
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    before = ["unshare", "--pid", "--fork", "--user", "--map-current-user"]
    if os.getuid() == 0:
        before = before[:3]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system makes no namespaces")
    id = client.put(np.arange(100_000.0))
    assert output_of("read", server.path, id, before=before) == (0, f"{np.arange(1e5).sum()}\n")


def test_who_talks_nonsense_is_cut_off_alone(server, client):
    import socket

    id = client.put(np.zeros(5))
    for nonsense in (b"\0", b"x" * 16, b"\xff" * 1000, os.urandom(60_000)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as liar:
            liar.connect(server.path)
            liar.settimeout(20)
            liar.send(nonsense)
            try:
                while liar.recv(70_000):
                    pass
            except ConnectionResetError:
                pass
    assert client.exists(id)
    assert issubclass(StoreLost, StoreError)
