"""hamr/store.h and hamr/cpp/store.hpp: the store and sharing, between C, C++ and Python."""

import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr.store import NotSealed, ObjectNotFound, StoreLost, connect
from tests.package.test_headers import LANGUAGES
from tests.store.serving import ServerProcess
from tests.support.c_programs import COMPILER, PROGRAMS, compile_program, run
from tests.support.processes import wait_until
from tests.support.store_programs import CLIENT, EXAMPLE, build, lines_of_the_example

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="no C compiler"),
    pytest.mark.skipif(not LANGUAGES["c++"][1], reason="no C++ compiler"),
]


@pytest.fixture(scope="module")
def client_program(tmp_path_factory):
    return build(CLIENT, tmp_path_factory.mktemp("store"))


@pytest.fixture
def server(tmp_path):
    """hamr store serve."""
    with ServerProcess(str(tmp_path / "store" / "socket"), "--limit", "host=64MiB") as process:
        yield process


def test_a_program_in_c(tmp_path):
    """It says in its first line what it shows; no Python is in the process."""
    for name, said in (("store", "all of the store"), ("store_groups", "all of the groups")):
        program = compile_program(PROGRAMS / f"{name}.c", tmp_path / name)
        assert run(program, str(tmp_path / "at" / "socket")).splitlines()[-1] == said


def test_every_function_is_called():
    text = "".join((PROGRAMS / f"{name}.c").read_text() for name in ("store", "store_groups"))
    calls = (PROGRAMS.parents[2] / "include" / "hamr" / "store_calls.h").read_text()
    names = re.findall(r"^static inline .*?(hamr_\w+)\(", calls, re.M)
    table = (PROGRAMS.parents[2] / "include" / "hamr" / "store_interface.h").read_text()
    assert len(names) == len(re.findall(r"\(\*(\w+)\)\(", table))
    assert [name for name in names if f"{name}(" not in text] == []


def test_the_surface_of_c_plus_plus(client_program, tmp_path):
    run(Path(client_program), "surface", str(tmp_path / "at" / "socket"))


def test_calls_end_where_the_server_stands_still(client_program, server):
    command = [client_program, "limited", server.path]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as program:
        assert program.stdout.readline() == "begun\n"
        server.process.send_signal(signal.SIGSTOP)
        while ") T " not in Path(f"/proc/{server.process.pid}/stat").read_text():
            time.sleep(0.001)
        program.stdin.write("\n")
        program.stdin.flush()
        told = program.stdout.readline()
        server.process.send_signal(signal.SIGCONT)
        assert (told, program.stderr.read()) == ("ended\n", "")
        assert program.wait() == 0


def test_a_mirror_that_an_exception_ends(client_program, tmp_path):
    run(Path(client_program), "unwinding", str(tmp_path / "at" / "socket"))


def test_the_example(server, tmp_path):
    output = run(Path(build(EXAMPLE, tmp_path)), server.path)
    assert output.splitlines() == lines_of_the_example(on_the_host=True)


def test_one_object_each_way_by_name(client_program, server):
    with (
        connect(server.path) as client,
        subprocess.Popen(
            [client_program, "exchange", server.path], stdout=subprocess.PIPE, text=True
        ) as program,
    ):
        found = client.get(client.get_name("from C++", wait=True, timeout=60))
        values = np.asarray(found)
        assert (values.shape, values.sum(), found.readonly) == ((3, 1000), 1500, True)
        client.put(np.full(50_000, 0.25), name="from Python")
        output, _ = program.communicate(timeout=60)
        assert (program.returncode, output) == (0, "12500\n")
        assert values.sum() == 1500  # its maker has ended


def test_a_group_each_way(client_program, server):
    with connect(server.path) as client:
        layer = {"w": np.full((20, 30), 0.25), "n": 3}
        client.put_group({"layers": [layer], "rest": np.ones(4)}, name="from Python")
        assert run(Path(client_program), "groups", server.path) == '150 {"layers.0.n":3}\n'
        group = client.get_group("from C++")
        assert (list(group), group["n"].get().tolist()) == (["w", "n"], [7, 7])
        assert np.array_equal(group["w"].get(), layer["w"])
        assert group.array_metadata == {"w": {"scale": 2}}


def test_what_a_killed_program_had_not_sealed_goes(client_program, server):
    command = [client_program, "be_killed", server.path]
    with (
        connect(server.path) as client,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program,
    ):
        unsealed, sealed = program.stdout.readline().split()
        with pytest.raises(NotSealed):
            client.get(unsealed)
        both = client.statistics()["memory"]["host"]["used"]
        program.send_signal(signal.SIGKILL)
        program.wait(timeout=60)
        wait_until(lambda: not client.exists(unsealed))
        with pytest.raises(ObjectNotFound):
            client.get(unsealed)
        assert np.asarray(client.get(sealed)).sum() == 40_000
        statistics = client.statistics()
        assert statistics["unsealed"] == 0
        assert statistics["memory"]["host"]["used"] == both // 2


def test_a_killed_server_is_lost(client_program, server):
    server.end(signal.SIGKILL)
    with pytest.raises(StoreLost):
        connect(server.path)
    done = subprocess.run(
        [client_program, "exchange", server.path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"hamr::store::client: no store at {server.path}: connection refused" in done.stderr


def test_sharing_without_a_server(client_program):
    """A handle each way, over a socket that the program has inherited."""
    near, far = socket.socketpair()
    with near, far:
        command = [client_program, "share", str(far.fileno())]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, pass_fds=[far.fileno()]
        ) as program:
            far.close()
            found = hamr.open_shared(near)
            found[...] = 2
            with hamr.Buffer(10, "f8", fill=3).share() as handle:
                handle.send(near)
            output, _ = program.communicate(timeout=60)
    assert (program.returncode, output) == (0, "200 30\n")
