"""Which of OpenCL's devices work is scheduled on, and memory that is kept for it."""

import pytest

import hamr
from hamr import hetero


@pytest.fixture(autouse=True)
def unrestricted(monkeypatch):
    monkeypatch.delenv("HAMR_ACCELERATORS", raising=False)


def kinds():
    return [row["kind"] for row in hamr.backends()["opencl"]["devices"]]


def mine(found):
    return [place for place in found if place.startswith("opencl:")]


def test_processors_are_for_those_who_name_them(monkeypatch):
    places = [f"opencl:{i}" for i in range(len(kinds()))]
    by_default = [place for place, kind in zip(places, kinds(), strict=True) if kind != "cpu"]
    assert mine(hetero.accelerators()) == by_default
    assert hetero.accelerators("opencl") == places
    assert hetero.accelerators(places[-1:]) == places[-1:]
    monkeypatch.setenv("HAMR_ACCELERATORS", places[-1])
    assert hetero.accelerators() == places[-1:]


def test_a_machine_without_accelerators_has_its_own_way():
    chooser = hetero.DeviceChooser()
    assert all(kinds()[int(p.partition(":")[2])] != "cpu" for p in mine(chooser.places))
    if set(kinds()) == {"cpu"}:
        assert hetero.Switch(opencl=1, cpu=2).name == "cpu"
    named = hetero.Switch(opencl=1, cpu=2, among="opencl")
    assert (named.name, named.chosen) == ("opencl", 1)


def test_work_on_a_device_that_was_named(device):
    token = hetero.DeviceChooser(among=[f"opencl:{device}"]).choose(0)
    with hetero.ScopedContext(token) as ctx:
        assert ctx.place == f"opencl:{device}"
        product = ctx.wrap(hamr.Buffer(7, "f4", "opencl_device", device=device, fill=3))
    with hetero.ScopedContext(product) as ctx:
        assert ctx.get(product).get().tolist() == [3] * 7


def test_memory_that_is_kept(device, name):
    token = hetero.DeviceChooser(among=[f"opencl:{device}"]).choose(0)
    with hetero.CachingAllocator(f"opencl:{device}", allocator=name, limit=None) as caching:
        with hetero.ScopedContext(token):
            block = caching.allocate(100, "i4")
            address = block.ptr
            block.fill(1)
            block.close()
            block = caching.allocate((10, 10), "i4")
            assert (block.ptr, caching.stats().hits) == (address, 1)
            block.fill(2)
            assert block.get().tolist() == [[2] * 10] * 10
        del block
