"""``hamr bench``: what is measured, what a record says of it, and what it refuses."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from hamr import cli
from hamr._benchmark import curves, groups, host_copying, judging, progress, registry, running
from hamr._benchmark.curves import Pattern, Point, Way

KIB, MIB = groups.KIB, groups.MIB
QUICK = ["--quick", "--largest", "4KiB", "--rounds", "1"]


def bench(*arguments):
    command = [sys.executable, "-m", "hamr", "bench", *arguments]
    return subprocess.run(command, text=True, capture_output=True, check=False, timeout=120)


def copy_of(array, take=None):
    """A way that copies an array to a new one."""
    return Way("hamr", "copy", array.copy, take=take or (lambda r, i, j: r[i:j]), role="hamr")


# Copies are checked before they are timed.


@pytest.mark.parametrize("nbytes", [KIB, 4 * MIB])
def test_a_right_copy_has_a_figure(nbytes):
    pattern = Pattern(nbytes)
    point = Point("path", "down", pattern, nbytes, [copy_of(pattern.array)])
    (row,) = point.measure(lambda: None, groups.Settings(rounds=1))["rows"]
    assert "error" not in row
    assert row["GBps"] == pytest.approx(nbytes / row["us"] / 1e3, rel=2e-3)


def stale(pattern):
    """The bytes of an earlier check."""
    kept = pattern.array.copy()
    return lambda: kept


def short_by_one(pattern):
    def copy():
        result = pattern.array.copy()
        result[-1] += 1
        return result

    return copy


def shifted(pattern):
    return lambda: np.roll(pattern.array, 4096)


@pytest.mark.parametrize("wrong", [stale, short_by_one, shifted])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "in parts"])
def test_a_wrong_copy_has_an_error_and_no_figure(wrong, whole, monkeypatch):
    nbytes = MIB
    if not whole:
        monkeypatch.setattr(curves, "WHOLE", nbytes // 2)
        monkeypatch.setattr(curves, "PART", 64)
    pattern = Pattern(nbytes)
    bad = Way("peer", "bad", wrong(pattern), take=lambda r, i, j: r[i:j])
    good = copy_of(pattern.array)
    result = Point("path", "down", pattern, nbytes, [bad, good]).measure(
        lambda: None, groups.Settings(rounds=1)
    )
    first, second = result["rows"]
    assert "wrong bytes" in first["error"]
    assert "us" not in first
    assert "GBps" not in first
    assert second["GBps"] > 0


def test_the_source_is_refreshed_where_it_is():
    """What gives the pattern to a device's memory is asked for all that is checked."""
    pattern, given = Pattern(256 * MIB), []
    source = np.zeros(256 * MIB, "u1")

    def give(start, stop):
        given.append((start, stop))
        source[start:stop] = pattern.array[start:stop]

    way = Way("hamr", "copy", lambda: source, give=give, take=lambda r, i, j: r[i:j])
    way.check(pattern, 256 * MIB, lambda: None)
    assert given == pattern.windows(256 * MIB)
    assert given[0][0] == 0
    assert given[-1][1] == 256 * MIB
    assert len(given) == curves.PARTS


def test_one_that_fails_leaves_the_others():
    pattern = Pattern(KIB)
    bad = Way("peer", "bad", lambda: 1 / 0, take=lambda r, i, j: r)
    point = Point("path", "down", pattern, KIB, [bad, copy_of(pattern.array)])
    first, second = point.measure(lambda: None, groups.Settings(rounds=1))["rows"]
    assert first["error"] == "ZeroDivisionError: division by zero"
    assert second["GBps"] > 0


def test_all_ways_take_turns(monkeypatch):
    """None always comes first or behind the same one; and rounds end with the budget."""
    monkeypatch.setattr(curves, "BUDGET", 0.0)
    pattern, order = Pattern(KIB), []

    def way(name):
        made = Way(name, name, pattern.array.copy, take=lambda r, i, j: r[i:j])
        monkeypatch.setattr(made, "calibrate", lambda synchronize: None)
        monkeypatch.setattr(made, "time", lambda synchronize: order.append(name) or 1.0)
        return made

    point = Point("path", "down", pattern, KIB, [way(name) for name in "abc"])
    point.measure(lambda: None, groups.Settings(rounds=9))
    assert "".join(order) == "abc" + "bca" + "cab"


def test_ratios_are_taken_within_a_round():
    ways = [Way("hamr", "h", int, take=None, role="hamr"), Way("d", "l", int, take=None)]
    ways[1].role = "limit"
    ways[0].seconds, ways[1].seconds = [2.0, 4.0, 20.0], [1.0, 2.0, 2.0]
    row = curves.row_of(ways[0], ways, 1000)
    assert (row["us"], row["of_limit"]) == (4e6, 0.5)
    assert "of_driver" not in row


def test_rows_that_a_function_measures_are_a_group():
    rows = [
        {"operation": "least", "value": 2.0},
        {"operation": "hamr", "value": 3.0, "ratio": 1.5, "target": 2},
        {"operation": "other", "error": "lost"},
    ]
    group = groups.Rows("append", "ms", lambda: rows).measure(lambda: None, groups.Settings())
    assert (group["floor"], group["rows"]) == ("least", rows)
    assert len(groups.group_lines(group)) == 4
    (row,) = judging.verdicts({"groups": [group]})
    assert (row["value"], row["bound"], row["met"]) == (1.5, "≤ 2 x floor", True)


# Records.


def point(nbytes, *rows, path="p"):
    return {"path": path, "direction": "down", "nbytes": nbytes, "rows": list(rows)}


def row(operation, value=None, role="peer", **more):
    found = {"library": operation, "operation": operation, "role": role}
    if value is None:
        return {**found, "error": "lost"}
    return {**found, "us": 1.0, "GBps": value, **more}


def test_points_become_curves():
    points = [
        point(4, row("a", 2.0), row("b")),
        point(1, row("a", 1.0)),
        point(16, row("b", 3.0), row("a", 4.0)),
        point(1, row("z", 9.0), path="q"),
    ]
    first, second = curves.merged(points)
    assert first["nbytes"] == [1, 4, 16]
    ways = {way["operation"]: way for way in first["ways"]}
    assert ways["a"]["GBps"] == [1.0, 2.0, 4.0]
    assert ways["b"]["GBps"] == [None, None, 3.0]
    assert ways["b"]["errors"] == {"4": "lost"}
    assert (second["path"], second["ways"][0]["GBps"]) == ("q", [9.0])


def record_of(hamr, driver=10.0, peer=8.0, limit=50.0, path=judging.TO_NEW):
    sizes = [4 * KIB, MIB, 4 * MIB, 512 * MIB]
    points = [
        point(
            n,
            row("h", value, "hamr", of_driver=value / driver),
            row("c", peer),
            row("d", driver, "driver"),
            row("l", limit, "limit"),
            path=path,
        )
        for n, value in zip(sizes, hamr, strict=True)
    ]
    return {"curves": curves.merged(points), "groups": []}


def verdict(record, path, words):
    rows = judging.verdicts(record)
    (found,) = [v for v in rows if v["what"].startswith(f"{path}, ") and words in v["what"]]
    return found


def test_targets_of_curves():
    record = record_of([9.6, 11.0, 9.9, 45.0], path=judging.TO_ARRAY)
    assert verdict(record, judging.TO_ARRAY, "512 MiB, of the bus")["met"] is True
    assert verdict(record, judging.TO_ARRAY, "1 MiB, of the fastest other")["met"] is True
    slower = verdict(record, judging.TO_ARRAY, "4 MiB, of the fastest other")
    assert (slower["value"], slower["met"]) == (0.99, False)
    least = verdict(record, judging.TO_ARRAY, "of the driver's copy, least at 4 KiB")
    assert (least["value"], least["met"]) == (0.96, True)
    for unmeasured in ("512 MiB, of the bus", "1 MiB, of the fastest other"):
        assert verdict(record, judging.INTO_CUDA, unmeasured)["met"] is None
    lower = record_of([1, 1, 1, 43.9], path=judging.TO_ARRAY)
    assert verdict(lower, judging.TO_ARRAY, "512 MiB, of the bus")["met"] is False


def test_targets_of_groups():
    def group(title, *rows, unit="us", floor="ask"):
        return {"group": title, "unit": unit, "floor": floor, "rows": list(rows)}

    title = f"work of 1 ms {judging.WAITS}"
    waits = group(
        title,
        {"operation": "ask", "value": 1000.0, "ratio": 1.0},
        {"operation": "hamr: b", "value": 1020.0, "ratio": 1.02},
        {"operation": "hamr: c", "value": 1020.5, "ratio": 1.02},
    )
    small = group(
        "1 KiB from CUDA to NumPy",
        {"operation": "buf.get(out)", "value": 5.0, "ratio": 1.3, "target": 1.2, "met": False},
        {"operation": "driver copy (ctypes)", "value": 4.0, "ratio": 1.0},
        {"operation": "cp.asnumpy(x)", "value": 6.0, "ratio": 1.5},
    )
    rate = group(
        "append", {"operation": "hamr", "value": 9.0, "limit": 8, "met": True}, unit="GB/s"
    )
    record = {"groups": [waits, small, rate]}
    assert [v["met"] for v in judging.verdicts(record)] == [True, False, False, True, True]


def test_a_record_is_json_with_short_lists():
    record = {"a": [1, 2.5, None, -3e-7], "b": [], "c": [{"d": [1]}], "e": ["1, 2", "[3]"]}
    text = running.text_of(record)
    assert json.loads(text) == record
    assert "[1, 2.5, null, -3e-07]" in text


# The command.


def test_json_is_all_that_is_printed():
    done = bench("--only", "host-copies", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    record = json.loads(done.stdout)
    assert {curve["path"] for curve in record["curves"]} == {
        host_copying.NEW,
        host_copying.EXISTING,
    }
    for curve in record["curves"]:
        assert curve["nbytes"] == [KIB, 4 * KIB]
        for way in curve["ways"]:
            assert len(way["GBps"]) == 2
            assert "errors" not in way
    assert record["skipped"] == []


def test_without_cuda_the_host_is_measured_and_cuda_named(tmp_path):
    path = tmp_path / "figures.json"
    request = running.Request(["cuda", "host-copies"], str(path), None, 1, KIB, True)
    command = f"""
from hamr._benchmark import running
raise SystemExit(running.main(running.Request(*{tuple(request)!r})))
"""
    environment = {"HAMR_CUDA_LIBRARY": "/nowhere/libcuda.so"}
    done = subprocess.run(
        [sys.executable, "-c", command], text=True, capture_output=True, env=environment, check=True
    )
    record = json.loads(path.read_text())
    assert record["curves"]
    assert record["groups"] == []
    assert record["skipped"] == [p.name for p in registry.PARTS if p.needs == "cuda" and p.usual]
    assert record["absent"]["cuda"]
    assert f"absent: cuda: {record['absent']['cuda']}" in done.stdout


def test_cuda_alone_without_cuda_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(running, "no_cuda", lambda: "the reason")
    for arguments in (["--cuda"], ["--only", "to-host", "waits"], ["--only", "scaling"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(["bench", *arguments])
        assert caught.value.code == 2
        assert "no CUDA" in (told := capsys.readouterr().err)
        assert "the reason" in told


@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("numpy", [], "pip install numpy"),
        ("matplotlib", ["--plot", "/nowhere"], "pip install 'matplotlib>=3.8'"),
    ],
)
def test_what_is_missing_is_told_before_measuring(module, arguments, words, monkeypatch, capsys):
    there = running.importlib.util.find_spec
    monkeypatch.setattr(
        running.importlib.util, "find_spec", lambda name: None if name == module else there(name)
    )
    monkeypatch.setattr(running, "main", lambda request: pytest.fail("it measures"))
    with pytest.raises(SystemExit) as caught:
        cli.main(["bench", *arguments])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "/below/it"])
def test_plots_go_to_a_folder(below, tmp_path, capsys, monkeypatch):
    there = running.importlib.util.find_spec
    monkeypatch.setattr(running.importlib.util, "find_spec", lambda name: there("json"))
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        cli.main(["bench", "--plot", f"{tmp_path}/file{below}"])
    assert f"{tmp_path}/file is no folder" in capsys.readouterr().err
    assert running.problem_of(running.Request(plot=f"{tmp_path}/a/b")) is None
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_driver_that_cannot_be_called_is_named(monkeypatch):
    def broken():
        raise OSError("no such library")

    monkeypatch.setattr(running, "no_cuda", lambda: None)
    monkeypatch.setattr(running, "Driver", broken)
    record = running.measured(running.Request(["waits", "host-copies"], None, None, 1, KIB, True))
    assert record["absent"] == {"cuda": "the driver cannot be called: no such library"}
    assert record["skipped"] == ["waits"]
    assert len(record["curves"]) == 2


def test_an_item_that_fails_leaves_the_others(monkeypatch):
    class Item:
        key, title = "groups", "an item"

        def __init__(self, works):
            self.works, self.cleared = works, False

        def measure(self, synchronize, settings):
            return {"group": "g", "rows": [1 // self.works]}

        def clear(self):
            self.cleared = True

    made = [Item(1), Item(0), Item(1)]
    part = registry.Part("part", "host", "", "", 1.0)
    monkeypatch.setattr(registry.Part, "items", lambda self, lib, driver: iter(made))
    record = {"groups": [], "skipped": []}
    bar = progress.Bar([1.0], Terminal(False))
    running._measure_part(part, groups.Libraries(load=False), None, record, bar, float("inf"))
    assert len(record["groups"]) == 2
    assert record["skipped"] == ["an item: ZeroDivisionError: integer division or modulo by zero"]
    assert all(item.cleared for item in made)
    running._measure_part(part, groups.Libraries(load=False), None, record, bar, 0.0)
    assert record["skipped"][1:] == ["part, from an item on: no time was left"]


def test_an_interrupt_ends_it_quietly(monkeypatch, capsys):
    def interrupted(part, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "_measure_part", interrupted)
    assert cli.main(["bench", "--only", "host"]) == 130
    assert capsys.readouterr().err == "interrupted: nothing is written\n"


def test_every_part_is_there():
    for part in registry.PARTS:
        assert part.needs in ("host", "cuda")
        assert callable(part.items)
        module, _, name = part.function.partition(":")
        made = __import__(f"hamr._benchmark.{module}", fromlist=[name])
        assert callable(getattr(made, name)), part
    assert len({part.name for part in registry.PARTS}) == len(registry.PARTS)


def test_parts_are_chosen():
    usual = [part.name for part in registry.PARTS if part.usual]
    names = lambda *arguments: [part.name for part in registry.chosen(*arguments)]  # noqa: E731
    assert names(None) == usual
    assert names(None, True) == [*usual, "scaling"]
    assert names(["scaling"]) == ["scaling"]
    assert "scaling" not in names(["cuda"])
    assert names(["waits", "to-host"]) == ["to-host", "waits"]
    assert set(names(["host"])) | set(names(["cuda"])) == set(usual)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("1024", 1024), ("1024B", 1024), ("64KiB", 64 * KIB), ("1 GiB", 1 << 30), ("3MiB", 3 * MIB)],
)
def test_sizes(text, nbytes):
    assert running.size_of(text) == nbytes


@pytest.mark.parametrize("text", ["", "1", "KiB", "1kb", "-1MiB", "1.5MiB", "1MiBs", "1023"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="is no size: accepted are 1KiB"):
        running.size_of(text)


def test_sizes_of_copies():
    sizes = groups.Settings().sizes()
    assert sizes[:3] == [KIB, 4 * KIB, 16 * KIB]
    assert sizes[-3:] == [256 * MIB, 512 * MIB, 1024 * MIB]
    assert groups.Settings(largest=5 * KIB).sizes() == [KIB, 4 * KIB]
    assert groups.Settings(rounds=9, quick=True).rounds == 3
    assert [groups.size_text(n) for n in (KIB, 1536, 64 * MIB)] == ["1 KiB", "1536 B", "64 MiB"]


# The line that tells how far it is.


class Terminal(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def test_progress_is_for_terminals():
    written = []
    for terminal in (True, False):
        stream = Terminal(terminal)
        bar = progress.Bar([1.0, 3.0], stream)
        bar.part(1)
        bar.show("to-host, 64 MiB " + "x" * 300)
        bar.end()
        written.append(stream.getvalue())
    shown, nothing = written
    assert "to-host, 64 MiB" in shown
    assert "[######......" in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown
    assert nothing == ""


def test_progress_never_goes_back_or_beyond():
    bar = progress.Bar([1.0, 3.0], Terminal(False))
    assert bar.fraction(0) == 0
    assert bar.fraction(100) < 0.25
    bar.part(1)
    assert bar.fraction(0) == 0.25
    assert 0.25 < bar.fraction(100) < 1
    bar.part(2)
    assert bar.fraction(0) == 1
