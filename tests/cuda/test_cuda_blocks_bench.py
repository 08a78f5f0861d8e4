"""``hamr bench --only blocks`` with a device: every way copies the right blocks, and no others."""

import contextlib
import json
import sys
from types import SimpleNamespace

import pytest

from hamr import cli
from hamr._benchmark import blocks, blocks_beside, groups, scattered
from hamr._benchmark.driver import Driver
from tests.cuda import driver

KIB = groups.KIB


@pytest.fixture(scope="module")
def record(needs_device, tmp_path_factory):
    path = tmp_path_factory.mktemp("blocks") / "figures.json"
    small = ["--quick", "--largest", "64KiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "blocks", *small]) == 0
    return json.loads(path.read_text())


def test_every_path_is_measured(record):
    assert record["skipped"] == []
    found = {curve["path"]: curve for curve in record["curves"]}
    absent = set() if driver.DEVICES > 1 else {blocks.ACROSS}
    assert set(found) == {*blocks.PATHS} - absent
    for curve in found.values():
        assert [way for way in curve["ways"] if "errors" in way] == []
        libraries = [way["library"] for way in curve["ways"]]
        assert libraries[:3] == ["hamr", "hamr: lists", "hamr: copy_many"]
        roles = [way["role"] for way in curve["ways"]]
        assert roles.count("limit") == roles.count("driver") == 1
        for way in curve["ways"]:
            assert len(way["GBps"]) == len(way["of_limit"]) == len(curve["nbytes"])
    assert found[blocks.TO_PINNED]["nbytes"] == [4 * KIB, 16 * KIB]
    assert found[blocks.TO_PINNED]["counts"] == [16, 4]


def test_calls_until_they_return(record):
    titles = [group["group"] for group in record["groups"][:4]]
    assert titles == [
        f"4 blocks of 16 KiB {way} page-locked memory, until {until}"
        for way in ("to", "from")
        for until in ("enqueued", "there")
    ]
    enqueued, there = record["groups"][:2]
    bounds = {row["operation"]: row.get("limit") for row in enqueued["rows"]}
    assert bounds == {
        "driver: a loop of cuMemcpyAsync": None,
        "driver: cuMemcpyBatchAsync": None,
        "hamr: copy_blocks, device's indices": blocks_beside.BY_ARRAYS,
        "hamr: copy_blocks, lists": blocks_beside.BY_LISTS,
        "hamr: copy_many of views, kept": None,
    }
    assert [row["operation"] for row in there["rows"]][:-1] == list(bounds)
    assert there["rows"][-1]["operation"] == "driver: one cuMemcpyAsync"
    assert not [row for group in record["groups"][:4] for row in group["rows"] if "error" in row]


def test_products_are_measured_or_it_says_why(record):
    first, *more = record["groups"][4:]
    assert first["group"] == f"{blocks_beside.TITLE}, slower by"
    assert [group["group"] for group in more] in ([], [f"{blocks_beside.TITLE}, the blocks"])
    errors = [row["error"] for row in first["rows"] if "error" in row]
    assert bool(more) is ("torch" not in record["absent"])
    assert bool(errors) is not bool(more)
    assert all(error.startswith("this needs torch: ") for error in errors)


def points(monkeypatch, **more):
    """The points of pools that are checked whole, then in part."""
    lib = groups.Libraries(groups.Settings(1, 256 * KIB, quick=True), load=False)
    for name, value in more.items():
        monkeypatch.setattr(scattered, name, value)
    made = (
        item for item in blocks_beside.items(lib, Driver()) if isinstance(item, blocks.BlockPoint)
    )
    yield from ((point, way) for point in made for way in point.ways if way.role != "limit")


@pytest.mark.parametrize("more", [{}, {"WHOLE": KIB, "SAMPLED": 16}], ids=["whole", "in part"])
def test_what_copies_nothing_is_found(more, monkeypatch):
    bare, seen = Driver(), set()
    for point, way in points(monkeypatch, **more):
        way.check(point.pattern, point.nbytes, bare.synchronize_all)
        way.run = lambda: None
        with pytest.raises(RuntimeError, match="wrong bytes: "):
            way.check(point.pattern, point.nbytes, bare.synchronize_all)
        seen.add(way.library)
    assert seen >= {"hamr", "hamr: lists", "hamr: copy_many", "driver", "driver: batch", "NumPy"}


@pytest.mark.parametrize("more", [{}, {"WHOLE": KIB, "SAMPLED": 512}], ids=["whole", "in part"])
def test_a_block_in_the_wrong_place_is_found(more, monkeypatch):
    for point, way in points(monkeypatch, **more):
        if way.library == "hamr":
            to, _, of, si = way.run.args
            way.run = lambda f=way.run.func, to=to, of=of, si=si, k=way.run.keywords: f(
                to, si, of, si, **k
            )
            with pytest.raises(RuntimeError, match="wrong bytes: "):
                way.check(point.pattern, point.nbytes, Driver().synchronize_all)


def test_what_takes_long_is_timed_once(monkeypatch):
    monkeypatch.setattr(scattered, "SLOW", 0.0)
    lib = groups.Libraries(groups.Settings(3, 64 * KIB, quick=True), load=False)
    (*_, point) = blocks.on_host(lib, None)
    calls = []
    for way in point.ways:
        way.run = lambda run=way.run, name=way.library: calls.append(name) or run()
    names = [way.library for way in point.ways if way.role != "limit"]
    rows = point.measure(lambda: None, lib.settings)["rows"]
    assert not [row for row in rows if "error" in row]
    assert [calls.count(name) for name in names[:3]] == [2, 2, 2]  # checked, and timed


def test_processes_that_copy_take_turns(monkeypatch):
    """Each setting has a process of its own, and a row for each direction."""
    told = []

    class Child:
        def __init__(self, **settings):
            self.grid = settings.get(blocks_beside.GRID, "default")
            self.answers = ["ready"]

        @classmethod
        def of(cls, function, sockets, **settings):
            assert callable(getattr(blocks_beside, function.partition(".")[2]))
            return cls(**settings)

        def tell(self, text):
            told.append((self.grid, text))
            found = {"slower": 4.0 if "down" in text else 20, "GBps": 50}
            lost = self.grid == "64" and "up" in text
            self.answers.append(json.dumps({"error": "lost"} if lost else found))

        def line(self):
            return self.answers.pop(0)

        def end(self):
            told.append(self.grid)

    monkeypatch.setattr(blocks_beside, "Child", Child)
    lib = groups.Libraries(load=False)
    lib.torch = SimpleNamespace()
    slower, rates = (item.measure(lambda: None) for item in blocks_beside.beside(lib))
    rows = {row["operation"]: row for row in slower["rows"]}
    assert rows["hamr.copy_blocks, default, down"]["met"] is True
    assert rows["hamr.copy_blocks, default, up"]["met"] is False
    assert "met" not in rows[f"{blocks_beside.ONE_COPY}, down"]
    (lost,) = [row for row in rates["rows"] if row.get("value") != 50]
    assert lost == {"operation": "hamr.copy_blocks, HAMR_COPY_GRID=64, up", "error": "lost"}
    assert lost in slower["rows"]
    grids = ["default", *blocks_beside.GRIDS]
    assert told[: len(grids) + 2] == [
        *(("default", f"{way} down") for way in ("one", "batch")),
        *((grid, "blocks down") for grid in grids),
    ]
    assert told[-len(grids) :] == grids


class Stream:
    """PyTorch's, whose events are so many milliseconds apart."""

    made: list = []

    def __init__(self):
        self.cuda_stream = Driver().stream().value
        self.step = 1.0 if self.made else 20.0  # products' is made first
        self.now = 0.0
        self.made.append(self)


class Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.asked = 0

    def record(self, stream):
        self.at = stream.now
        stream.now += stream.step

    def elapsed_time(self, other):
        return other.at - self.at

    def query(self):
        self.asked += 1
        return self.asked > 30

    def synchronize(self):
        pass


class Ones:
    def __init__(self, count, **kinds):
        assert count == scattered.BLOCKS * blocks_beside.SIZE

    def copy_(self, other, non_blocking):
        assert non_blocking


def begin_again():
    for stream in Stream.made:
        stream.now = 0.0


TORCH = SimpleNamespace(
    bfloat16=None,
    uint8=None,
    randn=lambda *shape, **kinds: None,
    mm=lambda a, b, out: None,
    ones=Ones,
    cuda=SimpleNamespace(
        Stream=Stream, Event=Event, stream=contextlib.nullcontext, synchronize=begin_again
    ),
)


@pytest.mark.parametrize("way", ["one", "batch", "blocks"])
def test_copies_beside_products_are_counted(way, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", TORCH)
    monkeypatch.setattr(Stream, "made", [])
    monkeypatch.setattr(scattered, "BLOCKS", 64)
    monkeypatch.setattr(blocks_beside, "BLOCKS", 64)
    copies = blocks_beside.Copies()
    for down in (True, False):
        found = copies.measure(way, down)
        assert found["slower"] == 0
        assert found["GBps"] == pytest.approx(64 * blocks_beside.SIZE / 1e6)  # each in 1 ms
    monkeypatch.setattr(Event, "query", lambda self: True)
    with pytest.raises(RuntimeError, match="no two copies ended while the products went on"):
        copies.measure(way, True)
    Driver().synchronize()
