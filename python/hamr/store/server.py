"""A server of the store in this process."""

from __future__ import annotations

from collections.abc import Mapping

import hamr._native as _native

from .._base.size import int_of, size_of
from .arguments import flag_of, path_of, socket_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    Limits = Mapping[str, int | str | None] | str


class Server(_native.Owned):
    """Keep objects for this user's processes, until ``close`` or the process's end.

    The server listens at ``path``, by default where ``connect`` looks, on threads of its own.
    ``limit`` is how many bytes it may hold, ``{"host": "8GiB", "gpu": "20GiB"}`` or the text
    ``"host=8GiB,gpu=20GiB"``: of host memory, and of each device's memory. For devices there is no
    limit by default. For host memory the default is half of what the process may have: the least
    of the machine's memory, the limits of its control group and those above, and its limit of
    address space. ``spill`` is a folder. If it is given and room is short, objects that nobody has
    are written to files there, and read back when somebody asks for them. Objects on devices are
    spilled only with ``spill_devices`` and a limit of ``gpu``: this process then maps them to copy
    them, which takes a context on each device. BackendUnavailable if no device's memory can be
    shared. ``metadata`` is how many bytes of metadata an object may have, 48 KiB at most.

    ``ready`` is how many bytes of host memory the server prepares in idle time, for the next
    object that has at least half as many. ``put`` is then about as fast as a copy to memory that
    was used before. These bytes count against the limit, and are released before anything is
    evicted.

    ``socket`` is the descriptor of a socket that listens already, as a service manager makes one
    (``ListenSequentialPacket=`` of systemd). The server listens there, and owns and closes the
    descriptor. The path stays when the server ends.

    Each object of 64 KiB and more takes a file descriptor of this process. So RLIMIT_NOFILE is a
    limit as well: evictable objects are deleted when it is reached.

    StoreRefused if a server answers at the path already.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        limit: Limits | None = None,
        spill: str | None = None,
        spill_devices: bool = False,
        ready: int | str = 0,
        metadata: int | str = "32KiB",
        socket: int = 0,
    ) -> None:
        limits, spills = limits_of(limit), flag_of("spill_devices", spill_devices)
        if spills and (spill is None or "gpu" not in limits):
            raise ValueError("spill_devices is True: accepted with spill and a limit of gpu")
        path, socket = socket_of(path), descriptor_of(socket)
        limit_of = (limits.get("host", 0), limits.get("gpu", 0))
        folder = path_of("spill", spill)
        kept = size_of("ready", ready), size_of("metadata", metadata)
        try:
            _native.store_serve(self, path, folder, *limit_of, *kept, socket, spills)
        except ValueError as error:  # of Go's names
            message = str(error).replace("MaxMetadata", "metadata", 1)
            raise type(error)(message.replace("Socket", "socket")) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "" if self._token else ", closed"
        return f"hamr.store.Server({self.path!r}{state})"

    def statistics(self) -> dict[str, Any]:
        """The server's figures: objects, leases, clients, and bytes of each memory."""
        if not self._token or not self._is_here():
            raise ValueError("the server was closed, or is the parent process's")
        return _native.store_served(self._token)

    def close(self) -> None:
        """End the server. Clients keep the memory that they have."""
        self._end()


def descriptor_of(socket: Any) -> int:
    """A socket's descriptor; 0 is none."""
    number = int_of("socket", socket, "a descriptor, as of socket.fileno()")
    if not 0 <= number < 1 << 31:
        raise ValueError(f"socket is {number}: accepted are 0 ... {(1 << 31) - 1}")
    return number


def _is_size(limit: Any) -> bool:
    """Whether a limit is a number of bytes, without the name of a memory."""
    try:
        size_of("limit", limit)
    except (TypeError, ValueError):
        return False
    return True


def limits_of(limit: Limits | None) -> dict[str, int]:
    """The limits that a user gave, in bytes by ``"host"`` and ``"gpu"``."""
    if limit is None:
        return {}
    if isinstance(limit, str):
        parts = (part.partition("=") for part in limit.split(","))
        pairs: dict[str, int | str | None] = {name: size for name, _, size in parts}
    elif isinstance(limit, Mapping):
        pairs = dict(limit)
    else:
        hint = f"; write 'host={limit}'" if _is_size(limit) else ""
        raise TypeError(
            f"limit is {limit!r}: accepted are texts, as 'host=8GiB', and mappings{hint}"
        )
    unknown = set(pairs) - {"host", "gpu"}
    if unknown:
        hint = f"; write 'host={limit}'" if _is_size(limit) else ""
        raise ValueError(f"limit is {limit!r}: accepted are host=BYTES and gpu=BYTES{hint}")
    sizes = {
        name: size_of(f"limit of {name}", size) for name, size in pairs.items() if size is not None
    }
    for name, size in sizes.items():
        if not size:
            raise ValueError(f"limit of {name} is 0: accepted is a byte and more")
    return sizes
