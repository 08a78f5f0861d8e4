"""Groups of a store as each library's arrays: in place, and what a write does."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import hamr
from hamr.store import Server, connect
from tests.support.processes import launch

WEIGHTS = {
    "layers": [np.arange(12, dtype="f4").reshape(3, 4), np.arange(5, dtype="f2"), np.array(7)],
    "mask": np.array([True, False]),
    "none": None,
}

WRITES = """
import sys
import torch
from hamr.store import connect

with connect(sys.argv[1]) as client:
    tensor = client.get_group("weights").torch()["layers"][0]
    assert tensor.is_cuda == (sys.argv[2] == "cuda"), tensor.device
    print("writes", flush=True)
    tensor.add_(1)
    torch.cuda.synchronize()
"""


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit={"host": "64MiB", "gpu": "64MiB"}):
        yield path


@pytest.fixture
def client(path):
    with connect(path) as client:
        yield client


def put(client, where):
    place = {"device": 0} if where == "cuda" else {"allocator": "shared"}
    return client.get_group(client.put_group(WEIGHTS, name="weights", **place))


def check(group, tree, address, to_numpy, same_place=True):
    """All arrays of a library are the group's."""
    assert tree["none"] is None
    assert type(tree["layers"]) is list
    found = {f"layers.{i}": each for i, each in enumerate(tree["layers"])} | {"mask": tree["mask"]}
    assert list(found) == list(group)
    for name, each in found.items():
        assert np.array_equal(to_numpy(each), group[name].get())
        assert to_numpy(each).dtype == group[name].dtype
        assert not same_place or address(each) == group[name].ptr


@pytest.mark.parametrize("where", ["host", "cuda"])
def test_torch(client, torch_library, where):
    import torch

    group = put(client, where)
    tree = group.torch()
    assert {each.device.type for each in tree["layers"]} == {"cpu" if where == "host" else "cuda"}
    check(group, tree, torch.Tensor.data_ptr, lambda each: each.cpu().numpy())
    bfloat = client.get_group(
        client.put_group({"w": torch.ones(3, dtype=torch.bfloat16, device="cuda")})
    )
    assert bfloat.torch()["w"].dtype == torch.bfloat16


@pytest.mark.parametrize("where", ["host", "cuda"])
def test_cupy(client, cupy_library, where):
    group = put(client, where)
    check(group, group.cupy(), lambda x: x.data.ptr, lambda x: x.get(), same_place=where == "cuda")


@pytest.mark.parametrize("where", ["host", "cuda"])
def test_jax(client, jax_library, where):
    given = {**WEIGHTS, "layers": WEIGHTS["layers"][:2]}  # JAX has no int64 unless it is told to
    place = {"device": 0} if where == "cuda" else {"allocator": "shared"}
    group = client.get_group(client.put_group(given, **place))
    check(
        group,
        group.jax(),
        lambda x: x.unsafe_buffer_pointer(),
        np.asarray,
        same_place=where == "cuda",
    )


@pytest.mark.parametrize("where", ["host", "cuda"])
def test_numpy(client, where):
    group = put(client, where)
    check(group, group.numpy(), lambda x: x.ctypes.data, lambda x: x, same_place=where == "host")


@pytest.mark.parametrize("where", ["host", "cuda"])
def test_a_write_by_torch_ends_its_own_process_alone(client, path, torch_library, where):
    group = put(client, where)
    status, said = launch([sys.executable, "-c", WRITES, path, where], 120)
    assert status != 0
    assert "writes" in said
    assert where == "host" or "CUDA error" in said, said
    print(said[-600:])
    assert np.array_equal(group["layers.0"].get(), WEIGHTS["layers"][0])
    assert hamr.zeros(3, device=0).get().tolist() == [0, 0, 0]


def test_a_copy_may_be_written_to(client, torch_library):
    put(client, "cuda")
    tensor = client.get_group("weights", private=True).torch()["layers"][0]
    tensor.add_(1)
    assert np.array_equal(tensor.cpu().numpy(), WEIGHTS["layers"][0] + 1)
    assert np.array_equal(client.get_group("weights")["layers.0"].get(), WEIGHTS["layers"][0])
