"""Where a store is by default, as the environment says when it is asked for."""

import os

import numpy as np
import pytest

from hamr.store import Server, StoreLost, connect


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Names of sockets, and an environment that says nothing; hamr is loaded."""
    monkeypatch.delenv("HAMR_STORE", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(StoreLost):
        connect()
    return [str(tmp_path / name / "socket") for name in "abc"]


@pytest.mark.parametrize("variable", ["HAMR_STORE", "XDG_RUNTIME_DIR"])
def test_a_program_says_which_store_it_uses(variable, folders, monkeypatch):
    """Set by os.environ after hamr was loaded, again and again, and taken away."""
    for path in folders[:2]:
        value, listens = path, path
        if variable == "XDG_RUNTIME_DIR":
            value = os.path.dirname(path)
            os.mkdir(value, 0o700)
            listens = os.path.join(value, "hamr", "store.sock")
        monkeypatch.setenv(variable, value)
        with Server() as server, connect() as client:
            assert (server.path, client.path) == (listens, listens)
            id = client.put(np.arange(2), name="it")
            with connect(listens) as other:
                assert other.get_name("it") == id
    monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.path.dirname(os.path.dirname(folders[2])))
    with pytest.raises(StoreLost) as caught:
        connect()
    assert caught.value.path == os.path.join(os.environ["XDG_RUNTIME_DIR"], "hamr", "store.sock")
