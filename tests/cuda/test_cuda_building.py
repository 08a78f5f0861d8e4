"""Groups made in place in memory of a device: by hamr, and by torch's and CuPy's hooks."""

from __future__ import annotations

import gc
import random
import sys
import threading

import numpy as np
import pytest

import hamr
import hamr.allocators
from hamr._base.library import core
from hamr.allocators import _torch
from hamr.store import ObjectNotFound, Sealed, Server, StoreFull, connect
from tests.cuda import driver
from tests.store.building import walk
from tests.support import library_stand_ins as stand_ins
from tests.support.in_threads import in_threads
from tests.support.processes import scaled

MIB = 1 << 20


@pytest.fixture
def client(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit={"host": "64MiB", "gpu": "64MiB"}), connect(path) as client:
        yield client


@pytest.fixture
def torch(monkeypatch):
    torch = stand_ins.Torch()
    monkeypatch.setattr(_torch, "_allocators", {})
    monkeypatch.setattr(_torch, "_everywhere", False)
    monkeypatch.setitem(sys.modules, "torch", torch.modules["torch"])
    yield torch
    gc.collect()
    assert torch.regions == []
    assert stand_ins.TorchPool.broken == []


@pytest.fixture
def cupy(monkeypatch):
    cupy = stand_ins.CuPy()
    monkeypatch.setitem(sys.modules, "cupy", cupy.modules["cupy"])
    return cupy


class At:
    """A library's array at an address, which keeps what it is given."""

    def __init__(self, address: int, count: int, owner: object = None) -> None:
        self.address, self.owner = address, owner
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "<f4",
            "data": (address, False),
            "version": 3,
            "stream": 1,
        }


def taken(device: int = 0) -> int:
    """Bytes of a device that somebody has."""
    free, total = driver.memory_info(device)
    return total - free


def write(address: int, value: float, count: int, device: int = 0) -> None:
    driver.write(address, np.full(count, value, "f4"), device)


def test_torchs_memory_is_the_groups_and_nothing_is_copied(client, torch, emulator):
    hamr.Buffer(3, device=0, fill=1).get()
    client.delete(client.put_group({"w": np.ones(3)}, device=0))
    hamr.trim()
    before = taken()
    with client.build_group("g", bytes=8 * MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space) as use:
            assert torch.regions == [use.pool]
            address = torch.alloc(4 * MIB, 0)
            assert space.used == 4 * MIB
            array = space.empty(1000, "f4")
            array.fill(7)
            write(address, 3, MIB)
            space.add("w", At(address, MIB))
            space.add("b", array)
        copies = copied(emulator)
        assert taken() - before == 10 * MIB  # with the directory, as the driver rounds sizes up
    assert copied(emulator) - copies == 1  # the directory
    assert taken() - before == 10 * MIB
    group = client.get_group("g")
    assert (group["w"].ptr, group["b"].ptr) == (address, array.ptr)
    assert (group["w"].get() == 3).all()
    assert (group["b"].get() == 7).all()
    assert taken() - before == 10 * MIB
    client.delete(group.id)
    del group, array
    give_back(address)
    assert all_ends(client) == before


def all_ends(client) -> int:
    """Bytes of a device that somebody has, after what is over has ended."""
    gc.collect()
    hamr.trim()
    client.statistics()  # the server learns of leases that ended
    return taken()


def give_back(address: int, size: int = 0) -> None:
    """What torch's pool does with memory whose tensor has ended after its region."""
    _torch._allocators["hamr_torch_alloc"].allocator().free(address, size, 0, 0)


COPIES = (
    *("cuMemcpy", "cuMemcpyAsync", "cuMemcpyDtoDAsync_v2", "cuMemcpyHtoDAsync_v2"),
    *("cuMemcpyDtoD_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoH_v2"),
    *("cuMemcpy2DAsync_v2", "cuMemcpyPeerAsync", "cuMemcpyBatchAsync", "cuLaunchKernel"),
)


def copied(emulator) -> int:
    """How often somebody has copied anything."""
    return sum(emulator.calls(call) for call in COPIES)


def test_frees_come_before_the_seal_after_it_and_never(client, torch):
    with client.build_group("g", bytes=8 * MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            first, second, third = (torch.alloc(2 * MIB, 0) for _ in range(3))
            torch.free(first, 2 * MIB, 0)  # the pool keeps it for the next region
            assert space.free == 2 * MIB
        with hamr.allocators.use_in_torch(space):
            assert torch.alloc(2 * MIB, 0) == first
            torch.free(first, 2 * MIB, 0)
        assert space.free == 2 * MIB
        write(second, 5, 1000)
        write(third, 6, 1000)
        space.add("w", At(second, 1000))
    with pytest.raises(Sealed):
        space.free  # noqa: B018
    assert (driver.read(second, 1000, "f4") == 5).all()  # it is mapped as long as torch has it
    give_back(second)
    give_back(second)  # twice
    hamr.trim()
    assert (driver.read(third, 10, "f4") == 6).all()
    assert (client.get_group("g")["w"].get() == 5).all()
    give_back(third)
    hamr.trim()
    assert (client.get_group("g")["w"].get() == 5).all()


def test_writes_after_the_seal_are_refused(client, torch, emulator):
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            address = torch.alloc(MIB, 0)
        write(address, 5, 1000)
        space.add("w", At(address, 1000))
    driver.write_late(driver.Stream(), address, 10, 6)
    driver.finish()
    assert [text for text in emulator.violations() if "read-only" in text]
    emulator.reset()
    assert (client.get_group("g")["w"].get() == 5).all()
    give_back(address)


def test_an_exception_discards_it_and_what_shares_the_memory_keeps_it(client, torch, emulator):
    hamr.trim()
    before = taken()
    with (  # noqa: PT012
        pytest.raises(ZeroDivisionError),
        client.build_group("g", bytes=MIB, device=0) as space,
        hamr.allocators.use_in_torch(space),
    ):
        address = torch.alloc(MIB // 2, 0)
        write(address, 4, 100)
        array = space.empty(100, "f4")
        array.fill(5)
        space.add("w", At(address, 100))
        raise ZeroDivisionError
    assert "finished" in repr(space)
    with pytest.raises(ObjectNotFound):
        client.get_group("g")
    assert torch.regions == []
    assert (driver.read(address, 100, "f4") == 4).all()
    assert (array.get() == 5).all()
    with pytest.raises(ValueError, match="was given up"):
        space.empty(3)
    del array
    give_back(address)
    assert all_ends(client) == before


def test_no_room(client, torch, cupy):
    with pytest.raises(StoreFull):
        client.build_group(bytes="1GiB", device=0)
    with client.build_group("g", bytes=4 * MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            assert torch.alloc(5 * MIB, 0) is None
            address = torch.alloc(3 * MIB, 0)
            assert torch.alloc(2 * MIB, 0) is None

        class OutOfMemoryError(RuntimeError):
            """torch's."""

        with pytest.raises(OutOfMemoryError) as caught, hamr.allocators.use_in_torch(space):
            raise OutOfMemoryError
        said = "the group 'g' has 1048576 of its 4194304 bytes free, 1048576 in one piece"
        assert caught.value.__notes__ == [f"hamr: {said}"]
        with pytest.raises(hamr.OutOfMemory, match=rf"^2097152 bytes do not fit: {said}") as full:
            space.empty(2 * MIB, "u1")
        assert full.value.size == 2 * MIB
        with (
            hamr.allocators.use_in_cupy(space),
            pytest.raises(stand_ins.CuPyOutOfMemory, match="2,097,152") as caught,
        ):
            cupy.alloc(2 * MIB)
        assert said in str(caught.value.__cause__)
        give_back(address)
        assert space.free == 4 * MIB


def test_cupys_memory_is_the_groups(client, cupy):
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_cupy(space) as use:
            memory = cupy.alloc(4000)
            other = cupy.alloc(4000)
            assert cupy.alloc(0) == ("own", 0)
            assert repr(use) == "<hamr.allocators.CuPyUse>"
        use.end()
        assert cupy.alloc(7) == ("own", 7)
        write(memory.ptr, 3, 1000)
        space.add("w", At(memory.ptr, 1000, memory))
        assert space.used == 2 * 4096
        del other
        assert space.used == 4096
        del memory
        assert space.used == 4096  # what was added is kept
    assert client.statistics()["leases"] == 0
    assert (client.get_group("g")["w"].get() == 3).all()


def test_regions_within_regions_and_after_each_other(client, torch):
    with (
        client.build_group("a", bytes=MIB, device=0) as a,
        client.build_group("b", bytes=MIB, device=0) as b,
    ):
        for space in (a, b, a):
            with hamr.allocators.use_in_torch(space):
                give_back(torch.alloc(1000, 0))
                address = torch.alloc(1000, 0)
                assert space.used == 1024
                give_back(address)
        outer = hamr.allocators.use_in_torch(a)
        with hamr.allocators.use_in_torch(b):
            in_b = torch.alloc(1000, 0)
            with hamr.allocators.use_in_torch():
                plain = torch.alloc(1000, 0)
            again = torch.alloc(1000, 0)
        in_a = torch.alloc(1000, 0)
        assert (a.used, b.used) == (1024, 2048)
        outer.end()
        for address in (in_b, plain, again, in_a):
            give_back(address)
        assert (a.used, b.used) == (0, 0)
        # They may end in any order, and on any thread.
        first, second = hamr.allocators.use_in_torch(a), hamr.allocators.use_in_torch(b)
        thread = threading.Thread(target=first.end)
        thread.start()
        thread.join()
        give_back(torch.alloc(1000, 0))
        second.end()
        with hamr.allocators.use_in_torch():
            address = torch.alloc(1000, 0)
            assert (a.used, b.used) == (0, 0)
            give_back(address)


def test_no_pool_ends_while_a_region_is_open(client, torch, emulator):
    """As torch wants it; two regions of a group have pools of their own."""
    hamr.trim()
    before = taken()
    outer = hamr.allocators.use_in_torch()
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space) as one:
            first = one.pool
            with hamr.allocators.use_in_torch(space) as other:
                assert other.pool is not first
                torch.free(torch.alloc(1000, 0), 1000, 0)
            torch.free(torch.alloc(1000, 0), 1000, 0)
        with hamr.allocators.use_in_torch(space) as again:
            assert again.pool is first
        with hamr.allocators.use_in_torch():
            torch.free(torch.alloc(1000, 0), 1000, 0)
        assert space.used == 2048
    client.delete(space.id)
    del first, one, other, again
    assert stand_ins.TorchPool.broken == []
    assert all_ends(client) > before
    outer.end()
    assert stand_ins.TorchPool.broken == []
    assert all_ends(client) == before


def test_a_region_of_a_group_that_was_sealed_has_no_memory(client, torch):
    with client.build_group("g", bytes=MIB, device=0) as space:
        use = hamr.allocators.use_in_torch(space)
    assert torch.alloc(1000, 0) is None
    use.end()
    with pytest.raises(ValueError, match=r"^the group 'g' is finished"):
        hamr.allocators.use_in_torch(space)
    assert torch.regions == []


def test_all_of_torchs_memory_is_hamrs_and_some_a_groups(client, torch):
    hamr.allocators.use_in_torch(everywhere=True)
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            first, second = (torch.current.alloc(1000, 0, 0) for _ in range(2))
            torch.current.free(second, 1000, 0, 0)
            assert space.used == 1024
        other = torch.current.alloc(1000, 0, 0)
        assert space.used == 1024
        torch.current.free(other, 1000, 0, 0)
        torch.current.free(first, 1000, 0, 0)
        assert space.used == 0
    core().KeepFreed(-1)


def test_wrong_places(client, torch, cupy):
    with client.build_group(bytes=MIB) as space:
        for use in (hamr.allocators.use_in_torch, hamr.allocators.use_in_cupy):
            with pytest.raises(ValueError, match=r"^the group [0-9a-f]{32} is on the host"):
                use(space)
    for use in (hamr.allocators.use_in_torch, hamr.allocators.use_in_cupy):
        with pytest.raises(TypeError, match=r"^space is 3: accepted is what "):
            use(3)
    with client.build_group("g", bytes=MIB, device=0) as space:
        with pytest.raises(ValueError, match="device is 1: the group 'g' is on device 0"):
            hamr.allocators.use_in_torch(space, device=1)
        with pytest.raises(ValueError, match="everywhere is True"):
            hamr.allocators.use_in_torch(space, everywhere=True)
        with pytest.raises(ValueError, match=r"^arrays\['w'\] lies in other memory"):
            space.add("w", hamr.Buffer(3, device=0))
        with pytest.raises(ValueError, match=r"^arrays\['w'\] lies in other memory"):
            space.add("w", np.ones(3))
        space.add("w", np.ones(3), copy=True)
    assert client.get_group("g")["w"].get().tolist() == [1, 1, 1]


def test_a_part_is_made_again_after_the_work_on_it(client, torch):
    stream = driver.Stream()
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            address = torch.alloc(MIB, stream.handle)
            driver.write_late(stream, address, 1000, 1)
        give_back(address)
        array = space.empty(1000, "f4")
        assert array.ptr == address
        array.fill(2)
        space.add("w", array)
    assert (client.get_group("g")["w"].get() == 2).all()


def test_work_of_all_streams_is_over_at_the_seal(client, torch, emulator):
    streams = [driver.Stream() for _ in range(2)]
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            addresses = [torch.alloc(4000, stream.handle) for stream in streams]
        for i, (address, stream) in enumerate(zip(addresses, streams, strict=True)):
            space.add(str(i), At(address, 1000))
            driver.write_late(stream, address, 1000, i + 1)
    assert emulator.pending() == 0
    group = client.get_group("g")
    for i in range(2):
        assert (group[str(i)].get() == i + 1).all()
        give_back(addresses[i])


def test_what_is_given_back_late_is_unmapped_after_the_work_on_it(client, torch):
    stream = driver.Stream()
    with client.build_group("g", bytes=MIB, device=0) as space:
        with hamr.allocators.use_in_torch(space):
            address = torch.alloc(4000, stream.handle)
        write(address, 1, 1000)
        space.add("w", At(address, 1000))
    client.delete(space.id)
    target = hamr.Buffer(1000, "f4", device=0, fill=0)
    target.synchronize()
    driver.write_late(stream, target.ptr, 1000, 5, source=address)
    give_back(address)
    hamr.trim()
    driver.finish()
    assert (target.get() == 6).all()


def test_walks_beside_dictionaries(client, device):
    for _ in range(scaled(20, 1)):
        print("seed", seed := random.randrange(1 << 30))
        walk(client, seed, 100, device)


def test_many_threads(client, torch):
    with client.build_group("g", bytes=16 * MIB, device=0) as space:
        lock = threading.Lock()

        def work(number: int) -> None:
            with hamr.allocators.use_in_torch(space) if number % 2 else lock:
                pass
            for i in range(20):
                array = space.empty(100 * (i + 1), "f4")
                array.fill(number * 100 + i)
                if i % 3 == 0:
                    space.add(f"{number}.{i}", array)

        in_threads(work, 4)
    group = client.get_group("g")
    assert len(group) == 4 * 7
    for path, array in group.items():
        number, i = map(int, path.split("."))
        assert (array.get() == number * 100 + i).all()
