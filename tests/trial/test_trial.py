"""A runtime that C and Python know of by its rows of facts alone: HAMR_TEST_TRIAL=1, and a build
with the tag trial. Its device does nothing until somebody waits, and ends the process of who
looks at memory that is not mapped."""

import asyncio
import copy
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import hamr
from hamr._tuning import copies, running, settings

A = hamr.Allocator
NAMES = ["trial", "trial_svm"]


def violations():
    return {device["violations"] for device in hamr.backends()["trial"]["devices"]}


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    before = hamr.stats()["allocators"]
    yield
    gc.collect()
    assert violations() == {"[]"}
    after = hamr.stats()["allocators"]
    for name in NAMES:
        live = before.get(name, {"live": 0})["live"]
        assert after.get(name, {"live": 0})["live"] == live, name


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=[0, 1])
def device(request):
    return request.param


def ramp(*shape, dtype="float64"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def on_trial(values, name="trial", device=0):
    return hamr.buffer(values).copy(name, device=device)


def test_it_is_there():
    assert [A[name].name for name in NAMES] == NAMES
    found = hamr.backends()["trial"]
    assert found["available"]
    assert found["allocators"] == NAMES
    assert [device["name"] for device in found["devices"]] == ["Trial device 0", "Trial device 1"]


def test_create_and_fill(name, device):
    b = hamr.Buffer((3, 4), "int32", name, fill=7, device=device)
    assert (b.allocator, b.owner, b.shape) == (A[name], device, (3, 4))
    np.testing.assert_array_equal(np.asarray(b.get_host_accessible()), np.full((3, 4), 7))
    b.fill(-1)
    np.testing.assert_array_equal(np.asarray(b.get_host_accessible()), np.full((3, 4), -1))
    assert str(hamr.Buffer(2, "f8", name, fill=0.5, device=device)) == "{0.5, 0.5}"


@pytest.mark.parametrize("count", [1, 10, 100_000])
def test_a_handle_maps_the_memory(name, device, count):
    b = on_trial(ramp(count), name, device)
    h = b.get_host_accessible()
    assert not h.is_temporary
    assert (h.allocator, h.owner) == (A[name], device)
    seen = np.asarray(h)
    np.testing.assert_array_equal(seen, ramp(count))
    seen[0] = -5
    del h
    again = np.asarray(b.get_host_accessible())
    assert again[0] == -5
    assert np.shares_memory(again, seen), "it is mapped once"
    del again, seen
    assert b.get(np.empty(count))[0] == -5, "the device has what the host has written"


def test_what_is_done_while_it_is_mapped(name):
    b, other = on_trial(ramp(6), name), on_trial(ramp(6) * 10, name)
    seen = np.asarray(b.get_host_accessible())
    b.fill(3)
    assert seen.tolist() == [3] * 6
    b[::2] = other[::2]
    assert seen.tolist() == [10, 3, 30, 3, 50, 3]
    seen[1] = 4
    other[...] = b
    assert other.get(np.empty(6)).tolist() == [10, 4, 30, 3, 50, 3]
    assert b.copy("malloc").get(np.empty(6)).tolist() == [10, 4, 30, 3, 50, 3]
    b.append(1)
    b.fill(0)
    assert seen.tolist() == [10, 4, 30, 3, 50, 3], "growth has left it"
    assert str(b) == "{0, 0, 0, 0, 0, 0, 0}"
    b.close()
    other.close()
    assert seen[0] == 10


def test_handles_share_elements_as_buffers_do(name):
    b = on_trial(ramp(4), name)
    h = b.get_host_accessible()
    shared = hamr.buffer(h)
    shared.fill(2)
    assert b.get(np.empty(4)).tolist() == [2] * 4
    b[0] = 9
    assert np.asarray(h)[0] == 9
    b.set(shared, at=1, start=0, n=3)  # they overlap
    assert np.asarray(h).tolist() == [9, 9, 2, 2]
    np.from_dlpack(h)[3] = 8
    assert memoryview(h).tolist() == [9, 9, 2, 8]
    assert str(shared) == "{9, 9, 2, 8}"


def test_elements_are_lent_where_they_are_mapped(name, device):
    b = on_trial(ramp(6), name, device)
    view = b[::2]
    with view.on_host("rw") as array:
        array += 10
        hamr.buffer(array)[0] = -1
        with pytest.raises(hamr.InUse):
            b.fill(0)
        with pytest.raises(hamr.InUse):
            b.on_host("r").__enter__()
    assert b.get(np.empty(6)).tolist() == [-1, 2, 13, 4, 15, 6]
    del array
    with b.on_host("w") as array:
        array[...] = 7
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    del array
    assert b.get(np.empty(6)).tolist() == [7] * 6


def test_to_and_from_the_host(name, device):
    values = ramp(5, 4)
    b = hamr.buffer(values)
    b.move(name, device=device)
    assert (b.allocator, b.owner) == (A[name], device)
    out = np.empty((5, 4))
    b.get(out)
    np.testing.assert_array_equal(out, values)
    b.move("malloc")
    np.testing.assert_array_equal(np.asarray(b), values)


def test_between_devices_and_allocators():
    values = ramp(1000)
    b = on_trial(values)
    for place in ["trial:1", "trial_svm:1", "trial_svm:0", "cpp:-1", "trial:0"]:
        name, device = place.split(":")
        b = b.copy(name, device=int(device))
    np.testing.assert_array_equal(np.asarray(b.get_host_accessible()), values)


INDICES = [np.s_[1:3], np.s_[::2, 1], np.s_[::-1, ::3], np.s_[2], np.s_[..., -1]]


@pytest.mark.parametrize("index", INDICES)
def test_slices(name, index):
    values = ramp(4, 6)
    b = on_trial(values, name)
    part = b[index]
    np.testing.assert_array_equal(np.asarray(part.get_host_accessible()), values[index])
    converted = part.astype("int16").get(np.empty(part.shape, "i2"))
    np.testing.assert_array_equal(converted, values[index])
    part.fill(0)
    values[index] = 0
    np.testing.assert_array_equal(b.get(np.empty((4, 6))), values)


def test_growth_and_types(name):
    b = hamr.Buffer(0, "int16", name)
    for i in range(20):
        b.append([i, i + 0.5])
    assert b.get(np.empty(40, "i2")).tolist() == [i // 2 for i in range(40)]
    b.resize(42, -3)
    b.assign(b.astype("float32"))
    assert b.get(np.empty(42, "i2")).tolist()[-3:] == [19, -3, -3]
    assert b.reshape(6, 7)[5].get(np.empty(7, "i2")).tolist()[-1] == -3


def test_the_host_does_not_reach_it_without_a_handle(name):
    b = on_trial(ramp(3), name)
    assert not b.host_accessible()
    assert not hasattr(b, "__array_interface__")
    assert not hasattr(b, "__cuda_array_interface__")
    with pytest.raises(BufferError, match="get_host_accessible"):
        memoryview(b)
    with pytest.raises(TypeError, match=f"the host does not reach {name} memory"):
        np.asarray(b)
    with pytest.raises(BufferError, match=f"no device for memory of allocator {name}"):
        b.__dlpack__()


def test_errors(name):
    with pytest.raises(hamr.OutOfMemory, match=name):
        hamr.Buffer(1 << 40, "u1", name)
    with pytest.raises(ValueError, match="device is 2"):
        hamr.Buffer(1, "u1", name, device=2)
    b = on_trial(ramp(3), name)
    with pytest.raises(hamr.BackendUnavailable):
        b.get_cuda_accessible()
    with pytest.raises(hamr.BackendUnavailable):
        b.get_hip_accessible()
    with pytest.raises(IndexError):
        b[3]
    with pytest.raises(ValueError, match="300"):
        on_trial(np.zeros(2, "i1"), name).fill(300)
    b.close()
    with pytest.raises(hamr.FreedBuffer):
        b.fill(1)


def test_statistics(name):
    before = hamr.stats()["allocators"].get(name, {"live": 0, "current": 0, "made": 0})
    b = hamr.Buffer(100, "f8", name)
    h = b.get_host_accessible()
    now = hamr.stats()["allocators"][name]
    assert now["live"] == before["live"] + 1, "what is mapped is not counted again"
    assert now["current"] == before["current"] + 800
    assert now["made"] == before["made"] + 1
    del b
    gc.collect()
    assert hamr.stats()["allocators"][name]["live"] == now["live"], "the handle keeps it"
    del h
    gc.collect()
    assert hamr.stats()["allocators"][name]["live"] == before["live"]


def test_waiting(name):
    b = hamr.Buffer(1000, "f8", name, fill=4, transfer="async")
    b.synchronize()
    b.fill(5)

    async def ready():
        await b.ready()
        return b.get(np.empty(1000))[-1]

    assert asyncio.run(ready()) == 5


def test_copies_are_staged(device):
    """By the engine that CUDA's are staged by, which hamr tune and hamr info know of, too."""
    made = copies.Copies("trial", device, "trial", 1 << 20)
    try:
        made.prepare(2)
        assert all(made.seconds(way, 1 << 19, n) > 0 for way in ("up", "down") for n in (0, 2))
        report = settings.report_of("trial", device)
    finally:
        made.close()
    assert report["driver"] == ("1.0", "")
    assert report["threads_up"][1] == "measuring"
    assert {t.backend for t in running.targets()} >= {"trial"}
    hamr.trim()
    assert settings.report_of("trial", device)["pinned_held"] == ("0", "")


def test_pickle_and_copies(name, device):
    b = on_trial(ramp(7), name, device)
    for other in (pickle.loads(pickle.dumps(b, 5)), copy.copy(b), copy.deepcopy(b)):
        assert (other.allocator, other.owner) == (A[name], device)
        assert other.get(np.empty(7)).tolist() == ramp(7).tolist()
    buffers = []
    text = pickle.dumps(b, 5, buffer_callback=buffers.append)
    assert pickle.loads(text, buffers=buffers).get(np.empty(7)).tolist() == ramp(7).tolist()


def test_threads(name):
    b = on_trial(np.zeros(8), name)
    failed = []

    def work(i):
        try:
            for turn in range(50):
                value = i * 100 + turn
                b[i] = value
                seen = np.asarray(b.get_host_accessible())
                assert seen[i] == value
                seen[i] += 0.5
                del seen
                assert b.get(np.empty(8))[i] == value + 0.5
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


FORKS = """
import os, sys, warnings
import numpy as np
import hamr
from hamr._tuning import copies, running, settings
warnings.simplefilter("ignore")
b = hamr.Buffer(4, "f8", {name!r}, fill=1)
h = b.get_host_accessible()
seen = np.asarray(h)
child = os.fork()
if not child:
    for use in ("b.fill(2)", "h.get_host_accessible()", "memoryview(h)", "b.copy('malloc')"):
        try:
            eval(use)
        except (hamr.ForkError, BufferError):
            continue
        os._exit(1)
    del b, h, seen
    assert hamr.Buffer(3, "f8", "malloc", fill=2).get(np.empty(3))[0] == 2
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert seen[0] == 1
"""


def test_fork(name):
    run = [sys.executable, "-c", FORKS.format(name=name)]
    assert subprocess.run(run, timeout=60, check=False).returncode == 0


LOOKS = """
import ctypes, sys
import numpy as np
import hamr
from hamr._tuning import copies, running, settings
b = hamr.Buffer(4, "f8", {name!r}, fill=1)
at = np.asarray(b.get_host_accessible()).ctypes.data if {mapped} else b.ptr
print("here", flush=True)
ctypes.string_at(at, 8)
"""


@pytest.mark.parametrize("mapped", [True, False])
def test_who_looks_at_memory_that_is_not_mapped_ends(name, mapped):
    """That is what makes the other tests tell something."""
    run = [sys.executable, "-c", LOOKS.format(name=name, mapped=mapped)]
    done = subprocess.run(run, timeout=60, check=False, capture_output=True, text=True)
    assert done.stdout == "here\n"
    assert done.returncode < 0


def test_memory_that_somebody_else_took(name, device):
    b = on_trial(ramp(6), name, device)
    part = hamr.Buffer.from_pointer(b.ptr + 16, (3,), "f8", allocator=name, device=device, owner=b)
    assert (part.allocator, part.owner) == (A[name], device)
    part.fill(0)
    np.asarray(part.get_host_accessible())[1] = 5
    assert b.get(np.empty(6)).tolist() == [1, 2, 0, 5, 0, 6]
    with pytest.raises(ValueError, match="inside the allocation"):
        hamr.Buffer.from_pointer(b.ptr + 16, (5,), "f8", allocator=name, owner=b)
    with pytest.raises(ValueError, match="no runtime on this machine knows"):
        hamr.Buffer.from_pointer(64, (3,), "f8", allocator=name, owner=b)
