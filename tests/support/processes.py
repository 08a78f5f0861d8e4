"""Run a script of tests/scripts in a process of its own, which may hang or crash."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.paths import PATHS, ROOT, SCRIPTS

#: 1.0 is the full size of the long tests; less makes them shorter.
SCALE = float(os.environ.get("HAMR_TEST_SCALE", "1"))


def scaled(count: int, least: int = 1) -> int:
    """A number of repetitions at the scale of this run."""
    return max(least, int(count * SCALE))


def why_not(command: list[str]) -> str | None:
    """Why a command cannot be run here, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else None


def launch(
    command: list[str], timeout: float, env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Exit status and output of a command; one that hangs is killed, with its children."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, **PATHS, **(env or {})},
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            pytest.fail(f"{command} still ran after {timeout} s; it wrote:\n{output}")
    return process.returncode, output


def run_script(
    name: str,
    *arguments: object,
    timeout: float = 120,
    env: dict[str, str] | None = None,
    folder: Path = SCRIPTS,
) -> str:
    """The output of a folder's NAME.py, run as a module, which must exit with status 0."""
    module = ".".join([*folder.relative_to(ROOT).parts, name])
    command = [sys.executable, "-X", "faulthandler", "-m", module, *map(str, arguments)]
    status, output = launch(command, timeout, env)
    assert status == 0, f"{name} {arguments} exited with {status}:\n{output[-8000:]}"
    return output


def run_code(code: str, timeout: float = 60, env: dict[str, str] | None = None) -> str:
    """The output of Python code, which must exit with status 0."""
    status, output = launch([sys.executable, "-X", "faulthandler", "-c", code], timeout, env)
    assert status == 0, f"exited with {status}:\n{output[-8000:]}"
    return output


def wait_until(condition: Callable[[], object]) -> None:
    """What another process, or a thread, learns of by itself comes soon, but when it comes."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it has not come to pass in 30 s"
        time.sleep(0.005)


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process can open no more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    # The list has its own descriptor, too.
    most = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
