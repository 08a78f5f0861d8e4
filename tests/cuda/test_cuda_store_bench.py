"""``hamr bench --only store-cuda`` with a device: another process has the bytes."""

import json

import pytest

from hamr import cli
from hamr._benchmark import store_cuda
from hamr._benchmark.driver import Driver
from hamr._benchmark.groups import Libraries, Settings

OURS = "hamr: seal, pipe, "


def test_the_rows(tmp_path):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", "1MiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "store-cuda", *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    (group,) = record["groups"]
    assert group["group"] == "hand 1 MiB of CUDA over to another process"
    first = group["rows"][0]
    assert first["operation"].startswith(OURS)
    assert "error" not in first
    assert first["value"] > 0
    assert first["met"] is (first["value"] <= first["limit"])
    pooled, plain = group["rows"][1:3]
    assert "of cuda_async's pool" in pooled["operation"]
    assert pooled["met"] is (pooled["value"] <= pooled["limit"] == 60)
    assert plain["value"] > 0


def test_wrong_bytes_are_an_error(monkeypatch):
    """The receiver checks what it has."""
    monkeypatch.setattr(store_cuda, "_FILL", 8)
    lib = Libraries(Settings(quick=True, largest=4096), load=False)
    (rows,) = store_cuda.hand_over(lib, Driver())
    row = rows.measure(lambda: None)["rows"][0]
    assert "it ended" in row["error"]
    assert "value" not in row


@pytest.mark.parametrize("bound", store_cuda.LIMITS)
def test_a_size_for_each_limit(bound):
    lib = Libraries(Settings(largest=bound), load=False)
    titles = [item.title for item in store_cuda.hand_over(lib, None)]
    assert len(titles) == sum(n <= bound for n in store_cuda.LIMITS)
