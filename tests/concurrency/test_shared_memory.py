"""Allocator.shared: memory that forked children, pools and whoever unpickles write in place."""

import copy
import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import hamr
from hamr._buffer import exported
from tests.scripts import forking
from tests.support.paths import PATHS
from tests.support.processes import run_script

SHARED = hamr.Allocator.shared


def mappings():
    gc.collect()  # what earlier tests left in circles would end meanwhile
    with open("/proc/self/maps") as file:
        return sum("memfd:hamr-shared" in line for line in file)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def in_child(work):
    assert forking.outcome(*forking.start(work), patience=60) == "done"


def test_it_is_host_memory_like_any_other():
    b = hamr.Buffer((2, 3), "f4", "shared", fill=2)
    assert b.allocator == SHARED
    assert b.device == -1
    assert b.host_accessible()
    assert b.get_host_accessible().ptr == b.ptr
    assert b.copy().allocator == SHARED
    np.asarray(b)[0, 0] = 7
    assert str(b.copy("malloc").astype("i4")) == "{{7, 2, 2},\n {2, 2, 2}}"
    b.move("malloc")
    assert b.allocator == hamr.Allocator.malloc
    assert hamr.Buffer(0, "f4", "shared").size() == 0


def test_a_childs_writes_reach_the_parent():
    b, ordinary = hamr.Buffer(1000, "f8", SHARED, fill=0), hamr.Buffer(1000, fill=0)

    def write():
        b[:500] = 1
        np.asarray(b)[500:] = 2
        ordinary[...] = 9

    in_child(write)
    assert np.asarray(b).sum() == 1500
    assert np.asarray(ordinary).sum() == 0
    b[0] = 5
    in_child(lambda: None if float(b[0]) == 5 else os.abort())


@pytest.mark.parametrize("way", ["bare", "used"])
def test_it_is_freed_once_by_its_maker(way):
    """A child gives back its own mapping, whether it has used hamr or not."""
    gc.collect()
    before = mappings(), descriptors()
    buffers = [hamr.Buffer(1000, "u1", SHARED, fill=i) for i in range(20)]
    assert mappings() == before[0] + 20

    def drop():
        if way == "used":
            buffers[3].fill(77)
        inside = mappings()
        buffers.clear()
        assert mappings() == inside - 20

    in_child(drop)
    assert [int(b[-1]) for b in buffers] == [0, 1, 2, 77 if way == "used" else 3, *range(4, 20)]
    buffers.clear()
    assert (mappings(), descriptors()) == before


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_the_same_memory(protocol):
    b = hamr.Buffer((100, 3), "i4", SHARED, fill=1)
    content = pickle.dumps(b, protocol)
    assert len(content) < 500
    loaded = pickle.loads(content)
    assert type(loaded) is hamr.Buffer
    assert (loaded.shape, loaded.dtype, loaded.allocator) == (b.shape, b.dtype, b.allocator)
    assert loaded.source_protocol is None
    loaded[5, 1] = 8
    assert int(b[5, 1]) == 8
    b[6] = 9
    assert str(loaded[6]) == "{9, 9, 9}"
    array = np.asarray(loaded)
    del loaded
    array[0, 0] = 4
    assert int(b[0, 0]) == 4


@pytest.mark.parametrize(
    "key", [slice(2, 9), slice(None, None, -2), (slice(None), 1), 3, (4, 2, ...)], ids=str
)
def test_parts_are_parts_of_the_same_memory(key):
    b = hamr.Buffer((10, 3), "f8", SHARED, data=np.arange(30.0).reshape(10, 3))
    loaded = pickle.loads(pickle.dumps(b[key], 5))
    assert (loaded.shape, loaded.strides) == (b[key].shape, b[key].strides)
    assert np.array_equal(np.asarray(loaded), np.asarray(b[key]))
    loaded.fill(-1)
    assert np.all(np.asarray(b[key]) == -1)


def test_mappings_end_with_what_uses_them():
    b = hamr.Buffer(1000, "u1", SHARED, fill=1)
    before = mappings(), descriptors()
    content = pickle.dumps(b)
    for _ in range(50):
        view = memoryview(pickle.loads(content)[10:])
        assert view[0] == 1
        view.release()
    del view
    gc.collect()
    assert (mappings(), descriptors()) == before


class Named(hamr.Buffer):
    pass


def test_empty_ones_copies_and_subclasses():
    assert pickle.loads(pickle.dumps(hamr.Buffer((0, 3), "f4", SHARED))).shape == (0, 3)
    b = hamr.Buffer(3, "f4", SHARED, fill=1)
    for copied in (copy.copy(b), copy.deepcopy(b)):
        copied[0] = 5
    assert float(b[0]) == 1
    named = Named(3, "f4", SHARED, fill=1)
    named.name = "n"
    loaded = pickle.loads(pickle.dumps(named))
    assert (type(loaded), loaded.name) == (Named, "n")
    loaded[0] = 4
    assert float(named[0]) == 4


def test_another_process_opens_it():
    b = hamr.Buffer(10, "f8", SHARED, fill=1)
    code = (
        "import pickle, sys, hamr\n"
        "b = pickle.load(sys.stdin.buffer)\n"
        "b[3] = 33\n"
        "sys.stdout.buffer.write(pickle.dumps(b))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        input=pickle.dumps(b),
        capture_output=True,
        check=False,
        env={**os.environ, **PATHS},
    )
    assert done.returncode == 0, done.stderr
    assert float(b[3]) == 33
    # What it sent back is the maker's memory: its own mapping has ended.
    back = pickle.loads(done.stdout)
    back[4] = 44
    assert float(b[4]) == 44


def test_what_is_gone_is_refused_in_words():
    b = hamr.Buffer(10, "f8", SHARED)
    content = pickle.dumps(b)
    b.close()
    loaded = pickle.loads(content)
    with pytest.raises(ValueError, match=r"shared memory is not there any more.*its maker"):
        np.asarray(loaded)
    other = hamr.Buffer(10, "f8", SHARED)  # takes the same descriptor
    loaded = pickle.loads(content)
    with pytest.raises(ValueError, match="another file"):
        loaded.fill(1)
    other.close()


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(10**9, (3,), (8,)), (-8, (3,), (8,)), (0, (11,), (8,)), (8, (10,), (8,)), (0, (2,), (-8,))],
)
def test_a_pickle_does_not_reach_beyond_its_memory(offset, shape, strides):
    b = hamr.Buffer(10, "f8", SHARED, fill=1)
    handle, allocator, device, _, dtype, *_ = exported.place_of(b)
    before = mappings()
    place = handle, allocator, device
    lost = exported.opened(hamr.Buffer, *place, offset, dtype, shape, strides, False)
    with pytest.raises(ValueError, match=r"accepted|before their memory"):
        np.asarray(lost)
    assert mappings() == before
    whole = exported.opened(hamr.Buffer, *place, 8, dtype, (9,), (8,), False)
    assert np.asarray(whole).sum() == 9


def test_memory_that_only_says_so_is_not_exported():
    array = np.zeros(3)
    b = hamr.Buffer.from_pointer(array.ctypes.data, 3, "f8", "shared", owner=array)
    with pytest.raises(ValueError, match="is not of allocator shared"):
        pickle.dumps(b)


def test_what_is_too_large_is_out_of_memory():
    with pytest.raises(hamr.OutOfMemory, match="from allocator shared"):
        hamr.Buffer(1 << 50, "u1", SHARED)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_fills_one_buffer(method):
    run_script("shared_pools", method)
