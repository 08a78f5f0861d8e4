"""Everything for a machine with GPUs, in one command, from a wheel.

    tests/gpu/run_all.sh WHEEL OUT_DIR [--steps cuda,gpu,interop,…] [--budget 560]

Each step has a time limit of its own, and a failed one does not end the run. OUT_DIR
receives results.json (counts, failures, skips with reasons, machine, versions), the
benchmark's figures (h200.json, or h200-x2.json with two GPUs), the interoperability
matrix (interop-h200.json) and a log of each step.
HAMR_COMMIT names the commit where there is no git.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.gpu.outcomes import counts, findings, machine, merged, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STEPS = (
    *("cuda", "gpu", "runtimes", "programs", "interop", "bench"),
    *("memcheck", "memcheck_pygpu", "checked"),
)
#: Steps that are tests alone, of those folders that are there: runtimes are several technologies',
#: as far as the machine has them, and programs other processes and languages, which share a device.
TESTS = {
    "cuda": ("tests/cuda",),
    "gpu": ("tests/gpu",),
    "runtimes": ("tests/opencl", "tests/openmp", "tests/sycl", "tests/pairs"),
    "programs": ("tests/c", "tests/cpp", "tests/hetero", "tests/pygpu", "tests/store"),
}
#: hamr.pygpu's tests that need a device, below tests.
PYGPU = "cuda/test_cuda_pygpu_*.py"
#: The processes that a step's files are dealt to, which run at the same time.
SHARES = {"cuda": 4, "programs": 4, "checked": 6, "memcheck": 12}
#: Files that measure what the whole device has free, and so run when the others have ended.
ALONE = ("_devices.py", "_growth.py", "_lifetime.py", "_snapshot.py", "_exchange.py", "_memory.py")
#: Tests of the detector have their own, and it keeps what is freed.
UNLESS_CHECKED = "-m", "not freed_again and not one_configuration"
LIMITS = {
    "cuda": 330,
    "gpu": 540,
    "runtimes": 120,
    "programs": 200,
    "interop": 240,
    "bench": 250,
    "checked": 400,
    "memcheck": 580,
    "memcheck_pygpu": 150,
}
LOG_BYTES = 4 << 20
# What compute-sanitizer sees of hamr alone: no library's memory, no kernels but hamr's.
WITHOUT_LIBRARIES = ("test_gpu_casts.py", "test_gpu_layouts.py", "test_gpu_contents.py")
# Tests that compute-sanitizer is not to see, by a part of their names, and why.
NOT_CHECKED = {
    "no_memory_is_an_error": "takes all memory of the device, of which the tool needs some",
    "test_cuda_bench": "other libraries' rows, whose memory is theirs",
    "test_cuda_store_bench": "likewise",
    "test_cuda_blocks_bench": "likewise",
    "test_cuda_weights_bench": "likewise",
    "does_not_block_the_loop": "times, of which the tool makes many seconds",
    "test_cuda_fork": "processes of their own, which the tool does not follow",
    "test_cuda_share_ends": "likewise",
    "test_cuda_store_restarts": "likewise",
    "test_cuda_command_line": "likewise",
    "test_cuda_library_walk": "likewise",
    "test_gpu_weights_memory": "likewise",
    "test_cuda_interrupts": "likewise",
    "test_cuda_tuning": "likewise",
    "test_examples": "likewise",
    "test_cuda_documents": "other libraries' programs, in which the tool stands still",
}
NOT_CHECKED_OF_PYGPU = {
    "test_examples": "the programs, each of which runs under the tool by itself",
    "a_kernel_from_ptx": "likewise",
    "a_kernel_that_is_compiled": "likewise",
    "a_library_of_nvccs": "likewise",
    "test_the_rows": "times, of which the tool makes many seconds",
    "test_threads_launch_and_close": "the tool stands still between leaks' stacks and modules",
}


def run(command: list[str], log: Path, seconds: float, env: dict[str, str]) -> int | str:
    """Exit status of a command, or why it has none; its output goes to a log."""
    print(f"+ {' '.join(command)}", flush=True)
    with log.open("wb") as file:
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"not started: {error}"
        try:
            return process.wait(max(1, seconds))
        except subprocess.TimeoutExpired:
            # Inner limits first, so that what was found so far is still reported.
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return f"stopped after {seconds:.0f} s"


def shorten(log: Path) -> None:
    """Keep the beginning and the end of a log that grew too large to bring home."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        content = log.read_bytes()
        half = LOG_BYTES // 2
        log.write_bytes(content[:half] + b"\n[...]\n" + content[-half:])


def dealt(paths: tuple[str, ...], shares: int) -> tuple[list[list[str]], list[str]]:
    """Folders as they are or, for several processes, their files in turns, and those for after."""
    if shares == 1:
        return [list(paths)], []
    roots = [ROOT / path for path in paths]
    found = (f for root in roots for f in ([root] if root.is_file() else root.rglob("test_*.py")))
    files = sorted(str(f.relative_to(ROOT)) for f in found)
    after = [file for file in files if file.endswith(ALONE)]
    files = [file for file in files if file not in after]
    return [files[i::shares] for i in range(shares)], after


def pytest_command(*paths: str, junit: Path | None = None) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short"]
    command += ["--durations=12", "-o", "faulthandler_timeout=100"]
    if importlib.util.find_spec("pytest_timeout"):
        command += ["--timeout=120"]
    if junit:
        command.append(f"--junitxml={junit}")
    return [*command, *paths]


class Runner:
    """The steps, what they share and what they found."""

    def __init__(self, out: Path, site: Path, scratch: Path, budget: float) -> None:
        self.out, self.scratch, self.ends = out, scratch, time.monotonic() + budget
        paths = [str(site), os.environ.get("PYTHONPATH", "")]
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HAMR_TEST_CUDA": "driver",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }

    def step(self, name: str) -> dict[str, object]:
        log = self.out / f"{name}.log"
        seconds = min(LIMITS[name], self.ends - time.monotonic())
        if seconds < 5:
            return {"status": "not run: no time left"}
        started = time.monotonic()
        if name in TESTS:
            there = [path for path in TESTS[name] if (ROOT / path).exists()]
            found = self._tests(log, seconds, *there)
        else:
            found = getattr(self, name)(log, seconds)
        shorten(log)
        return {**found, "seconds": round(time.monotonic() - started, 1)}

    def checked(self, log: Path, seconds: float) -> dict[str, object]:
        """With the detector of memory that is used wrongly, by which a test fails."""
        self.env["HAMR_CHECK"] = "raise"
        try:
            return self._tests(log, seconds, "tests/cuda", "tests/gpu", more=UNLESS_CHECKED)
        finally:
            del self.env["HAMR_CHECK"]

    def interop(self, log: Path, seconds: float) -> dict[str, object]:
        self.env["HAMR_INTEROP_RECORD"] = str(self.out / "interop-h200.json")
        return self._tests(log, seconds, "tests/interop")

    def _tests(
        self, log: Path, seconds: float, *paths: str, more: tuple[str, ...] = ()
    ) -> dict[str, object]:
        def plain(command: list[str], part: Path, left: float) -> dict[str, object]:
            return {"status": run([*command, *more], part, left, self.env)}

        return self._shared(log, seconds, paths, plain)

    def _shared(
        self,
        log: Path,
        seconds: float,
        paths: tuple[str, ...],
        start: Callable[[list[str], Path, float], dict[str, object]],
    ) -> dict[str, object]:
        """What all shares of a step's files found, which run at the same time."""
        shares, after = dealt(paths, SHARES.get(log.stem, 1))
        logs = [self.scratch / f"{log.stem}-{i}.log" for i in range(len(shares) + bool(after))]
        ends = time.monotonic() + seconds

        def timed(files: list[str], part: Path) -> dict[str, object]:
            junit = part.with_suffix(".xml")
            command = pytest_command(*files, junit=junit)
            return {**start(command, part, ends - time.monotonic()), **counts(junit, part)}

        with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
            found = list(pool.map(timed, shares, logs[: len(shares)]))
        if after:
            found.append(timed(after, logs[-1]))
        log.write_bytes(b"".join(part.read_bytes() for part in logs if part.exists()))
        return merged(found)

    def bench(self, log: Path, seconds: float) -> dict[str, object]:
        written = self.scratch / "figures.json"
        command = [sys.executable, "-m", "hamr", "bench", "--cuda", "--json", str(written)]
        status = run(command, log, seconds, self.env)
        if not written.exists():
            return {"status": status}
        figures = json.loads(written.read_text())
        two = len(figures["machine"]["gpus"]) > 1
        shutil.copy(written, self.out / ("h200-x2.json" if two else "h200.json"))
        rows = [(g["group"], row) for g in figures["groups"] for row in g["rows"]]
        ways = [(c["path"], way) for c in figures["curves"] for way in c["ways"]]
        return {
            "status": status,
            "met": sum(target["met"] is True for target in figures["targets"]),
            "not_met": [target for target in figures["targets"] if target["met"] is False],
            "errors": [f"{group}: {row['operation']}" for group, row in rows if "error" in row]
            + [f"{path}: {way['operation']}" for path, way in ways if "errors" in way],
            "skipped": figures["skipped"],
        }

    def memcheck(self, log: Path, seconds: float) -> dict[str, object]:
        paths = ["tests/cuda", *(f"tests/gpu/{name}" for name in WITHOUT_LIBRARIES)]
        return self._checked_tests(log, seconds, paths, NOT_CHECKED)

    def memcheck_pygpu(self, log: Path, seconds: float) -> dict[str, object]:
        """Of hamr.pygpu all: its tests, and its programs, each in a process of its own."""
        ends = time.monotonic() + seconds
        folder = ROOT / "examples" / "pygpu"
        programs = [
            path
            for path in sorted(folder.glob("*.py"))
            if path.name != "nvcc_library.py" or shutil.which("nvcc")
        ]
        paths = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob(PYGPU)]

        def program(path: Path) -> dict[str, object]:
            part = self.scratch / f"memcheck-{path.stem}.log"
            command = [sys.executable, str(HERE / "trimmed.py"), str(path)]
            return self._checked(command, part, ends - time.monotonic(), self.env)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            each = dict(zip((p.name for p in programs), pool.map(program, programs), strict=True))
        left = ends - time.monotonic()
        found = self._checked_tests(log, left, sorted(paths), NOT_CHECKED_OF_PYGPU)
        with log.open("ab") as file:
            for path in programs:
                part = self.scratch / f"memcheck-{path.stem}.log"
                file.write(f"\n=== {path.name}\n".encode())
                file.write(part.read_bytes() if part.exists() else b"not started\n")
        parts = [found, *each.values()]
        errors = [part["errors"] for part in parts]
        known = [n for n in errors if isinstance(n, int)]
        status = next((part["status"] for part in parts if part["status"] != 0), 0)
        if status == 0 and (len(known) < len(errors) or sum(known)):
            status = "errors were found" if sum(known) else "a report has no end"
        return {**found, "status": status, "errors": sum(known), "programs": each}

    def _checked_tests(
        self, log: Path, seconds: float, paths: list[str], without: dict[str, str]
    ) -> dict[str, object]:
        chosen = ["-p", "tests.gpu.trimming", "-k", " and ".join(f"not {name}" for name in without)]
        env = {**self.env, "HAMR_TEST_SCALE": "0.02"}

        def checked(command: list[str], part: Path, left: float) -> dict[str, object]:
            return self._checked([*command, *chosen], part, left, env)

        return {**self._shared(log, seconds, tuple(paths), checked), "not_checked": without}

    def _checked(
        self, command: list[str], log: Path, seconds: float, env: dict[str, str]
    ) -> dict[str, object]:
        """A command under compute-sanitizer: its status, and what the report says at its end."""
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        report = self.scratch / f"{log.stem}.report"
        # Tests that provoke errors of the driver's are no finding: memory errors and leaks are.
        checked = [tool, "--tool", "memcheck", "--leak-check", "full", "--report-api-errors", "no"]
        checked += ["--target-processes", "application-only", "--log-file", str(report)]
        # Of each allocation it would keep Python's frames, and what they have is never given back.
        checked += ["--show-backtrace", "device"]
        status = run([*checked, *command], log, seconds, env)
        text = report.read_text(errors="replace") if report.exists() else ""
        with log.open("a") as file:
            file.write(f"\n=== report of compute-sanitizer\n{text}")
        return {"status": status, **findings(text)}


def install(wheel: Path, site: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--disable-pip-version-check", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True, timeout=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", default=",".join(STEPS), help=f"some of {','.join(STEPS)}")
    parser.add_argument("--budget", type=float, default=560, help="seconds for all of it")
    options = parser.parse_args()
    chosen = [name for name in options.steps.split(",") if name]
    if unknown := set(chosen) - set(STEPS):
        parser.error(f"steps are {', '.join(STEPS)}, not {', '.join(sorted(unknown))}")
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        runner = Runner(out, scratch / "site", scratch, options.budget)
        install(options.wheel.resolve(), scratch / "site")
        results: dict[str, object] = {"machine": machine(), "wheel": options.wheel.name}
        steps: dict[str, object] = {}
        results["steps"] = steps
        for name in chosen:
            try:
                steps[name] = runner.step(name)
            except Exception as error:  # the other steps still run
                steps[name] = {"status": f"{type(error).__name__}: {error}"}
            (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join(summary(results)))
    passed = all(s.get("status") == 0 for s in steps.values())  # type: ignore[attr-defined]
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
