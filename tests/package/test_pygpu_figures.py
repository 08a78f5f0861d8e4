"""The table of docs/pygpu.md is that of the recorded run."""

import json

from build_support import pygpu_figures
from build_support.figures import RESULTS


def test_the_page_is_what_the_run_says(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.argv", ["pygpu_figures", "--check"])
    assert pygpu_figures.main() == 0
    page = tmp_path / "pygpu.md"
    page.write_text(pygpu_figures.PAGE.read_text().replace("| goal |", "| aim |"))
    monkeypatch.setattr(pygpu_figures, "PAGE", page)
    assert pygpu_figures.main() == 1
    assert "pygpu.md is not what the runs" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["pygpu_figures"])
    assert pygpu_figures.main() == 0
    assert "| goal |" in page.read_text()


def test_the_run_says_where_it_was_and_what_its_goals_were():
    for name in pygpu_figures.RUNS.values():
        run = json.loads((RESULTS / name).read_text())
        assert run["machine"]["gpus"]
        assert run["machine"]["commit"]
        assert {target["what"].rpartition(": ")[2] for target in run["targets"]} >= {
            *("function(n, a, x, y)", "GPUArray((16, 16))", "array.set(x)", "array.get()"),
        }
        rows = [row for group in run["groups"] for row in group["rows"] if "met" in row]
        assert all(row["met"] is (row["ratio"] <= row["target"]) for row in rows)
