"""Memory that is paused: its addresses stay, the device has it back, and nothing uses it."""

from __future__ import annotations

import gc
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver
from tests.support.contents import on_host
from tests.support.processes import run_code, scaled

MIB = 1 << 20
KEEPS = ("nothing", "host", "disk")


@pytest.fixture
def name(request):
    return request.node.name


def made(name: str, count: int = 1000, value: float = 1, **options) -> hamr.Buffer:
    with hamr.pausable(name):
        return hamr.Buffer(count, "f4", "cuda_vmm", fill=value, **options)


def free(device: int = 0) -> int:
    """Bytes. On a real device other tests change them, and tests/gpu/test_gpu_pausing.py looks."""
    return hamr.memory_info(device).free


@pytest.mark.parametrize("keep", KEEPS)
def test_memory_goes_and_comes_back_where_it_was(name, keep, device):
    buffer = made(name, MIB, 3, device=device)
    buffer.synchronize()
    place, before = buffer.ptr, free(device)
    for value in range(4, 7):
        hamr.pause(name, keep=keep)
        assert not driver.emulator or free(device) - before >= 4 * MIB
        assert buffer.ptr == place
        hamr.resume(name)
        assert buffer.ptr == place
        if keep != "nothing":
            assert (on_host(buffer) == value - 1).all()
        buffer.fill(value)
        assert (on_host(buffer) == value).all()


def test_wrong_arguments(name):
    with pytest.raises(ValueError, match="no such name"):
        hamr.pause("no such name", keep="host")
    with pytest.raises(ValueError, match="no such name"):
        hamr.resume("no such name")
    made(name)
    with pytest.raises(ValueError, match="keep is 'all'"):
        hamr.pause(name, keep="all")
    with pytest.raises(TypeError):
        hamr.pause(name)
    with pytest.raises(ValueError, match="folder"):
        hamr.pause(name, keep="host", folder="/tmp")
    with pytest.raises(TypeError, match="name is 3"):
        hamr.pausable(3)
    with pytest.raises(ValueError, match="name"):
        hamr.pausable("")
    with pytest.raises(ValueError, match="/none/at/all"):
        hamr.pause(name, keep="disk", folder="/none/at/all")


def test_a_disk_without_room_leaves_all_as_it_was():
    code = """if True:
        import resource
        import hamr
        with hamr.pausable("kv"):
            b = hamr.Buffer(1 << 20, "f4", "cuda_vmm", fill=3)
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most[1]))
        try:
            hamr.pause("kv", keep="disk")
        except ValueError as error:
            assert "4194304 bytes of" in str(error), error
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        assert b[-1].item() == 3
        hamr.pause("kv", keep="disk")
        hamr.resume("kv")
        print(b[-1].item())
    """
    assert run_code(code).strip().endswith("3.0")


def test_twice_is_once(name):
    buffer = made(name, value=4)
    hamr.resume(name)
    hamr.pause(name, keep="host")
    hamr.pause(name, keep="host")
    with pytest.raises(ValueError, match="keeps host"):
        hamr.pause(name, keep="nothing")
    hamr.resume(name)
    hamr.resume(name)
    assert (on_host(buffer) == 4).all()


def test_blocks_within_blocks(name):
    inner = name + " inner"
    with hamr.pausable(name) as outer:
        first = hamr.Buffer(10, "f4", "cuda_vmm", fill=1)
        with hamr.pausable(inner), outer:
            fourth = hamr.Buffer(10, "f4", "cuda_vmm", fill=1)
        with hamr.pausable(inner):
            second = hamr.Buffer(10, "f4", "cuda_vmm", fill=2)
        third = hamr.Buffer(10, "f4", "cuda_vmm", fill=3)
    outside = hamr.Buffer(10, "f4", "cuda_vmm", fill=4)
    hamr.pause(name, keep="host")
    assert on_host(second)[0] == 2
    assert on_host(outside)[0] == 4
    for buffer in (first, third, fourth):
        with pytest.raises(hamr.PausedMemory):
            on_host(buffer)
    hamr.pause(inner, keep="host")
    hamr.resume(name)
    assert on_host(third)[0] == 3
    hamr.resume(inner)
    assert on_host(second)[0] == 2


def test_a_block_is_one_threads(name):
    made_there = []
    with hamr.pausable(name):
        thread = threading.Thread(
            target=lambda: made_there.append(hamr.Buffer(10, "f4", "cuda_vmm", fill=1))
        )
        thread.start()
        thread.join()
    made(name)
    hamr.pause(name, keep="nothing")
    assert on_host(made_there[0])[0] == 1
    hamr.resume(name)


def test_no_new_memory_while_paused(name):
    buffer = made(name)
    hamr.pause(name, keep="host")
    with pytest.raises(hamr.PausedMemory):
        made(name)
    hamr.resume(name)
    assert (on_host(made(name, value=2)) == 2).all()
    assert (on_host(buffer) == 1).all()


def test_memory_that_is_freed_while_paused(name):
    before = free()
    buffers = [made(name, MIB) for _ in range(4)]
    hamr.pause(name, keep="host")
    del buffers[::2]
    gc.collect()
    hamr.resume(name)
    assert all((on_host(b) == 1).all() for b in buffers)
    del buffers
    gc.collect()
    hamr.trim()
    assert not driver.emulator or free() >= before
    assert name not in hamr.pausable_memory()


@pytest.mark.multigpu
def test_several_devices_under_one_name(name):
    buffers = [made(name, MIB, i, device=i) for i in range(2)]
    assert hamr.pausable_memory()[name]["bytes"] == {0: 4 * MIB, 1: 4 * MIB}
    before = [free(i) for i in range(2)]
    hamr.pause(name, keep="host")
    known = hamr.pausable_memory()[name]
    assert known == {
        "bytes": {0: 4 * MIB, 1: 4 * MIB},
        "paused": True,
        "keep": "host",
        "locked": 8 * MIB,
    }
    assert not driver.emulator or all(free(i) - before[i] >= 4 * MIB for i in range(2))
    hamr.resume(name)
    assert [int(on_host(b)[-1]) for b in buffers] == [0, 1]


def test_statistics_and_limits_do_not_count_what_is_paused(name):
    def current() -> int:
        return hamr.stats()["allocators"]["cuda_vmm"]["current"]

    before = current()
    buffer = made(name, MIB)
    hamr.set_limit(library="hamr", bytes=12 * MIB, device=0)
    try:
        hamr.pause(name, keep="host")
        assert current() == before
        other = hamr.Buffer(10 * MIB, "u1", "cuda_vmm", fill=1)
        with pytest.raises(hamr.OutOfMemory, match="limit"):
            hamr.resume(name)
        with pytest.raises(hamr.PausedMemory):
            on_host(buffer)
        del other
        hamr.resume(name)
        assert current() == before + 4 * MIB
        with pytest.raises(hamr.OutOfMemory, match="limit"):
            hamr.Buffer(10 * MIB, "u1", "cuda_vmm", fill=1)
    finally:
        hamr.set_limit(library="hamr", bytes=None, device=0)
    assert (on_host(buffer) == 1).all()


def test_growth_stays_with_its_name(name):
    buffer = made(name, MIB // 4, 2)
    buffer.resize(MIB, 3)
    hamr.pause(name, keep="host")
    assert hamr.pausable_memory()[name]["bytes"][0] == 4 * MIB
    hamr.resume(name)
    values = on_host(buffer)
    assert values[0] == 2
    assert values[-1] == 3


def test_work_that_goes_on_is_waited_for(name, emulator):
    buffer, stream = made(name), driver.Stream()
    buffer.synchronize()
    driver.write_late(stream, buffer.ptr, 1000, 7)
    hamr.pause(name, keep="host")
    hamr.resume(name)
    assert (on_host(buffer) == 7).all()


def test_threads_that_work_meanwhile(name):
    buffers = [made(name, 1000, i) for i in range(3)]
    over, wrong = threading.Event(), []

    def work(buffer: hamr.Buffer, value: int) -> None:
        while not over.is_set():
            try:
                buffer.fill(value)
                if not (on_host(buffer) == value).all():
                    wrong.append(value)
            except hamr.PausedMemory:
                pass

    threads = [threading.Thread(target=work, args=(b, i)) for i, b in enumerate(buffers)]
    for thread in threads:
        thread.start()
    for _ in range(scaled(200, 20)):
        hamr.pause(name, keep="host")
        hamr.resume(name)
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kernels_while_others_pause(name):
    """A kernel is refused, or runs before the memory goes: the emulator would note any other."""
    module = pygpu.Module(Path(__file__).with_name("user_kernels.ptx"))
    saxpy, x, y = module.function("saxpy"), made(name, 1000, 2), made(name, 1000, 0)
    over, launched, refused = threading.Event(), [], []

    def launch() -> None:
        while not over.is_set():
            try:
                saxpy(np.uint32(1000), np.float32(3), x, y, grid=8, block=128)
                launched.append(1)
            except hamr.PausedMemory:
                refused.append(1)

    threads = [threading.Thread(target=launch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(scaled(200, 20)):
        hamr.pause(name, keep="host")
        hamr.resume(name)
    over.set()
    for thread in threads:
        thread.join()
    hamr.pause(name, keep="host")
    with pytest.raises(hamr.PausedMemory):
        saxpy(np.uint32(1000), np.float32(3), x, y, grid=8, block=128)
    hamr.resume(name)
    assert launched
    assert (on_host(x) == 2).all()


def test_memory_that_is_checked():
    """What the check has written around elements, and over freed memory, is not lost."""
    code = """if True:
        import warnings
        import hamr
        warnings.simplefilter("error", hamr.MemoryMisuse)
        with hamr.pausable("kv"):
            buffers = [hamr.Buffer(1000, "f4", "cuda_vmm", fill=1) for _ in range(4)]
        del buffers[0]
        hamr.pause("kv", keep="nothing")
        del buffers[0]
        hamr.resume("kv")
        buffers[0].fill(2)
        assert hamr.check_memory() == []
        print("clean")
    """
    assert run_code(code, env={"HAMR_CHECK": "1"}).strip().endswith("clean")


def test_a_process_that_ends_while_paused():
    code = """if True:
        import hamr
        with hamr.pausable("kv"):
            b = hamr.Buffer(1000, "f4", "cuda_vmm", fill=1)
        hamr.pause("kv", keep="disk")
        print("ends")
    """
    assert run_code(code).strip().endswith("ends")


@pytest.mark.parametrize("fork", [os.fork])
def test_a_child_that_is_forked_while_paused(name, fork):
    buffer = made(name, value=5)
    hamr.pause(name, keep="host")
    child = fork()
    if child == 0:
        os._exit(0 if buffer.nbytes == 4000 else 1)
    assert os.waitpid(child, 0)[1] == 0
    hamr.resume(name)
    assert (on_host(buffer) == 5).all()


def test_a_callback_may_pause(name):
    """What runs out of memory may have others paused meanwhile."""
    buffer = made(name, MIB)
    paused = []

    def make_room(_device: int, _size: int) -> bool:
        hamr.pause(name, keep="host")
        paused.append(True)
        return len(paused) == 1

    callback = hamr.on_out_of_memory(make_room)
    try:
        hamr.set_limit(library="hamr", bytes=6 * MIB, device=0)
        other = hamr.Buffer(5 * MIB, "u1", "cuda_vmm", fill=1)
        assert paused
        with pytest.raises(hamr.OutOfMemory):
            hamr.resume(name)
        del other
        hamr.resume(name)
    finally:
        callback.remove()
        hamr.set_limit(library="hamr", bytes=None, device=0)
    assert (on_host(buffer) == 1).all()


def test_at_random_beside_plain_arrays(name):
    """Buffers of two names, against NumPy's arrays; None is a name that is not paused."""
    random.seed(40)
    names = [name + " a", name + " b"]
    paused: list[str | None] = [None, None]
    list_ = [(i % 2, made(names[i % 2], 100, i), np.full(100, i, "f4")) for i in range(6)]
    known = [True] * len(list_)
    for step in range(scaled(400, 60)):
        which = random.randrange(2)
        action = random.choice(["pause", "resume", "write", "write", "read", "read", "replace"])
        i = random.randrange(len(list_))
        of, buffer, array = list_[i]
        if action == "pause" and paused[which] is None:
            paused[which] = random.choice(KEEPS)
            hamr.pause(names[which], keep=paused[which])
            if paused[which] == "nothing":
                known = [k and list_[j][0] != which for j, k in enumerate(known)]
        elif action == "resume":
            hamr.resume(names[which])
            paused[which] = None
        elif action == "replace" and paused[of] is None:
            list_[i] = (of, made(names[of], 100, step), np.full(100, step, "f4"))
            known[i] = True
        elif action in ("write", "read") and paused[of] is not None:
            with pytest.raises(hamr.PausedMemory):
                buffer.fill(1) if action == "write" else on_host(buffer)
        elif action == "write":
            buffer[10:20] = step
            array[10:20] = step
            if not known[i]:
                buffer.fill(step)
                array[:] = step
            known[i] = True
        elif action == "read" and known[i]:
            np.testing.assert_array_equal(on_host(buffer), array)
    for each in names:
        hamr.resume(each)
