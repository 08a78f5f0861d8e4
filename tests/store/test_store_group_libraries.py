"""A group's arrays in other libraries, and private copies of them."""

import gc
import sys

import numpy as np
import pytest

import hamr
from tests.store.trees import same
from tests.support.processes import wait_until

WEIGHTS = {
    "layer0.weight": np.arange(12, dtype="f4").reshape(3, 4),
    "layer0.bias": np.ones(3, "f2"),
    "layer1": {"weight": np.zeros((2, 0)), "steps": [np.float32(7), 3, None]},
}


def test_a_group_in_numpy(client):
    group = client.get_group(client.put_group(WEIGHTS))
    arrays = group.numpy()
    assert same(group.tree, arrays)
    found = arrays["layer0.weight"]
    assert type(found) is np.ndarray
    assert (found.flags.writeable, found.ctypes.data) == (False, group["layer0.weight"].ptr)
    del group
    gc.collect()
    assert np.array_equal(found, WEIGHTS["layer0.weight"])


@pytest.mark.parametrize("only", [None, ["layer1"]])
def test_a_group_goes_with_its_last_array_without_a_collection(client, only):
    """A program that waits for requests may collect nothing for hours."""
    id = client.put_group(WEIGHTS)
    gc.collect()
    gc.disable()
    try:
        arrays = client.get_group(id, only=only).numpy()
        assert client.statistics()["leases"] == 1
        del arrays
        wait_until(lambda: client.statistics()["leases"] == 0)
    finally:
        gc.enable()


def test_what_a_library_has_not_is_an_error_with_the_path(client, monkeypatch):
    group = client.get_group(client.put_group({"a": [np.arange(3)]}))

    class Torch(type(sys)):
        def from_dlpack(self, array):
            raise ValueError("no such type")

    monkeypatch.setitem(sys.modules, "torch", Torch("torch"))
    with pytest.raises(ValueError, match="no such type") as raised:
        group.torch()
    assert raised.value.__notes__ == [f"It is the array 'a.0' of the group {group.id}."]
    for name in ("cupy", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError):
            getattr(group, name)()


@pytest.mark.parametrize("only", [None, ["layer1", "layer0.bias"], []])
def test_a_private_group_may_be_written_to(client, only):
    tied = np.arange(300, dtype="f4")
    client.put_group(WEIGHTS | {"empty": np.zeros((0, 2)), "tied": [tied, tied]}, name="weights")
    group = client.get_group("weights", only=only, private=True)
    expected = client.get_group("weights", only=only)
    assert same(group.tree, expected.numpy())
    assert not any(each.readonly for each in group.values())
    assert {each.allocator for each in group.values()} <= {hamr.Allocator.malloc}
    for each in group.values():
        each.fill(5)
    if only is None:
        assert group["tied.0"].ptr == group["tied.1"].ptr
        assert group["layer1.steps.0"].get() == 5
    assert same(
        client.get_group("weights").tree,
        WEIGHTS | {"empty": np.zeros((0, 2)), "tied": [tied, tied]},
    )
    with pytest.raises(TypeError, match="private is 1"):
        client.get_group("weights", private=1)
