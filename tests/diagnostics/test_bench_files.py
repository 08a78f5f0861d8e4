"""What ``hamr bench`` measured is not lost where it cannot be written or printed."""

import json
import sys
import types

import pytest

from hamr._benchmark import groups, host_copying, running

KIB = groups.KIB


def test_figures_that_cannot_be_written_are_printed(monkeypatch, capsys, tmp_path):
    """The disk was full after minutes, and drawing failed as well."""

    def draw(record, folder):
        raise ValueError("no ink")

    plotting = types.ModuleType("plotting")
    plotting.draw = draw
    monkeypatch.setitem(sys.modules, "hamr._benchmark.plotting", plotting)
    folder = str(tmp_path)
    request = running.Request(["host-copies"], "/dev/full", folder, 1, KIB, True)
    assert running.main(request) == 1
    said = capsys.readouterr()
    assert host_copying.NEW in said.out
    assert "written to" not in said.out
    assert said.err.splitlines() == [
        "hamr bench: /dev/full cannot be written: No space left on device",
        f"hamr bench: --plot {folder}: ValueError: no ink",
    ]


def test_figures_are_written_though_nobody_reads_the_tables(monkeypatch, tmp_path):
    class Closed:
        def write(self, text):
            raise BrokenPipeError

    path = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):
        running.main(running.Request(["host-copies"], str(path), None, 1, KIB, True))
    assert json.loads(path.read_text())["curves"]
