"""The whole service within seconds: its programs are killed in turn, and a new version is loaded.

python demo.py [--device 0]
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ask import ask
from safetensors.numpy import save_file

import hamr.store

ARRAY, WIDTH = "layers.3.weight", 512
VECTOR = [float(n % 7) for n in range(WIDTH)]


def save(path: Path, version: int, layers: int = 4) -> dict[str, np.ndarray]:
    """Write a model of small whole numbers, of 1 MiB for each layer; returns its arrays."""
    numbers = np.random.default_rng(version)
    arrays = {
        f"layers.{n}.weight": numbers.integers(-8, 8, (WIDTH, WIDTH)).astype("f4")
        for n in range(layers)
    }
    new = path.with_suffix(".new")
    save_file(arrays, new)
    new.rename(path)  # whoever opens the file has the old one or the new one, whole
    return arrays


class Service:
    """A supervisor and what it has started."""

    def __init__(self, folder: Path, model: Path, *options: str) -> None:
        self.store = str(folder / "store.sock")
        self.workers = [str(folder / f"worker-{n}.sock") for n in (0, 1)]
        self.lines: list[str] = []  #: what all its programs have printed
        self.pids: dict[str, int] = {}  #: of the programs, by name
        program = Path(__file__).with_name("supervisor.py")
        self.process = subprocess.Popen(
            [sys.executable, program, folder, model, *options], stdout=subprocess.PIPE, text=True
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                if found := re.match(r"supervisor: started (\S+) as (\d+)", line):
                    self.pids[found[1]] = int(found[2])

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.terminate()
        self.process.wait()
        self.reader.join()

    def kill(self, name: str) -> None:
        """End a program as a crash does."""
        os.kill(self.pids.pop(name), signal.SIGKILL)

    def loads(self) -> int:
        """How often the weights were loaded."""
        return sum(line.startswith("loader: loaded") for line in self.lines)


def eventually(call: Callable[[], Any], seconds: float = 60) -> Any:
    """What a call returns that is not false, once it raises no OSError or StoreError any more."""
    until = time.monotonic() + seconds
    while True:
        try:
            if found := call():
                return found
        except (OSError, hamr.store.StoreError):
            if time.monotonic() > until:
                raise
        if time.monotonic() > until:
            raise TimeoutError(f"nothing came within {seconds} s")
        time.sleep(0.005)


def show(service: Service, what: str, worker: str, expected: list[float]) -> None:
    began = time.monotonic()
    right = eventually(lambda: ask(worker, ARRAY, VECTOR))["product"] == expected
    took = time.monotonic() - began
    with eventually(lambda: hamr.store.connect(service.store)) as client:
        client.get_name("weights", wait=True, timeout=10)
        memory = client.statistics()["memory"]
    used = ", ".join(f"{each['used'] >> 10} KiB of {name}" for name, each in memory.items())
    print(
        f"{what}: the product after {took:.2f} s, right: {right}, loads: {service.loads()}, {used}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a GPU's number; without it the host")
    device = parser.parse_args().device
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.safetensors"
        expected = (save(model, 1)[ARRAY] @ np.array(VECTOR, "f4")).tolist()
        with Service(folder, model, *(() if device is None else ("--device", device))) as service:
            show(service, "started", service.workers[0], expected)
            eventually(lambda: len(service.pids) == 4 and "loader: loaded" in str(service.lines))
            for victim in ("worker-0", "server", "loader"):
                service.kill(victim)
                show(service, f"{victim} killed", service.workers[0], expected)
                eventually(lambda: len(service.pids) == 4)
            eventually(lambda: "loader: found" in str(service.lines))
            arrays = save(model, 2)
            os.kill(service.pids["loader"], signal.SIGHUP)
            expected = (arrays[ARRAY] @ np.array(VECTOR, "f4")).tolist()
            began = time.monotonic()
            for worker in service.workers:
                eventually(lambda w=worker: ask(w, ARRAY, VECTOR)["product"] == expected)
            print(f"a new version: used by both workers after {time.monotonic() - began:.2f} s")
        print("all ended:", service.process.returncode)


if __name__ == "__main__":
    main()
