"""A stand-in for the Go core that answers what streams, events and devices ask, and records it."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import hamr
from tests.support import function_table

MODULES = [
    import_module(f"hamr._base.{name}")
    for name in ("stream", "memory_stream", "timing", "cuda_devices")
]
ENDINGS = {
    "retire_stream": ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32)
    ),
    "destroy_stream": ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_uint64
    ),
    "destroy_event": ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_uint64
    ),
}
NEW, EVENT, OF_THREAD, TIMED = 0x100, 0x200, 0x300, 0x400


class Core:
    """Answers the calls that streams, events and devices make, and remembers them."""

    def __init__(self):
        self.calls = []
        self.retired = []
        self.asked = []
        self.places = {}  # the devices of streams; -2 is no stream
        self.current = 0
        self.busy = 0  # how often work is not over yet

    def __getattribute__(self, name):
        answer = object.__getattribute__(self, name)
        if not name[0].isupper():
            return answer

        def recorded(*arguments):
            calls = self.asked if name == "StreamDevice" else self.calls
            calls.append((name, *arguments))
            return answer(*arguments)

        return recorded

    def retire_stream(self, stream, over):
        self.retired.append(("RetireStream", stream))
        over[0] = 1

    def destroy_stream(self, backend, device, stream):
        self.calls.append(("DestroyStream", backend.decode(), device, stream))

    def destroy_event(self, backend, device, event):
        self.calls.append(("DestroyEvent", backend.decode(), device, event))

    def memory_info(self, backend, device):
        self.calls.append(("MemoryInfo", backend, device))
        return 10, 30

    def describe(self, backend, device, whole):
        assert whole
        self.calls.append(("Describe", backend, device))
        return {"name": "Tester", "driver": "13.0"}

    def locate(self, address):
        self.calls.append(("Locate", address))
        return 2, 2, 4096, 64

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

    def RecordTimedEvent(self, backend, device, stream):  # noqa: N802
        return TIMED + device

    def Elapsed(self, backend, device, first, second):  # noqa: N802
        return 1_500_000

    def StreamWaitEvent(self, backend, device, stream, event):  # noqa: N802
        return 0

    def CanAccess(self, backend, user, owner):  # noqa: N802
        return 2 not in (user, owner)

    def EnablePeer(self, backend, user, owner):  # noqa: N802
        return 0


def foreign(kind="Stream", **attributes):
    """An object of another library."""
    return type(kind, (), attributes)()


@contextmanager
def in_place_of_the_core(monkeypatch) -> Iterator[Core]:
    """What streams, events and devices ask meanwhile."""
    made = Core()
    for module in MODULES:
        monkeypatch.setattr(module, "core", lambda: made)
    for name in ("memory_info", "describe", "locate"):
        monkeypatch.setattr(hamr._native, name, getattr(made, name))
    callbacks = {name: kind(getattr(made, name)) for name, kind in ENDINGS.items()}
    before = {}
    for name, callback in callbacks.items():
        place = function_table.entry(name)
        before[name], place.value = place.value, ctypes.cast(callback, ctypes.c_void_p).value
    try:
        yield made
        gc.collect()  # what the test made ends while its core is there
    finally:
        for name, address in before.items():
            function_table.entry(name).value = address
