"""The CUDA driver that the tests run on: HAMR_TEST_CUDA names the emulated or the real one."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.paths import ROOT

SOURCES = [ROOT / "tests" / "emulator", ROOT / "backends" / "cuda" / "kernels"]

#: "emulator", "driver" or "", which is none.
CHOSEN = os.environ.get("HAMR_TEST_CUDA", "")


#: Whether the stand-in for HIP's runtime is there beside the emulated driver, over which it is.
HIP = CHOSEN == "emulator" and bool(os.environ.get("HAMR_TEST_HIP"))
NVRTC = [ROOT / "tests" / "cuda" / "nvrtc"]
STAND_IN = [ROOT / "tests" / "hip" / "stand_in", *NVRTC]


def build(sources: list[Path] = SOURCES) -> Path:
    """A library, by default the emulator's, built if no run before has left one of its sources."""
    digest = hashlib.sha256(os.environ.get("CC", "").encode())
    for folder in sources:
        for path in sorted(folder.iterdir()):
            if path.suffix in (".c", ".h", ".cu", ".sh"):
                digest.update(path.name.encode() + path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"hamr-emulator-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is another user's")
    library = folder / f"{digest.hexdigest()[:16]}.so"
    if not library.exists():
        subprocess.run([sources[0] / "build.sh", library], check=True)
    return library


def choose() -> None:
    """Name the chosen driver to hamr, here and in child processes."""
    if CHOSEN not in ("", "driver", "emulator"):
        raise ValueError(f"HAMR_TEST_CUDA is {CHOSEN!r}: accepted are emulator and driver")
    if CHOSEN == "emulator":
        os.environ["HAMR_CUDA_LIBRARY"] = os.environ["HAMR_CUPTI_LIBRARY"] = str(build())
        os.environ.setdefault("HAMR_EMULATOR_DEVICES", "2")
    if HIP:
        os.environ["HAMR_HIP_LIBRARY"] = str(build(STAND_IN))
        os.environ["HAMR_HIP_STAND_IN_DRIVER"] = os.environ["HAMR_CUDA_LIBRARY"]


def entry_points() -> list[str]:
    """The driver's functions that hamr binds."""
    symbols = ROOT / "backends" / "cuda" / "symbols.go"
    return re.findall(r'dl:"(cu\w+)', symbols.read_text())


class Emulator:
    """The emulator's inspection and faults, which a real driver does not have."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.entry_points = entry_points()
        library.emulator_violation.restype = ctypes.c_char_p

    def fail(self, call: str, nth: int, error: int) -> None:
        """Make the nth call from now on return a code and do nothing else; 0 is every one."""
        self.library.emulator_fail(call.encode(), nth, error)

    def stop_failing(self) -> None:
        self.library.emulator_stop_failing()

    def hold(self, stream: int) -> None:
        """Enqueue work that lasts until let_go(), on a stream of the current device."""
        assert self.library.emulator_hold(ctypes.c_uint64(stream)) == 0

    def let_go(self) -> None:
        self.library.emulator_let_go()

    def fail_locking(self, nth: int, error: int) -> None:
        """Has the driver page-lock no more memory, the nth time or, for zero, every time.

        Where it does not register memory it is asked to allocate some.
        """
        self.fail("cuMemHostRegister_v2", nth, error)
        self.fail("cuMemHostAlloc", min(nth, 1), error)

    def calls(self, call: str) -> int:
        made: int = self.library.emulator_calls(call.encode())
        return made

    def live(self, what: str) -> int:
        """How much is live of "memory", "bytes", "streams", "events", "pools", …"""
        found: int = self.library.emulator_live(what.encode())
        assert found >= 0, what
        return found

    def violations(self) -> list[str]:
        count: int = self.library.emulator_violations()
        return [self.library.emulator_violation(i).decode() for i in range(count)]

    def reset(self) -> None:
        self.library.emulator_reset()

    def finish(self) -> None:
        """Do all late work."""
        self.library.emulator_finish()

    def pending(self) -> int:
        """How many pieces of late work there are."""
        found: int = self.library.emulator_pending()
        return found

    def peek(self, address: int, shape: Any, dtype: Any) -> np.ndarray:
        """What memory holds now, whatever work is pending."""
        array = np.empty(shape, dtype)
        out, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_ulong(array.nbytes)
        self.library.emulator_peek(ctypes.c_uint64(address), out, size)
        return array

    def count_calls(self, operation: Callable[[], Any]) -> dict[str, int]:
        """Which entry points an operation calls, and how often."""
        before = {name: self.calls(name) for name in self.entry_points}
        operation()
        made = {name: self.calls(name) - before[name] for name in self.entry_points}
        return {name: n for name, n in made.items() if n}
