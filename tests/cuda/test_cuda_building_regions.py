"""Regions of groups that are built in place: their order, threads, errors and finalisers."""

from __future__ import annotations

import gc
import os
import threading

import pytest

import hamr
import hamr.allocators
from hamr.allocators import _cupy, _torch
from tests.cuda import driver
from tests.cuda.test_cuda_building import (  # noqa: F401
    MIB,
    At,
    all_ends,
    client,
    cupy,
    give_back,
    taken,
    torch,
    write,
)
from tests.support import library_stand_ins as stand_ins


def test_cupys_regions_end_in_any_order(client, cupy):  # noqa: F811
    with (
        client.build_group("a", bytes=MIB, device=0) as a,
        client.build_group("b", bytes=MIB, device=0) as b,
    ):
        first, second = hamr.allocators.use_in_cupy(a), hamr.allocators.use_in_cupy(b)
        first.end()
        kept = cupy.alloc(1000)
        assert (a.used, b.used) == (0, 1024)
        second.end()
        assert cupy.alloc(7) == ("own", 7)
        del kept
        first, second = hamr.allocators.use_in_cupy(a), hamr.allocators.use_in_cupy(b)
        second.end()
        kept = cupy.alloc(1000)
        assert (a.used, b.used) == (1024, 0)
        del kept
        first.end()
        assert cupy.alloc(7) == ("own", 7)


def test_another_thread_ends_cupys_region(client, cupy):  # noqa: F811
    with client.build_group("a", bytes=MIB, device=0) as a:
        use = hamr.allocators.use_in_cupy(a)
        thread = threading.Thread(target=use.end)
        thread.start()
        thread.join()
        assert cupy.alloc(7) == ("own", 7)
        with hamr.allocators.use_in_cupy(a):
            assert cupy.alloc(7).ptr
        assert cupy.alloc(7) == ("own", 7)


def test_a_region_that_cannot_begin_ends_no_pool_while_others_are_open(client, torch):  # noqa: F811
    with client.build_group("g", bytes=MIB, device=0) as sealed:
        pass
    with client.build_group("h", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch():
            with pytest.raises(ValueError, match="is finished"):
                hamr.allocators.use_in_torch(sealed)
            gc.collect()
            enter, torch.modules["torch"].cuda.use_mem_pool = (
                torch.modules["torch"].cuda.use_mem_pool,
                lambda pool, device: 1 / 0,
            )
            with pytest.raises(ZeroDivisionError):
                hamr.allocators.use_in_torch(space)
            gc.collect()
            torch.modules["torch"].cuda.use_mem_pool = enter
        assert space.used == 0
    assert stand_ins.TorchPool.broken == []


def test_a_group_that_is_lost_while_a_region_ends(client, torch, monkeypatch):  # noqa: F811
    lost = [client.build_group("g", bytes=MIB, device=0)]
    with hamr.allocators.use_in_torch(lost[0]):
        torch.free(torch.alloc(1000, 0), 1000, 0)
    leave = _torch.leave

    def collected(use):
        lost.clear()
        gc.collect()
        leave(use)

    monkeypatch.setattr(_torch, "leave", collected)
    with hamr.allocators.use_in_torch():
        pass
    assert stand_ins.TorchPool.broken == []


def test_a_seal_that_was_interrupted_protects_what_torch_has(client, torch, emulator, monkeypatch):  # noqa: F811
    space = client.build_group("g", bytes=MIB, device=0)
    with hamr.allocators.use_in_torch(space):
        address = torch.alloc(MIB, 0)
    write(address, 5, 1000)
    space.add("w", At(address, 1000))
    wait, calls = hamr.Buffer.synchronize, []

    def interrupted(buffer):
        if not calls:
            calls.append(1)
            raise KeyboardInterrupt
        wait(buffer)

    with monkeypatch.context() as patch:
        patch.setattr(hamr.Buffer, "synchronize", interrupted)
        with pytest.raises(KeyboardInterrupt):
            space.seal()
    assert calls
    space.seal()
    driver.write_late(driver.Stream(), address, 10, 6)
    driver.finish()
    assert [text for text in emulator.violations() if "read-only" in text]
    emulator.reset()
    assert (client.get_group("g")["w"].get() == 5).all()
    give_back(address)


def test_memory_ends_though_a_library_fails_to_give_its_own_up(client, emulator):  # noqa: F811
    hamr.trim()
    all_ends(client)
    before = taken()
    space = client.build_group("g", bytes=4 * MIB, device=0)
    space.empty(3).fill(1)
    space._parts.give_up = lambda pools: 1 / 0
    with pytest.raises(ZeroDivisionError):
        space.abort()
    del space
    assert all_ends(client) == before


@pytest.mark.parametrize("module", [_cupy, _torch])
def test_a_child_that_was_forked_while_a_region_begins_has_locks_of_its_own(module):
    held, done = threading.Event(), threading.Event()

    def hold():
        with module._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        os._exit(not module._lock.acquire(timeout=5))
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
