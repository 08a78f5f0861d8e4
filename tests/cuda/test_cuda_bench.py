"""``hamr bench`` with a device: every part runs, copies rightly, and misuses no driver."""

import gc
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

import hamr
from hamr import cli
from hamr._benchmark import copying, curves, groups, processes, registry
from hamr._benchmark.driver import Driver
from tests.cuda import driver

KIB = groups.KIB
COPIES = ["to-host", "to-cuda", "pinned", "on-device"]
SMALL = ["--quick", "--largest", "4KiB", "--rounds", "1"]


@pytest.fixture
def record(request, tmp_path):
    path = tmp_path / "figures.json"
    assert cli.main(["bench", "--only", *request.param, *SMALL, "--json", str(path)]) == 0
    return json.loads(path.read_text())


@pytest.mark.parametrize("record", [COPIES], indirect=True)
def test_copies_of_every_path(record):
    assert record["skipped"] == []
    found = {curve["path"]: curve for curve in record["curves"]}
    assert set(found) == {
        *(copying.TO_NEW, copying.TO_ARRAY, copying.TO_CUDA, copying.INTO_CUDA),
        *(copying.TO_PINNED, copying.FROM_PINNED, copying.ON_DEVICE),
    }
    for curve in found.values():
        assert curve["nbytes"] == [KIB, 4 * KIB]
        roles = [way["role"] for way in curve["ways"]]
        assert roles[0] == "hamr"
        assert roles.count("limit") == 1
        for way in curve["ways"]:
            assert "errors" not in way, way
            assert len(way["GBps"]) == len(way["us"]) == len(way["of_limit"]) == 2
    for path in (copying.TO_NEW, copying.TO_ARRAY, copying.TO_CUDA, copying.INTO_CUDA):
        assert [way["role"] for way in found[path]["ways"]].count("driver") == 1
    assert {row["met"] for row in record["targets"]} <= {True, False, None}
    assert any(row["met"] is not None for row in record["targets"])


@pytest.mark.parametrize("record", [["hand-over", "dlpack", "small-copies"]], indirect=True)
def test_small_operations(record):
    assert record["skipped"] == []
    assert [group["group"] for group in record["groups"]][-2:] == [
        "1 KiB from CUDA to NumPy",
        "1 KiB from NumPy to CUDA",
    ]
    assert not [row for group in record["groups"] for row in group["rows"] if "error" in row]


@pytest.mark.parametrize("record", [["ahead"]], indirect=True)
def test_loops_that_run_ahead_of_the_device(record):
    assert record["skipped"] == []
    (group,) = record["groups"]
    assert group["group"].startswith("a turn of a library's loop on its own stream")
    assert [row["operation"] for row in group["rows"]][:3] == [
        "driver: cuMemsetD32Async of its own memory",
        "driver: of h = b.get_cuda_accessible(), in place",
        "driver: of h = b.get_cuda_accessible(), a temporary",
    ]
    assert all(row["ratio"] > 0 for row in group["rows"])


@pytest.mark.parametrize("record", [["allocation", "compute", "peers"]], indirect=True)
def test_larger_ones_keep_to_the_largest_size(record):
    assert record["skipped"] == []
    titles = " ".join(group["group"] for group in record["groups"])
    assert "MiB" not in titles
    assert "take and give back 1 KiB, other memory of CUDA's" in titles
    assert "fill 4 KiB" in titles
    assert ("device to device, 4 KiB" in titles) is (driver.DEVICES > 1)
    names = [row["operation"] for group in record["groups"] for row in group["rows"]]
    for allocator in hamr.backends()["cuda"]["allocators"]:
        assert f"hamr.Buffer(n, 'u1', {allocator})" in names
    rows = [row for group in record["groups"] for row in group["rows"]]
    assert not [row for row in rows if "error" in row and "hamr" in row["operation"]]


@pytest.mark.parametrize("record", [["first-call", "scaling"]], indirect=True)
def test_processes_of_their_own(record):
    assert record["skipped"] == []
    (curve,) = record["curves"]
    assert curve["path"] == processes.FIRST
    assert [way["library"] for way in curve["ways"]] == ["hamr", "driver"]
    assert not [way for way in curve["ways"] if "errors" in way]
    cores = len(os.sched_getaffinity(0))
    assert [step["cores"] for step in record["scaling"]] == [
        n for n in processes.CORES if n <= cores
    ]
    for step in record["scaling"]:
        assert len(step["points"]) == 4
        for point in step["points"]:
            assert point["nbytes"] == 4 * KIB
            assert [row["role"] for row in point["rows"]] == ["hamr", "driver", "limit"]
            assert not [row for row in point["rows"] if "error" in row]


def test_a_process_that_fails_is_an_error_of_its_row(monkeypatch):
    monkeypatch.setattr(processes, "_FIRST", "raise SystemExit('wrong bytes: hamr')")
    item = processes.FirstCall(KIB, {"hamr": "h", "driver": "d"}, 1)
    rows = item.measure(lambda: None, groups.Settings())["rows"]
    assert [row["error"] for row in rows] == ["RuntimeError: wrong bytes: hamr"] * 2


def test_a_part_that_fails_leaves_the_others(monkeypatch, tmp_path):
    def failing(lib, driver):
        yield from copying.on_device(lib, driver)
        raise RuntimeError("it broke")

    monkeypatch.setattr(copying, "failing", failing, raising=False)
    broken = registry.Part("broken", "cuda", "copying:failing", "", 1.0)
    monkeypatch.setattr(registry, "PARTS", (broken, *registry.PARTS))
    path = tmp_path / "figures.json"
    command = ["bench", "--only", "broken", "on-device", *SMALL, "--json", str(path)]
    assert cli.main(command) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == ["broken: RuntimeError: it broke"]
    assert record["curves"][0]["nbytes"] == [KIB, KIB, 4 * KIB, 4 * KIB]


@pytest.mark.parametrize("make", [copying.to_host, copying.to_cuda, copying.pinned])
def test_what_copies_nothing_is_found(make):
    """Each way of hamr's and of the driver's is checked, up and down."""
    bare = Driver()
    lib = groups.Libraries(groups.Settings(1, 4 * KIB, sizes=(4 * KIB,)), load=False)
    for point in make(lib, bare):
        for way in point.ways:
            results = []
            way.run = lambda run=way.run, results=results: results.append(run()) or results[0]
            way.check(point.pattern, point.nbytes, bare.synchronize)
            way.run = lambda results=results: results[0]
            with pytest.raises(RuntimeError, match="wrong bytes: 4096 from 0 on"):
                way.check(point.pattern, point.nbytes, bare.synchronize)
        point.clear()


def test_parts_of_large_copies_are_checked(monkeypatch):
    monkeypatch.setattr(curves, "WHOLE", KIB)
    monkeypatch.setattr(curves, "PART", 16)
    bare = Driver()
    lib = groups.Libraries(groups.Settings(1, 64 * KIB, sizes=(64 * KIB,)), load=False)
    for make in (copying.to_host, copying.to_cuda, copying.pinned, copying.on_device):
        for point in make(lib, bare):
            for way in point.ways:
                way.check(point.pattern, point.nbytes, bare.synchronize)
                assert isinstance(way.take(way.run(), 5, 7), np.ndarray)
            point.clear()


def test_the_memory_goes_back(tmp_path):
    def in_use():
        gc.collect()
        return {name: facts["current"] for name, facts in hamr.stats()["allocators"].items()}

    path = tmp_path / "figures.json"
    command = ["bench", "--only", "to-host", "to-cuda", *SMALL, "--json", str(path)]
    assert cli.main(command) == 0
    before = in_use()
    assert cli.main(command) == 0
    assert in_use() == before


class Array:
    """A device array that has what the benchmark uses of CuPy's, PyTorch's and Numba's."""

    def __init__(self, count, *_, **__):
        self.memory = hamr.Buffer(count, "u1", "cuda", fill=1)
        self.memory.synchronize()
        description = dict(self.memory.__cuda_array_interface__)
        self.__cuda_array_interface__ = {**description, "stream": None}

    def get(self, out=None):
        return self.memory.get() if out is None else self.memory.get(out)

    cpu = copy_to_host = get

    def filled(self, source):
        self.memory[...] = source.memory if isinstance(source, Array) else source
        self.memory.synchronize()
        return self

    def copy_(self, source, non_blocking=False):
        return self.filled(source.array if isinstance(source, OnHost) else source)

    copy_to_device = set = filled


class OnHost:
    """PyTorch's tensor of a NumPy array."""

    def __init__(self, array):
        self.array = array

    def copy_(self, source, non_blocking=False):
        source.get(self.array)

    def cuda(self):
        return Array(len(self.array)).filled(self.array)


def stand_ins():
    lib = groups.Libraries(groups.Settings(1, 4 * KIB, sizes=(KIB, 4 * KIB)), load=False)
    new = lambda array: Array(len(array)).filled(array)  # noqa: E731
    lib.cupy = SimpleNamespace(
        ones=Array,
        asnumpy=Array.get,
        asarray=new,
        copyto=Array.filled,
        get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=int),
    )
    lib.torch = SimpleNamespace(
        ones=Array, uint8="u1", from_numpy=OnHost, cuda=SimpleNamespace(empty_cache=int)
    )
    lib.numba = SimpleNamespace(device_array=Array, to_device=new)
    return lib


@pytest.mark.parametrize(
    ("make", "each"),
    [
        (copying.to_host, 3),
        (copying.to_cuda, 3),
        (copying.pinned, 2),
        (copying.on_device, 3),
    ],
)
def test_other_libraries_take_turns_with_hamr(make, each):
    bare, lib = Driver(), stand_ins()
    measured = 0
    for point in make(lib, bare):
        rows = point.measure(bare.synchronize, lib.settings)["rows"]
        point.clear()
        peers = [row for row in rows if row["role"] == "peer"]
        assert [row["library"] for row in peers] == ["CuPy", "PyTorch", "Numba"]
        assert len(rows) - len(peers) == each
        assert not [row for row in rows if "error" in row]
        measured += 1
    assert measured in (2, 4)
