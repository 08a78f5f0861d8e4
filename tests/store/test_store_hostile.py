"""What users get wrong, and what comes at the wrong time."""

import gc
import os
import pickle
import threading

import numpy as np
import pytest

import hamr
import hamr._native as _native
from hamr.store import ObjectNotFound, Server, StoreLost, connect, leases, opening
from tests.support.processes import run_code, wait_until


@pytest.mark.parametrize("n", [1000, 1_000_000])
def test_what_shares_an_aborted_objects_memory_keeps_it(client, n):
    builder = client.create(n, "u1")
    array = np.asarray(builder.buffer)
    array[:] = 3
    builder.abort()
    assert not client.exists(builder.id)
    assert array.sum() == 3 * n
    del array, builder
    gc.collect()
    wait_until(lambda: client.statistics()["leases"] == 0)


@pytest.mark.parametrize("n", [1000, 1_000_000])
def test_an_object_that_cannot_be_sealed_is_given_up_whole(tmp_path, n):
    with Server(str(tmp_path / "store" / "socket")) as server:
        client = connect(server.path)
        builder, other = client.create(n, "u1"), client.create(n, "u1")
        array = np.asarray(builder.buffer)
        array[:] = 3
    with pytest.raises(StoreLost):
        builder.seal()
    assert array.sum() == 3 * n
    for again in (builder.seal, builder.abort, lambda: builder.buffer):
        with pytest.raises(ValueError, match="was given up"):
            again()
    with pytest.raises(KeyError), other:  # and not StoreLost
        raise KeyError


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        *(("create", {"shape": 3, key: 2}, key) for key in ("evictable", "pinned", "separate")),
        *(("put", {"array": np.zeros(3), key: "x"}, key) for key in ("evictable", "pinned")),
        *(("put", {"array": np.zeros(3), "allocator": no}, "allocator") for no in (-1, "none")),
        *(
            ("put_many", {"arrays": [np.zeros(3)], "allocator": no}, "allocator")
            for no in (-1, "none")
        ),
        ("put", {"array": np.zeros(3), "name": 3}, "name"),
        ("put", {"array": np.zeros(3), "name": ""}, "name"),
        ("put", {"array": np.zeros(3), "name": "\udc80"}, "name"),
        ("put", {"array": np.zeros(3), "name": "ä" * 128}, "name"),
        ("get", {"id": "ID", "unsafe": "no"}, "unsafe"),
        ("get", {"id": "ID", "wait": 1}, "wait"),
        ("get", {"id": "ID", "wait": True, "timeout": "1"}, "timeout"),
        ("get", {"id": "ID", "wait": True, "timeout": float("nan")}, "timeout"),
        ("delete", {"id": "ID", "force": 1}, "force"),
        ("put_name", {"id": "ID", "name": "a", "replace": "x"}, "replace"),
        ("wait", {"ids": "ID"}, "ids"),
        ("wait", {"ids": 3}, "ids"),
        ("wait", {"ids": [], "count": 0.0}, "count"),
        ("wait", {"ids": ["0" * 32], "count": True}, "count"),
        ("pin", {"id": "ID", "pinned": "x"}, "pinned"),
        ("set_evictable", {"id": "ID", "evictable": None}, "evictable"),
    ],
)
def test_wrong_arguments_are_named_before_anything_happens(client, method, arguments, named):
    id = client.put(np.zeros(3))
    before = client.statistics()
    arguments = {key: id if str(value) == "ID" else value for key, value in arguments.items()}
    with pytest.raises((TypeError, ValueError), match=rf"^{named} is "):
        getattr(client, method)(**arguments)
    after = client.statistics()
    assert after["requests"] == before["requests"] + 1


@pytest.mark.parametrize("wrong", [5, b"/tmp/x", "/tmp/a\0b", "relative", "/tmp/\udcff"])
def test_paths_are_checked(wrong):
    for kind in (connect, Server):
        with pytest.raises((TypeError, ValueError), match=r"^path is "):
            kind(wrong)
    with pytest.raises(TypeError, match=r"^limit is 5"):
        Server(limit=5)
    with pytest.raises(TypeError, match=r"^spill is 5"):
        Server(spill=5)
    for wrong in (-1, 2**31, 2**63, -(2**70)):
        with pytest.raises(ValueError, match=f"^socket is {wrong}"):
            Server(socket=wrong)
    with pytest.raises(ValueError, match=r"^spill is '/tmp/\\udcff'"):
        Server(spill="/tmp/\udcff")
    for size in ("256MiB", 1 << 28):
        with pytest.raises((TypeError, ValueError), match=f"limit is .*write 'host={size}'"):
            Server(limit=size)
    for more in ({"limit": "gpu=1GiB"}, {"spill": "/tmp"}):
        with pytest.raises(ValueError, match=r"^spill_devices is True"):
            Server(spill_devices=True, **more)


def test_an_event_is_waited_for_in_slices(client):
    with client.events() as events:
        for wrong in ("x", None, True, float("nan")):
            with pytest.raises((TypeError, ValueError), match=r"^timeout is "):
                events.take(wrong)
        client.put(np.zeros(1))
        assert events.take(float("inf")).kind == "created"


def test_an_object_without_bytes_is_copied_as_others_are(client):
    id = client.put(np.zeros((3, 0)))
    copied = client.get(id, "malloc")
    assert (copied.readonly, copied.allocator) == (False, hamr.Allocator.malloc)
    assert client.get(id).allocator is hamr.Allocator.shared
    assert client.get(id).readonly


def test_pickles_of_any_view(client):
    found = client.get(client.put(np.arange(24.0).reshape(4, 6)))
    parts = [found.reshape(6, 4), found.T, found[::-1, ::-2], found[2:2], found[1, 3]]
    for part in parts:
        again = pickle.loads(pickle.dumps(part))
        assert np.array_equal(np.asarray(again), np.asarray(part))
    text = pickle.dumps(found)
    del found, parts, part, again
    gc.collect()
    for info in list(client.list()):
        client.delete(info.id)
    again = pickle.loads(text)
    with pytest.raises(ObjectNotFound, match="there is no object"):
        np.asarray(again)


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": 10**9},
        {"offset": -8},
        {"offset": 8, "shape": (24,), "strides": (8,)},
        {"shape": (25,), "strides": (8,)},
        {"shape": (4, 6), "strides": (8, 48)},
        {"shape": (2,), "strides": (-8,)},
        {"shape": (2, 2)},
        {"shape": (-1,)},
        {"dtype": "complex128"},
    ],
    ids=str,
)
def test_a_pickle_does_not_reach_beyond_its_object(client, changed):
    found = client.get(client.put(np.arange(24.0)))
    where = opening.place_of(found)
    names = ("path", "id", "offset", "dtype", "shape", "strides")
    told = {**dict(zip(names, where, strict=True)), **changed}
    with pytest.raises(ValueError, match=r"accepted|before their memory"):
        np.asarray(opening.opened(hamr.Buffer, *told.values()))
    assert np.array_equal(opening.opened(hamr.Buffer, *where), found)


def test_leases_end_while_leases_are_looked_for(client):
    """By the collector, by handlers and on other threads, in whatever place."""
    ids = [client.put(np.zeros(10)) for _ in range(4)]
    whole, ended = client.get(ids[0]), threading.Event()
    lease = leases.find(whole)

    def churn():
        while not ended.is_set():
            cycle = [client.get(id) for id in ids]
            cycle.append(cycle)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for thread in threads:
            thread.start()
        for _ in range(2000):
            found = leases.find(whole)
            assert found is not None
            assert found.address == lease.address
    finally:
        gc.set_threshold(*before)
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("size", [10, 100_000])
def test_an_object_that_is_had_twice_is_found_until_both_have_ended(client, size):
    other, id = client.get(client.put(np.zeros(size))), client.put(np.zeros(size))
    for last in (0, 1):
        found = [client.get(id), client.get(id)]
        places = [(each.ptr, each.ptr + each.nbytes - 1) for each in found]
        kept = found.pop(last)
        found.clear()
        for at in places[last]:
            lease = _native.owned_at(at)
            assert lease is not None
            assert lease.id == id
        assert _native.owned_at(places[last][1] + 1) is None or size == 10
        del lease, kept
        for at in places[last]:
            assert _native.owned_at(at) is None
    assert leases.find(other).address == other.ptr


def test_a_child_forked_while_others_use_the_store(client):
    id = client.put(np.arange(1000))
    ended = threading.Event()

    def churn():
        while not ended.is_set():
            client.get(id)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    builder, events = client.create(100_000), client.events()
    for thread in threads:
        thread.start()
    held = threading.Event()

    def hold():
        with client._lock:
            held.set()
            ended.wait()

    threads.append(threading.Thread(target=hold))
    threads[-1].start()
    held.wait()
    try:
        for _ in range(5):
            if not (pid := os.fork()):
                status = 1
                try:
                    assert np.asarray(client.get(id)).sum() == 499500
                    with pytest.raises(hamr.ForkError):
                        builder.seal()
                    assert list(events) == []
                    with pytest.raises(ValueError, match="parent"):
                        events.take()
                    events.close()
                    client.close()
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    builder.seal()
    assert events.take(5).kind == "sealed"
    events.close()


def test_a_process_ends_whatever_it_has_of_a_store(tmp_path):
    code = f"""
import threading, numpy as np
from hamr.store import Server, connect
server = Server({str(tmp_path / "store" / "socket")!r})
client = connect(server.path)
kept = [client.get(client.put(np.zeros(n))) for n in (0, 10, 100_000)]
kept.append(kept)
builder, events = client.create(100_000), client.events()
array = np.asarray(builder.buffer)
threading.Thread(target=lambda: client.get_name("none", wait=True), daemon=True).start()
threading.Thread(target=lambda: list(events), daemon=True).start()
print("end")
"""
    assert run_code(code) == "end\n"


def test_what_is_no_array_is_said_so(client):
    for wrong in (None, "abc", {"a": 1}):
        with pytest.raises(TypeError, match=r"^array is .*accepted are a number, a list"):
            client.put(wrong)
    with pytest.raises(ValueError, match=r"^shape is .*accepted are sizes that fit"):
        client.create(10**30)
    with pytest.raises(TypeError, match=r"^name is 5"):
        client.list(5)


def test_options_of_servers_have_pythons_names(tmp_path):
    path = str(tmp_path / "other" / "socket")
    with pytest.raises(ValueError, match=r"^metadata is 1048576: accepted is at most"):
        Server(path, metadata="1MiB")
    with pytest.raises(TypeError, match=r"^spill_devices is 'yes'"):
        Server(path, spill_devices="yes")
