"""The figures of docs/guides/blocks.md are those of the recorded runs."""

import json

from build_support import blocks_figures, figures
from hamr._benchmark import blocks


def test_the_page_is_what_the_runs_say(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.argv", ["blocks_figures", "--check"])
    assert blocks_figures.main() == 0
    page = tmp_path / "blocks.md"
    page.write_text(blocks_figures.PAGE.read_text().replace("-->\n", "-->\nmore\n"))
    monkeypatch.setattr(blocks_figures, "PAGE", page)
    assert blocks_figures.main() == 1
    assert "blocks.md is not what the runs" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["blocks_figures"])
    assert blocks_figures.main() == 0
    assert page.read_text() == blocks_figures.PAGE.read_text()


def curve(path):
    ways = [{"library": "hamr", "operation": "h", "role": "hamr", "GBps": [45.0]}]
    return {"path": path, "direction": "blocks", "nbytes": [4096], "counts": [2048], "ways": ways}


def test_runs_become_plots_and_tables(monkeypatch, tmp_path):
    row = {"operation": "hamr: copy_blocks, lists", "value": 90.0, "limit": 200, "met": True}
    group = {"group": "2,048 blocks of 16 KiB", "unit": "us", "floor": None, "rows": [row]}
    record = {
        "machine": {"gpus": ["GPU"]},
        "curves": [curve(blocks.TO_PINNED)],
        "groups": [group],
    }
    example = {"gpu": "GPU", "products by": "torch", "page": 32768, "GB/s alone": 48.125}
    for name, made in zip(blocks_figures.RUNS.values(), (record, example), strict=True):
        (tmp_path / name).write_text(json.dumps(made))
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    page = tmp_path / "blocks.md"
    page.write_text(blocks_figures.PAGE.read_text())
    monkeypatch.setattr(blocks_figures, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["blocks_figures"])
    assert blocks_figures.main() == 0
    text = page.read_text()
    assert "(../plots/blocks.svg)" in text
    assert "| `hamr: copy_blocks, lists` | 90 |  | ≤ 200 us |" in text
    assert "GPU, products by torch:" in text
    assert "| GB/s alone | 48.1 |" in text
    assert "No run is recorded." not in text
