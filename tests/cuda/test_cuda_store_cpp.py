"""hamr/cpp/store.hpp on a device: the example's flow, and mirrors."""

from pathlib import Path

import pytest

from hamr.store import connect
from tests.package.test_headers import LANGUAGES
from tests.store.serving import ServerProcess
from tests.support.c_programs import COMPILER, run
from tests.support.processes import wait_until
from tests.support.store_programs import CLIENT, EXAMPLE, build, lines_of_the_example

pytestmark = pytest.mark.skipif(
    not (COMPILER and LANGUAGES["c++"][1]), reason="no compilers of C and C++"
)


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


def test_mirrors_are_page_locked_and_written_back(tmp_path):
    program = Path(build(CLIENT, tmp_path))
    run(program, "unwinding", str(tmp_path / "at" / "socket"), env={"STORE_ON": "cuda"})
