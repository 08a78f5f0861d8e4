"""The command line: ``hamr info``, ``bench``, ``tune``, ``store``, ``memory``, ``config``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import select
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENVIRONMENT = {
    "HAMR_VERBOSE": "log every allocation, free, copy and temporary (an integer, 0 is off)",
    "HAMR_MEMORY": "1: `hamr memory`, run by the same user, may ask the process what it has",
    "HAMR_CHECK": "1: tell who writes to memory that was freed; raise: hamr.check_memory() raises",
    "HAMR_CHECK_BYTES": "how much freed memory HAMR_CHECK keeps, as 256MiB",
    "HAMR_CUDA_LIBRARY": "the CUDA driver library to load, instead of libcuda.so.1",
    "HAMR_CUPTI_LIBRARY": "the CUPTI by which HAMR_CHECK sees work, instead of libcupti.so",
    "HAMR_NVRTC_LIBRARY": "the NVRTC that hamr.pygpu.compile loads, instead of libnvrtc.so",
    "HAMR_PYGPU_RUNTIME": "what serves hamr.pygpu: cuda or hip; by default the first with devices",
    "HAMR_NVML_LIBRARY": "the NVIDIA management library to load, instead of libnvidia-ml.so.1",
    "HAMR_OPENCL_LIBRARY": "the OpenCL loader to load, instead of libOpenCL.so.1",
    "HAMR_OPENCL_MEMORY": "what OpenCL's devices are taken to have at most: usm, fine or coarse",
    "HAMR_OPENMP_LIBRARY": "the OpenMP runtime to use, instead of the one that the process has",
    "HAMR_SYCL_LIBRARY": "the C interface of SYCL to load, instead of libDPCTLSyclInterface.so",
    "HAMR_SYCL_PACKAGE": "the folder of dpctl, which has that library; by default that on sys.path",
    "HAMR_ACCELERATORS": "the devices that hamr.hetero may use, as cuda:0,hip; none for none",
    "HAMR_STORE": "the socket of the store that hamr.store.connect() and hamr store use",
    "HAMR_CUDA_ARRAY_INTERFACE_SYNC": "0: never wait for the streams of arrays shared with hamr",
    "HAMR_COPY_CHUNK": "bytes of a piece of copies between devices and ordinary host memory",
    "HAMR_COPY_THREADS": "how many threads help with such copies; 0 leaves them to the driver",
    "HAMR_COPY_MANY": "how copy_many enqueues many copies: kernel, batch or single",
    "HAMR_COPY_GRID": "how many blocks of threads copy between page-locked memory and a device",
    "HAMR_PINNED_LIMIT": "bytes of page-locked memory that is held for such copies",
    "HAMR_TUNING": "the file that hamr tune writes and copies go by; 0 or nothing: none",
    "HAMR_PINNED_POOL_LIMIT": "bytes of page-locked memory that may be taken in all",
    "HAMR_PINNED_POOL_RELEASE_THRESHOLD": "bytes of freed page-locked memory that are kept",
    "HAMR_CUDA_POOL": "0: reuse no freed `cuda` and page-locked memory; check: overwrite it",
    "HAMR_CUDA_POOL_LIMIT": "bytes that each device's `cuda` memory may take from the driver",
    "HAMR_CUDA_POOL_RELEASE_THRESHOLD": "bytes of freed memory that each pool of a device keeps",
    "HAMR_CUDA_VMM_RESERVE": "bytes of addresses that each `cuda_vmm` allocation can grow to",
    "HAMR_CUDA_KERNELS": "0: convert and rearrange elements on the host, not on the device",
    "HAMR_CUDA_POOL_SHARED": "1: other processes can import `cuda_async` memory",
    "HAMR_CUDA_PEER_ACCESS": "0: copy between devices through the host, as if none reached another",
    "HAMR_HIP_LIBRARY": "the HIP runtime to load, instead of libamdhip64.so",
    "HAMR_HIP_POOL": "as HAMR_CUDA_POOL, for `hip` memory; so on for _LIMIT, _RELEASE_THRESHOLD",
    "HAMR_HIP_KERNELS": "as HAMR_CUDA_KERNELS, for HIP's devices",
    "HAMR_HIP_PEER_ACCESS": "as HAMR_CUDA_PEER_ACCESS, for HIP's devices",
}


def information() -> dict[str, Any]:
    """Everything that ``hamr info`` shows."""
    import hamr

    from ._base.element import TABLE
    from ._base.library import core, library_path
    from ._tuning.settings import processors

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
        "processors": processors(),
        "pools": hamr.stats()["pools"],
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
    }


def _add_facts(name: str, backend: dict[str, Any]) -> None:
    """Add the facts for which each device must be asked."""
    import hamr._native as _native

    from ._base.library import core
    from ._tuning.settings import plain_report, report_of

    with contextlib.suppress(ValueError):  # not every backend has a vendor's library
        backend["library"] = core().Library(name)
    devices = backend["devices"]
    for i, device in enumerate(devices):
        try:
            device["memory_free"] = str(_native.memory_info(name, i)[0])
        except ValueError:
            pass  # the runtime does not know
        except (RuntimeError, MemoryError) as error:
            device.setdefault("error", str(error))
    reports = [report_of(name, i) for i in range(len(devices))]
    if all(report is not None for report in reports):
        backend["staging"] = [plain_report(report) for report in reports if report is not None]
    if len(devices) > 1:
        numbers = range(len(devices))
        with contextlib.suppress(ValueError):  # the runtime knows of no peers
            backend["peers"] = [
                [i == j or core().CanAccess(name, i, j) for j in numbers] for i in numbers
            ]


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Returns the exit status.

    If nobody reads the output any more, as in ``hamr info | head -1``, it ends quietly, with the
    status that a shell gives to a program that SIGPIPE has ended.
    """
    try:
        try:
            status = _run(arguments)
        except SystemExit:  # of --help
            print(end="", flush=True)
            raise
        print(end="", flush=True)
    except BrokenPipeError:
        if not _nobody_reads():
            raise
        with open(os.devnull, "wb") as nowhere:  # the rest is flushed there at exit
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def _nobody_reads() -> bool:
    """Whether the standard output is a pipe or socket that its reader has closed."""
    try:
        poll = select.poll()
        poll.register(sys.stdout, select.POLLOUT)
    except (OSError, TypeError, ValueError):  # it is no file
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _run(arguments: list[str] | None) -> int:
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
    _add_bench_options(bench)
    tune = commands.add_parser(
        "tune", help="measure which copies to and from devices are worth staging, and keep it"
    )
    tune.add_argument("--json", action="store_true", help="print one JSON object")
    tune.add_argument("--dry-run", action="store_true", help="write nothing")
    tune.add_argument("--quick", action="store_true", help="fewer sizes, one device of each kind")
    config = commands.add_parser(
        "config", help="what compilers and build systems of C, C++ and Fortran programs need"
    )
    given = sys.argv[1:] if arguments is None else arguments
    shared = "memory that processes share: serve, list, stat, top, ping"
    store = commands.add_parser("store", help=shared)
    if given[:1] == ["store"]:
        from .store.commands import add_options

        add_options(store)
    memory = commands.add_parser("memory", help="what memory processes have that opted in")
    if given[:1] == ["memory"]:
        from ._diagnostics import memory_command

        memory_command.add_options(memory)
    if given[:1] == ["config"]:
        from ._base import compiling

        compiling.add_options(config)
    chosen = parser.parse_args(given)
    if chosen.command == "store":
        from .store.commands import run

        return run(chosen)
    if chosen.command == "memory":
        from ._diagnostics import memory_command

        return memory_command.run(chosen)
    if chosen.command == "config":
        from ._base import compiling

        return compiling.run(config, chosen)
    if chosen.command == "bench":
        return _bench(bench, chosen)
    if chosen.command == "tune":
        from ._tuning import running

        return running.main(running.Request(chosen.json, chosen.dry_run, chosen.quick))
    facts = information()
    if chosen.json:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(_lines(facts)))
    return 0


def _add_bench_options(bench: argparse.ArgumentParser) -> None:
    from ._base.size import count_of

    add = bench.add_argument
    add(
        "--json",
        metavar="FILE",
        nargs="?",
        const="-",
        help="write the figures to a file, or instead of the tables",
    )
    add("--plot", metavar="DIR", help="draw them into a folder, as SVG and PNG (needs matplotlib)")
    add("--only", metavar="PART", nargs="+", help="parts that --list names, or host, or cuda")
    add("--cuda", action="store_true", help="the same as --only cuda")
    add("--list", action="store_true", help="print the parts and measure nothing")
    add("--quick", action="store_true", help="fewer rounds, and copies of at most 64 MiB")
    add("--largest", metavar="SIZE", type=_size, help="the largest copy (default 1GiB)")
    add("--scaling", action="store_true", help="large copies on 1, 2, 4 ... cores, too")
    add("--rounds", type=count_of, default=9, help="how often everything is timed (default 9)")


def _bench(bench: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    from ._benchmark import running

    if given.list:
        print("\n".join(running.list_of_parts()))
        return 0
    only = [*(given.only or ()), *(["cuda"] if given.cuda else ())] or None
    request = running.Request(
        only, given.json, given.plot, given.rounds, given.largest, given.quick, given.scaling
    )
    if given.json not in (None, "-"):  # measuring takes minutes
        problem = _unwritable(given.json)
        if problem:
            bench.error(f"--json {given.json}: {problem}")
    problem = running.problem_of(request)
    if problem:
        bench.error(problem)
    try:
        return running.main(request)
    except KeyboardInterrupt:
        print("interrupted: nothing is written", file=sys.stderr)
        return 130


class _Version(argparse.Action):
    """Print the version. The library, which has it, is loaded only then."""

    def __init__(self, option_strings: list[str], dest: str, **named: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **named)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import hamr

        print(f"hamr {hamr.__version__}")
        parser.exit()


def _size(text: str) -> int:
    from ._benchmark.running import size_of

    try:
        return size_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _unwritable(path: str) -> str | None:
    """Why a file cannot be written; None if it can. No file is left behind."""
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
    lines += ["element types: " + ", ".join(facts["elements"])]
    lines += ["processors: " + _processors_text(facts["processors"]), "", "pools"]
    for name, pool in facts["pools"].items():
        words = "keeps at most" if name == "host" else "limit"  # the host's does not limit use
        limit = "no limit" if pool["limit"] is None else f"{words} {pool['limit']}"
        figures = (f"{key} {value}" for key, value in pool.items() if key != "limit")
        lines.append(f"  {name}: {limit}, {', '.join(figures)}")
    lines += ["", "environment"]
    for name, value in facts["environment"].items():
        lines.append(f"  {name}={'' if value is None else value}  ({ENVIRONMENT[name]})")
    return lines


def _processors_text(known: dict[str, Any]) -> str:
    limit = known["cgroup"]
    bound = "" if limit is None else f", its cgroup has the time of {limit:g}"
    return f"{known['affinity']} of {known['machine']} for this process{bound}"


def _backend_lines(name: str, backend: dict[str, Any]) -> list[str]:
    from ._tuning.settings import staging_lines

    state = "available" if backend["available"] else "not available"
    lines = [f"  {name}: {state}; allocators {', '.join(backend['allocators'])}"]
    if not backend["available"]:
        tried = ", ".join(backend.get("tried") or ())
        lines.append(f"    looked for {tried or 'nothing'}: {backend.get('reason', '')}")
    if "library" in backend:
        lines.append(f"    library {backend['library']}")
    for i, device in enumerate(backend["devices"]):
        lines.append(f"    device {i}: " + ", ".join(f"{k} {v}" for k, v in device.items()))
    lines += [f"    {line}" for line in staging_lines(backend.get("staging") or [])]
    for i, row in enumerate(backend.get("peers") or ()):
        reached = [str(j) for j, ok in enumerate(row) if ok and j != i]
        lines.append(f"    device {i} reaches the memory of {', '.join(reached) or 'no other'}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
