"""Memory of `cuda_vmm` grows where it is: no element is copied, no work is waited for."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.contents import on_host
from tests.support.processes import run_code, scaled

MIB = 1 << 20
UNIT = 2 * MIB  # what a device maps at least
COUNT = MIB // 4


def made(count: int = COUNT, value: float = 1, **options) -> hamr.Buffer:
    return hamr.Buffer(count, "f4", "cuda_vmm", fill=value, **options)


def copies(emulator) -> int:
    return sum(emulator.calls(call) for call in emulator.entry_points if "Memcpy" in call)


def test_append_in_steps(device):
    """From 1 MiB to many, where it is."""
    buffer = made(value=0, device=device)
    place, steps, capacities = buffer.ptr, scaled(60, 20), set()
    pieces = [
        hamr.Buffer(COUNT, "f4", "cuda", fill=value, device=device) for value in range(1, steps)
    ]
    before = copies(driver.emulator) if driver.emulator else 0
    for piece in pieces:
        buffer.append(piece)
        assert buffer.ptr == place
        assert buffer.capacity() * 4 % UNIT == 0
        capacities.add(buffer.capacity())
    if driver.emulator:
        assert copies(driver.emulator) - before == len(pieces), "only what is appended is copied"
    assert len(capacities) < steps - 5, "the driver is asked at each step"
    assert buffer.capacity() * 4 < buffer.nbytes * 9 // 8 + UNIT
    assert hamr.stats()["allocators"]["cuda_vmm"]["current"] == buffer.capacity() * 4
    np.testing.assert_array_equal(on_host(buffer), np.repeat(np.arange(steps, dtype="f4"), COUNT))


def test_each_way_to_grow():
    for grow in (
        lambda b: b.resize(3 * COUNT, 2),
        lambda b: b.resize((3, COUNT), 2),
        lambda b: (b.reserve(3 * COUNT, 2), b.resize(3 * COUNT)),
        lambda b: b.append(np.full(2 * COUNT, 2, "f4")),
    ):
        buffer = made()
        place = buffer.ptr
        grow(buffer)
        assert buffer.ptr == place
        assert buffer.size() == 3 * COUNT
        assert on_host(buffer).ravel().tolist() == [1] * COUNT + [2] * 2 * COUNT


def test_growth_leaves_work_alone(emulator):
    """Kernels on the old elements may run meanwhile, and hamr waits for none."""
    buffer, stream = made(transfer="async"), driver.Stream()
    buffer.synchronize()
    place = buffer.ptr
    driver.write_late(stream, place, COUNT, 5)
    waits = "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"
    before = [emulator.calls(call) for call in waits]
    buffer.resize(5 * COUNT)
    assert [emulator.calls(call) for call in waits] == before
    driver.write_late(stream, place + buffer.nbytes - 400, 100, 6)
    stream.synchronize()
    values = on_host(buffer)
    assert (values[:COUNT] == 5).all()
    assert (values[-100:] == 6).all()


def test_what_was_handed_out_is_valid_still():
    buffer = made()
    view, handle, interface = buffer[:100], buffer.get_cuda_accessible(), driver.Only(buffer)
    again = hamr.from_dlpack(buffer)
    buffer.resize(9 * COUNT, 3)
    for shared in (view, handle, again, hamr.buffer(interface)):
        assert shared.ptr == buffer.ptr
        assert driver.content(shared)[:100].tolist() == [1] * 100
    buffer[50] = 7
    assert driver.content(view).tolist() == driver.content(again)[:100].tolist()
    assert view[50].item() == 7
    buffer.resize(10)
    assert buffer.capacity() == 10, "the others have what lies behind"
    assert driver.content(handle)[50] == 7
    last = buffer.ptr
    buffer.close()
    assert driver.content(view)[50] == 7
    assert view.ptr == last


def test_an_array_over_memory_of_several_pieces_comes_back():
    buffer = made()
    for _ in range(4):
        buffer.append(np.ones(buffer.capacity(), "f4"))
    for shared in (driver.Only(buffer), buffer):
        found = hamr.buffer(shared)
        assert found.ptr == buffer.ptr
        assert (on_host(found) == 1).all()
    far = hamr.Buffer.from_pointer(
        buffer.ptr + 4, buffer.size() - 1, "f4", "cuda_vmm", owner=buffer
    )
    assert far.allocator == hamr.Allocator.cuda_vmm
    with pytest.raises(ValueError, match="inside the allocation"):
        hamr.Buffer.from_pointer(buffer.ptr, buffer.capacity() + 1, "f4", "cuda_vmm", owner=buffer)


def test_a_view_grows_elsewhere():
    buffer = made()
    for view in (buffer[:], buffer[10:], buffer.reshape(COUNT // 2, 2)):
        view.append(9)
        assert not buffer.ptr <= view.ptr < buffer.ptr + buffer.capacity() * 4
        assert on_host(view).ravel()[-1] == 9
    place = buffer.ptr
    buffer.append(buffer)
    assert buffer.ptr == place
    assert (on_host(buffer) == 1).all()


@pytest.mark.freed_again
def test_memory_is_unmapped_when_the_device_is_at_rest(emulator):
    """The emulator takes it for a misuse while work is pending on it; streams may have ended."""
    live = emulator.live("memory")
    buffer, stream = made(), driver.Stream()
    buffer.resize(5 * COUNT)
    buffer.synchronize()
    driver.write_late(stream, buffer.ptr, COUNT, 5)
    waits = emulator.calls("cuCtxSynchronize")
    del stream
    buffer.close()
    assert emulator.calls("cuCtxSynchronize") > waits
    assert emulator.live("memory") == live


def test_it_is_kept_while_the_device_cannot_be_waited_for(emulator):
    """As while a stream is captured into a graph."""
    buffer = made()
    buffer.resize(4 * COUNT)
    buffer.synchronize()
    live = emulator.live("memory")
    emulator.fail("cuCtxSynchronize", 0, 900)
    buffer.close()
    emulator.stop_failing()
    assert emulator.live("memory") == live
    hamr.trim()
    assert emulator.live("memory") < live


@pytest.mark.multigpu
def test_other_devices_reach_what_it_has_become():
    """Those that were connected before, and those that are later."""
    far = hamr.Buffer(COUNT, "f4", "cuda", fill=4, device=1)
    early, late = made(device=0), made(device=0)
    early[...] = far  # connects the devices
    for buffer in (early, late):
        buffer.resize(6 * COUNT, 2)
        buffer.synchronize()
        if hamr.peer_access(1, 0):
            stream = driver.Stream(1)
            driver.write_late(stream, buffer.ptr + 5 * MIB, COUNT, 8)
            stream.synchronize()
            assert (on_host(buffer)[5 * COUNT :] == 8).all()
    copied = early.copy("cuda", device=1)
    np.testing.assert_array_equal(on_host(copied), on_host(early))


def test_where_memory_runs_out_nothing_is_lost():
    buffer = made()
    place, capacity = buffer.ptr, buffer.capacity()
    hamr.trim()
    free, total = hamr.memory_info(0)
    for count in ((free + (1 << 30)) // 4, total // 4 + 1, 1 << 55):
        with pytest.raises(hamr.OutOfMemory, match="cuda_vmm on device 0"):
            buffer.resize(count)
        with pytest.raises(hamr.OutOfMemory):
            buffer.reserve(count)
    assert (buffer.ptr, buffer.capacity(), buffer.size()) == (place, capacity, COUNT)
    buffer.append(5)
    assert buffer.ptr == place
    assert (on_host(buffer)[:COUNT] == 1).all()


def test_pickles_and_copies():
    buffer = made(100)
    buffer.resize(2 * COUNT, 3)
    for copied in (pickle.loads(pickle.dumps(buffer)), buffer.copy()):
        assert copied.allocator == hamr.Allocator.cuda_vmm
        place = copied.ptr
        copied.append(buffer)
        assert copied.ptr == place
        np.testing.assert_array_equal(on_host(copied), np.tile(on_host(buffer), 2))


# Where the addresses end.

STEPS = """
import json
import numpy as np
import hamr
from tests.cuda import driver
e = driver.emulator
def copies():
    return sum(e.calls(call) for call in e.entry_points if "Memcpy" in call)
from tests.support.contents import on_host
COUNT = 1 << 18
found = []
for hold in (lambda b: None, lambda b: b[:100], lambda b: b.__cuda_array_interface__):
    b = hamr.Buffer(COUNT, "f4", "cuda_vmm", fill=1)
    b.synchronize()
    more = hamr.Buffer(COUNT, "f4", "cuda", fill=2)
    held, before = hold(b), copies()
    at = e.calls("cuMemRetainAllocationHandle")
    for _ in range(20):
        b.append(more)
    found.append([copies() - before, e.calls("cuMemRetainAllocationHandle") - at])
    assert (on_host(b)[:COUNT] == 1).all() and (on_host(b)[COUNT:] == 2).all()
    if hasattr(held, "ptr"):
        assert (on_host(held) == 1).all()
    del b, held
more.close()
del more
hamr.trim()
assert e.violations() == [], e.violations()
assert e.live("memory") == 0
print(json.dumps(found))
"""


@pytest.mark.freed_again
@pytest.mark.skipif(not driver.EMULATED, reason="a real driver's addresses are not to be had")
@pytest.mark.parametrize("behind", [64 * MIB, 0], ids=["more behind", "none behind"])
def test_where_the_addresses_end(behind):
    """More are taken behind them, else the memory moves, unless somebody else uses it."""
    env = {"HAMR_CUDA_VMM_RESERVE": str(4 * MIB), "HAMR_EMULATOR_ADDRESSES": str(behind)}
    nobody, viewed, told = json.loads(run_code(STEPS, env=env))
    assert nobody[0] == 20, "copies of what is there already"
    if behind:
        assert [nobody, viewed, told] == [[20, 0]] * 3
    else:
        assert nobody[1] > 0
        assert viewed[0] > 20
        assert told[0] > 20


# Where there is none.


@pytest.mark.skipif(not driver.EMULATED, reason="not to be had with a real driver")
def test_a_device_that_cannot_map_memory():
    output = run_code(
        """
import hamr
for use in (lambda: hamr.Buffer(3, "f4", "cuda_vmm"), lambda: hamr.Buffer(3).copy("cuda_vmm")):
    try:
        use()
    except hamr.BackendUnavailable as error:
        print(error)
print([d["lacks"] for d in hamr.backends()["cuda"]["devices"]])
assert hamr.Buffer(3, "f4", "cuda", fill=1).get().tolist() == [1, 1, 1]
""",
        env={"HAMR_EMULATOR_VMM": "0"},
    )
    words = "device 0 has no virtual memory management, which allocator cuda_vmm needs"
    assert output.count(words) == 2
    assert f"{['cuda_vmm'] * driver.DEVICES}" in output


@pytest.mark.parametrize("value", ["x", "0", "-5"])
def test_a_setting_that_is_no_number(value):
    output = run_code(
        "import hamr\ntry: hamr.Buffer(3, 'f4', 'cuda')\n"
        "except hamr.BackendUnavailable as error: print(error)",
        env={"HAMR_CUDA_VMM_RESERVE": value},
    )
    assert f'HAMR_CUDA_VMM_RESERVE is "{value}": a number of bytes is needed' in output


# What it costs, at a size that fits here.


def test_the_benchmark_has_a_row_for_each_way():
    from hamr._benchmark import growth

    class Libraries:
        cupy = torch = None
        trim = staticmethod(hamr.trim)

    def synchronize():
        with driver.on(0):
            driver.do("cuCtxSynchronize")

    table = growth.rows(Libraries(), synchronize, MIB, 6 * MIB, MIB, rounds=1)
    assert [row["operation"].rpartition(", ")[2] for row in table] == [
        "reserved before", "cuda_vmm", "cuda", "cuda_async",
    ]  # fmt: skip
    assert all(row["value"] >= row["longest"] > 0 for row in table)
    assert table[1]["taken"] == 6 * MIB
    assert len(growth.lines(table)) == 5
    if driver.emulator is not None:  # whose device is full then
        table = growth.rows(Libraries(), synchronize, MIB, 600 * MIB, 64 * MIB, rounds=1)
        assert all("OutOfMemory" in row["error"] for row in table)
