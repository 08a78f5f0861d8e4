"""Groups: many arrays in a structure, in one object."""

import gc
import json
import pickle
import random
import signal
import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import numpy as np
import pytest

import hamr
from hamr.cli import main
from hamr.store import (
    Group,
    NameTaken,
    ObjectNotFound,
    Server,
    StoreFull,
    StoreLost,
    StoreTimeout,
    connect,
)
from tests.store import children
from tests.store.trees import same, tree
from tests.support.processes import scaled, wait_until

WEIGHTS = {
    "layer0.weight": np.arange(12, dtype="f4").reshape(3, 4),
    "layer0.bias": np.ones(3, "f2"),
    "layer1": {"weight": np.zeros((2, 0)), "steps": [np.float32(7), 3, None]},
}


def test_any_structure_comes_back(client):
    choose = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    for _ in range(scaled(200, 40)):
        given = tree(choose)
        assert same(client.get_group(client.put_group(given)).tree, given)


def test_a_group_is_one_object_whose_arrays_are_aligned(client):
    before = client.statistics()
    id = client.put_group(WEIGHTS, name="weights", evictable=True)
    after = client.statistics()
    assert (after["objects"] - before["objects"], after["names"] - before["names"]) == (1, 1)
    group = client.get_group("weights")
    assert client.statistics()["leases"] == 1
    assert (group.id, group.id) == (id, client.get_group(name="weights").id)
    arrays = list(group.values())
    assert all(each.readonly and each.ptr % 256 == 0 for each in arrays if each.nbytes)
    [info] = client.list()
    assert (info.arrays, info.dtype, info.evictable, info.names) == (4, "uint8", True, ("weights",))
    assert info.shape == (info.nbytes,)


def test_a_group_is_a_mapping_of_paths(client):
    group = client.get_group(client.put_group(WEIGHTS))
    paths = ["layer0.weight", "layer0.bias", "layer1.weight", "layer1.steps.0"]
    assert (list(group), len(group), list(dict(group))) == (paths, 4, paths)
    assert group["layer1"]["weight"] is group["layer1.weight"] is group.tree["layer1"]["weight"]
    assert group["layer1.steps"][1] == group["layer1.steps.1"] == 3
    assert group["layer1.steps.2"] is None
    assert "layer0.bias" in group
    for missing in ("layer0", "layer1.steps.3", "layer1.steps.x", "x", "", 3):
        assert missing not in group
    assert client.get_group(client.put_group([np.ones(1)]))[0][0] == 1
    assert "of 4 arrays" in repr(group)


def test_a_group_is_put_again(client):
    first = client.get_group(client.put_group({"a": WEIGHTS, "b": [np.ones(2)]}))
    second = client.get_group(client.put_group(first))
    assert same(second.tree, first.tree)
    nested = client.get_group(client.put_group([first, OrderedDict(x=np.ones(1))]))
    assert same(nested.tree, [first.tree, {"x": np.ones(1)}])


def test_some_of_a_group(client):
    id = client.put_group({**WEIGHTS, "list": [np.ones(1), {"x": np.ones(2)}, (3, np.ones(3))]})
    for only, expected in {
        ("layer0",): {"layer0.weight": WEIGHTS["layer0.weight"], "layer0.bias": np.ones(3, "f2")},
        ("layer0.bias",): {"layer0.bias": np.ones(3, "f2")},
        ("layer1.steps",): {"layer1": {"steps": WEIGHTS["layer1"]["steps"]}},
        ("list.1.x",): {"list": [None, {"x": np.ones(2)}, None]},
        ("list.2", "list.0"): {"list": [np.ones(1), None, (3, np.ones(3))]},
        ("list.2.0",): {"list": [None, None, (3, None)]},
        ("list", "list.1.x"): {"list": [np.ones(1), {"x": np.ones(2)}, (3, np.ones(3))]},
        (): {},
    }.items():
        assert same(client.get_group(id, only=list(only)).tree, expected), only
    for missing in ("layer", "layer0.", "layer2", "list.3", ""):
        with pytest.raises(ValueError, match=f"^only has '{missing}': accepted are paths"):
            client.get_group(id, only=["layer1", missing])
    for wrong in ("layer0", 3, [4]):
        with pytest.raises(TypeError, match=r"^only is "):
            client.get_group(id, only=wrong)


def test_metadata_of_a_group_and_of_its_arrays(client):
    of_arrays = {"layer0.bias": {"scale": 0.5}, "layer1.steps.0": [1, "x"]}
    id = client.put_group(WEIGHTS, metadata={"step": 7}, array_metadata=of_arrays)
    assert client.metadata(id) == client.info(id).metadata == {"step": 7}
    group = client.get_group(id)
    assert (group.metadata, group.array_metadata) == ({"step": 7}, of_arrays)
    some = client.get_group(id, only=["layer0"])
    assert some.array_metadata == {"layer0.bias": {"scale": 0.5}}
    assert client.get_group(client.put_group(WEIGHTS)).metadata is None
    with pytest.raises(ValueError, match=r"^array_metadata has 'layer0': accepted are the paths"):
        client.put_group(WEIGHTS, array_metadata={"layer0": 1})
    with pytest.raises(TypeError, match=r"^array_metadata is a list"):
        client.put_group(WEIGHTS, array_metadata=[1])
    with pytest.raises(TypeError, match=r"^array_metadata is .* accepted is what JSON has"):
        client.put_group(WEIGHTS, array_metadata={"layer0.bias": {1: 2}})
    with pytest.raises(TypeError, match=r"^metadata is "):
        client.put_group(WEIGHTS, metadata={1: 2})
    assert len(list(client.list())) == 2


def test_arrays_of_the_same_memory_are_stored_once(client):
    w = np.ones((100, 100))
    id = client.put_group({"embed": w, "head": w, "flat": w.reshape(-1), "turned": w.T})
    group = client.get_group(id)
    assert group["embed"].ptr == group["head"].ptr == group["flat"].ptr != group["turned"].ptr
    assert group["flat"].shape == (10_000,)
    assert client.info(id).nbytes < 2 * w.nbytes + 10_000


def nested(levels):
    made = np.ones(1)
    for _ in range(levels):
        made = [made]
    return made


def cyclic():
    made = {}
    made["again"] = made
    return made


@pytest.mark.parametrize(
    ("arrays", "error", "named"),
    [
        (np.ones(3), TypeError, "arrays is a ndarray: accepted is a dict, list or tuple"),
        ("abc", TypeError, "arrays is a str"),
        ({1: np.ones(1)}, TypeError, r"arrays has the key 1: accepted are texts, as '1'"),
        ({"a": [{2: 3}]}, TypeError, r"arrays\['a.0'\] has the key 2"),
        ({"a": {"\udc80": 3}}, ValueError, r"a key of arrays\['a'\] is '\\udc80'"),
        ({"a": ["\udc80"]}, ValueError, r"arrays\['a.0'\] is '\\udc80'"),
        ({"a": (1, object())}, TypeError, r"arrays\['a.1'\] is <object"),
        ({"a": {"b": 3j}}, TypeError, r"arrays\['a.b'\] is 3j"),
        ({"a": {"b": np.zeros(3, ">f4")}}, TypeError, r"arrays\['a.b'\] .* big-endian"),
        ({"a": [namedtuple("P", "x")(1)]}, TypeError, r"arrays\['a.0'\] is a P: accepted is a pl"),
        (nested(101), ValueError, "is nested more than 100 levels deep"),
        (cyclic(), ValueError, "is nested more than 100 levels deep"),
        ({"a": 10**5000}, ValueError, r"arrays\['a'\] is an integer of 16610 bits"),
    ],
)
def test_what_is_no_structure_of_arrays_is_refused_with_its_path(client, arrays, error, named):
    with pytest.raises(error, match=named):
        client.put_group(arrays, name="none")
    assert list(client.list()) == []
    assert client.statistics()["leases"] == 0


def test_a_closed_buffer_is_named(client):
    closed = hamr.zeros(3)
    closed.close()
    with pytest.raises(hamr.FreedBuffer, match=r"arrays\['a.1'\] was closed"):
        client.put_group({"a": [np.ones(1), closed]})


def test_as_deep_as_it_may_be(client):
    assert same(client.get_group(client.put_group(nested(100))).tree, nested(100))


def test_a_group_that_fails_leaves_nothing(client):
    client.put_group(WEIGHTS, name="taken")
    before = client.statistics()
    with pytest.raises(NameTaken):
        client.put_group(WEIGHTS, name="taken")
    with pytest.raises(StoreFull):
        client.put_group([np.ones(10 << 20)])
    wait_until(lambda: client.statistics()["objects"] == before["objects"])
    wait_until(lambda: client.statistics()["leases"] == before["leases"])
    assert client.statistics()["memory"]["host"]["used"] == before["memory"]["host"]["used"]


def test_what_is_no_group_is_refused(client):
    plain = client.put(np.ones(3), metadata={"hamr.group": 3}, name="plain")
    assert client.metadata(plain) == {"hamr.group": 3}
    for what in (plain, "plain"):
        with pytest.raises(ValueError, match=rf"^object {plain} is no group: get\(\) returns"):
            client.get_group(what)
    with pytest.raises(ObjectNotFound):
        client.get_group("nothing")
    with pytest.raises(ObjectNotFound):
        client.get_group("0" * 32)
    with pytest.raises(TypeError, match="accepted is one of them"):
        client.get_group(plain, name="plain")
    with pytest.raises(StoreTimeout):
        client.get_group("nothing", wait=True, timeout=0.05)
    with pytest.raises(StoreTimeout):
        client.get_group("0" * 32, wait=True, timeout=0.05)
    assert client.get_group(client.put_group({}, name="nothing")).tree == {}
    assert client.get_group("nothing", wait=True, timeout=0).tree == {}


class Twice(Mapping):
    """A mapping that has a key twice."""

    def __init__(self, *items):
        self._items = items

    def __getitem__(self, key):
        return dict(self._items)[key]

    def __iter__(self):
        return (key for key, _ in self._items)

    def __len__(self):
        return len(self._items)

    def items(self):
        return self._items


def test_a_key_that_is_there_twice(client):
    twice = Twice(("b", np.ones(3)), ("b", np.ones(4)))
    with pytest.raises(ValueError, match=r"^arrays\['a'\] has the key 'b' twice"):
        client.put_group({"a": twice})


@pytest.mark.parametrize(
    ("arrays", "path"),
    [
        ({"a": {"b": np.ones(1)}, "a.b": np.ones(2)}, "a.b"),
        ({"a.b": np.ones(1), "a": {"b": np.ones(2)}}, "a.b"),
        ([{"x": [np.ones(1)], "x.0": np.ones(1)}], "0.x.0"),
        ({"": {"": np.ones(1)}, ".": np.ones(2)}, "."),
        ({"a": {"b": np.ones(1)}, "a.b": None}, "a.b"),
        ({"a": {"b": 3}, "a.b": np.ones(1)}, "a.b"),
        ({"a": {"b": np.ones(1)}, "a.b": {"c": np.ones(1)}}, "a.b"),
        ({"a": {"b": []}, "a.b": np.ones(1)}, "a.b"),
    ],
)
def test_an_array_of_the_path_of_something_else_is_refused(client, arrays, path):
    with pytest.raises(ValueError, match=f"^arrays has the path '{path}' twice: accepted are"):
        client.put_group(arrays)
    assert client.statistics()["objects"] == 0


def test_paths_that_only_look_alike(client):
    one, other = np.ones(1), np.zeros(2)
    for arrays in (
        {"a": {"b": {"c": one}}, "a.b": {"d": other}},
        {"a": {"b": one}, "a.b.c": other},
        {"": one, ".": other},
        {"a": {"": one}, "a ": other},
        {"a": {"b": 3}, "a.b": None, "x": one},
    ):
        group = client.get_group(client.put_group(arrays))
        assert same(group.tree, arrays)
        assert all(group[path] is each for path, each in group.items())


def test_no_position_has_so_many_digits(client):
    group = client.get_group(client.put_group([np.ones(3)]))
    assert "9" * 5000 not in group


def test_ten_thousand_arrays(client):
    given = {f"layers.{i}.weight": np.full(4, i, "i4") for i in range(10_000)}
    group = client.get_group(client.put_group(given))
    assert list(group) == list(given)
    assert all(int(each[3]) == i for i, each in enumerate(group.values()))
    some = client.get_group(group.id, only=["layers.77", "layers.9999"])
    assert list(some) == ["layers.77.weight", "layers.9999.weight"]


def test_a_view_keeps_the_lease_and_is_pickled(client):
    group = client.get_group(client.put_group({"a": [np.arange(5), np.arange(6.0)]}))
    kept, id = group["a.1"], group.id
    del group
    gc.collect()
    assert client.statistics()["leases"] == 1
    assert pickle.loads(pickle.dumps(kept)).get().tolist() == [0, 1, 2, 3, 4, 5]
    client.delete(id)
    assert kept.get().tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ObjectNotFound):
        client.get_group(id)
    del kept
    gc.collect()
    wait_until(lambda: client.statistics()["memory"]["host"]["used"] == 0)


def test_a_copy_can_be_written_to(client):
    id = client.put_group({"a": np.arange(5)})
    copied = client.get_group(id, "malloc")
    copied["a"][0] = 9
    assert copied["a"].get().tolist() == [9, 1, 2, 3, 4]
    found = client.get_group(id)
    assert found["a"].get().tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        found["a"][0] = 9


def test_another_process_has_it_in_place(server_process):
    client = connect(server_process.path)
    given = {"x": np.arange(1000.0), "y": [np.ones((2, 2), "i4"), 3]}
    code = (
        "import sys, numpy as np; from hamr.store import connect\n"
        "group = connect(sys.argv[1]).get_group('g', wait=True, timeout=60)\n"
        "x = group['x']; print(float(np.asarray(x).sum()), x.readonly, group['y.1'])\n"
    )
    command = [sys.executable, "-c", code, server_process.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        client.put_group(given, name="g")
        assert reader.communicate(timeout=60)[0] == "499500.0 True 3\n"
    assert reader.returncode == 0


def test_a_group_is_spilled_and_evicted_as_others_are(tmp_path):
    given = [{"x": np.full(1 << 17, i, "u8")} for i in range(8)]  # a MiB
    path, spill = str(tmp_path / "store" / "socket"), str(tmp_path / "spill")
    with Server(path, limit="host=4MiB", spill=spill), connect(path) as client:
        ids = [client.put_group(each, metadata=i) for i, each in enumerate(given)]
        assert client.statistics()["spills"] > 0
        for i, id in enumerate(ids):
            group = client.get_group(id)
            assert same(group.tree, given[i])
            assert group.metadata == i
            del group
    with Server(path, limit="host=4MiB"), connect(path) as client:
        ids = [client.put_group(each, evictable=True) for each in given]
        assert not client.exists(ids[0])
        assert same(client.get_group(ids[-1]).tree, given[-1])


def test_groups_survive_all_that_is_killed(server_process):
    """A random walk of three clients beside a plain dictionary."""
    choose = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    clients = [connect(server_process.path) for _ in range(3)]
    given, held = {}, {}

    def step():
        client, name = choose.choice(clients), f"group {choose.randrange(20)}"
        what = choose.randrange(4)
        if name not in given:
            made = tree(choose)
            held[name] = [client.get_group(client.put_group(made))]
            client.put_name(name, held[name][0].id)
            given[name] = made
        elif what == 0:
            client.delete(held[name][0].id)
            del given[name], held[name]
        elif what == 1:
            held[name].append(client.get_group(name))
        elif what == 2 and len(held[name]) > 1:
            held[name].pop(0)
        else:
            assert same(client.get_group(name).tree, given[name])

    for _ in range(scaled(10, 3)):
        for _ in range(scaled(100, 40)):
            step()
        server_process.end(signal.SIGKILL)
        server_process.start()
        for name, expected in given.items():
            assert same(choose.choice(clients).get_group(name).tree, expected)
            assert all(same(each.tree, expected) for each in held[name])
        assert {name for info in clients[0].list() for name in info.names} == set(given)


def test_a_maker_that_is_killed_leaves_whole_groups_alone(server_process):
    client = connect(server_process.path)
    for _ in range(scaled(10, 3)):
        command = [sys.executable, "-m", children.__name__, "put_groups", server_process.path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maker:
            for _ in range(random.randrange(1, 30)):
                assert maker.stdout.readline() == "put\n"
            maker.kill()
        wait_until(lambda: client.statistics()["unsealed"] == 0)
        for info in list(client.list()):
            group = client.get_group(info.id)
            n = int(group["a"][0])
            assert (group["b.0"].get() == n).all()
            assert group["b.1"] == n
            del group
            client.delete(info.id)


def test_a_server_that_has_ended_is_told_of(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit="host=4MiB"):
        client = connect(path)
        group = client.get_group(client.put_group(WEIGHTS))
    for call in (lambda: client.put_group(WEIGHTS), lambda: client.get_group(group.id)):
        with pytest.raises(StoreLost):
            call()
    assert same(group.tree, WEIGHTS)


def test_the_command_shows_groups(client, server, capsys):
    client.put_group(WEIGHTS, name="weights")
    assert main(["store", "list", "--socket", server.path]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert " group " in line
    assert " 4 arrays " in line
    assert "weights" in line
    assert main(["store", "list", "--json", "--socket", server.path]) == 0
    assert json.loads(capsys.readouterr().out)[0]["arrays"] == 4


def test_a_group_equals_itself_alone(client):
    id = client.put_group(WEIGHTS)
    group, other = client.get_group(id), client.get_group(id)
    assert group == group
    assert group != other
    assert isinstance(group, Group)
