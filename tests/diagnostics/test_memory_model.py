"""What is tracked, recorded and in use of the host's memory, beside a plain model."""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest

import hamr
from tests.support.memory_walk import HOST, walk_at_random
from tests.support.processes import scaled

MIB = 1 << 20


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_a_walk(seed):
    gc.collect()
    walk_at_random(seed, HOST)


@pytest.mark.parametrize("watched", [False, True])
def test_threads_at_the_same_time(watched):
    """Each allocates and lets others free; in the end all is as it was, and the sums are right."""
    gc.collect()
    before = {k: v["current"] for k, v in hamr.stats()["allocators"].items()}
    most, each, passed, lock = 4, scaled(2000), [], threading.Lock()

    def work(number):
        chosen, mine = random.Random(number), []
        for _ in range(each):
            mine.append(hamr.Buffer(chosen.randrange(3000), "u1"))
            if len(mine) > 20:
                with lock:
                    passed.append(mine.pop(chosen.randrange(len(mine))))
                    other = passed.pop(chosen.randrange(len(passed)))
                other.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(most)]
    record = hamr.record_memory(stacks=False, most=10 * most * each) if watched else None
    with hamr.track() as t:
        if record:
            record.__enter__()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for a in hamr.memory_snapshot().allocations:
                assert a["size"] >= 0
        for thread in threads:
            thread.join()
        threads.clear()
        passed.clear()
        gc.collect()
        if record:
            record.__exit__(None, None, None)
    after = {k: v["current"] for k, v in hamr.stats()["allocators"].items()}
    assert {**before, **{k: after[k] for k in before}} == before
    assert t.allocations >= most * each
    assert t.allocated == t.freed
    assert 0 < t.peak <= t.allocated
    if record:
        living = {}
        for event in record.snapshot.events:
            if event["size"]:
                if event["action"] == "alloc":
                    assert living.setdefault(event["address"], event) is event, "it is free"
                else:
                    assert living.pop(event["address"])["size"] == event["size"]
        assert not living


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"library": "numpy", "bytes": 1}, "library is 'numpy': accepted are hamr, cupy"),
        ({"library": "hamr"}, "library is given without bytes"),
        ({"library": "hamr", "bytes": -1}, "bytes is -1"),
        ({"library": "hamr", "bytes": 1, "kept": 2}, "with pinned or kept"),
        ({"library": "CuPy", "bytes": 1}, "library is 'CuPy': accepted are.*write 'cupy'"),
        ({"device": "cpu"}, "device is given without bytes"),
        ({"device": -1, "bytes": -1}, "bytes is -1"),
        ({"device": -5, "bytes": 1}, "device is -5: accepted are -1 or 'cpu' for the host"),
        ({"library": "hamr", "bytes": "1 parsec"}, "bytes is '1 parsec'"),
    ],
)
def test_wrong_limits(wrong, told):
    with pytest.raises(ValueError, match=told):
        hamr.set_limit(**wrong)
    assert hamr.limits()["libraries"] == {}


@pytest.mark.parametrize(
    "where",
    [{"device": "cpu"}, {"device": -1}, {"library": "hamr"}, {"device": "host", "library": "hamr"}],
)
def test_memory_of_the_host_is_limited(where):
    """Memory in use, in all or on the host; what is kept for reuse is no part of it."""
    gc.collect()
    hamr.trim()
    used = sum(a["size"] for a in hamr.memory_snapshot().allocations)
    hamr.set_limit(**where, bytes=used + 8 * MIB)
    try:
        place = "cpu" if "device" in where else "all"
        assert hamr.limits()["libraries"] == {"hamr": {place: used + 8 * MIB}}
        held = hamr.zeros(5 * MIB, "u1")
        with pytest.raises(
            hamr.OutOfMemory, match=r"for hamr (on the host|in all), of which"
        ) as full:
            hamr.Buffer(4 * MIB, "u1", "cpp")
        assert full.value.size == 4 * MIB
        with pytest.raises(hamr.OutOfMemory):
            held.append(np.zeros(5 * MIB, "u1"))
        small = [hamr.zeros(1000) for _ in range(100)]
        del held, small
        hamr.Buffer(8 * MIB, "u1", "shared").close()
        asked = []
        held = [hamr.zeros(5 * MIB, "u1")]
        callback = hamr.on_out_of_memory(lambda *a: asked.append(a) or held.clear() or True)
        hamr.zeros(4 * MIB, "u1")  # what a callback gave back makes room
        callback.remove()
        assert asked == [(-1, 4 * MIB)]
    finally:
        hamr.set_limit(**where, bytes=None)
    assert hamr.limits()["libraries"] == {}
    hamr.zeros(9 * MIB, "u1")


def test_what_is_kept_has_a_word_of_its_own():
    try:
        hamr.set_limit(kept="1MiB")
        assert hamr.limits()["kept"] == hamr.limits()["host"] == MIB
        with pytest.warns(DeprecationWarning, match=r"write hamr.set_limit\(kept=") as warned:
            hamr.set_limit(host="2MiB")
        assert warned[0].filename == __file__
        assert hamr.limits()["kept"] == 2 * MIB
        with pytest.raises(TypeError, match="accepted is kept alone"):
            hamr.set_limit(kept=1, host=1)
        with pytest.raises(ValueError, match="host is 'x'"):
            hamr.set_limit(host="x")
        hamr.zeros(9 * MIB, "u1")  # of memory in use it is none
    finally:
        hamr.set_limit(kept=None)


def test_a_library_is_a_text():
    with pytest.raises(TypeError, match="library is 3"):
        hamr.set_limit(library=3, bytes=1)
    with pytest.raises(TypeError, match="library is 3"):
        hamr.track(library=3)
    with pytest.raises(ValueError, match="library is 'jax'"):
        hamr.track(library="jax")


def test_a_region_is_entered_once():
    t = hamr.track()
    with t:
        with pytest.raises(RuntimeError, match="entered already"):
            t.__enter__()
        held = hamr.Buffer(100, "u1")
    assert t.allocated == 100
    with t:
        del held
    assert (t.allocated, t.freed, t.peak) == (0, 100, 0)
    assert "freed 100" in repr(t)
