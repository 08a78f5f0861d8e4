"""Before hamr raises OutOfMemory, CuPy's and torch's pools are asked to give back what is idle."""

from __future__ import annotations

import sys
import types

import pytest

import hamr
from tests.cuda import driver
from tests.cuda.full_devices import COUNT, fill_device

pytestmark = pytest.mark.usefixtures("trimmed")


class Hoard:
    """Memory that a library keeps and nobody uses, of the driver that hamr uses."""

    def __init__(self, device=0, kind="cuda"):
        self.device, self.kind = device, kind
        self.held, self.calls = [], []

    def take(self, size):
        self.held.append((driver.allocate(size, self.device, self.kind), size))

    def give_back(self):
        self.calls.append("give back")
        for address, _ in self.held:
            driver.free(address, self.device, self.kind)
        self.held.clear()

    def idle(self):
        return sum(size for _, size in self.held)


def fake_cupy(hoard, pinned):
    module, entered = types.ModuleType("cupy"), []

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            entered.append(self.number)

        def __exit__(self, *_):
            entered.append("left")

    module.cuda = types.SimpleNamespace(Device=Device)
    pool = types.SimpleNamespace(free_bytes=hoard.idle, free_all_blocks=hoard.give_back)
    locked = types.SimpleNamespace(
        n_free_blocks=lambda: len(pinned.held), free_all_blocks=pinned.give_back
    )
    module.get_default_memory_pool = lambda: pool
    module.get_default_pinned_memory_pool = lambda: locked
    module.entered = entered
    return module


def fake_torch(hoard, initialised=True):
    module = types.ModuleType("torch")

    def used(_device=None):
        assert initialised, "a device is only asked for what it has"
        return hoard.idle()

    module.cuda = types.SimpleNamespace(
        is_initialized=lambda: initialised, memory_reserved=used, empty_cache=hoard.give_back
    )
    return module


@pytest.fixture
def room():
    """How much a device has that nobody has taken."""
    free, _ = hamr.memory_info(0)
    return free


def test_cupy_gives_its_idle_memory_back(emulator, monkeypatch, room):
    hoard, pinned = Hoard(), Hoard(kind="cuda_host")
    cupy = fake_cupy(hoard, pinned)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    hoard.take(int(room * 0.6))
    buffer = hamr.Buffer(int(room * 0.6), "u1", "cuda", fill=1)
    assert hoard.calls == ["give back"]
    assert cupy.entered == [0, "left"]
    assert pinned.calls == []
    assert buffer[-1].item() == 1
    with pytest.raises(hamr.OutOfMemory, match=r"what hamr itself keeps, cupy's pool$"):
        hamr.Buffer(int(room * 0.6), "u1", "cuda")


def test_torch_gives_its_idle_memory_back(emulator, monkeypatch, room):
    hoard = Hoard()
    monkeypatch.setitem(sys.modules, "torch", fake_torch(hoard))
    hoard.take(int(room * 0.6))
    buffer = hamr.Buffer(int(room * 0.6), "u1", "cuda_async", fill=1)
    assert hoard.calls == ["give back"]
    assert buffer[-1].item() == 1


def test_both_are_asked_and_callbacks_after_them(emulator, monkeypatch, register, room):
    first, second = Hoard(), Hoard()
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(first, Hoard()))
    monkeypatch.setitem(sys.modules, "torch", fake_torch(second))
    first.take(int(room * 0.3))
    second.take(int(room * 0.3))
    register(lambda *_: first.calls.append("callback"))
    hamr.Buffer(int(room * 0.8), "u1", "cuda", fill=1).close()
    assert first.calls == ["give back", "callback"]
    assert second.calls == ["give back"]


def test_page_locked_memory_comes_from_cupys_other_pool(emulator, monkeypatch):
    hoard, pinned = Hoard(), Hoard(kind="cuda_host")
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(hoard, pinned))
    pinned.take(1000)
    give_back = pinned.give_back
    cupy = sys.modules["cupy"].get_default_pinned_memory_pool()
    cupy.free_all_blocks = lambda: (emulator.stop_failing(), give_back())
    fill_device(emulator)
    buffer = hamr.Buffer(COUNT, "f4", "cuda_host", fill=1)
    assert buffer.allocator == hamr.Allocator.cuda_host
    assert (hoard.calls, pinned.calls) == ([], ["give back"])


def test_a_torch_without_a_device_is_left_alone(emulator, monkeypatch):
    hoard = Hoard()
    monkeypatch.setitem(sys.modules, "torch", fake_torch(hoard, initialised=False))
    fill_device(emulator)
    with pytest.raises(hamr.OutOfMemory, match=r"tried: what hamr itself keeps$"):
        hamr.Buffer(COUNT, "f4", "cuda")
    assert hoard.calls == []


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_a_module_that_is_not_what_it_is_called(emulator, monkeypatch, name):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda x: reported.append(x.exc_type))
    module = types.ModuleType(name)
    if name == "torch":
        module.cuda = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, name, module)
    fill_device(emulator)
    with pytest.raises(hamr.OutOfMemory):
        hamr.Buffer(COUNT, "f4", "cuda")
    assert reported == [AttributeError]


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
def test_hamrs_own_limit_is_no_others_business(emulator, monkeypatch, register):
    hoard, asked = Hoard(), []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(hoard, Hoard()))
    register(lambda *arguments: asked.append(arguments))
    hamr.set_limit(device=0, bytes=0)
    with pytest.raises(hamr.OutOfMemory, match="the limit is 0 bytes"):
        hamr.Buffer(COUNT, "f4", "cuda")
    hamr.set_limit(device=0, bytes=None)
    assert (hoard.calls, len(asked)) == ([], 1)
