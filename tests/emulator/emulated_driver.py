"""The emulator through ctypes: calls by name, with checks of their results."""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys

from tests.support.paths import PATHS

HERE = pathlib.Path(__file__).parent
GARBAGE = 0xDB

INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 1, 2, 3
NO_DEVICE, INVALID_DEVICE, INVALID_CONTEXT = 100, 101, 201
PEER_ACCESS_UNSUPPORTED, INVALID_PTX, INVALID_HANDLE, NOT_FOUND = 217, 218, 400, 500
NOT_READY, ILLEGAL_ADDRESS = 600, 700
PEER_ACCESS_ALREADY_ENABLED, PEER_ACCESS_NOT_ENABLED = 704, 705
CONTEXT_IS_DESTROYED, NOT_PERMITTED, NOT_SUPPORTED = 709, 800, 801


def build(folder: pathlib.Path, soname: str, **environment: str) -> pathlib.Path:
    output = folder / soname
    environment = os.environ | {"SONAME": soname} | environment
    subprocess.run([HERE / "build.sh", output], check=True, env=environment)
    return output


def run_script(library: pathlib.Path, script: str, **environment: str) -> str:
    """Runs a script in a process of its own, with `d` the driver, and returns its output."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HAMR_")}
    prologue = "import os; from tests.emulator.emulated_driver import *; "
    prologue += f"d = Driver({str(library)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", prologue + script],
        env=clean | PATHS | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def as_argument(value):
    return ctypes.c_int64(value) if isinstance(value, int) else value


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("allocation", ctypes.c_int), ("handles", ctypes.c_int), ("kind", ctypes.c_int),
        ("device", ctypes.c_int), ("unused", ctypes.c_byte * 16),
    )  # fmt: skip


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("kind", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int))


class Driver:
    def __init__(self, library: str | os.PathLike):
        self.library = ctypes.CDLL(os.fspath(library))
        self.library.emulator_violation.restype = ctypes.c_char_p

    def code(self, name: str, *arguments) -> int:
        return getattr(self.library, name)(*map(as_argument, arguments))

    def do(self, name: str, *arguments) -> None:
        code = self.code(name, *arguments)
        assert code == 0, f"{name} returned {code}"

    def get(self, name: str, *arguments, kind=ctypes.c_uint64):
        """The value that a call writes to its first argument."""
        value = kind()
        self.do(name, ctypes.byref(value), *arguments)
        return value.value

    def start(self, device: int = 0) -> int:
        """Initialises the driver and makes a device current."""
        self.do("cuInit", 0)
        return self.use(device)

    def use(self, device: int) -> int:
        context = self.get("cuDevicePrimaryCtxRetain", device)
        self.do("cuCtxSetCurrent", context)
        return context

    def violations(self) -> list[str]:
        count = self.library.emulator_violations()
        return [self.library.emulator_violation(i).decode() for i in range(count)]

    def live(self, what: str) -> int:
        return self.library.emulator_live(what.encode())

    def fail(self, name: str, nth: int, error: int) -> None:
        self.library.emulator_fail(name.encode(), nth, error)

    def calls(self, name: str) -> int:
        return self.library.emulator_calls(name.encode())

    def peek(self, address: int, size: int) -> bytes:
        out = ctypes.create_string_buffer(size)
        self.library.emulator_peek(as_argument(address), out, as_argument(size))
        return out.raw

    def poke(self, address: int, data: bytes) -> None:
        self.library.emulator_poke(as_argument(address), data, as_argument(len(data)))

    def pending(self) -> int:
        return self.library.emulator_pending()

    def finish(self) -> None:
        self.library.emulator_finish()

    def stream(self, flags: int = 1) -> int:
        return self.get("cuStreamCreate", flags)

    def event(self) -> int:
        return self.get("cuEventCreate", 2)

    def allocate(self, size: int) -> int:
        return self.get("cuMemAlloc_v2", size)

    def fill(self, address: int, value: int, size: int, stream: int = 0) -> None:
        self.do("cuMemsetD8Async", address, value, size, stream)

    def scale(self, stream: int, target: int, source: int, count: int, scale: float, offset: float):
        factors = ctypes.c_float(scale), ctypes.c_float(offset)
        return self.code("emulator_kernel", stream, target, source, count, *factors)


def address_of(buffer: ctypes.Array) -> int:
    return ctypes.addressof(buffer)


def seen(address: int, size: int) -> bytes:
    """What the host sees of pinned or managed memory."""
    return ctypes.string_at(address, size)


@contextlib.contextmanager
def violation(d, words):
    """Exactly one violation, which has these words."""
    assert d.violations() == []
    yield
    found = d.violations()
    d.library.emulator_reset()
    assert len(found) == 1, found
    assert words in found[0]


@contextlib.contextmanager
def memory(d, size, call="cuMemAlloc_v2", *arguments):
    at = d.get(call, size, *arguments)
    yield at
    d.do("cuMemFreeHost" if call == "cuMemHostAlloc" else "cuMemFree_v2", at)


@contextlib.contextmanager
def streams(d, count, flags=1):
    made = [d.stream(flags) for _ in range(count)]
    yield made
    for stream in made:
        d.do("cuStreamDestroy_v2", stream)


@contextlib.contextmanager
def event(d):
    made = d.event()
    yield made
    d.do("cuEventDestroy_v2", made)


@contextlib.contextmanager
def device(d, number):
    """Makes another device current for a while."""
    d.do("cuCtxPushCurrent_v2", d.get("cuDevicePrimaryCtxRetain", number))
    yield
    d.do("cuCtxPopCurrent_v2", None)
    d.do("cuDevicePrimaryCtxRelease_v2", number)
