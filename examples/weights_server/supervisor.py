"""Run a server, a loader and workers, and start again whatever ends.

    python supervisor.py FOLDER model.safetensors [--workers 2] [--device 0]

The workers answer at FOLDER/worker-0.sock, FOLDER/worker-1.sock and so on. SIGTERM ends all.
"""

import argparse
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: Seconds. What has run for longer is started again after the first pause.
LONG = 1.0


class Program:
    """A command that is started again after a pause, which grows while it fails at once."""

    def __init__(self, name: str, *command: str | Path) -> None:
        self.name, self.command = name, command
        self.pause = FIRST_PAUSE
        self.process: subprocess.Popen[bytes] | None = None
        self.due = 0.0  # look() starts it

    def start(self) -> None:
        """Start the command."""
        self.process = subprocess.Popen(self.command)
        self.began = time.monotonic()
        print(f"supervisor: started {self.name} as {self.process.pid}", flush=True)

    def look(self) -> None:
        """Start it if it has ended and its pause is over."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.due:
                self.start()
        elif (status := self.process.poll()) is not None:
            fails = status != -signal.SIGKILL and now - self.began < LONG
            self.pause = min(2 * self.pause, LONGEST_PAUSE) if fails else FIRST_PAUSE
            self.process, self.due = None, now + self.pause
            print(f"supervisor: {self.name} ended with {status}", flush=True)

    def end(self) -> None:
        """End it, by force after 10 s."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for the sockets")
    parser.add_argument("path", help="a safetensors file, or a folder of them")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", type=int, help="a GPU's number; without it the host")
    parser.add_argument("--limit", help="of the store, as host=8GiB")
    chosen = parser.parse_args()

    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer)  # ends a wait at once
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)

    chosen.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    alone = os.open(chosen.folder, os.O_RDONLY)
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"supervisor: another one runs in {chosen.folder}")
    os.environ["HAMR_STORE"] = store = str(chosen.folder / "store.sock")  # for all of them
    limit = ("--limit", chosen.limit) if chosen.limit else ()
    device = () if chosen.device is None else ("--device", str(chosen.device))
    python = sys.executable
    programs = [Program("server", python, "-m", "hamr", "store", "serve", *limit)]
    others = {"loader": (python, HERE / "loader.py", chosen.path, *device)}
    for number in range(chosen.workers):
        socket = chosen.folder / f"worker-{number}.sock"
        others[f"worker-{number}"] = python, HERE / "worker.py", socket

    told = b""
    try:
        while not {signal.SIGINT, signal.SIGTERM} & set(told):
            if others and Path(store).is_socket():  # the server listens
                programs += [Program(name, *command) for name, command in others.items()]
                others = {}
            for program in programs:
                program.look()
            waits = others or any(program.process is None for program in programs)
            told = b""
            if select.select([reader], [], [], 0.02 if waits else None)[0]:
                told = os.read(reader, 100)
    finally:  # also if no process could be started, or nobody reads what is printed
        for program in reversed(programs):
            program.end()


if __name__ == "__main__":
    main()
