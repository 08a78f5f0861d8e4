"""Which memory is in use, and whose it is: snapshots, records and what is written of them."""

from __future__ import annotations

import gc
import html.parser
import importlib.util
import json
import os
import pickle
import re
import stat
import threading

import pytest

import hamr
from tests.support.processes import run_code

KIB = 1 << 10


def sizes(snapshot, allocator="malloc"):
    return sorted(a["size"] for a in snapshot.allocations if a["allocator"] == allocator)


def address(buffer):
    return buffer.__array_interface__["data"][0]


def test_what_is_in_use_is_told():
    before = sizes(hamr.memory_snapshot())
    held = [hamr.Buffer(n * KIB, "u1") for n in (1, 2, 3)]
    snapshot = hamr.memory_snapshot()
    after = sizes(snapshot)
    for n in (1, 2, 3):
        assert after.count(n * KIB) == before.count(n * KIB) + 1
    found = next(
        a for a in snapshot.allocations if a["address"] == held[0].__array_interface__["data"][0]
    )
    assert (found["library"], found["device"], found["size"]) == ("hamr", -1, KIB)
    assert (found["thread"], found["time"], found["stack"]) == (None, None, [])
    del held
    assert sizes(hamr.memory_snapshot()) == before


def test_the_sum_is_what_is_counted():
    gc.collect()
    held = [hamr.Buffer(n, "u1") for n in range(0, 5000, 7)]
    snapshot = hamr.memory_snapshot()
    for name, counts in hamr.stats()["allocators"].items():
        assert sum(sizes(snapshot, name)) == counts["current"]
        assert len(sizes(snapshot, name)) == counts["live"]
    total = sum(sum(places.values()) for places in snapshot.by_library().values())
    assert total == sum(a["size"] for a in snapshot.allocations)
    del held


def test_foreign_memory_is_its_owners():
    numpy = pytest.importorskip("numpy")
    before = len(hamr.memory_snapshot().allocations)
    held = hamr.buffer(numpy.zeros(1000))
    assert len(hamr.memory_snapshot().allocations) == before
    del held


def take(size):
    return hamr.Buffer(size, "u1")


def test_a_record_knows_thread_time_and_stack():
    held = []
    with hamr.record_memory() as record:
        thread = threading.Thread(target=lambda: held.append(take(5 * KIB)))
        thread.start()
        number = thread.native_id
        thread.join()
        own = take(6 * KIB)
        freed = take(7 * KIB)
        del freed
        held.append(hamr.Buffer(3, "f8", data=[1, 2, 3]))
        held.append(own.astype("i4"))
    events = {(e["action"], e["size"]): e for e in record.snapshot.events}
    other, mine = events["alloc", 5 * KIB], events["alloc", 6 * KIB]
    assert other["thread"] == number
    assert mine["thread"] == threading.get_native_id()
    assert mine["thread_name"] == threading.current_thread().name
    for event in (other, mine, events["alloc", 24 * KIB], events["alloc", 24]):
        names = [frame["name"] for frame in event["stack"]]
        assert any("test_a_record_knows" in name for name in names), names
    inner = next(f for f in mine["stack"] if f["name"] == "take")
    assert inner["filename"] == __file__
    assert inner["line"] == take.__code__.co_firstlineno + 1
    assert 0 < other["time"] <= mine["time"] <= events["free", 7 * KIB]["time"]
    living = next(
        a for a in record.snapshot.allocations if a["address"] == own.__array_interface__["data"][0]
    )
    assert living["stack"] == mine["stack"]
    assert living["time"] == mine["time"]
    assert not [a for a in hamr.memory_snapshot().events if a]  # it is over


def test_a_record_without_stacks():
    with hamr.record_memory(stacks=False) as record:
        held = take(KIB)
    [event] = record.snapshot.events
    assert event["stack"] == []
    assert event["thread"] == threading.get_native_id()
    del held


def test_the_newest_events_are_kept():
    with hamr.record_memory(most=5, stacks=False) as record:
        for n in range(10):
            take(100 + n)
    assert record.snapshot.dropped == 15
    assert [e["size"] for e in record.snapshot.events] == [107, 108, 108, 109, 109]


def test_one_record_at_a_time():
    with hamr.record_memory():
        with pytest.raises(RuntimeError, match="recorded already"), hamr.record_memory():
            pass
        held = take(KIB)
    with hamr.record_memory() as again:
        del held
    assert [e["action"] for e in again.snapshot.events] == ["free"]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [({"path": "x.txt"}, ValueError), ({"path": 3}, TypeError), ({"path": b"x.json"}, TypeError),
     ({"most": 0}, ValueError), ({"most": 1.5}, TypeError)],
)  # fmt: skip
def test_wrong_arguments(arguments, kind):
    with pytest.raises(kind):
        hamr.record_memory(**arguments)
    with hamr.record_memory():
        pass


# What is written.


def test_files_of_each_format(tmp_path):
    held = take(100 * KIB)
    with hamr.record_memory(tmp_path / "record.html"):
        held = take(200 * KIB)
    snapshot = hamr.memory_snapshot()
    old = os.umask(0o027)
    try:
        for ending in ("json", "pickle", "html"):
            snapshot.write(tmp_path / f"now.{ending}")
    finally:
        os.umask(old)
    found = json.loads((tmp_path / "now.json").read_text())
    plain = pickle.loads((tmp_path / "now.pickle").read_bytes())
    assert json.loads(json.dumps(plain)) == found
    assert stat.S_IMODE((tmp_path / "now.json").stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "now.html", "now.json", "now.pickle", "record.html"]  # fmt: skip
    del held


def test_a_path_that_cannot_be_written(tmp_path):
    there = tmp_path / "there.json"
    there.write_text("before")
    for path in (tmp_path / "no" / "x.json", tmp_path):
        name = path if path != tmp_path else tmp_path / "folder.json"
        if path == tmp_path:
            name.mkdir()
        ran = False
        with pytest.raises(OSError, match=re.escape(str(name))), hamr.record_memory(name):
            ran = True
        assert not ran
        with pytest.raises(OSError, match="nothing was written"):
            hamr.memory_snapshot().write(name)
    with hamr.record_memory(there) as record:
        take(KIB)
    assert "segments" in json.loads(there.read_text())
    assert record.snapshot.events


@pytest.mark.parametrize("letter", ["x", "é", "語", "😀"])
def test_a_name_as_long_as_was_always_possible(tmp_path, letter):
    """The file beside has a name of its own, which is no longer than names can be."""
    path = tmp_path / (letter * (240 // len(letter.encode())) + ".json")
    hamr.memory_snapshot().write(path)
    assert os.listdir(tmp_path) == [path.name]


def test_a_failure_of_writing_loses_nothing(tmp_path):
    """The folder goes while it is recorded: the snapshot is there, and an error of the block's."""
    for raised in (None, KeyError("mine")):
        folder = tmp_path / "folder"
        folder.mkdir()
        record = hamr.record_memory(folder / "x.html")

        def block(record=record, folder=folder, raised=raised):
            with record:
                take(KIB)
                folder.rmdir()
                if raised:
                    raise raised

        with pytest.raises(type(raised) if raised else OSError) as caught:
            block()
        if raised:
            assert any("record of memory was lost" in note for note in caught.value.__notes__)
        assert len(record.snapshot.events) == 2
    with hamr.record_memory():
        pass


class Page(html.parser.HTMLParser):
    """Whatever a page could ask others for."""

    def __init__(self):
        super().__init__()
        self.open, self.found, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.found += [
            (n, v) for n, v in attributes if n in ("src", "href", "xlink:href", "action")
        ]
        if tag not in ("meta", "br", "rect", "path", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("meta", "br", "rect", "path"):
            assert self.open.pop() == tag


def test_the_page_is_one_file(tmp_path):
    held = []
    with hamr.record_memory(tmp_path / "x.html", most=30_000) as record:
        exec(compile("held.append(take(30_000))", "<b>&'\"</script>", "exec"), globals() | locals())
        for n in range(5000):
            held.append(take(n))
    text = (tmp_path / "x.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.found == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "<b>&" not in text
    assert "&lt;b&gt;" in text
    assert not re.search(r"https?://|url\(|@import", text)
    for word in ("By library", "Over time", "Fragmentation", "hamr", "host"):
        assert word in text
    assert "path" in page.tags
    assert len(text) < 400_000 < len(record.snapshot.events) * 100


# What torch's viewer reads.

FRAME = {"filename": str, "name": str, "line": int}
BLOCK = {"address": int, "size": int, "requested_size": int, "state": str, "frames": [FRAME]}
SEGMENT = {
    "device": int, "address": int, "total_size": int, "allocated_size": int, "active_size": int,
    "requested_size": int, "stream": int, "segment_type": str, "segment_pool_id": (int, int),
    "is_expandable": bool, "frames": [FRAME], "blocks": [BLOCK],
}  # fmt: skip
TRACE = {"action": str, "addr": int, "size": int, "stream": int, "time_us": int, "frames": [FRAME]}
SCHEMA = {
    "segments": [SEGMENT], "device_traces": [[TRACE]], "allocator_settings": {},
    "external_annotations": [],
}  # fmt: skip


def check(value, schema):
    if isinstance(schema, type):
        assert type(value) is schema, value
    elif isinstance(schema, dict):
        assert isinstance(value, dict)
        assert value.keys() == schema.keys()
        for key in schema:
            check(value[key], schema[key])
    elif isinstance(schema, tuple):
        assert len(value) == len(schema)
        for one, kind in zip(value, schema, strict=True):
            check(one, kind)
    else:
        assert isinstance(value, list)
        for one in value:
            check(one, schema[0])


def recorded():
    held = [take(50 * KIB)]
    with hamr.record_memory() as record:
        held.append(take(60 * KIB))
        del held[0]
        held.append(hamr.ones(3))
    return held, record.snapshot


def check_torch(found):
    check(found, SCHEMA)
    for segment in found["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            assert block["state"] in ("active_allocated", "inactive")
            assert 0 <= block["requested_size"] <= block["size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        assert segment["device"] < len(found["device_traces"])
    for trace in found["device_traces"]:
        assert {e["action"] for e in trace} <= {"alloc", "free_requested", "free_completed"}
        assert [e["time_us"] for e in trace] == sorted(e["time_us"] for e in trace)


def test_the_format_of_torch():
    held, snapshot = recorded()
    found = snapshot.to_torch()
    check_torch(found)
    actions = [(e["action"], e["size"]) for e in found["device_traces"][-1]]
    assert actions == [
        ("alloc", 60 * KIB), ("free_requested", 50 * KIB), ("free_completed", 50 * KIB),
        ("alloc", 24)]  # fmt: skip
    del held


def viewer():
    """The module of torch that reads snapshots, from an installed torch; it needs no device."""
    found = importlib.util.find_spec("torch")
    path = found and os.path.join(os.path.dirname(found.origin or ""), "cuda", "_memory_viz.py")
    if not path or not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("memory_viz_of_torch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(viewer() is None, reason="no torch")
def test_the_viewer_of_torch(tmp_path):
    held, snapshot = recorded()
    snapshot.write(tmp_path / "x.pickle")
    found = pickle.loads((tmp_path / "x.pickle").read_bytes())
    module = viewer()
    assert f"segments: {len(found['segments'])}" in module.segsum(found)
    assert "60.0KiB" in module.trace(found)
    assert "recorded" in module.memory(found, format_flamegraph=lambda lines: lines)
    assert "snapshot.pickle" in module.trace_plot(found)
    del held


# Processes.


def test_a_forked_child_begins_without_records():
    run_code(
        """
import os, hamr
hamr.ones(10)
held = hamr.ones(1000)
with hamr.record_memory() as record, hamr.track() as t:
    mine = hamr.ones(2000)
    child = os.fork()
    if child == 0:
        snapshot = hamr.memory_snapshot()
        assert snapshot.allocations == snapshot.events == [], snapshot.allocations
        own = hamr.ones(50)
        [one] = hamr.memory_snapshot().allocations
        assert one["size"] == 400 and one["time"] is None
        try:
            t.peak
        except hamr.ForkError:
            pass
        else:
            os._exit(3)
        with hamr.record_memory() as again, hamr.track() as u:
            more = hamr.ones(60)
        assert [e["size"] for e in again.snapshot.events] == [480], again.snapshot.events
        assert again.snapshot.events[0]["stack"], "stacks are recorded anew"
        assert u.allocated == 480
        record.__exit__(None, None, None)
        t.__exit__(None, None, None)
        assert record.snapshot is None
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    other = hamr.ones(3000)
assert [e["size"] for e in record.snapshot.events] == [16000, 24000]
assert t.allocated == 40000
"""
    )


@pytest.mark.parametrize("leave", ["", "sys.exit(0)", "os._exit(0)"])
def test_the_interpreter_ends_within_a_record(leave):
    run_code(
        f"""
import os, sys, threading, hamr
hamr.record_memory().__enter__()
t = hamr.track().__enter__()
server = hamr.serve_memory()
def work():
    while True:
        hamr.ones(100)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
held = [hamr.ones(n) for n in range(100)]
class Last:
    def __del__(self):
        hamr.ones(5)
last = Last()
{leave}
"""
    )


def test_frames_of_others_stay_as_they_are():
    """What is recorded keeps code, and no variables."""

    class Kept:
        pass

    import weakref

    def f():
        kept = Kept()
        seen.append(weakref.ref(kept))
        return take(10)

    seen = []
    with hamr.record_memory() as record:
        f()
        gc.collect()
        assert seen[0]() is None
    assert record.snapshot.events
