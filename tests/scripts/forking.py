"""Start children by os.fork, and hear from each through a pipe."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback


def copies() -> set[str]:
    """The inodes of the private copies of hamr's library that this process has mapped."""
    with open("/proc/self/maps") as file:
        return {line.split()[4] for line in file if "memfd:hamr" in line}


def original() -> bool:
    """Whether this process has mapped the installed library."""
    with open("/proc/self/maps") as file:
        return any("_pyhamr" in line for line in file)


def start(work, finish=os._exit):
    """Fork; the child runs work and reports. Returns its process number and the pipe's end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.close(reading)
    status = 1
    try:
        work()
        os.write(writing, b"done")
        status = 0
    except BaseException:
        os.write(writing, traceback.format_exc().encode()[-60000:])
    finally:
        os.close(writing)
        if status:
            os._exit(status)
    finish(0)
    return 0, 0


def outcome(child: int, reading: int, patience: float = 60) -> str:
    """ "done", or what went wrong in the child; one that hangs is killed."""
    text = b""
    limit = time.monotonic() + patience
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, limit - time.monotonic()))
        piece = os.read(reading, 65536) if ready else None
        if not piece:
            break
        text += piece
    os.close(reading)
    # The report is written before the child ends, and the end may hang, too.
    while piece is not None:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return (
                text.decode() if status == 0 or text != b"done" else f"ended with status {status}"
            )
        if time.monotonic() > limit:
            break
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"hung, after {text.decode()!r}"


def run(work, patience: float = 60) -> None:
    """Run work in a child, which must succeed."""
    result = outcome(*start(work), patience)
    assert result == "done", result
