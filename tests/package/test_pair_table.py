"""The tables of docs/pairs.md are those of the recorded runs."""

import json
import subprocess
import sys

import pytest

from build_support import pair_table
from tests.support.paths import ROOT

RECORDED = [
    path for name in pair_table.RUNS.values() if (path := pair_table.RESULTS / name).exists()
]


def test_the_page_is_what_the_runs_say():
    command = [sys.executable, "-m", "build_support.pair_table", "--check"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_run_has_every_pair_once(path):
    run = json.loads(path.read_text())
    names = list(run["access"])
    assert list(run["copies"]) == names
    assert all(list(cells) == names for cells in run["copies"].values())
    assert {*next(iter(run["access"].values()))} <= {*run["runtimes"]}


@pytest.mark.parametrize(
    ("said", "way"),
    [
        (
            "between cuda and hip are 2 pieces of 4194304 bytes of cuda_host: neither runtime\n"
            "copy 4194304 bytes cuda device 0 at 0x1 to cuda_host device -1 at 0x2",
            "staged, cuda_host",
        ),
        (
            "between cuda_uva and hip there is nothing: the host reaches the cuda_uva memory\n"
            "copy 8 bytes cuda_uva device 0 at 0x1 to hip device 0 at 0x2",
            "direct",
        ),
        ("copy 8 bytes malloc device -1 at 0x1 to cuda device 0 at 0x2", "direct"),
        ("convert 8 elements int32 to int8 on device 0 from 0x1 to 0x2", "direct"),
        ("copy 8 elements from 0x1 to 0x2 on the host", "by the host"),
    ],
)
def test_ways_are_told_by_what_is_said(said, way):
    assert pair_table.way_of(said.splitlines()) == way
