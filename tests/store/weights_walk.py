"""Kill the programs of examples/weights_server again and again: one copy of the weights stays.

    python -m tests.store.weights_walk --rounds 100 [--device 0] [--size 4GiB] [--json FILE]

Each round kills one of the loader, the workers and the server, or up to three at once, at any
moment. The supervisor starts them again. Then every worker gives the right product, the name is of
the same object, nothing was loaded again, and there was never more than one copy: by the server's
figures, and by the kernel or the driver. Then all four are killed, and the loader again while it
loads. At last a new version replaces the one before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import hamr
import hamr.store
from hamr._benchmark.running import size_of
from tests.gpu.outcomes import machine
from tests.support import emulation
from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "examples" / "weights_server"))
from ask import ask
from demo import WIDTH, Service, eventually, save

MIB = 1 << 20
NAMES = "loader", "server", "worker-0", "worker-1"
VICTIMS = "loader", "worker-0", "server", "worker-1"


def used_of(device: int | None) -> int:
    """What all processes use of a device, by the driver."""
    if device is None or emulation.CHOSEN == "emulator":  # which has no memory of all processes
        return 0
    memory = hamr.memory_info(device)
    return memory.total - memory.free


class Peaks(threading.Thread):
    """The most bytes at a time, by whoever counts them, looked at every 20 ms."""

    def __init__(self, service: Service, device: int | None, before: int) -> None:
        super().__init__(daemon=True)
        self.service, self.device, self.before = service, device, before
        self.ended = threading.Event()
        self.most: dict[str, int] = {}
        self.samples = 0

    def __enter__(self) -> Peaks:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.join()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            self.samples += 1
            for name, nbytes in self.now().items():
                self.most[name] = max(self.most.get(name, 0), nbytes)

    def now(self) -> dict[str, int]:
        found = {"files in memory": self._files()}
        if self.device is not None and emulation.CHOSEN != "emulator":
            found["device, by the driver, with contexts"] = used_of(self.device) - self.before
        try:
            with hamr.store.connect(self.service.store) as client:
                memory = client.statistics()["memory"]
        except hamr.store.StoreError:
            return found
        return {
            **found,
            "server": sum(each["used"] + each["lingering"] for each in memory.values()),
        }

    def _files(self) -> int:
        """What the kernel has for objects of the host that these processes have open or mapped."""
        found: dict[int, int] = {}
        for pid in list(self.service.pids.values()):
            try:
                for path in Path(f"/proc/{pid}/fd").iterdir():
                    if "memfd:hamr-store" in str(path.readlink()):
                        facts = path.stat()
                        found[facts.st_ino] = facts.st_blocks * 512
                for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                    if "memfd:hamr-store" in line:
                        start, _, end = line.split()[0].partition("-")
                        found.setdefault(int(line.split()[4]), int(end, 16) - int(start, 16))
            except OSError:  # it has ended
                continue
        return sum(found.values())


class Walk:
    def __init__(self, folder: Path, nbytes: int, device: int | None, seed: int) -> None:
        self.choose, self.device = random.Random(seed), device
        self.seed, self.model = seed, (model := folder / "model.safetensors")
        self.old: dict[str, np.ndarray] = {}  #: that a worker may still use
        self.arrays = save(model, seed, max(1, nbytes // MIB))
        self.nbytes = sum(array.nbytes for array in self.arrays.values())
        options = () if device is None else ("--device", str(device))
        self.before = used_of(device)
        self.began = time.monotonic()
        self.service = Service(folder, model, *options)
        self.times: dict[str, list[float]] = {}

    def is_right(self, worker: str) -> bool:
        """Whether a worker answers. AssertionError if it does not do so rightly."""
        path = self.choose.choice(list(self.arrays))
        vector = [float(self.choose.randrange(-8, 8)) for _ in range(WIDTH)]
        answer = ask(worker, path, vector)
        products = [
            (arrays[path] @ np.array(vector, "f4")).tolist()
            for arrays in (self.arrays, self.old)
            if arrays
        ]
        assert answer.get("product") in products, (path, answer)
        assert self.id is None or answer["group"] == self.id
        return answer["product"] == products[0]

    id: str | None = None

    def wait_for_all(self, keeps: int) -> None:
        """Every program works: the loader keeps the weights, for so many times by now."""
        service = self.service
        eventually(lambda: sum("loader: " in line for line in service.lines) >= keeps)
        for worker in service.workers:
            eventually(lambda w=worker: self.is_right(w))
        with eventually(lambda: hamr.store.connect(service.store)) as client:
            found = client.get_name("weights", wait=True, timeout=10)
            assert self.id in (None, found)
            (info,) = client.list()
            assert (info.id, info.names, info.pinned) == (found, ("weights",), True)
            self.id = found
        eventually(lambda: len(service.pids) == len(NAMES))

    def kill(self, victims: list[str]) -> None:
        """Kill at once, and tell how long it takes until all is well again."""
        service, kind = self.service, " and ".join(v.split("-")[0] for v in sorted(victims))
        keeps = sum("loader: " in line for line in service.lines) + ("loader" in victims)
        for victim in victims:
            service.kill(victim)
        began = time.monotonic()
        eventually(lambda: any(self.answers(worker) for worker in service.workers))
        self.tell(f"{kind} killed: first right product of any worker", began)
        for name, worker in zip(NAMES[2:], service.workers, strict=True):
            if name in victims:
                eventually(lambda w=worker: self.is_right(w))
                if len(victims) == 1:
                    self.tell("worker killed: first right product of its own", began)
        self.wait_for_all(keeps)
        self.tell(f"{kind} killed: all programs work", began)

    def answers(self, worker: str) -> bool:
        try:
            return self.is_right(worker)
        except OSError:
            return False

    def tell(self, what: str, began: float) -> None:
        self.times.setdefault(what, []).append(time.monotonic() - began)

    def lose_all(self) -> None:
        """Nobody has the weights any more: the loader loads them, though it is killed meanwhile."""
        service, self.id = self.service, None
        before, began = service.loads(), time.monotonic()
        for victim in NAMES:
            service.kill(victim)
        eventually(lambda: "loader" in service.pids)
        time.sleep(self.choose.random() * 4)
        keeps = sum("loader: " in line for line in service.lines)
        with contextlib.suppress(ProcessLookupError):  # it found no server, and has ended itself
            service.kill("loader")
        self.wait_for_all(keeps + 1)
        self.tell("all killed, and the loader again: all programs work", began)
        assert service.loads() > before

    def replace(self) -> None:
        """The workers go over to a new version, and the one before goes."""
        service, self.id = self.service, None
        keeps = sum("loader: " in line for line in service.lines)
        self.old, self.arrays = self.arrays, save(self.model, self.seed + 1, len(self.arrays))
        os.kill(service.pids["loader"], signal.SIGHUP)
        began = time.monotonic()
        for worker in service.workers:
            eventually(lambda w=worker: self.is_right(w))
        self.tell("a new version: both workers use it", began)
        self.old = {}
        self.wait_for_all(keeps + 1)

    def round(self, number: int) -> None:
        several = number % 4 == 3
        victims = self.choose.sample(NAMES, self.choose.choice((2, 3)))
        self.choose.shuffle(victims)
        time.sleep(self.choose.random() / 20)
        self.kill(victims if several else [VICTIMS[(number - number // 4) % len(VICTIMS)]])


def walk(rounds: int, nbytes: int, device: int | None, seed: int) -> dict[str, Any]:
    """The record of so many rounds; an AssertionError says what was lost."""
    with tempfile.TemporaryDirectory() as name:
        found = Walk(Path(name), nbytes, device, seed)
        with found.service as service, Peaks(service, device, found.before) as peaks:
            try:
                return _walk(found, peaks, rounds)
            except BaseException as error:
                print(f"seed {seed}: {error!r}", *service.lines, sep="\n", file=sys.stderr)
                raise


def _walk(found: Walk, peaks: Peaks, rounds: int) -> dict[str, Any]:
    service = found.service
    found.wait_for_all(1)
    found.tell("the service started: all programs work", found.began)
    one, peaks.most = peaks.now(), {}
    assert one["server"] < found.nbytes + max(4 * MIB, found.nbytes // 16)
    for number in range(rounds):
        found.round(number)
        print(f"{number + 1} rounds, {service.loads()} load", flush=True)
    assert service.loads() == 1, "the weights were loaded again"
    for _ in range(1 + rounds // 20):
        found.lose_all()
    most = dict(peaks.most)
    assert peaks.is_alive()
    for kind, nbytes in one.items():
        # Contexts come and go on a device; the rest is exact.
        slack = found.nbytes // 2 if "driver" in kind else 0
        assert most[kind] <= nbytes + slack, f"{kind}: {nbytes} bytes were {most[kind]}"
    found.replace()
    eventually(lambda: peaks.now()["server"] <= one["server"])
    times = {
        what: {
            "times": len(s),
            "median_s": round(statistics.median(s), 4),
            "most_s": round(max(s), 4),
        }
        for what, s in sorted(found.times.items())
    }
    return {
        "rounds": rounds,
        "killed": sum(" ended with -9" in line for line in service.lines),
        "weights_bytes": found.nbytes,
        "loads": 1,
        "bytes_at_rest": one,
        "bytes_at_most": most,
        "samples": peaks.samples,
        "times": times,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--device", type=int, help="a GPU's number; without it the host")
    parser.add_argument("--size", type=size_of, default=64 * MIB, help="of the weights")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", help="write the record there")
    chosen = parser.parse_args()
    emulation.choose()
    record = {
        "machine": {**machine(), "hamr": hamr.__version__},
        "device": "host" if chosen.device is None else f"cuda:{chosen.device}",
        "seed": chosen.seed,
        **walk(chosen.rounds, chosen.size, chosen.device, chosen.seed),
    }
    text = json.dumps(record, indent=1)
    print(text)
    if chosen.json:
        Path(chosen.json).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
