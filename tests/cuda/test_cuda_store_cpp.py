"""hamr/cpp/store.hpp on a device: the example's flow, mirrors and groups."""

from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr.store import connect
from tests.package.test_headers import LANGUAGES
from tests.store.serving import ServerProcess
from tests.support.c_programs import COMPILER, run
from tests.support.processes import wait_until
from tests.support.store_programs import CLIENT, EXAMPLE, build, lines_of_the_example

pytestmark = pytest.mark.skipif(
    not (COMPILER and LANGUAGES["c++"][1]), reason="no compilers of C and C++"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Path(build(CLIENT, tmp_path_factory.mktemp("store")))


def test_the_example(tmp_path):
    """Vineyard's flow: made on a device, written and read by mirrors, in two processes."""
    path = str(tmp_path / "store" / "socket")
    with ServerProcess(path, "--limit", "host=1MiB,gpu=16MiB"), connect(path) as client:
        output = run(Path(build(EXAMPLE, tmp_path)), path, "cuda")
        assert output.splitlines() == lines_of_the_example(on_the_host=False)
        wait_until(lambda: not any(row["used"] for row in memory(client).values()))
        assert max(row["peak"] for name, row in memory(client).items() if name != "host") > 0


def memory(client):
    return client.statistics()["memory"]


def test_mirrors_are_page_locked_and_written_back(program, tmp_path):
    run(program, "unwinding", str(tmp_path / "at" / "socket"), env={"STORE_ON": "cuda"})


def test_a_group_on_a_device_each_way(program, tmp_path):
    path = str(tmp_path / "store" / "socket")
    with ServerProcess(path, "--limit", "host=16MiB,gpu=16MiB"), connect(path) as client:
        layer = {"w": hamr.full((20, 30), 0.25, device=0), "n": 3}
        client.put_group({"layers": [layer], "rest": np.ones(4)}, name="from Python")
        assert run(program, "groups", path) == '150 {"layers.0.n":3}\n'
        group = client.get_group("from C++")
        assert [each.device for each in group.values()] == [0, 0]
        assert (group["w"].get().sum(), group["n"].get().tolist()) == (150, [7, 7])


@pytest.mark.multigpu
def test_a_group_of_two_devices_is_refused(program, tmp_path):
    path = str(tmp_path / "store" / "socket")
    with ServerProcess(path, "--limit", "host=16MiB,gpu=16MiB"), connect(path) as client:
        assert "accepted is arrays of one device and of the host" in run(program, "devices", path)
        assert not list(client.list())
