"""``hamr bench --only host-blocks``, and what is said of blocks in a record."""

import json

from hamr import cli
from hamr._benchmark import blocks, curves, groups, judging, scattered
from tests.diagnostics.test_bench import point, row

KIB, MIB = groups.KIB, groups.MIB


def test_blocks_on_the_host(tmp_path):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", "1MiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "host-blocks", *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    (curve,) = record["curves"]
    assert curve["path"] == blocks.ON_HOST
    assert curve["nbytes"] == [4 * KIB, 16 * KIB, 64 * KIB]
    assert curve["counts"] == [64, 16, 4]
    operations = [way["operation"] for way in curve["ways"] if "errors" not in way]
    assert operations[:4] == [
        "copy_blocks, NumPy's indices",
        "copy_blocks, lists",
        "copy_many of views, kept",
        "d[di] = s[si]",
    ]


def test_how_many_blocks_there_is_room_for():
    assert scattered.counts(1024 * MIB) == [
        *((2048, size * KIB) for size in (4, 16, 64, 256)),
        (512, 2 * MIB),
    ]
    assert scattered.counts(8192 * MIB) == scattered.counts(1024 * MIB)
    assert scattered.counts(MIB) == [(256, 4 * KIB), (64, 16 * KIB), (16, 64 * KIB), (4, 256 * KIB)]
    assert scattered.counts(4 * KIB) == [(2, 2 * KIB)]


def test_targets_of_blocks():
    sizes = [4 * KIB, 16 * KIB, 64 * KIB]
    points = [
        point(n, row("h", 9.0, "hamr", of_limit=ratio), path=blocks.TO_PINNED)
        for n, ratio in zip(sizes, [0.86, 0.89, 0.95], strict=True)
    ]
    points.append(point(KIB, row("h", 9.0, "hamr", of_limit=0.1), path=blocks.TO_ARRAY))
    verdicts = judging.verdicts({"curves": curves.merged(points)})
    found = [(v["what"].rpartition("memory, ")[2], v["bound"], v["met"]) for v in verdicts]
    assert found == [
        ("4 KiB, of one copy", "≥ 0.85", True),
        ("16 KiB, of one copy", "≥ 0.90", False),
        ("64 KiB, of one copy", "≥ 0.90", True),
    ]
