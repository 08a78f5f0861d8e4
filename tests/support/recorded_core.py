"""A stand-in for the Go core that answers what streams, events and devices ask, and records it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import hamr

MODULES = [
    import_module(f"hamr._base.{name}")
    for name in ("stream", "location", "cuda_devices", "waiting")
]
NEW, EVENT, OF_THREAD = 0x100, 0x200, 0x300


class Core:
    """Answers the calls that streams, events and devices make, and remembers them."""

    def __init__(self):
        self.calls = []
        self.retired = []
        self.asked = []
        self.places = {}  # the devices of streams; -2 is no stream
        self.current = 0
        self.busy = 0  # how often work is not over yet

    def __call__(self, name, *arguments):
        calls = self.asked if name == "StreamDevice" else self.calls
        calls.append((name, *arguments))
        return getattr(self, name)(*arguments)

    def finish(self, generation, name, *arguments):
        assert generation == hamr._native.generation()
        calls = self.retired if name == "RetireStream" else self.calls
        calls.append((name, *arguments))

    def over(self, *arguments):
        self.busy -= 1
        return self.busy < 0

    StreamIdle = WaitStream = EventDone = WaitEvent = over

    def CurrentDevice(self, backend):  # noqa: N802
        return self.current

    def DeviceCount(self, backend):  # noqa: N802
        return 3

    def Activate(self, backend, device):  # noqa: N802
        before, self.current = self.current, device
        return before

    def Restore(self, backend, before):  # noqa: N802
        self.current = before

    def NewStream(self, backend, device):  # noqa: N802
        return NEW + device

    def StreamDevice(self, backend, stream):  # noqa: N802
        return self.places.get(stream, -1)

    def ResolveStream(self, backend, device, stream):  # noqa: N802
        return OF_THREAD + device

    def RecordEvent(self, backend, device, stream):  # noqa: N802
        return EVENT + device

    def StreamWaitEvent(self, backend, device, stream, event):  # noqa: N802
        return 0

    def CanAccess(self, backend, user, owner):  # noqa: N802
        return 2 not in (user, owner)

    def EnablePeer(self, backend, user, owner):  # noqa: N802
        return 0

    def MemoryInfo(self, backend, device):  # noqa: N802
        return "10 30"

    def Describe(self, backend, device):  # noqa: N802
        return '[["name", "Tester"], ["driver", "13.0"]]'

    def Locate(self, address):  # noqa: N802
        return '{"allocator": "cuda", "device": 2, "base": 4096, "size": 64}'


def foreign(kind="Stream", **attributes):
    """An object of another library."""
    return type(kind, (), attributes)()


@contextmanager
def in_place_of_the_core(monkeypatch) -> Iterator[Core]:
    """What streams, events and devices ask meanwhile."""
    made = Core()
    for module in MODULES:
        monkeypatch.setattr(module, "call", made)
    monkeypatch.setattr(hamr.Event.__del__, "__defaults__", (made.finish,))
    before = hamr._native.set_stream_end(made.finish)
    try:
        yield made
        gc.collect()  # what the test made ends while its core is there
    finally:
        hamr._native.set_stream_end(before)
