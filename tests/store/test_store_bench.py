"""``hamr bench --only store``: its rows are there, and what it measures is done rightly."""

import json
import os

import pytest

from hamr import cli
from hamr._benchmark import children, store, store_waiting
from hamr.store import StoreLost, connect

NEW = "SharedMemory: create, write, open by name, close, unlink"
OURS = "hamr: create, write, seal, get, delete"


def test_the_groups(tmp_path):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", "64KiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "store", *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    put, get, alone, together, beside, handed = record["groups"]
    assert [put["unit"], get["unit"], together["unit"]] == ["GB/s", "us", "us"]
    assert put["floor"] == "C: memmove to existing memory"
    assert [row["operation"][-5:] for row in get["rows"]] == ["1 KiB"] * 2 + ["4 KiB"] * 2
    for group in (alone, together):
        assert [row["operation"] for row in group["rows"]] == [NEW, OURS]
    assert len(beside["rows"]) == 1 + len(store_waiting.THREADS)
    assert len(handed["rows"]) == 2
    for group in record["groups"]:
        assert all(row["value"] > 0 for row in group["rows"]), group
    bound = [row for group in record["groups"] for row in group["rows"] if "met" in row]
    assert [row.get("target", row.get("limit")) for row in bound] == [
        store.PUT_TARGET,
        store.PUT_TARGET,
        store.GET_LIMIT,
        store.GET_LIMIT,
        store.CYCLE_LIMIT,
        *[store_waiting.BESIDE_TARGET] * len(store_waiting.THREADS),
    ]


@pytest.mark.parametrize("kind", ["hamr", "peer"])
def test_a_life_leaves_nothing(kind, server, client):
    there = set(os.listdir("/dev/shm"))
    with store._life_of(kind, server.path) as live:
        live()
        live()
    assert set(os.listdir("/dev/shm")) <= there
    assert client.statistics()["objects"] == 0


def test_what_a_child_says():
    child = children.Child("-c", "print('one'); print(input())")
    try:
        child.tell("two")
        assert [child.line(), child.line()] == ["one", "two"]
        with pytest.raises(RuntimeError, match="it ended"):
            child.line()
    finally:
        child.end()


def test_a_store_of_its_own_ends():
    with children.serving(1 << 20) as path:
        client = connect(path)
        assert client.statistics()["objects"] == 0
    with pytest.raises(StoreLost):
        client.statistics()
