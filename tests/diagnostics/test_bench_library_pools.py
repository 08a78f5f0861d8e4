"""``hamr bench --only allocators``: what the processes say, and what becomes of it."""

import contextlib
import json

import pytest

from hamr._benchmark import library_pools
from hamr._benchmark.groups import Settings


class Libraries:
    """Those that are there; processes are asked, not they."""

    cupy, torch, numba = object(), object(), None
    settings = Settings(rounds=3, largest=1 << 20)

    def trim(self):
        pass


def measured(monkeypatch, answer):
    monkeypatch.setattr(library_pools, "run_child", answer)
    return [item.measure(lambda: None) for item in library_pools.items(Libraries(), None)]


def test_the_ratio_is_to_the_own_pool(monkeypatch):
    times = {"own": 1.0, "hamr": 1.2, "region": 1.0, "everywhere": 1.4}

    def answer(code, library, ways, sizes, rounds):
        streams = "", library_pools.OWN_STREAM
        keys = [f"{size}{stream}" for size in ("512 B", "1 MiB") for stream in streams]
        of = {way: [times[way]] * rounds for way in ways.split(",")}
        return dict.fromkeys(keys, of)

    groups = measured(monkeypatch, answer)
    assert len(groups) == 8  # two libraries, sizes and streams
    rows = {row["operation"]: row for group in groups for row in group["rows"]}
    assert rows["use_in_cupy()"]["ratio"] == 1.2
    assert rows["use_in_cupy()"]["met"]
    assert not rows["use_in_torch(everywhere=True)"]["met"]
    assert "met" not in rows["CuPy's own pool: cupy.cuda.alloc(n)"]


def test_a_process_that_fails_is_told_of(monkeypatch):
    def answer(code, library, ways, sizes, rounds):
        raise RuntimeError("no such thing")

    for group in measured(monkeypatch, answer):
        assert all(row["error"] == "RuntimeError: no such thing" for row in group["rows"])


@pytest.mark.parametrize("stream", [None, contextlib.nullcontext()])
def test_a_process_measures_by_turns(monkeypatch, capsys, stream):
    entered = []

    @contextlib.contextmanager
    def way():
        entered.append(len(entered))
        yield

    ways = {"own": contextlib.nullcontext, "hamr": way}
    made = library_pools._Made(bytearray, lambda: None, ways, stream)
    monkeypatch.setattr(library_pools, "_cupy", lambda ways: made)
    library_pools.child("cupy", "own,hamr", "[512]", "2")
    found = json.loads(capsys.readouterr().out)
    assert len(found) == (1 if stream is None else 2)
    assert len(entered) == 2 * len(found)
    for by_way in found.values():
        assert [len(values) for values in by_way.values()] == [2, 2]
        assert min(by_way["own"] + by_way["hamr"]) > 0
