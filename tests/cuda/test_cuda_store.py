"""Objects of the store in memory of CUDA's devices."""

import multiprocessing
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import hamr
from hamr.store import NotSealed, ObjectNotFound, Server, StoreFull, connect
from tests.cuda import driver
from tests.store import children
from tests.store.serving import ServerProcess

UNIT = 2 << 20
MEMORY_TYPE, HOST_MEMORY = 2, 1  # of CUDA's cuPointerGetAttribute


@pytest.fixture
def server(tmp_path):
    """A server with room for 16 MiB of each device."""
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit={"host": "64MiB", "gpu": 8 * UNIT}) as server:
        yield server


@pytest.fixture
def client(server):
    with connect(server.path) as client:
        yield client


def used(client):
    """Bytes of devices."""
    memory = client.statistics()["memory"]
    return sum(row["used"] for name, row in memory.items() if name != "host")


def test_an_object_of_a_device_is_had_in_place_and_for_reading_only(client, device):
    builder = client.create((3, 5), "f4", device=device)
    assert (builder.buffer.allocator, builder.buffer.device) == (hamr.Allocator.cuda_vmm, device)
    builder.buffer[...] = np.arange(15).reshape(3, 5)
    with pytest.raises(NotSealed):
        client.get(builder.id)
    builder.seal()
    found = client.get(builder.id)
    assert (found.device, found.readonly) == (device, True)
    assert found.get().tolist() == np.arange(15).reshape(3, 5).tolist()
    assert found.__cuda_array_interface__["data"] == (found.ptr, True)
    with pytest.raises(ValueError, match="read-only"):
        found.fill(1)
    assert client.info(builder.id).device not in ("host", "")
    assert used(client) == UNIT
    client.delete(builder.id)
    del found, builder
    assert used(client) == 0


def test_the_device_refuses_who_writes_there(client, device):
    found = client.get(client.put(hamr.Buffer(100, "f4", device=device, fill=3)))
    assert found.device == device
    values = np.ones(1, "f4")
    with driver.on(device):
        upload = "cuMemcpyHtoDAsync_v2", found.ptr, values.ctypes.data, 4, driver.LEGACY
        assert driver.code(*upload) == driver.INVALID_VALUE
    assert (found.get() == 3).all()


@pytest.mark.parametrize("kept", [False, True])
def test_the_device_refuses_its_maker_whatever_that_has_kept(client, device, kept):
    builder = client.create(100, "f4", device=device)
    builder.buffer.fill(3)
    at = builder.buffer.ptr
    held = builder.buffer[:50] if kept else None
    builder.seal()
    found = client.get(builder.id)
    # What nobody has kept is mapped anew, for reading, and need not be protected where it was.
    assert not kept or found.ptr == at
    values = np.ones(1, "f4")
    with driver.on(device):
        upload = "cuMemcpyHtoDAsync_v2", found.ptr, values.ctypes.data, 4, driver.LEGACY
        assert driver.code(*upload) == driver.INVALID_VALUE
    assert (found.get() == 3).all()
    assert not kept or (held.get() == 3).all()


@pytest.mark.multigpu
def test_an_object_is_had_on_another_device_and_on_the_host(client):
    values = np.arange(1000.0)
    id = client.put(hamr.Buffer(1000, device=0, data=values))
    other = client.get(id, device=1)
    assert (other.device, other.get().tolist()) == (1, values.tolist())
    host = client.get(id, device="cpu")
    assert (host.device, np.asarray(host).tolist()) == (-1, values.tolist())
    back = client.get(client.put(values), "cuda", device=1)
    assert (back.device, back.get().tolist()) == (1, values.tolist())


TWO_DEVICES = """
import sys
import numpy as np
import hamr
from hamr.store import connect
from tests.cuda import driver
path, id, device = sys.argv[1], sys.argv[2], int(sys.argv[3])
with connect(path) as client:
    found = client.get(id)
    assert (found.device, found.readonly) == (0, True)
    # A kernel of this process's device reads the object in place, which is on the first one.
    assert device == 0 or hamr.peer_access(device, 0)
    target = hamr.Buffer(len(found), "f4", "cuda", device=device, fill=0)
    target.synchronize()
    driver.write_late(driver.LEGACY, target.ptr, len(found), 0.5, found.ptr, 2.0, device=device)
    with driver.on(device):
        driver.do("cuCtxSynchronize")
    assert (target.get() == np.arange(len(found), dtype="f4") * 2 + 0.5).all()
    # And a copy of its own is there.
    own = client.get(id, device=device)
    assert own.device == device
    assert (own.get() == np.arange(len(found))).all()
    print(found.device, own.device)
"""


@pytest.mark.multigpu
def test_two_clients_on_two_devices_read_one_object(client):
    """Each in a process of its own, at the same time."""
    source = hamr.Buffer(100_000, "f4", "cuda", device=0, data=np.arange(100_000, dtype="f4"))
    id = client.put(source)
    arguments = [sys.executable, "-c", TWO_DEVICES, client.path, id]
    processes = [
        subprocess.Popen([*arguments, str(device)], stdout=subprocess.PIPE, text=True)
        for device in range(2)
    ]
    said = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert said == ["0 0\n", "0 1\n"]
    client.delete(id)
    assert used(client) == 0


def test_put_keeps_what_is_on_a_device_there(client, device):
    for allocator in ("cuda", "cuda_async", "cuda_vmm"):
        found = client.get(client.put(hamr.Buffer(7, "i2", allocator, device=device, fill=5)))
        assert (found.device, found.get().tolist()) == (device, [5] * 7)
    host = client.get(client.put(hamr.Buffer(7, device=device, fill=5), "malloc"))
    assert (host.device, np.asarray(host).tolist()) == (-1, [5] * 7)


def test_a_mirror_of_device_memory_is_page_locked_and_written_back_on_success(client, device):
    builder = client.create(1000, "i4", device=device)
    with builder.buffer.mirror() as values:
        with driver.on(device):
            kind = driver.get("cuPointerGetAttribute", MEMORY_TYPE, values.ctypes.data)
        assert kind & 0xFFFFFFFF == HOST_MEMORY
        values[:] = range(1000)
    mirror = builder.buffer.mirror(initialize=True)
    mirror.__enter__()[:] = 0
    mirror.__exit__(KeyError, KeyError(), None)
    builder.seal()
    with client.get(builder.id).mirror() as values:
        assert values.tolist() == list(range(1000))
        assert not values.flags.writeable


def test_the_limit_of_a_device_holds(client, device):
    kept = client.get(client.put(hamr.Buffer(5 * UNIT, "u1", device=device, fill=0)))
    with pytest.raises(StoreFull) as caught:
        client.create(4 * UNIT, "u1", device=device)
    assert (caught.value.limit, caught.value.used) == (8 * UNIT, 5 * UNIT)
    evictable = client.put(hamr.Buffer(3 * UNIT, "u1", device=device, fill=0), evictable=True)
    client.put(hamr.Buffer(1, "u1", device=device, fill=0))
    with pytest.raises(ObjectNotFound):
        client.get(evictable)
    assert kept.device == device


def test_objects_of_a_device_are_spilled_and_brought_back(tmp_path, device):
    """By a server of its own process, which maps what it copies for as long as that takes."""
    path, folder = str(tmp_path / "store" / "socket"), tmp_path / "spill"
    options = ("--limit", f"gpu={4 * UNIT}", "--spill", str(folder), "--spill-devices")
    random = np.random.default_rng(5)
    sizes = (2 * UNIT, 100, UNIT + 1, 3 * UNIT, UNIT)
    values = [random.integers(0, 255, size, "u1") for size in sizes]
    with ServerProcess(path, *options), connect(path) as client:
        ids = [client.put(hamr.Buffer(len(v), "u1", device=device, data=v)) for v in values]
        counted = client.statistics()
        assert (counted["spills"], counted["evicted"]) == (3, 0)
        assert counted["spilled"] == 5 * UNIT
        held = client.get(ids[3])
        assert used(client) == 4 * UNIT
        with pytest.raises(StoreFull):
            client.get(ids[0])
        assert (held.get() == values[3]).all()
        del held
        for id, value in [*zip(ids, values, strict=True)] * 2:
            found = client.get(id)
            assert (found.device, found.readonly) == (device, True)
            assert (found.get() == value).all()
            with driver.on(device):
                upload = "cuMemcpyHtoDAsync_v2", found.ptr, value.ctypes.data, 4, driver.LEGACY
                assert driver.code(*upload) == driver.INVALID_VALUE
            del found
            assert used(client) <= 4 * UNIT
        evictable = client.put(values[0], "cuda", device=device, evictable=True)
        client.put(values[3], "cuda", device=device)
        assert client.exists(evictable), "it is brought back, too"
        for id in [*ids, evictable]:
            client.delete(id)
        assert client.statistics()["spilled"] == 0
    assert not [file for file in folder.rglob("*") if file.is_file()]


def test_a_queue_carries_the_id_of_device_memory(client, device):
    context = multiprocessing.get_context("spawn")
    buffers, results = context.Queue(), context.Queue()
    process = context.Process(target=children.device_totals, args=(buffers, results))
    process.start()
    found = client.get(client.put(hamr.Buffer(100_000, "f4", device=device, fill=2)))
    assert len(pickle.dumps(found)) < 400
    buffers.put(found)
    buffers.put(found[::2])
    assert results.get(timeout=60) == (200_000.0, True, device)
    assert results.get(timeout=60) == (100_000.0, True, device)
    buffers.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_what_a_process_that_was_killed_has_sealed_is_there(client, server, device):
    context = multiprocessing.get_context("spawn")
    ids = context.Queue()
    process = context.Process(target=children.make_on_device, args=(server.path, device, ids))
    process.start()
    sealed, unsealed = ids.get(timeout=60)
    process.kill()
    process.join(60)
    assert (client.get(sealed).get() == 9).all()
    while client.exists(unsealed):  # the server is told of the connection's end, but when
        time.sleep(0.01)
    client.delete(sealed)
    assert used(client) == 0


def test_many_objects_of_a_device_by_one_call(client, server, device):
    given = [hamr.Buffer(n, "f4", device=device, fill=n) for n in (0, 3, 1000, 100_000)]
    given.append(np.arange(5))
    ids = client.put_many(given, names=["a", *[None] * 4])
    with connect(server.path) as other:
        found = other.get_many([*ids, "a", ids[2]])
        for array, got in zip([*given, given[0], given[2]], found, strict=True):
            expected = array if isinstance(array, np.ndarray) else array.get()
            assert np.array_equal(got.get(), expected)
            assert got.device == (-1 if not got.nbytes or isinstance(array, np.ndarray) else device)
    client.delete_many(ids)
    del found, got
    while client.statistics()["leases"]:
        time.sleep(0.01)
    on_host = client.put_many(given, "malloc")
    assert {found.device for found in client.get_many(on_host)} == {-1}
    assert {found.device for found in client.get_many(on_host, device=device)[1:]} == {device}
    client.delete_many(on_host)


@pytest.mark.skipif(not driver.EMULATED, reason="needs the emulator")
@pytest.mark.parametrize(
    "call",
    [
        "cuMemCreate",
        "cuMemExportToShareableHandle",
        "cuMemImportFromShareableHandle",
        "cuMemMap",
        "cuMemSetAccess",
    ],
)
def test_an_error_of_the_driver_leaves_none_of_many_objects(client, server, device, call):
    given = [hamr.Buffer(1000, "f4", device=device, fill=n) for n in range(3)]
    ids, failed = client.put_many(given), 0
    with connect(server.path) as other:
        for nth in range(1, 4):
            for act in (
                lambda: other.get_many(ids),
                lambda: client.delete_many(other.put_many(given)),
            ):
                driver.emulator.fail(call, nth, 700)
                try:
                    act()
                except hamr.DeviceError:
                    failed += 1
                finally:
                    driver.emulator.stop_failing()
                while client.statistics()["leases"] or client.statistics()["objects"] > 3:
                    time.sleep(0.01)
                assert client.statistics()["objects"] == 3
        assert failed >= 3
        assert [got.get()[9] for got in other.get_many(ids)] == [0, 1, 2]
