"""The figures of docs/guides/serving.md are those of the recorded walks."""

from build_support import serving_figures


def test_the_page_is_what_the_walks_say(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sys.argv", ["serving_figures", "--check"])
    assert serving_figures.main() == 0
    page = tmp_path / "serving.md"
    page.write_text(serving_figures.PAGE.read_text().replace("-->\n", "-->\nmore\n"))
    monkeypatch.setattr(serving_figures, "PAGE", page)
    assert serving_figures.main() == 1
    assert "serving.md is not what the runs" in capsys.readouterr().err


def test_a_walk_as_a_table():
    record = {
        "machine": {"gpus": ["NVIDIA GPU, 1.2"], "cores": 2, "date": "2026-11-28 12:00 UTC"},
        "device": "cuda:0",
        "weights_bytes": 1 << 31,
        "rounds": 9,
        "killed": 12,
        "bytes_at_rest": {"server": 1 << 31, "files in memory": 0},
        "bytes_at_most": {"server": 1 << 31, "files in memory": 0},
        "times": {"loader killed: all programs work": {"median_s": 0.25, "most_s": 1.5}},
    }
    text = serving_figures.table(record)
    assert "NVIDIA GPU, 1.2, 2026-11-28: weights of 2 GiB, 9 rounds with 12 kills." in text
    assert "| by the server's figures | 1.000 | 1.000 |" in text
    assert "files" not in text
    assert "| loader killed: until all work | 0.250 | 1.500 |" in text
