import pytest

from hamr.store import Server, connect
from tests.store.serving import ServerProcess


@pytest.fixture
def server(tmp_path):
    """A server of this process's, which holds up to 64 MiB."""
    with Server(str(tmp_path / "store" / "socket"), limit={"host": "64MiB"}) as server:
        yield server


@pytest.fixture
def client(server):
    with connect(server.path) as client:
        yield client


@pytest.fixture
def server_process(tmp_path):
    """A server in a process of its own, which the test may kill."""
    with ServerProcess(str(tmp_path / "store" / "socket")) as process:
        yield process
