"""Limits on what hamr takes, and the figures of its pools."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.processes import run_code, scaled

MIB = 1 << 20

pytestmark = pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")


@pytest.fixture(autouse=True)
def unlimited(needs_device):
    hamr.trim()
    yield
    hamr.set_limit(pinned=None, kept=None, device=0, bytes=None)
    hamr.trim()


def taken(name: str) -> int:
    pool = hamr.stats()["pools"].get(name, {"current": 0, "cached": 0})
    return pool["current"] + pool["cached"]


def on_device(number: int = 0) -> int:
    """What counts against the limit: of the driver's own pool what is in use."""
    in_order = hamr.stats()["pools"].get(f"cuda_async:{number}", {"current": 0})
    return taken(f"cuda:{number}") + in_order["current"]


def test_limits_are_read_back(device):
    hamr.set_limit(device=device, bytes="16MiB", pinned="1.5 GB")
    found = hamr.limits()
    assert found["devices"][device] == 16 * MIB
    assert found["pinned"] == 1_500_000_000
    assert hamr.stats()["pools"][f"cuda:{device}"]["limit"] == 16 * MIB
    hamr.set_limit(device=f"cuda:{device}", bytes=None, pinned=None)
    assert hamr.limits()["devices"].get(device) is None
    assert hamr.limits()["pinned"] is None


@pytest.mark.parametrize("first", ["cuda", "cuda_async"])
@pytest.mark.parametrize("second", ["cuda", "cuda_async"])
def test_a_device_has_one_limit(first, second):
    gc.collect()  # what earlier tests' tracebacks keep comes back now, or would make room later
    hamr.trim()
    before = on_device()
    hamr.set_limit(device=0, bytes=before + 16 * MIB)
    held = hamr.Buffer(10 * MIB, "u1", first)
    with pytest.raises(hamr.OutOfMemory, match="the limit is") as caught:
        hamr.Buffer(10 * MIB, "u1", second)
    assert caught.value.size == 10 * MIB
    held.close()
    held = hamr.Buffer(10 * MIB, "u1", second, fill=1)  # what was kept makes room
    assert on_device() <= before + 16 * MIB
    assert held[-1].item() == 1
    hamr.set_limit(device=0, bytes=None)
    hamr.Buffer(20 * MIB, "u1", second).close()


def test_what_the_driver_keeps_makes_room():
    """Its pool takes units that may be more than the limit, and keeps them."""
    gc.collect()
    hamr.trim()
    before = on_device()
    live = hamr.stats()["pools"].get("cuda_async:0", {"current": 0})["current"]
    for _ in range(3):
        hamr.set_limit(device=0, bytes=before + 4 * MIB)
        for size in (1, 3):  # the second fits into what the driver has kept
            hamr.Buffer(size * MIB, "u1", "cuda_async", fill=1).close()
        held = hamr.Buffer(3 * MIB, "u1", "cuda")
        found = hamr.stats()["pools"]["cuda_async:0"]
        assert (found["current"], bool(found["cached"])) == (live, live > 0)
        with pytest.raises(hamr.OutOfMemory, match="the limit is"):
            hamr.Buffer(2 * MIB, "u1", "cuda_async")
        held.close()
        hamr.set_limit(device=0, bytes=None)


def test_a_lower_limit_gives_back_what_is_kept(emulator):
    run_code(
        """
import hamr
from tests.cuda import driver
for allocator in ("cuda", "cuda_async", "cuda_host"):
    hamr.Buffer(3 << 20, "u1", allocator, fill=1).close()
driver.emulator.finish()
pools = hamr.stats()["pools"]
for name in ("cuda:0", "cuda_async:0", "pinned"):
    assert pools[name]["cached"] >= 3 << 20, pools
hamr.set_limit(device=0, bytes=4 << 20, pinned=5 << 20)
pools = hamr.stats()["pools"]
assert pools["pinned"]["cached"] >= 3 << 20
hamr.set_limit(device=0, bytes=0, pinned=0)
pools = hamr.stats()["pools"]
for name in ("cuda:0", "cuda_async:0", "pinned"):
    assert pools[name]["cached"] == 0, pools
assert driver.emulator.live("memory") == 0
"""
    )


def test_limits_of_the_host():
    size = 40 * MIB
    for _ in range(2):
        hamr.Buffer(size, "u1", "malloc", fill=1).close()
    pool = hamr.stats()["pools"]["host"]
    assert (pool["limit"], pool["cached"] >= size, pool["largest_free"] >= size) == (
        pool["limit"],
        True,
        True,
    )
    assert pool["hits"] > 0
    hamr.set_limit(kept="1MiB")
    pool = hamr.stats()["pools"]["host"]
    assert (pool["limit"], pool["cached"] < 2 * MIB) == (MIB, True)
    hamr.Buffer(size, "u1", "malloc", fill=1).close()
    assert hamr.stats()["pools"]["host"]["cached"] < 2 * MIB
    hamr.set_limit(kept=0)
    assert hamr.stats()["pools"]["host"]["cached"] == 0
    hamr.Buffer(10, "u1", "malloc", fill=1).close()
    assert hamr.stats()["pools"]["host"]["cached"] == 0


@pytest.mark.parametrize("argument", ["pinned", "kept", "bytes"])
@pytest.mark.parametrize(
    ("value", "kind"),
    [("1 parsec", ValueError), ("", ValueError), ("-1", ValueError), (-1, ValueError),
     (2**63, ValueError), ("9999999TiB", ValueError), (1.5, TypeError),
     (True, TypeError), ([], TypeError)],
)  # fmt: skip
def test_wrong_limits(argument, value, kind):
    device = {"device": 0} if argument == "bytes" else {}
    before = hamr.limits()
    with pytest.raises(kind) as caught:
        hamr.set_limit(**{argument: value}, **device)
    assert f"{argument} is {value!r}: accepted" in str(caught.value)
    assert hamr.limits() == before


def test_wrong_devices():
    with pytest.raises(ValueError, match="device is given without bytes"):
        hamr.set_limit(device=0)
    with pytest.raises(ValueError, match="bytes is given alone"):
        hamr.set_limit(bytes=1)
    with pytest.raises(ValueError, match=f"device.*{driver.DEVICES}"):
        hamr.set_limit(device=driver.DEVICES, bytes=1)
    with pytest.raises(ValueError, match="device is 'tpu'"):
        hamr.set_limit(device="tpu", bytes=1)
    before = hamr.limits()
    for wrong in ({"device": driver.DEVICES, "bytes": 1}, {"device": 0, "bytes": "x"}):
        with pytest.raises(ValueError, match="accepted"):
            hamr.set_limit(pinned=1, kept=1, **wrong)
        assert hamr.limits() == before


def test_a_pool_that_there_is_not():
    run_code(
        """
import hamr
for limit in ({"pinned": 1}, {"device": 0, "bytes": 1}):
    try:
        hamr.set_limit(**limit)
    except RuntimeError as error:
        assert 'HAMR_CUDA_POOL is "0"' in str(error), error
    except ValueError as error:
        assert 'HAMR_CUDA_POOL is "0"' in str(error), error
    else:
        raise AssertionError(limit)
""",
        env={"HAMR_CUDA_POOL": "0"},
    )


def test_the_settings_of_the_environment():
    run_code(
        """
import hamr
hamr.Buffer(10, "u1", "cuda_host").close()
assert hamr.limits()["pinned"] == 5_000_000
assert hamr.stats()["pools"]["pinned"]["cached"] == 0
hamr.set_limit(pinned=1)
hamr.set_limit(pinned=None)
assert hamr.limits()["pinned"] == 5_000_000
""",
        env={
            "HAMR_PINNED_POOL_LIMIT": "5000000",
            "HAMR_PINNED_POOL_RELEASE_THRESHOLD": "0",
        },
    )


def test_figures_ask_for_no_driver(emulator):
    run_code(
        """
import hamr
assert list(hamr.stats()["pools"]) == ["host"]
assert hamr.limits()["devices"] == {}
import ctypes, os
driver = ctypes.CDLL(os.environ["HAMR_CUDA_LIBRARY"])
assert driver.emulator_calls(b"cuInit") == 0
"""
    )


def test_hits_and_misses():
    before = hamr.stats()["pools"].get("pinned", {"hits": 0, "misses": 0})
    for _ in range(5):
        hamr.Buffer(7 * MIB, "u1", "cuda_host").close()
    found = hamr.stats()["pools"]["pinned"]
    assert (found["hits"] - before["hits"], found["misses"] - before["misses"]) == (4, 1)
    assert found["peak"] >= 7 * MIB
    assert found["largest_free"] >= 7 * MIB
    assert found["current"] + found["cached"] <= found["peak"]


def test_many_operations_stay_within_the_limits():
    """A million at scale 1, of any size and kind; all is given back at the end."""
    hamr.trim()
    base = {name: counters["live"] for name, counters in hamr.stats()["allocators"].items()}
    lent = {name: pool["current"] for name, pool in hamr.stats()["pools"].items()}
    device_limit, pinned_limit = on_device() + 3 * MIB, 4 * MIB
    hamr.set_limit(device=0, bytes=device_limit, pinned=pinned_limit)
    random = np.random.default_rng(1)
    streams = [None, hamr.Stream(device=0), hamr.Stream(device=0)]
    kinds = ["cuda", "cuda_async", "cuda_host", "malloc"]
    held: list[tuple[hamr.Buffer, int]] = []
    full = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hamr.PinnedMemoryWarning)
        for step in range(scaled(1_000_000, 10_000)):
            value = step % 100
            kind, stream = kinds[step % 4], streams[int(random.integers(3))]
            most = int(random.integers(1, 22 if step % 40 < 4 else 16))
            size = int(random.integers(1, 1 << most))
            try:
                if held and step % 3 == 0:
                    source, value = held[int(random.integers(len(held)))]
                    made = source.copy(kind)
                else:
                    made = hamr.Buffer(
                        size, "u1", kind, fill=value, stream=stream, transfer="async"
                    )
                held.append((made, value))
            except hamr.OutOfMemory:
                full += 1
                held.clear()
            while len(held) > 12:
                buffer, expected = held.pop(int(random.integers(len(held))))
                if step % 16 == 0:
                    assert (buffer.get() == expected).all(), step
                buffer.close()
            if step % 500 == 0:
                assert taken("pinned") <= pinned_limit
                assert on_device() <= device_limit
        held.clear()
        made = source = buffer = None
    assert full > 0
    hamr.trim()
    pools = hamr.stats()["pools"]
    assert {name: counters["live"] for name, counters in hamr.stats()["allocators"].items()} == {
        **base, **dict.fromkeys(kinds, 0) , **{k: base.get(k, 0) for k in kinds}
    }  # fmt: skip
    for name in ("pinned", "cuda:0", "cuda_async:0"):
        assert pools[name]["current"] == lent.get(name, 0), name
    assert pools["pinned"]["cached"] == 0
