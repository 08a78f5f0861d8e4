"""Memory of CUDA's devices that processes share by handles."""

import gc
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.paths import ROOT
from tests.support.processes import wait_until
from tests.support.sharers import total

#: How memory is had: cuda_async's in place by a setting alone, which `processes` have.
WAYS = ["cuda", "cuda_async"]


def lets_go(process, allocator):
    wait_until(lambda: process.live(allocator) == (0, 0))


@pytest.mark.parametrize("way", WAYS)
def test_another_process_has_the_memory_in_place(processes, device, way):
    maker, user = processes(), processes()
    maker.make("whole", (4, 6), "f4", way, device, 1)
    maker.part("a", "whole", (slice(1, None), slice(None, None, -2)))
    assert not maker.hands(user, "a")
    assert user.read("a")[:4] == ((3, 3), "float32", False, device)
    user.fill("a", 7)
    assert maker.values("whole")[0] == [1] * 6
    assert maker.values("whole")[1] == [1, 7, 1, 7, 1, 7]
    maker.hands(user, "whole")
    user.fill("whole", 2)
    assert maker.values("a") == user.values("a") == [[2] * 3] * 3


@pytest.mark.parametrize("way", WAYS)
def test_memory_stays_until_nobody_has_it(processes, device, way):
    maker, user = processes(), processes()
    maker.make("a", (1000,), "f4", way, device, 3)
    maker.hands(user, "a")
    maker.drop("a")
    assert maker.live(way)[0] == 1
    maker.make("b", (1000,), "f4", way, device, 0)
    assert user.values("a") == [3] * 1000
    maker.drop("b")
    user.drop("a")
    lets_go(maker, way)


@pytest.mark.parametrize("way", WAYS)
def test_a_user_that_is_killed_lets_go(processes, device, way):
    maker, users = processes(), [processes() for _ in range(2)]
    maker.make("a", (1000,), "f4", way, device, 3)
    for user in users:
        maker.hands(user, "a")
    maker.drop("a")
    users[0].kill()
    assert users[1].values("a") == [3] * 1000
    assert maker.live(way)[0] == 1
    users[1].kill()
    lets_go(maker, way)


def test_what_is_of_a_pool_outlives_its_maker(processes, device):
    maker, user = processes(), processes()
    maker.make("a", (1000,), "f4", "cuda_async", device, 3)
    maker.hands(user, "a")
    maker.kill()
    assert user.values("a") == [3] * 1000
    user.drop("a")


def test_users_end_well_whose_maker_was_killed(processes, device):
    """What CUDA's runtime allocates is its maker's: nothing is promised but an end."""
    maker, user = processes(), processes()
    maker.make("a", (1000,), "f4", "cuda", device, 3)
    maker.hands(user, "a")
    maker.kill()
    user.drop("a")
    lets_go(user, "cuda")


@pytest.mark.parametrize("way", WAYS)
def test_a_handle_keeps_memory_that_nobody_has_opened(processes, device, way):
    maker, user = processes(), processes()
    maker.make("a", (1000,), "f4", way, device, 3)
    assert maker.keep("a") == (2 if way == "cuda_async" else 1, False)
    maker.drop("a")
    assert maker.live(way)[0] == 1
    maker.let_go()
    lets_go(maker, way)
    before = None
    for _ in range(4):
        maker.make("a", (1000,), "f4", way, device, 3)
        maker.hands(user, "a")
        user.drop("a")
        maker.drop("a")
        lets_go(maker, way)
        files = maker.files(), user.files()
        assert before in (None, files)
        before = files


@pytest.mark.parametrize("way", WAYS)
def test_one_allocation_is_opened_once(processes, device, way):
    maker, user = processes(), processes()
    maker.make("a", (1000,), "f4", way, device, 3)
    maker.part("b", "a", slice(10, 20))
    for name in "ab":
        maker.hands(user, name)
    user.drop("a")
    user.fill("b", 4)
    assert maker.values("a")[9:21] == [3] + [4] * 10 + [3]
    user.drop("b")
    for name in "ba":
        maker.drop(name)
    lets_go(maker, way)


@pytest.mark.parametrize("way", ["cuda", "cuda_vmm", "cuda_uva", "cuda_host"])
def test_the_process_itself_and_what_is_copied(device, way):
    source = hamr.Buffer((3, 4), "f4", way, device=-1 if way == "cuda_host" else device, fill=1)
    with source.share() as handle:
        found = hamr.open_shared(handle)
    assert handle.copied == (way != "cuda")
    assert found.device == (-1 if way == "cuda_host" else device)
    found.fill(2)
    found.synchronize()
    assert total(source) == (12 if handle.copied else 24)
    again = hamr.open_shared(found[1:].share(copy=None))
    again.fill(5)
    again.synchronize()
    assert total(found) == 8 + 40
    assert not found.share().copied


def test_another_librarys_memory_is_had_in_place_and_kept(processes, device):
    array = driver.Array(np.arange(12, dtype="f4").reshape(3, 4), device)
    kept = sys.getrefcount(array)
    user = processes()
    with hamr.buffer(array)[1:].share(copy=False) as handle:
        user.opens(handle)
    assert user.values("a") == [[4, 5, 6, 7], [8, 9, 10, 11]]
    user.fill("a", 1)
    assert array.read().sum() == 6 + 8
    assert sys.getrefcount(array) > kept, "another process has it"
    user.drop("a")

    def given_back():
        hamr.Buffer(1)  # what others' threads have let go of goes with the next call
        return sys.getrefcount(array) == kept

    wait_until(given_back)


def test_the_device_refuses_writers_where_it_is_for_reading_only(processes, device):
    source = hamr.Buffer(100, "f4", device=device, fill=1)
    with pytest.raises(ValueError, match="readonly is True: accepted is it with copy=True"):
        source.share(readonly=True)
    with source.share(copy=True, readonly=True) as handle:
        found = hamr.open_shared(handle)
    assert found.readonly
    values = np.ones(1, "f4")
    with driver.on(device):
        upload = "cuMemcpyHtoDAsync_v2", found.ptr, values.ctypes.data, 4, driver.LEGACY
        assert driver.code(*upload) == driver.INVALID_VALUE
    assert total(found) == 100
    maker = processes()
    maker.make("a", (10,), "f4", "cuda_async", device, 1)
    assert "copy=True" in maker.fails("a", readonly=True)


def test_pools_that_are_not_to_be_shared_are_copied(device):
    source = hamr.Buffer(100, "f4", "cuda_async", device=device, fill=1)
    with pytest.raises(ValueError, match=r"copy is False.*HAMR_CUDA_POOL_SHARED=1"):
        source.share(copy=False)
    assert source.share().copied


def test_sharing_comes_after_the_work_on_the_elements(processes, device):
    stream = hamr.Stream(device)
    source = hamr.Buffer(1 << 13, "f4", device=device, stream=stream, transfer="async", fill=1)
    source.fill(2)
    user = processes()
    with source.share() as handle:
        user.opens(handle)
    assert set(user.values("a")) == {2.0}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_opened_is_copied_for_others(processes, device, way):
    """Memory that is its maker's, nobody else can vouch for."""
    maker, user, third = (processes() for _ in range(3))
    maker.make("a", (10,), "f4", way, device, 3)
    maker.hands(user, "a")
    assert user.hands(third, "a")
    user.fill("a", 4)
    assert third.values("a") == [3] * 10


@pytest.mark.multigpu
def test_devices_are_told_apart_whatever_their_numbers(processes):
    maker = processes()
    for device in range(2):
        maker.make("a", (10,), "f4", "cuda", device, device)
        found = maker.shared("a")
        assert (found.device, found.get()[0]) == (device, device)
        del found


def test_a_process_without_the_device(processes, device):
    maker = processes()
    maker.make("a", (10,), "f4", "cuda", device, 3)
    script = (
        "import hamr, socket, sys\n"
        "try: hamr.open_shared(socket.socket(fileno=int(sys.argv[1])))\n"
        "except hamr.BackendUnavailable: print('unavailable')\n"
    )
    near, far = socket.socketpair()
    with near, far, hamr.Buffer(4, "f4", device=device).share() as handle:
        handle.send(near)
        found = subprocess.run(
            [sys.executable, "-c", script, str(far.fileno())],
            pass_fds=[far.fileno()],
            env={**os.environ, "HAMR_CUDA_LIBRARY": "/nowhere"},
            stdout=subprocess.PIPE,
            cwd=ROOT,
            check=True,
        )
    assert found.stdout == b"unavailable\n"
    gc.collect()


def live():
    return hamr.stats()["allocators"]["cuda"]["live"]


def test_a_forked_child_keeps_nothing_of_what_was_lent(processes, device):
    source, user = hamr.Buffer(100, "f4", "cuda", fill=1, device=device), processes()
    before = live()
    with source.share(copy=False) as handle:
        user.opens(handle)
    source.close()
    reader, writer = os.pipe()
    if not (child := os.fork()):  # it has the descriptors by which its parent hears of users
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    assert live() == before, "the user has it"
    user.drop("a")
    wait_until(lambda: live() == before - 1)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    os.close(reader)
