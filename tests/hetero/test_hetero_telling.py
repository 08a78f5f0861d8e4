"""What a run tells: the report, progress, and the trace for Perfetto."""

import asyncio
import itertools
import json
import sys
import time
import types

import pytest

from hamr.hetero import Pipeline, module


def raw(event):
    time.sleep(0.001)
    return event.item


def fragile(raw):
    return 1 // raw


@module()
async def awaiting(fragile):
    return fragile


def spans(path):
    trace = json.loads(path.read_text())
    assert trace["displayTimeUnit"] == "ms"
    return [e for e in trace["traceEvents"] if e["ph"] == "X"], [
        e for e in trace["traceEvents"] if e["ph"] == "M"
    ]


def test_a_trace_opens_in_perfetto(tmp_path):
    """By the rules of its format: names for rows, spans of a row within one another or apart."""
    path = tmp_path / "trace.json"
    Pipeline([raw, fragile, awaiting], streams=3, trace=path).run([1, 1, 0, 1, 1])
    complete, told = spans(path)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in told if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in told if e["name"] == "process_name"}
    assert processes == {1: "host", 2: "events in flight"}
    rows = {}
    for e in complete:
        assert {"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"} == e.keys()
        assert e["ts"] >= 0
        assert e["dur"] >= 0
        assert type(e["args"]["event"]) is int
        rows.setdefault((e["pid"], e["tid"]), []).append(e)
    assert rows.keys() <= names.keys()
    assert len(set(names.values())) == len(names)
    for row in rows.values():
        row.sort(key=lambda e: e["ts"])
        for one, next_one in itertools.pairwise(row):
            assert one["ts"] + one["dur"] <= next_one["ts"] + 0.01, names
    by_name = {}
    for e in complete:
        by_name.setdefault(e["name"], []).append(e["args"]["event"])
    assert sorted(by_name["raw"]) == sorted(by_name["fragile"]) == [0, 1, 2, 3, 4]
    assert sorted(by_name["awaiting"]) == [0, 1, 3, 4]
    assert {f"event {i}" for i in range(5)} <= by_name.keys()


def test_a_trace_that_cannot_be_written_is_refused_before_the_first_event(tmp_path):
    with pytest.raises(FileNotFoundError):
        Pipeline([raw], trace=tmp_path / "no" / "trace.json").run([1])


class TestATraceThatCannotBeWrittenInTheEnd:
    """The disk is full: what the run has come to is the caller's all the same."""

    def test_results_are_returned(self):
        pipeline = Pipeline([raw, fragile], trace="/dev/full")
        with pytest.warns(RuntimeWarning, match="'/dev/full' is incomplete: .*No space"):
            results = pipeline.run([1, 0, 2])
        assert [r.values.get("fragile") for r in results] == [1, None, 0]

    def test_errors_of_modules_are_raised(self):
        pipeline = Pipeline([raw, fragile], trace="/dev/full")
        with (
            pytest.warns(RuntimeWarning, match="incomplete"),
            pytest.raises(ExceptionGroup, match="1 of 2 events failed"),
        ):
            pipeline.run([1, 0], raise_errors=True)

    def test_the_error_of_a_source_has_a_note(self):
        def source():
            yield 1
            raise OSError("torn")

        with pytest.raises(OSError, match="torn") as told:
            Pipeline([raw], trace="/dev/full").run(source())
        assert "'/dev/full' is incomplete" in told.value.__notes__[0]

    def test_results_are_left_early(self):
        async def first():
            async for _ in Pipeline([raw], trace="/dev/full").results(range(9)):
                break

        with pytest.warns(RuntimeWarning, match="incomplete"):
            asyncio.run(first())


def test_the_report():
    pipeline = Pipeline([raw, fragile, awaiting], streams=2, workers=1)
    pipeline.run([1, 0, 1])
    report = pipeline.report
    assert (report.events, report.failed) == (3, 1)
    assert report.seconds >= report["raw"].time >= 0.003
    assert report["raw"].worker_stall == report["raw"].stall > 0.001  # for each other
    assert report["awaiting"].calls == 2
    lines = str(report).splitlines()
    assert lines[0].startswith("3 events, 1 failed, in 0.")
    assert [line.split()[:4] for line in lines[2:]] == [
        ["raw", "cpu", "3", "0"],
        ["fragile", "cpu", "3", "1"],
        ["awaiting", "cpu", "2", "0"],
    ]


def test_progress_is_a_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    pipeline = Pipeline([raw, fragile], progress=True)
    pipeline.run([1, 0])
    assert capsys.readouterr().err.startswith("2 of 2 events, 1 failed, ")
    pipeline.run(iter([1]))
    assert capsys.readouterr().err.startswith("1 events, ")


def test_progress_is_a_bar_of_tqdm(monkeypatch):
    told = []

    class Bar:
        def __init__(self, **options):
            told.append(options["total"])

        def set_postfix(self, refresh, **what):
            told.append(what)

        def update(self):
            told.append("one")

        def close(self):
            told.append("end")

    stand_in = types.ModuleType("tqdm")
    stand_in.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", stand_in)
    Pipeline([raw, fragile], progress=True, streams=1).run([1, 0])
    assert told == [2, "one", {"failed": 1}, "one", "end"]
