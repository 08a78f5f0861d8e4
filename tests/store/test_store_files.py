"""load_group: the arrays of safetensors files as one group."""

import json
import os
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import hamr
from hamr.store import StoreFull, files
from tests.store.trees import same

WEIGHTS = {
    "layers.0.weight": np.arange(12, dtype="f4").reshape(3, 4),
    "layers.0.bias": np.arange(3, dtype="f2"),
    "layers.10.bias": np.zeros((0, 5), "u1"),
    "steps": np.array(7),
    "mask": np.array([True, False, True]),
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.safetensors"
    save_file(WEIGHTS, file, {"format": "np"})
    return file


def there(group, given):
    """Whether a group has what was given, in any order."""
    return sorted(group.tree) == sorted(given) and same(
        group.tree, {n: given[n] for n in group.tree}
    )


def raw(file, header, data=b""):
    """A file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return file


def test_a_file_is_a_group_of_its_arrays(client, path):
    id = client.load_group(path, name="model", evictable=True)
    group = client.get_group("model")
    assert (group.id, group.metadata, client.info(id).evictable) == (id, {"format": "np"}, True)
    assert there(group, WEIGHTS)
    assert all(each.readonly for each in group.values())
    assert client.get_group(client.load_group(str(path), metadata=[1])).metadata == [1]
    assert client.statistics()["leases"] == 1  # group's


def test_random_files(client, tmp_path):
    choose = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    kinds = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8"]
    for _ in range(20):
        count = choose.choice((0, 1, 7, 60))
        shapes = [
            [choose.choice((0, 1, 2, 5)) for _ in range(choose.randrange(4))] for _ in range(count)
        ]
        given = {
            f"{choose.choice('abc')}.{i}": np.frombuffer(
                choose.randbytes(max(1, int(np.prod(shape))) * 16), "u1"
            )
            .astype(choose.choice(kinds))[: int(np.prod(shape))]
            .reshape(shape)
            for i, shape in enumerate(shapes)
        }
        save_file(given, tmp_path / "some.safetensors")
        got = client.get_group(client.load_group(tmp_path / "some.safetensors"))
        assert there(got, given)
        assert got.metadata is None


def test_each_type_has_its_equivalent(client, tmp_path):
    for kind, name in files.TYPES.items():
        size = hamr.zeros(1, name).itemsize
        data = bytes(range(1, 3 * size + 1)) if kind != "BOOL" else b"\1\0\1"
        file = raw(
            tmp_path / "x",
            {"a": {"dtype": kind, "shape": [3], "data_offsets": [0, len(data)]}},
            data,
        )
        [array] = client.get_group(client.load_group(file)).values()
        assert (str(array.dtype), array.shape) == (name, (3,))
        assert array.view("u1").get().tobytes() == data


def test_arrays_need_not_be_aligned(client, tmp_path):
    header = {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    header["b"] = {"dtype": "F64", "shape": [2], "data_offsets": [1, 17]}
    data = b"x" + np.array([1.5, -2]).tobytes()
    group = client.get_group(client.load_group(raw(tmp_path / "x", header, data)))
    assert group["b"].get().tolist() == [1.5, -2]


def test_some_of_a_file(client, path):
    def names(*only):
        return sorted(client.get_group(client.load_group(path, only=only)))

    assert names("layers.0") == ["layers.0.bias", "layers.0.weight"]
    assert names("layers", "steps") == [*sorted(n for n in WEIGHTS if n[0] == "l"), "steps"]
    assert names() == []
    with pytest.raises(ValueError, match=r"only has 'layers\.1': accepted are names"):
        client.load_group(path, only=["layers.1"])
    with pytest.raises(TypeError, match="only is 'steps'"):
        client.load_group(path, only="steps")


def shards(folder, index=True, **files):
    for name, arrays in files.items():
        save_file(arrays, folder / f"{name}.safetensors", {"format": "pt", "part": name})
    if index:
        of = {n: f"{name}.safetensors" for name, arrays in files.items() for n in arrays}
        told = {"metadata": {"total_size": 1}, "weight_map": of}
        (folder / "model.safetensors.index.json").write_text(json.dumps(told))
    return folder


@pytest.mark.parametrize("index", [False, True])
def test_a_folder_of_files(client, tmp_path, index):
    one, two = {"a": np.arange(3), "b": np.ones(2)}, {"c": np.zeros((2, 2), "f4")}
    shards(tmp_path, index, one=one, two=two)
    if index:  # what it does not name does not count
        save_file({"a": np.zeros(9)}, tmp_path / "older.safetensors")
    group = client.get_group(client.load_group(tmp_path))
    assert there(group, one | two)
    assert group.metadata == {"format": "pt"}


def test_folders_that_are_wrong(client, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file whose name ends with \.safetensors"):
        client.load_group(tmp_path)
    arrays = {"a": np.arange(3)}
    shards(tmp_path, False, one=arrays, two=arrays)
    with pytest.raises(ValueError, match=r"two.safetensors has 'a', as .*one.safetensors has"):
        client.load_group(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    for told, message in {
        '{"weight_map": {"b": "one.safetensors"}}': "has no 'b', which the folder's index",
        '{"weight_map": {"a": "../one.safetensors"}}': "it names files of other folders",
        '{"weight_map": {"a": ""}}': "it names files of other folders",
        '{"weight_map": {"a": ".."}}': "it names files of other folders",
        '{"weight_map": {"a": "\\u0000"}}': "is no index of safetensors files",
        '{"weight_map": {"a": "\\ud800"}}': "is no index of safetensors files",
        '{"weight_map": 7}': "is no index of safetensors files",
        '{"weight_map": {"a": 7}}': "is no index of safetensors files",
        "[": "is no index of safetensors files",
        "[]": "is no index of safetensors files",
    }.items():
        index.write_text(told)
        with pytest.raises(ValueError, match=message):
            client.load_group(tmp_path)
    index.write_text('{"weight_map": {"a": "three.safetensors"}}')
    with pytest.raises(FileNotFoundError, match="three"):
        client.load_group(tmp_path)
    (tmp_path / "b.safetensors.index.json").write_text("{}")
    with pytest.raises(ValueError, match="has the indices b"):
        client.load_group(tmp_path)
    assert client.statistics()["objects"] == 0


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        (b"{", b"", "is no safetensors file"),
        (
            {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
            b"1234567",
            "is no safetensors file",
        ),
        (
            {"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}},
            b"12",
            "'a' of type F4: accepted are BOOL",
        ),
        (
            {"a": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}},
            b"",
            "hamr cannot have",
        ),
        (
            {"a": {"dtype": "F32", "shape": [0] * 99, "data_offsets": [0, 0]}},
            b"",
            "hamr cannot have",
        ),
        ({"a": ["F32", [2], [0, 8]]}, bytes(8), "is no safetensors file: it has 'a' as"),
    ],
)
def test_files_that_are_wrong(client, tmp_path, header, data, message):
    with pytest.raises(ValueError, match=message) as raised:
        client.load_group(raw(tmp_path / "some.safetensors", header, data))
    assert "some.safetensors" in str(raised.value)
    assert client.statistics()["objects"] == 0


def test_metadata_that_are_null(client, tmp_path):
    header = {"__metadata__": None, "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}
    group = client.get_group(client.load_group(raw(tmp_path / "file", header, b"12")))
    assert group.metadata is None
    assert group["a"].get().tolist() == [49, 50]


@pytest.mark.parametrize("size", [40_000, 60_000, 5_000_000])
def test_metadata_that_are_too_much_for_the_server(client, tmp_path, size):
    save_file(WEIGHTS, tmp_path / "model.safetensors", {"notes": "x" * size})
    for path in (tmp_path, tmp_path / "model.safetensors"):
        told = f"metadata of {path} is {size // 1000}[0-9]{{3}} bytes: accepted is at most 32768"
        with pytest.raises(ValueError, match=rf"^{told}.*; metadata={{}} leaves them out$"):
            client.load_group(path)
    assert client.statistics()["objects"] == 0
    with pytest.raises(ValueError, match=r"^metadata is \d+ bytes: accepted is at most 32768"):
        client.load_group(path, metadata={"x": "y" * size})
    assert there(client.get_group(client.load_group(path, metadata={})), WEIGHTS)


def test_more_files_than_may_be_open(server, tmp_path):
    code = """
import resource, sys
import hamr.store
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
with hamr.store.connect(sys.argv[1]) as client:
    group = client.get_group(client.load_group(sys.argv[2]))
    print(len(group), group["a149"].get().tolist())
"""
    for i in range(150):
        save_file({f"a{i}": np.full(3, i, "u1")}, tmp_path / f"{i}.safetensors")
    command = [sys.executable, "-c", code, server.path, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("150 [149, 149, 149]\n", "")


@pytest.mark.parametrize("name", ["file", "one.safetensors", "x.safetensors.index.json"])
def test_nobody_is_waited_for_at_a_pipe(client, tmp_path, name):
    os.mkfifo(tmp_path / name)
    where = tmp_path / name if name == "file" else tmp_path
    with pytest.raises(ValueError, match=f"{name} is a pipe or a device: accepted is a file"):
        client.load_group(where)


def test_many_are_asked_for(client, tmp_path):
    names = [f"layers.{i}.weight" for i in range(20_000)]
    whole = {n: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in names}
    id = client.load_group(raw(tmp_path / "file", whole), only=names)
    assert list(client.get_group(id, only=names[::2])) == names[::2]


def test_paths_and_options_that_are_wrong(client, tmp_path, path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        client.load_group(tmp_path / "none")
    for wrong in (7, b"x", None):
        with pytest.raises(TypeError, match="path is"):
            client.load_group(wrong)
    with pytest.raises(TypeError, match="progress is"):
        client.load_group(path, progress="yes")
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="is no safetensors file"):
        client.load_group(tmp_path / "empty")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match="pip install safetensors"):
        client.load_group(path)


def test_without_room_nothing_is_left(client, tmp_path):
    save_file({"a": np.zeros(1 << 30, "u1")}, tmp_path / "large.safetensors")
    before = client.statistics()
    with pytest.raises(StoreFull):
        client.load_group(tmp_path / "large.safetensors", name="large")
    assert client.statistics()["objects"] == before["objects"]


class Bar:
    """What stands for tqdm."""

    made: list["Bar"] = []

    def __init__(self, **told):
        self.told, self.steps, self.ended = told, [], False
        Bar.made.append(self)

    def update(self, step):
        self.steps.append(step)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.ended = True


def test_progress(client, path, monkeypatch):
    monkeypatch.setattr("hamr.store.group_plan.SHARE", 10)
    monkeypatch.setitem(sys.modules, "tqdm", module := type(sys)("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    module.tqdm = Bar
    client.load_group(path, progress=True)
    [bar] = Bar.made
    assert bar.ended
    assert len(bar.steps) > 1
    assert sum(bar.steps) == bar.told["total"] >= sum(each.nbytes for each in WEIGHTS.values())
    module.__dict__.pop("tqdm")  # as if it were not installed
    assert there(client.get_group(client.load_group(path, progress=True)), WEIGHTS)
