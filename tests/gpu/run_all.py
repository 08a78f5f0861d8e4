"""Everything for a machine with GPUs, in one command, from a wheel.

    python3 tests/gpu/run_all.py WHEEL OUT_DIR [--steps cuda,gpu,interop,…] [--budget 560]

Each step has a time limit of its own, and a failed one does not end the run. OUT_DIR
receives results.json (counts, failures, skips with reasons, machine, versions), the
benchmark's figures (h200.json, or h200-x2.json with two GPUs), the interoperability
matrix (interop-h200.json) and a log of each step.
HAMR_COMMIT names the commit where there is no git.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STEPS = ("cuda", "gpu", "runtimes", "interop", "bench", "memcheck")
#: Tests of several technologies, as far as the machine has them.
RUNTIMES = "tests/opencl", "tests/openmp", "tests/sycl", "tests/pairs"
#: The processes that a step's files are dealt to, which run at the same time.
SHARES = {"cuda": 4}
LIMITS = {"cuda": 330, "gpu": 330, "runtimes": 120, "interop": 240, "bench": 250, "memcheck": 200}
LOG_BYTES = 4 << 20
PACKAGES = (
    "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "numba", "numba-cuda", "jax", "jaxlib",
    "mpi4py", "cuda-bindings", "cuda-core", "pytest",
)  # fmt: skip
# What compute-sanitizer sees of hamr alone: no library's memory, no kernels but hamr's.
WITHOUT_LIBRARIES = ("test_gpu_casts.py", "test_gpu_layouts.py", "test_gpu_contents.py")


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


def first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def machine() -> dict[str, object]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    gpus = first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    nvcc = first_line(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "--version")
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": os.environ.get("HAMR_COMMIT")
        or first_line("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
        "gpus": (gpus or "").splitlines(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "nvcc": (nvcc or "").rpartition("release ")[2].split(",")[0] or None,
        "versions": versions,
    }


def counts(junit: Path, log: Path) -> dict[str, object]:
    """How many tests passed, failed and were skipped, and why."""
    try:
        cases = list(ElementTree.parse(junit).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return counts_of_log(log)
    found: collections.Counter[str] = collections.Counter()
    skips: collections.Counter[str] = collections.Counter()
    failures = []
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        outcomes = {child.tag: child.get("message") or "" for child in case}
        if "failure" in outcomes or "error" in outcomes:
            found["failed"] += 1
            message = outcomes.get("failure") or outcomes.get("error") or ""
            failures.append({"test": name, "message": message.replace(f"{ROOT}/", "")[:600]})
        elif "skipped" in outcomes:
            found["skipped"] += 1
            skips[outcomes["skipped"][:200]] += 1
        else:
            found["passed"] += 1
    names = ("passed", "failed", "skipped")
    return {
        **{name: found[name] for name in names},
        "skip_reasons": dict(skips),
        "failures": failures,
    }


def counts_of_log(log: Path) -> dict[str, object]:
    """The same, of a run that did not come to its end."""
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = re.findall(r"^(tests/\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", text, re.MULTILINE)
    found = collections.Counter(outcome for _, outcome in lines)
    failed = [name for name, outcome in lines if outcome in ("FAILED", "ERROR")]
    started = re.findall(r"^(tests/\S+::\S+)", text, re.MULTILINE)
    return {
        "passed": found["PASSED"],
        "failed": len(failed),
        "skipped": found["SKIPPED"],
        "failures": [{"test": name} for name in failed],
        "last": started[-1] if started else None,
        "incomplete": True,
    }


def dealt(paths: tuple[str, ...], shares: int) -> list[list[str]]:
    """Folders as they are or, for several processes, their files in turns."""
    if shares == 1:
        return [list(paths)]
    files = sorted(str(f.relative_to(ROOT)) for p in paths for f in (ROOT / p).rglob("test_*.py"))
    return [files[i::shares] for i in range(shares)]


def merged(found: list[dict[str, Any]]) -> dict[str, object]:
    """The counts of several processes as one's; the status is the first that is not 0."""
    whole: dict[str, Any] = dict(found[0])
    whole["status"] = next((f["status"] for f in found if f["status"]), 0)
    for other in found[1:]:
        for name in ("passed", "failed", "skipped"):
            whole[name] += other[name]
        whole["failures"] = whole["failures"] + other["failures"]
        reasons = collections.Counter(whole.get("skip_reasons", {}))
        reasons.update(other.get("skip_reasons", {}))
        whole["skip_reasons"] = dict(reasons)
        if other.get("incomplete"):
            whole |= {"incomplete": True, "last": other["last"]}
    return whole


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
        found = getattr(self, name)(log, seconds)
        shorten(log)
        return {**found, "seconds": round(time.monotonic() - started, 1)}

    def cuda(self, log: Path, seconds: float) -> dict[str, object]:
        return self._tests(log, seconds, "tests/cuda")

    def runtimes(self, log: Path, seconds: float) -> dict[str, object]:
        return self._tests(log, seconds, *(path for path in RUNTIMES if (ROOT / path).exists()))

    def gpu(self, log: Path, seconds: float) -> dict[str, object]:
        return self._tests(log, seconds, "tests/gpu")

    def interop(self, log: Path, seconds: float) -> dict[str, object]:
        self.env["HAMR_INTEROP_RECORD"] = str(self.out / "interop-h200.json")
        return self._tests(log, seconds, "tests/interop")

    def _tests(self, log: Path, seconds: float, *paths: str) -> dict[str, object]:
        shares = dealt(paths, SHARES.get(log.stem, 1))
        logs = [self.scratch / f"{log.stem}-{i}.log" for i in range(len(shares))]

        def share(files: list[str], part: Path) -> dict[str, object]:
            junit = part.with_suffix(".xml")
            status = run(pytest_command(*files, junit=junit), part, seconds, self.env)
            return {"status": status, **counts(junit, part)}

        with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
            found = list(pool.map(share, shares, logs))
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
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        report = self.scratch / "memcheck"
        junit = self.scratch / "memcheck.xml"
        # Tests that provoke errors of the driver's are no finding: memory errors and leaks are.
        command = [tool, "--tool", "memcheck", "--leak-check", "full", "--report-api-errors", "no"]
        command += ["--target-processes", "application-only", "--log-file", str(report)]
        paths = ["tests/cuda", *(f"tests/gpu/{name}" for name in WITHOUT_LIBRARIES)]
        tests = pytest_command(*paths, junit=junit)
        chosen = ["-k", "not no_memory_is_an_error"]
        env = {**self.env, "HAMR_TEST_SCALE": "0.02"}
        status = run([*command, *tests, *chosen], log, seconds, env)
        text = report.read_text(errors="replace") if report.exists() else ""
        with log.open("a") as file:
            file.write(f"\n=== report of compute-sanitizer\n{text}")
        summaries = re.findall(r"=+ ((?:ERROR|LEAK) SUMMARY:.*)", text)
        return {"status": status, "summaries": summaries, **counts(junit, log)}


def install(wheel: Path, site: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--disable-pip-version-check", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True, timeout=120)


def summary(results: dict[str, object]) -> list[str]:
    lines = ["", "=== summary"]
    facts = results["machine"]
    assert isinstance(facts, dict)
    lines.append(f"commit {facts['commit']}, {facts['gpus']}, Python {facts['python']}")
    steps = results["steps"]
    assert isinstance(steps, dict)
    for name, found in steps.items():
        shown = {k: v for k, v in found.items() if k not in ("failures", "skip_reasons", "not_met")}
        lines.append(f"{name}: " + ", ".join(f"{k} {v}" for k, v in shown.items()))
        for failure in found.get("failures", [])[:25]:
            message = failure.get("message", "").splitlines()
            lines.append(f"  FAILED {failure['test']}  {message[0][:160] if message else ''}")
        lines += [f"  NOT MET {row}" for row in found.get("not_met", [])]
        lines += [f"  {n} skipped: {why}" for why, n in found.get("skip_reasons", {}).items()]
    return lines


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
