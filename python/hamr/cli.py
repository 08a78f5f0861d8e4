"""The command line: ``hamr info`` and ``hamr bench``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENVIRONMENT = {
    "HAMR_VERBOSE": "log every allocation, free, copy and temporary (an integer, 0 is off)",
    "HAMR_CUDA_LIBRARY": "the CUDA driver library to load, instead of libcuda.so.1",
    "HAMR_CUDA_ARRAY_INTERFACE_SYNC": "0: never wait for the streams of arrays shared with hamr",
    "HAMR_COPY_CHUNK": "bytes of a piece of copies between devices and ordinary host memory",
    "HAMR_COPY_THREADS": "how many threads help with such copies; 0 leaves them to the driver",
    "HAMR_PINNED_LIMIT": "bytes of page-locked memory that is held for such copies",
    "HAMR_CUDA_POOL": "0: never reuse freed `cuda` memory; check: overwrite it when it is freed",
    "HAMR_CUDA_POOL_LIMIT": "bytes that each device's `cuda` memory may take from the driver",
    "HAMR_CUDA_POOL_RELEASE_THRESHOLD": "bytes of freed memory that each pool of a device keeps",
    "HAMR_CUDA_KERNELS": "0: convert and rearrange elements on the host, not on the device",
    "HAMR_CUDA_PEER_ACCESS": "0: copy between devices through the host, as if none reached another",
}

#: How the files of the vendors' libraries are called.
_LIBRARIES = {"cuda": "libcuda.so"}


def information() -> dict[str, Any]:
    """Everything that ``hamr info`` shows."""
    import hamr

    from ._base.element import TABLE
    from ._base.library import core, library_path

    backends: dict[str, Any] = {**hamr.backends()}
    for name, backend in backends.items():
        if backend["available"] and backend["devices"]:
            _add_facts(name, backend)
    return {
        "version": hamr.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "go": core().GoVersion(),
        "library": library_path(),
        "backends": backends,
        "allocators": {a.name: int(a) for a in hamr.Allocator if a >= 0},
        "preferred": {
            "host": hamr.get_host_allocator().name,
            "device": hamr.get_device_allocator().name,
        },
        "elements": [row[0] for row in TABLE[1:]],
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
    }


def _add_facts(name: str, backend: dict[str, Any]) -> None:
    """What takes asking each device, or looking at the process."""
    import hamr._native as _native

    from ._base.library import core

    library = _mapped_library(name)
    if library is not None:
        backend["library"] = library
    devices = backend["devices"]
    for i, device in enumerate(devices):
        try:
            device["memory_free"] = str(_native.memory_info(name, i)[0])
        except (RuntimeError, ValueError, MemoryError) as error:
            device.setdefault("error", str(error))
    if len(devices) > 1:
        numbers = range(len(devices))
        backend["peers"] = [
            [i == j or core().CanAccess(name, i, j) for j in numbers] for i in numbers
        ]


def _mapped_library(name: str) -> str | None:
    """The file of a vendor's library that this process has loaded."""
    chosen = os.environ.get(f"HAMR_{name.upper()}_LIBRARY")
    real = os.path.realpath(chosen) if chosen else ""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            found = "".join(line.rstrip("\n").partition("/")[1:])
            usual = name in _LIBRARIES and os.path.basename(found).startswith(_LIBRARIES[name])
            if found and (found == real or usual):
                return found
    return None


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the result is the exit status."""
    parser = argparse.ArgumentParser(
        prog="hamr", description="Memory that any device and any array library can share."
    )
    parser.add_argument("--version", action=_Version, help="print hamr's version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    info = commands.add_parser("info", help="version, platform, backends, devices and allocators")
    info.add_argument("--json", action="store_true", help="print one JSON object")
    bench = commands.add_parser(
        "bench", help="what operations cost, beside the least they could (needs NumPy)"
    )
    bench.add_argument("--json", metavar="FILE", help="write the figures to a file")
    bench.add_argument(
        "--cuda", action="store_true", help="on a GPU, beside CuPy, torch, Numba and the driver"
    )
    bench.add_argument(
        "--rounds", type=_count, default=9, help="how often everything is timed (default 9)"
    )
    chosen = parser.parse_args(arguments)
    if chosen.command == "bench":
        if chosen.json is not None:  # measuring takes minutes
            problem = _unwritable(chosen.json)
            if problem:
                bench.error(f"--json {chosen.json}: {problem}")
        if chosen.cuda:
            from ._benchmark import cuda

            return cuda.main(chosen.json, chosen.rounds)
        from ._benchmark import host

        return host.main(chosen.json, chosen.rounds)
    facts = information()
    if chosen.json:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(_lines(facts)))
    return 0


class _Version(argparse.Action):
    """Ask the library, which has to be loaded for it, only when it is wanted."""

    def __init__(self, option_strings: list[str], dest: str, **named: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **named)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import hamr

        print(f"hamr {hamr.__version__}")
        parser.exit()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count: accepted is an int from 1 on")
    return int(text)


def _unwritable(path: str) -> str | None:
    """Why a file cannot be written; None if it can. Nothing is left behind."""
    there = os.path.lexists(path)
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        return error.strerror
    if not there:
        os.remove(path)
    return None


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [
        f"hamr {facts['version']}",
        f"Python {facts['python']}, {facts['go']}, {facts['platform']}",
        f"library {facts['library']}",
        "",
        "backends",
    ]
    for name, backend in facts["backends"].items():
        lines += _backend_lines(name, backend)
    lines += [
        "",
        "preferred allocators: " + ", ".join(f"{k} {v}" for k, v in facts["preferred"].items()),
    ]
    lines += ["element types: " + ", ".join(facts["elements"]), "", "environment"]
    for name, value in facts["environment"].items():
        lines.append(f"  {name}={'' if value is None else value}  ({ENVIRONMENT[name]})")
    return lines


def _backend_lines(name: str, backend: dict[str, Any]) -> list[str]:
    state = "available" if backend["available"] else "not available"
    lines = [f"  {name}: {state}; allocators {', '.join(backend['allocators'])}"]
    if not backend["available"]:
        tried = ", ".join(backend.get("tried") or ())
        lines.append(f"    looked for {tried or 'nothing'}: {backend.get('reason', '')}")
    if "library" in backend:
        lines.append(f"    library {backend['library']}")
    for i, device in enumerate(backend["devices"]):
        lines.append(f"    device {i}: " + ", ".join(f"{k} {v}" for k, v in device.items()))
    for i, row in enumerate(backend.get("peers") or ()):
        reached = [str(j) for j, ok in enumerate(row) if ok and j != i]
        lines.append(f"    device {i} reaches the memory of {', '.join(reached) or 'no other'}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
