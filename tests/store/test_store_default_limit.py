"""The limit of a server that is given none: half of what its process may have."""

import os
from pathlib import Path

import numpy as np
import pytest

from hamr.store import connect
from tests.store.serving import ServerProcess

MIB = 1 << 20


def host_limit(path, before=""):
    with ServerProcess(str(path / "store" / "socket"), before=before) as server:
        limit = connect(server.path).statistics()["memory"]["host"]["limit"]
    assert isinstance(limit, int)
    return limit


def test_half_of_the_address_space(tmp_path):
    assert host_limit(tmp_path, f"ulimit -v {4096 * 1024}") == 2048 * MIB
    assert host_limit(tmp_path) > 2048 * MIB


@pytest.fixture(scope="module", params=["memory/", "", "unified/"])
def group(request):
    """A control group of 400 MiB, where this user may make one."""
    made = Path(f"/sys/fs/cgroup/{request.param}hamr-test-{os.getpid()}")
    limit = "memory.limit_in_bytes" if request.param == "memory/" else "memory.max"
    try:
        made.mkdir()
        try:
            with (made / limit).open("r+") as file:
                file.write(str(400 * MIB))
        except OSError:
            made.rmdir()
            raise
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield made
    made.rmdir()


def test_half_of_the_control_group(group, tmp_path):
    assert host_limit(tmp_path, f"echo $$ > {group}/cgroup.procs") == 200 * MIB


def test_what_is_put_does_not_end_the_server_of_a_control_group(group, tmp_path):
    path, before = str(tmp_path / "store" / "socket"), f"echo $$ > {group}/cgroup.procs"
    with ServerProcess(path, before=before), connect(path) as client:
        for n in range(8):
            client.put(np.full(100 * MIB, n, "u1"), evictable=True)
        assert client.statistics()["evicted"] >= 6
