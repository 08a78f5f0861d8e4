"""``hamr bench --only pygpu`` with a device."""

import json

from hamr import cli


def test_the_rows(tmp_path):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", "1MiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "pygpu", *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    titles = [group["group"] for group in record["groups"]]
    assert titles[:2] == ["launching a kernel with 4 arguments", "a small array, made and dropped"]
    ways = "to the device", "to new memory of the device", "from the device"
    assert titles[2:] == [
        f"host side of {n}, {kind}, {way}"
        for n in ("1 KiB", "1 MiB")
        for kind in ("not page-locked", "page-locked")
        for way in ways
    ]
    bounds = [target["what"].rpartition(": ")[2] for target in record["targets"]]
    assert set(bounds[-12:]) == {"array.set(x)", "to_gpu(x)", "array.get()"}
    for group in record["groups"]:
        assert all(row["value"] > 0 for row in group["rows"])
