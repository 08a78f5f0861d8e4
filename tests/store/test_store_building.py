"""Groups that are built in place, on the host."""

import gc
import os
import random
import signal
import threading

import numpy as np
import pytest

import hamr
from hamr.store import (
    GroupBuilder,
    NameTaken,
    NotSealed,
    ObjectNotFound,
    Sealed,
    StoreFull,
    connect,
)
from tests.store.building import walk
from tests.store.trees import same
from tests.support.in_threads import in_threads
from tests.support.processes import run_code, scaled


def test_walks_beside_dictionaries(client):
    for _ in range(scaled(20, 2)):
        print("seed", seed := random.randrange(1 << 30))
        walk(client, seed, 150, None)
    assert client.statistics()["objects"] <= client.statistics()["unsealed"]


def test_nothing_is_copied_and_no_byte_is_held_twice(client):
    used = client.statistics()["memory"]["host"]["used"]
    with client.build_group("weights", bytes="8MiB", metadata={"step": 1}) as space:
        assert isinstance(space, GroupBuilder)
        array = space.empty((1024, 1024), "f4")
        here = np.asarray(array)
        here[...] = 3
        space.add("layer0", array, metadata={"scale": 2})
        space.add("rows", here[:5])
        assert (space.device, space.bytes, space.used) == (-1, 8 << 20, 4 << 20)
        space.metadata = {"step": 7}
        room = client.statistics()["memory"]["host"]["used"] - used
        assert 8 << 20 < room <= (8 << 20) + (100 << 10)
        with pytest.raises(NotSealed):
            client.get(space.id)
    assert client.statistics()["memory"]["host"]["used"] - used == room
    group = client.get_group("weights")
    assert (group.id, group.metadata) == (space.id, {"step": 7})
    assert group.array_metadata == {"layer0": {"scale": 2}}
    assert (group["layer0"].get() == 3).all()
    assert group["rows"].ptr == group["layer0"].ptr
    assert client.info(group.id).arrays == 2
    here[...] = 4  # a late write is this process's alone
    assert (group["layer0"].get() == 3).all()
    assert (client.get_group("weights", private=True)["layer0"].get() == 3).all()


def test_any_library_on_the_host(client):
    with client.build_group("g", bytes=100_000) as space:
        filled = np.asarray(space.empty((10, 10)))
        filled[...] = np.arange(100).reshape(10, 10)
        space.add("w", filled)
        space.add("view", filled[:3])
        space.add("steps", [np.asarray(space.empty(0)), 3, None, "text"])
    expected = np.arange(100.0).reshape(10, 10)
    given = {"w": expected, "view": expected[:3], "steps": [np.zeros(0), 3, None, "text"]}
    assert same(client.get_group("g").tree, given)


def test_what_does_not_fit_is_refused_and_nothing_is_added(client):
    with client.build_group("g", bytes=10_000) as space:
        array = space.empty((20, 20), "f4")
        array.fill(1)
        cases = {
            r"^arrays\['x'\] lies in other memory: accepted are arrays of empty": np.ones(3),
            r"^arrays\['x'\] has the strides \(4, 80\) and the shape \(20, 20\)": array.T,
            r"^arrays\['x'\] begins at byte 4 of the group: accepted are mul": array[0, 1:],
            r"^arrays\['x.1'\] lies in other memory": [array, np.ones(3)],
            r"^path is 'w', which was added before": 5,
        }
        space.add("w", array)
        for said, wrong in cases.items():
            with pytest.raises(ValueError, match=said):
                space.add("w" if type(wrong) is int else "x", wrong)
        for path, wrong in ((3, array), ("x", object()), ("x", {3: array})):
            with pytest.raises(TypeError):
                space.add(path, wrong)
        for metadata in ({1: 2}, float("nan"), object()):
            with pytest.raises((TypeError, ValueError), match="metadata"):
                space.add("x", array, metadata)
        with pytest.raises(ValueError, match="metadata is 3: accepted is None for what is no arr"):
            space.add("x", [array], 3)
        with pytest.raises(TypeError, match="copy is 'yes'"):
            space.add("x", array, copy="yes")
        with pytest.raises(ValueError, match=r"shape is \(2, -1\)"):
            space.empty((2, -1))
        with pytest.raises(TypeError, match="dtype"):
            space.empty(3, object())
        with pytest.raises(hamr.OutOfMemory) as full:
            space.empty((2**40, 2**40))
        assert full.value.size == 2**83
    assert list(client.get_group("g")) == ["w"]


def test_arrays_that_overlap_are_refused(client):
    with client.build_group("g", bytes=10_000) as space:
        array = space.empty(2048, "u1")
        array.fill(1)
        space.add("middle", array[512:1536])
        space.add("its beginning", array[512:1000])
        for path, part in (("a", array), ("b", array[1024:1100]), ("c", array[256:513])):
            said = rf"^arrays\['{path}'\] has bytes in common with arrays\['(middle|its beginning)"
            with pytest.raises(ValueError, match=said):
                space.add(path, part)
            with pytest.raises(ValueError, match="other memory"):
                space.add(path, [array[:512], np.zeros(0), array[1536:], np.ones(1)])
        with pytest.raises(
            ValueError, match=r"^arrays\['d.1'\] has bytes in common with arrays\['d.0"
        ):
            space.add("d", [array[1536:], array[1792:]])
        space.add("before", array[:512])
        space.add("behind", array[1536:])
    assert [each.nbytes for each in client.get_group("g").values()] == [1024, 488, 512, 512]
    assert len(client.get_group("g", private=True)) == 4


def test_what_was_added_stays_whatever_its_buffer_does(client):
    with client.build_group("g", bytes=10_000) as space:
        closed, grown = space.empty(3), space.empty((2, 2))
        for i, array in enumerate((closed, grown)):
            array.fill(i + 1)
            space.add(str(i), array)
        closed.close()
        grown.resize(1000)
        again = space.empty(100)
        again.fill(7)
        assert space.used == 512 + 512 + 1024
    group = client.get_group("g")
    assert same(group.tree, {"0": np.full(3, 1.0), "1": np.full((2, 2), 2.0)})


def test_copy_takes_what_lies_elsewhere(client):
    with client.build_group("g", bytes=10_000) as space:
        array = space.empty((3, 4))
        array.fill(2)
        space.add("in place", array, copy=True)
        assert space.used == 512
        space.add("turned", array.T, copy=True)
        space.add("end", array[1:], copy=True)
        space.add("others", {"a": np.arange(3), "b": [np.ones((2, 2)), "text"]}, copy=True)
        assert space.used == 5 * 512
        with pytest.raises(hamr.OutOfMemory):
            space.add("large", np.ones(10_000), copy=True)
    others = {"a": np.arange(3), "b": [np.ones((2, 2)), "text"]}
    two = np.full((3, 4), 2.0)
    given = {"in place": two, "turned": two.T, "end": two[1:], "others": others}
    assert same(client.get_group("g").tree, given)


def test_a_directory_that_needs_more_room_lies_where_arrays_may(client):
    with client.build_group("g", bytes="1MiB") as space:
        array = space.empty(1)
        array.fill(5)
        for i in range(200):
            space.add(f"{i}", array, metadata="x" * 1000)
    group = client.get_group("g")
    assert len(group) == 200
    assert group["199"][0] == 5
    space = client.build_group("h", bytes=512)
    space.add("w", space.empty(1), metadata="x" * 100_000)
    with pytest.raises(hamr.OutOfMemory, match="the group 'h' has 0 of its 512 bytes free"):
        space.seal()
    assert space.used == 512  # it is as it was
    space.abort()
    with pytest.raises(ObjectNotFound):
        client.get_group("h")


def test_an_exception_discards_it(client):
    space = client.build_group("g", bytes=100)
    array = space.empty(3)
    np.asarray(array)[...] = 7
    space.add("w", array)
    with pytest.raises(ZeroDivisionError), space:
        raise ZeroDivisionError
    assert not client.exists(space.id)
    assert (array.get() == 7).all()
    for call in (space.seal, space.abort, lambda: space.empty(3), lambda: space.add("x", 3)):
        with pytest.raises(ValueError, match="was given up"):
            call()
    assert repr(space) == f"<hamr.store.GroupBuilder of {space.id}, finished>"
    del array
    assert client.statistics()["leases"] == 0


def test_it_is_sealed_once(client):
    space = client.build_group(bytes=100)
    assert repr(space) == (f"<hamr.store.GroupBuilder of {space.id}, 0 arrays in 512 bytes>")
    with space:
        id = space.seal()
    assert (type(id), id) == (hamr.store.ObjectID, space.id)
    with pytest.raises(Sealed):
        space.seal()
    assert client.get_group(id).tree == {}


def test_names(client):
    taken = client.put(np.ones(1), name="taken")
    with pytest.raises(NameTaken) as error:
        client.build_group("taken", bytes=100)
    assert error.value.id == taken
    assert client.statistics()["objects"] == 1
    with pytest.raises(NameTaken), client.build_group("late", bytes=100) as space:
        client.put_name("late", taken)
    assert not client.exists(space.id)


def test_a_new_version_replaces_the_old_one(client):
    first = client.put_group({"w": np.zeros(3)}, name="g")
    held = client.get_group("g")
    with client.build_group("g", bytes=100, replace=True) as space:
        space.add("w", np.ones(3), copy=True)
        assert client.get_group("g").id == first
    assert client.get_group("g").id == space.id
    assert not client.exists(first)
    assert held["w"].get().tolist() == [0, 0, 0]
    with pytest.raises(ZeroDivisionError), client.build_group("g", bytes=1, replace=True):
        raise ZeroDivisionError
    assert client.get_group("g")["w"].get().tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="replace is True"):
        client.build_group(bytes=1, replace=True)


def test_wrong_arguments(client):
    for wrong in (-1, "3 apples", 2**63 - 1, 2**63):
        with pytest.raises(ValueError, match=r"^bytes is "):
            client.build_group(bytes=wrong)
    for wrong in (None, 1.5, True):
        with pytest.raises(TypeError, match=r"^bytes is "):
            client.build_group(bytes=wrong)
    with pytest.raises(TypeError):
        client.build_group("g")
    with pytest.raises(ValueError, match="name is"):
        client.build_group("", bytes=1)
    with pytest.raises(TypeError, match="metadata"):
        client.build_group(bytes=1, metadata=object())
    with pytest.raises(TypeError, match="pinned is 3"):
        client.build_group(bytes=1, pinned=3)
    for large in ("1GiB", 2**62):
        with pytest.raises(StoreFull):
            client.build_group(bytes=large)
    space = client.build_group(bytes=1)
    space.metadata = {"x": object()}
    with pytest.raises(TypeError, match="metadata"):
        space.seal()
    space.metadata = "x" * (1 << 20)
    with pytest.raises(ValueError, match="metadata"):
        space.seal()
    space.metadata = None
    assert client.get_group(space.seal()).tree == {}


def test_flags(client):
    with client.build_group(bytes=1, evictable=True, pinned=True) as space:
        pass
    info = client.info(space.id)
    assert (info.evictable, info.pinned, info.arrays) == (True, True, 0)


def test_a_lost_one_is_discarded(client):
    space = client.build_group("g", bytes=100)
    array, id = space.empty(3), space.id
    del space
    gc.collect()
    np.asarray(array)[...] = 3
    assert client.statistics()["objects"] == 1
    del array
    assert client.statistics()["objects"] == 0
    assert not client.exists(id)


def test_threads(client):
    with client.build_group("g", bytes="2MiB") as space:

        def work(number):
            choose = random.Random(number)
            for i in range(50):
                array = space.empty(choose.randrange(1, 500), "u1")
                array.fill(number)
                if choose.random() < 0.3:
                    space.add(f"{number}.{i}", array)

        in_threads(work, 4)
    for path, array in client.get_group("g").items():
        assert (array.get() == int(path[0])).all()


def test_a_restart_of_the_server_keeps_it(server_process):
    with connect(server_process.path) as client:
        with client.build_group("g", bytes=100_000, metadata=[1]) as space:
            array = space.empty(1000)
            array.fill(3)
            server_process.end(signal.SIGKILL)
            server_process.start()
            space.add("w", array)
        server_process.end(signal.SIGKILL)
        server_process.start()
        group = client.get_group("g", wait=True, timeout=60)
        assert (group["w"].get() == 3).all()
        assert group.metadata == [1]


FORKS = """
import os, sys
import numpy as np
import hamr
from hamr.store import connect

client = connect(sys.argv[1]) if len(sys.argv) > 1 else connect(os.environ["SOCKET"])
space = client.build_group("g", bytes=10_000)
array = space.empty(100)
array.fill(3)
space.add("w", array)
child = os.fork()
if not child:
    for call in (lambda: space.empty(3), space.seal, space.abort):
        try:
            call()
            os._exit(1)
        except hamr.ForkError:
            pass
    del array, space
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert space.used == 1024
space.seal()
print((client.get_group("g")["w"].get() == 3).all())
"""


def test_a_forked_child_has_no_part_in_it(server):
    assert run_code(FORKS, env={**os.environ, "SOCKET": server.path}) == "True\n"


def test_another_thread_may_end_it(client):
    space = client.build_group("g", bytes=1000)
    space.add("w", space.empty(3))
    thread = threading.Thread(target=space.seal)
    thread.start()
    thread.join()
    assert "w" in client.get_group("g")
