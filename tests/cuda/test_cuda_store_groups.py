"""Groups in memory of CUDA's devices."""

import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import hamr
from hamr.store import Server, connect
from tests.cuda import driver
from tests.store.serving import ServerProcess
from tests.store.trees import same, tree
from tests.support.processes import scaled


@pytest.fixture
def client(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit={"host": "64MiB", "gpu": "16MiB"}), connect(path) as client:
        yield client


def test_any_structure_comes_back(client, device):
    choose = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    for _ in range(scaled(50, 15)):
        given = tree(choose, device)
        id = client.put_group(given, device=device)
        assert same(client.get_group(id).tree, given)
        client.delete(id)


def test_a_group_is_where_any_of_its_arrays_is(client, device):
    given = {"w": hamr.Buffer((3, 5), "f4", device=device, fill=2), "steps": [np.arange(3), 4]}
    id = client.put_group(given, array_metadata={"w": {"scale": 2}})
    group = client.get_group(id)
    assert {each.device for each in group.values()} == {device}
    assert all(each.readonly and each.ptr % 256 == 0 for each in group.values())
    assert same(group.tree, given)
    assert group.array_metadata == {"w": {"scale": 2}}
    assert client.info(id).device != "host"
    assert client.get_group(id, only=["steps"])["steps.0"].get().tolist() == [0, 1, 2]
    copied = client.get_group(id, "malloc")
    assert same(copied.tree, given)
    assert copied["w"].device == -1
    on_host = client.get_group(client.put_group(given, "malloc"))
    assert {each.device for each in on_host.values()} == {-1}
    assert same(on_host.tree, given)


@pytest.mark.skipif(driver.DEVICES < 2, reason="needs two devices")
def test_arrays_of_several_devices_need_to_be_told_where(client):
    given = [hamr.Buffer(3, "f4", device=n, fill=n) for n in range(2)]
    with pytest.raises(ValueError, match=r"^arrays are on the devices \[0, 1\]: accepted are"):
        client.put_group(given)
    group = client.get_group(client.put_group(given, device=1))
    assert {each.device for each in group.values()} == {1}
    assert same(group.tree, given)


def test_memory_of_any_allocator(client, device):
    makers = ("cuda", "cuda_async", "cuda_uva", "cuda_host", "malloc", "shared")
    given = {name: hamr.Buffer(1000, "i4", name, fill=i) for i, name in enumerate(makers)}
    assert same(client.get_group(client.put_group(given)).tree, given)


def test_another_process_has_it_and_a_restart_keeps_it(tmp_path, device):
    with ServerProcess(str(tmp_path / "store" / "socket")) as server:
        client = connect(server.path)
        given = {"w": hamr.Buffer(1000, "f4", device=device, fill=2), "n": 3}
        held = client.get_group(client.put_group(given, name="g"))
        server.end(signal.SIGKILL)
        server.start()
        code = (
            "import sys; from hamr.store import connect\n"
            "group = connect(sys.argv[1]).get_group('g', wait=True, timeout=60)\n"
            "w = group['w']; print(float(w.get().sum()), w.readonly, w.device, group['n'])\n"
        )
        command = [sys.executable, "-c", code, server.path]
        read = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert read.stdout == f"2000.0 True {device} 3\n", read.stderr
        assert same(held.tree, given)


def test_a_group_of_a_device_is_spilled(tmp_path, device):
    path, spill = str(tmp_path / "store" / "socket"), str(tmp_path / "spill")
    limit = {"host": "4MiB", "gpu": "4MiB"}
    with Server(path, limit=limit, spill=spill, spill_devices=True), connect(path) as client:
        given = [{"w": hamr.Buffer(1 << 18, "u8", device=device, fill=i)} for i in range(4)]
        ids = [client.put_group(each) for each in given]
        assert client.statistics()["spills"] > 0
        for id, expected in zip(ids, given, strict=True):
            assert same(client.get_group(id).tree, expected)


def test_a_file_is_loaded_to_a_device(client, device, tmp_path):
    given = {f"layers.{i}": np.arange(i * 1000, dtype="f4").reshape(i, 1000) for i in range(50)}
    save_file(given, tmp_path / "model.safetensors")
    group = client.get_group(client.load_group(tmp_path / "model.safetensors", device=device))
    assert {each.device for each in group.values()} == {device}
    assert all(same(group.tree[name], each) for name, each in given.items())
    assert len(group) == len(given)


def test_a_private_copy_is_paused_by_its_name_and_what_is_in_place_stays(client, device):
    given = {"w": np.arange(1000.0), "b": [np.ones(7, "f4"), 3]}
    client.put_group(given, device=device, name="weights")
    with hamr.pausable("copies"):
        copied, placed = client.get_group("weights", private=True), client.get_group("weights")
    assert same(copied.tree, given)
    hamr.pause("copies", keep="host")
    with pytest.raises(hamr.PausedMemory, match='"copies"'):
        copied["w"].get()
    assert same(placed.tree, given)
    hamr.resume("copies")
    assert same(copied.tree, given)
