"""``hamr bench --only store-cuda`` with a device: another process has the bytes."""

import json

import pytest

from hamr import cli
from hamr._benchmark import hand_over_parts, store_cuda
from hamr._benchmark.driver import Driver
from hamr._benchmark.groups import Libraries, Settings

OURS = "hamr: seal, pipe, "


def test_the_rows(tmp_path):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", "1MiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "store-cuda", *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    group, *in_parts = record["groups"]
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
    for kind, each in zip(("cuda_async", "cuda", "the store"), in_parts, strict=True):
        assert each["group"].startswith("the steps of ")
        assert each["group"].endswith(f" of 1 MiB of {kind}")
        alone, *steps, total = each["rows"]
        assert alone["operation"] == hand_over_parts.ALONE
        assert all(row["value"] > 0 for row in (alone, *steps))
        assert total["value"] > max(row["value"] for row in steps)


def test_wrong_bytes_are_an_error(monkeypatch):
    """The receiver checks what it has."""
    monkeypatch.setattr(store_cuda, "_FILL", 8)
    lib = Libraries(Settings(quick=True, largest=4096), load=False)
    rows, *_ = store_cuda.hand_over(lib, Driver())
    row = rows.measure(lambda: None)["rows"][0]
    assert "it ended" in row["error"]
    assert "value" not in row


@pytest.mark.parametrize("bound", store_cuda.LIMITS)
def test_a_size_for_each_limit(bound):
    lib = Libraries(Settings(largest=bound), load=False)
    titles = [item.title for item in store_cuda.hand_over(lib, None)]
    sizes = sum(n <= bound for n in store_cuda.LIMITS)
    assert len(titles) == len(set(titles)) == sizes * 4  # and three ways in parts
