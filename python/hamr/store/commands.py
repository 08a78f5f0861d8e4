"""``hamr store``: runs a server, and shows what is in one."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from argparse import ArgumentTypeError

from .._base.errors import Error
from .._base.size import count_of
from . import service
from .client import Client, connect
from .server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from .description import ObjectInfo

#: The longest time in seconds that the system's timers and locks accept.
_LONGEST = threading.TIMEOUT_MAX


def add_options(parser: argparse.ArgumentParser) -> None:
    """The commands of ``hamr store``."""
    commands = parser.add_subparsers(dest="store_command", required=True, metavar="command")
    serve = commands.add_parser("serve", help="keep objects, until it is interrupted or terminated")
    add = serve.add_argument
    add(
        "--limit",
        metavar="host=SIZE,gpu=SIZE",
        help="bytes of the host, and of each device; by default half of what the process may have "
        "by the machine's memory, its cgroup's limits and its address space, and no limit",
    )
    add("--spill", metavar="DIR", help="write to files here what there is no room for")
    add("--spill-devices", action="store_true", help="spill from devices, too; needs contexts")
    add("--ready", metavar="SIZE", default="0", help="bytes kept ready for a large object")
    add("--metrics", metavar="[HOST:]PORT", help="serve figures for Prometheus")
    listed = commands.add_parser("list", help="the objects that there are")
    listed.add_argument("--name", metavar="PATTERN", default="", help="those of such names")
    commands.add_parser("stat", help="what the server counts")
    pinged = commands.add_parser(
        "ping",
        help="whether the server answers: status 0, 1 (there is none), 3 (it is silent), "
        "4 (it turns clients away: it has no connections or descriptors left) or "
        "5 (this process has none)",
    )
    pinged.add_argument(
        "--timeout", metavar="SECONDS", type=_timeout, default=5.0, help="default 5"
    )
    top = commands.add_parser("top", help="the same and the largest objects, again and again")
    top.add_argument("--every", metavar="SECONDS", type=_seconds, default=1.0, help="default 1")
    top.add_argument("--times", metavar="N", type=count_of, help="so often, and end")
    for command in commands.choices.values():
        command.add_argument("--socket", metavar="PATH", help="where the server listens")
    for name in ("list", "stat", "top"):
        commands.choices[name].add_argument("--json", action="store_true", help="print JSON")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no time: accepted is a number of seconds")
    if seconds > _LONGEST:
        raise ArgumentTypeError(f"{text!r} is too long: accepted are up to {_LONGEST:.0f} seconds")
    return seconds


def _timeout(text: str) -> float:
    seconds = _seconds(text)
    if not seconds:
        raise ArgumentTypeError(f"{text!r} is no time to wait: accepted is more than 0")
    return seconds


def run(chosen: argparse.Namespace) -> int:
    """Do what the command line says. Returns the exit status."""
    try:
        if chosen.store_command == "serve":
            return _serve(chosen)
        if chosen.store_command == "ping":
            status, told = service.ping(chosen.socket, chosen.timeout)
            print(f"hamr store: {told}", file=sys.stderr if status else sys.stdout)
            return status
        with connect(chosen.socket) as client:
            command = {"list": _list, "stat": _stat, "top": _top}[chosen.store_command]
            command(client, chosen)
    except (Error, ValueError, OSError) as error:
        print(f"hamr store: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(chosen: argparse.Namespace) -> int:
    # Signals are read from a descriptor, since Python's handlers run only when the main thread
    # wakes. The descriptor is written on whatever thread gets the signal.
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(reader, True)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    # Each large object is an open file.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    options = {
        "limit": chosen.limit,
        "spill": chosen.spill,
        "spill_devices": chosen.spill_devices,
        "ready": chosen.ready,
        "socket": service.given_socket(),
    }
    with Server(chosen.socket, **options) as server:
        if chosen.metrics:
            from .metrics import serve

            try:
                serve(server, chosen.metrics)
            except ModuleNotFoundError as error:
                raise ValueError(f"--metrics: {error}: pip install 'hamr[metrics]'") from None
        print(f"hamr store: listening at {server.path}", flush=True)
        service.tell_manager("READY=1")
        os.read(reader, 1)
        service.tell_manager("STOPPING=1")
    return 0


def _list(client: Client, chosen: argparse.Namespace) -> None:
    if chosen.json:
        objects = [info._asdict() for info in client.list(chosen.name)]
        print(json.dumps(objects, indent=1, default=str))
        return
    print(_HEAD)
    for info in client.list(chosen.name):
        print(_line(info))


def _stat(client: Client, chosen: argparse.Namespace) -> None:
    figures = client.statistics()
    print(json.dumps(figures, indent=1) if chosen.json else "\n".join(_figures(figures)))


def _top(client: Client, chosen: argparse.Namespace) -> None:
    times, ended = 0, threading.Event()
    while True:
        figures = client.statistics()
        largest = sorted(client.list(), key=lambda info: -info.nbytes)[:20]
        if chosen.json:
            objects = [info._asdict() for info in largest]
            print(json.dumps({**figures, "largest": objects}, default=str), flush=True)
        else:
            if sys.stdout.isatty():
                print("\033[H\033[2J", end="")
            lines = [*_figures(figures), "", _HEAD, *map(_line, largest)]
            print("\n".join(lines), flush=True)
        times += 1
        if chosen.times is not None and times >= chosen.times:
            return
        ended.wait(chosen.every)


_HEAD = f"{'id':34}{'bytes':>14}  {'type':12}{'shape':18}{'leases':>7}  where, state, names"


def _line(info: ObjectInfo) -> str:
    state = [] if info.sealed else ["not sealed"]
    state += [word for word in ("evictable", "pinned") if getattr(info, word)]
    where = ", ".join([info.device, *state, *info.names])
    dtype, shape = info.dtype, "x".join(map(str, info.shape)) or "scalar"
    if info.arrays is not None:
        dtype, shape = "group", f"{info.arrays} arrays"
    return f"{info.id:34}{info.nbytes:>14}  {dtype:12}{shape:18}{info.leases:>7}  {where}"


def _figures(figures: dict[str, Any], name: str = "") -> list[str]:
    lines = []
    for key, value in figures.items():
        if isinstance(value, dict):
            lines += _figures(value, f"{name}{key} ")
        else:
            lines.append(f"{name}{key}: {value}")
    return lines
