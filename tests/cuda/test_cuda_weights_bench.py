"""``hamr bench --only weights-cuda,pausing``: its rows are there, and wrong bytes are an error."""

import json

import pytest

from hamr import cli
from hamr._benchmark import weights

pytest.importorskip("safetensors")


def record_of(tmp_path, part, largest):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", largest, "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", part, *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    return record["groups"]


@pytest.mark.parametrize(("part", "where"), [("weights", "the host"), ("weights-cuda", "CUDA")])
def test_groups(tmp_path, part, where):
    handed, loaded = record_of(tmp_path, part, "512KiB")
    assert handed["group"] == f"13 arrays, together 1 MiB, of {where}, by another process"
    named = {row["operation"]: row for row in handed["rows"]}
    for name in ("put_group", "get_group", "get_many", "get", "get_group of 100 arrays of 4 KiB"):
        for when in ("first in a process", "again"):
            row = named[f"hamr: {name}, {when}"]
            assert row["value"] > 0
            assert "limit" not in row, "it holds for the whole size"
    alone = [row["value"] for name, row in named.items() if name.startswith(weights.BARE)]
    assert len(alone) == (0 if where == "the host" else 2)
    assert all(value > 0 for value in alone)
    theirs, ours = loaded["rows"]
    assert ours["value"] > 0
    if "error" not in theirs:  # torch is there, or it is the host
        assert ours["ratio"] == pytest.approx(ours["value"] / theirs["value"], abs=0.01)


def test_pauses(tmp_path):
    kept, nothing = record_of(tmp_path, "pausing", "64KiB")
    assert kept["group"] == "pause and resume 512 KiB, kept"
    assert [row.get("target") for row in kept["rows"]] == [None, 0.85, None, 0.85]
    assert all(row["value"] > 0 for row in kept["rows"] + nothing["rows"])


def test_wrong_bytes_are_an_error(monkeypatch):
    """The receiver looks at the last array."""
    case = weights._Case(-1, 2, 256, 1, 1, False)
    monkeypatch.setattr(weights, "FILL", 9)
    with (
        weights.serving(1 << 22) as path,
        weights._stored(path, case),
        pytest.raises(RuntimeError, match="it ended"),
    ):
        weights._by_child("group", path, case, [], "")
