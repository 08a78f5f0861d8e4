"""The tables of docs/scheduling.md are those of the recorded runs."""

import json

import pytest

from build_support import scheduling_table
from build_support.figures import RESULTS


def test_the_page_is_what_the_runs_say(monkeypatch):
    monkeypatch.setattr("sys.argv", ["scheduling_table", "--check"])
    assert scheduling_table.main() == 0


@pytest.mark.parametrize("name", scheduling_table.RUNS.values())
def test_a_run_says_where_it_was_and_what_its_goals_were(name):
    run = json.loads((RESULTS / name).read_text())
    assert run["machine"]["commit"]
    assert run["machine"]["driver"]
    goals = [row for group in run["groups"] for row in group["rows"] if "met" in row]
    assert len(goals) >= len(scheduling_table.RUNS) + 4
    for row in goals:
        reached = row["value"] <= row["limit"] if "limit" in row else row["ratio"] <= row["target"]
        assert row["met"] is reached
