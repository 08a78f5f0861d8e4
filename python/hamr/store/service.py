"""What a service manager and a server tell each other: socket activation, readiness, health."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import contextmanager

from .client import connect
from .errors import StoreError, StoreFull, StoreLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

#: The first descriptor that a service manager hands over: sd_listen_fds(3).
_FIRST = 3
#: Exit statuses of ``hamr store ping``.
ANSWERS, ABSENT, SILENT, FULL, UNABLE = 0, 1, 3, 4, 5


def given_socket() -> int:
    """The descriptor of the socket that the process was started with; 0 if there is none."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return 0
    count = os.environ.get("LISTEN_FDS", "0")
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):  # children must not see them
        os.environ.pop(name, None)
    if count != "1":
        raise ValueError(f"LISTEN_FDS is {count!r}: accepted is one socket")
    return _FIRST


def tell_manager(state: str) -> None:
    """Tell the server's state to the service manager, if one listens: sd_notify(3)."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    address = "\0" + name[1:] if name.startswith("@") else name
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        try:
            manager.sendto(state.encode(), address)
        except OSError:
            return  # the manager has ended: the server works without it


def ping(path: str | None, timeout: float) -> tuple[int, str]:
    """Ask whether a server answers within a time. Returns the exit status, and what to print."""
    start = time.perf_counter()
    try:
        with _ends_after(timeout), connect(path) as client:
            path = client.path
            client.statistics()
    except TimeoutError:
        return SILENT, f"the store has not answered within {timeout:g} s"
    except StoreLost as error:
        # Somebody may listen there who does not answer.
        return SILENT if _somebody_listens(error.path) else ABSENT, str(error)
    except StoreFull as error:
        return FULL, f"clients are turned away: {error}"
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        return UNABLE, f"this process cannot ask: {error}"
    took = (time.perf_counter() - start) * 1e3
    return ANSWERS, f"the store at {path} has answered within {took:.1f} ms"


@contextmanager
def _ends_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in this thread, the main one, after a number of seconds."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _somebody_listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:  # the queue of connections is full
            return True
        except OSError:
            return False
    return True
