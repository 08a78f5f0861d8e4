"""``serve_memory``: a process lets others of the same user ask what memory it has."""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import socket
import stat
import struct
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTING = "HAMR_MEMORY"
_PATIENCE = 5.0  # seconds that a peer may take
_PAUSE = 0.1  # seconds between two tries to get a descriptor
_MOST = 1 << 31  # bytes of an answer

_server: MemoryServer | None = None
_lock = threading.Lock()


def folder() -> str:
    """Where the sockets of this user's processes are."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base:
        return os.path.join(base, "hamr-memory")
    return f"/tmp/hamr-memory-{os.getuid()}"


def check_folder(path: str) -> None:
    """Raise PermissionError for a folder that is another user's, or that others can enter.

    It may be a link, but not one that another user could change.
    """
    owner = os.lstat(path).st_uid
    if owner not in (os.getuid(), 0):
        raise PermissionError(f"{path} belongs to user {owner}: accepted is one's own")
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{path} is no directory of its own: accepted is one of mode 0700")
    if found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to user {found.st_uid}: accepted is one's own")
    if found.st_mode & 0o077:
        mode = found.st_mode & 0o7777
        raise PermissionError(f"the mode of {path} is {mode:04o}: accepted is 0700")


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end."""
    size = struct.calcsize("3i")
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    process, user, _ = struct.unpack("3i", said)
    return process, user


class MemoryServer:
    """What ``serve_memory`` returns: ``path`` is the socket; ``close()`` ends it."""

    def __init__(self) -> None:
        home = folder()
        with contextlib.suppress(FileExistsError):
            os.mkdir(home, 0o700)
        check_folder(home)
        self.path = os.path.join(home, f"{os.getpid()}.sock")
        self._pid = os.getpid()
        self._spare = -1  # a descriptor that is freed for a peer when there is no other
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path)  # of an earlier process of this number
            self._socket.bind(self.path)  # nobody else can enter the folder
            os.chmod(self.path, 0o600)
            self._socket.listen(8)
        except BaseException:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._serve, name="hamr memory", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._hold_spare()
        while self._socket.fileno() >= 0:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if error.errno in (errno.EBADF, errno.EINVAL):
                    break  # closed
                self._make_room()
                continue
            with connection, contextlib.suppress(Exception):
                connection.settimeout(_PATIENCE)
                if peer_of(connection)[1] in (os.getuid(), 0):
                    connection.sendall(_answer())
            self._hold_spare()
        self._end_spare()

    def _hold_spare(self) -> None:
        if self._spare < 0:
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _make_room(self) -> None:
        """Free a descriptor: mostly the process has none left, and the peer must not wait."""
        if not self._end_spare():
            time.sleep(_PAUSE)

    def _end_spare(self) -> bool:
        spare, self._spare = self._spare, -1
        if spare >= 0:
            os.close(spare)
        return spare >= 0

    def close(self) -> None:
        """End it, and remove the socket. Harmless twice, and in a forked child."""
        if self._pid != os.getpid():
            return
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)

    def forget(self) -> None:
        """Close the socket in a forked child: it is the parent's."""
        self._socket.close()
        self._end_spare()

    def __repr__(self) -> str:
        return f"<hamr.MemoryServer at {self.path}>"


def _answer() -> bytes:
    try:
        from .snapshots import memory_snapshot

        found: dict[str, Any] = memory_snapshot().plain()
        found["command"] = sys.argv[:1]
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    return json.dumps(found).encode()


def serve_memory() -> MemoryServer:
    """Let ``hamr memory``, run by the same user, ask this process what memory it has.

    It listens on a socket that only the user can reach, until ``close()`` or the process's end.
    A second call returns the same server. HAMR_MEMORY=1 does it when hamr is imported. A forked
    child does not listen. PermissionError if the folder of the sockets is not the user's own.
    """
    global _server
    with _lock:
        if _server is None or _server._pid != os.getpid() or _server._socket.fileno() < 0:
            _server = MemoryServer()
            atexit.register(_server.close)
        return _server


def serve_if_asked() -> None:
    """Call ``serve_memory`` if HAMR_MEMORY says so. Errors go to standard error."""
    said = os.environ.get(SETTING, "")
    if said in ("", "0"):
        return
    if said != "1":
        print(f"hamr: {SETTING} is {said!r}: accepted are 0 and 1", file=sys.stderr)
        return
    try:
        serve_memory()
    except (OSError, RuntimeError) as error:
        print(f"hamr: {SETTING}=1: {error}", file=sys.stderr)


def _after_fork_in_child() -> None:
    global _server, _lock
    _lock = threading.Lock()
    if _server is not None:
        _server.forget()
        _server = None


os.register_at_fork(after_in_child=_after_fork_in_child)


def served() -> list[int]:
    """The processes of this user that can be asked. Sockets of ended processes are removed."""
    home, found = folder(), []
    try:
        check_folder(home)
        names = os.listdir(home)
    except FileNotFoundError:
        return []
    for name in names:
        digits = name.removesuffix(".sock")
        if name == digits or not digits.isdecimal():
            continue
        if os.path.exists(f"/proc/{digits}"):
            found.append(int(digits))
        else:
            with contextlib.suppress(OSError):
                os.remove(os.path.join(home, name))
    return sorted(found)


def ask(process: int) -> dict[str, Any]:
    """The snapshot of another process; OSError where it cannot be asked."""
    home = folder()
    check_folder(home)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(os.path.join(home, f"{process}.sock"))
        user = peer_of(connection)[1]
        if user not in (os.getuid(), 0):
            raise PermissionError(f"process {process} answers as user {user}")
        connection.settimeout(12 * _PATIENCE)
        parts, size = [], 0
        while part := connection.recv(1 << 16):
            parts.append(part)
            size += len(part)
            if size > _MOST:
                raise OSError(f"process {process} says more than {_MOST} bytes")
    found: Any = json.loads(b"".join(parts))
    if not isinstance(found, dict):
        raise OSError(f"process {process} does not answer as hamr does")
    if "error" in found:
        raise OSError(f"process {process}: {found['error']}")
    answer: dict[str, Any] = found
    return answer
