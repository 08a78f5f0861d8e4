import json
import resource
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import hamr
from hamr.cli import main
from hamr.store import connect
from tests.store.serving import ServerProcess


def test_a_server_ends_by_a_signal_and_leaves_no_socket(tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT):
        server = ServerProcess(str(tmp_path / "store" / "socket"), "--limit", "host=8MiB,gpu=1GiB")
        server.start()
        assert connect(server.path).statistics()["memory"]["host"]["limit"] == 8 << 20
        assert server.end(number) == 0
        assert not (tmp_path / "store" / "socket").exists()


def test_a_server_has_as_many_files_as_it_may(tmp_path):
    """Each large object is one: it raises its own limit, which is of its process alone."""
    server = ServerProcess(str(tmp_path / "socket"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        server.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    client = connect(server.path)
    ids = {client.put(np.full(1 << 16, i, "i4")) for i in range(100)}
    assert {info.id for info in client.list()} == ids
    assert server.end(signal.SIGTERM) == 0


def test_what_is_in_a_store_is_printed(server, client, capsys):
    id = client.put(np.zeros((2, 3), "f4"), name="field", metadata={"a": 1})
    assert main(["store", "list", "--socket", server.path]) == 0
    printed = capsys.readouterr().out
    assert id in printed
    assert "2x3" in printed
    assert "field" in printed
    assert main(["store", "list", "--json", "--socket", server.path]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["id"], told["shape"], told["metadata"]) == (id, [2, 3], {"a": 1})
    assert main(["store", "stat", "--json", "--socket", server.path]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 1
    assert main(["store", "stat", "--socket", server.path]) == 0
    assert "memory host used:" in capsys.readouterr().out
    assert main(["store", "top", "--times", "2", "--every", "0", "--socket", server.path]) == 0
    assert capsys.readouterr().out.count(id) == 2
    assert main(["store", "top", "--times", "1", "--json", "--socket", server.path]) == 0
    assert json.loads(capsys.readouterr().out)["largest"][0]["id"] == id


def test_a_store_that_is_not_there_is_said_so(tmp_path, capsys):
    assert main(["store", "list", "--socket", str(tmp_path / "none")]) == 1
    told = capsys.readouterr().err
    assert f"no store at {tmp_path / 'none'}: no such file or directory" in told
    assert "hamr store serve starts one" in told
    arguments = ["store", "serve", "--socket", str(tmp_path / "a" / "b"), "--limit", "256MiB"]
    assert main(arguments) == 1
    assert "write 'host=256MiB'" in capsys.readouterr().err
    assert main(["store", "serve", "--socket", str(tmp_path / "a" / "b"), "--limit", "x"]) == 1
    assert "limit is 'x'" in capsys.readouterr().err


@pytest.mark.skipif(
    any(hamr.backends()[name]["available"] for name in ("cuda", "hip")),
    reason="there are devices whose memory can be shared",
)
def test_a_store_without_devices_cannot_spill_them(tmp_path, capsys):
    spill = ("--limit", "gpu=1GiB", "--spill", str(tmp_path / "c"), "--spill-devices")
    assert main(["store", "serve", "--socket", str(tmp_path / "a" / "b"), *spill]) == 1
    assert "no device whose memory it can map" in capsys.readouterr().err


def test_the_environment_names_the_store(server, client, monkeypatch):
    monkeypatch.setenv("HAMR_STORE", server.path)
    code = "import hamr.store as s; print(s.connect().path)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == server.path


def test_figures_without_their_package_are_said_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    path = str(tmp_path / "a" / "b")
    assert main(["store", "serve", "--socket", path, "--metrics", "9431"]) == 1
    assert "pip install 'hamr[metrics]'" in capsys.readouterr().err


def test_prometheus_reads_the_figures(tmp_path):
    pytest.importorskip("prometheus_client")
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ServerProcess(str(tmp_path / "s" / "socket"), "--metrics", str(port)) as server:
        connect(server.path).put(np.zeros(1000))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
    assert "hamr_store_objects 1.0" in text
    assert 'hamr_store_memory_used_bytes{memory="host"}' in text
    assert 'hamr_store_memory_ready_bytes{memory="host"} 0.0' in text
    assert "hamr_store_ready_hits_total 0.0" in text
