"""Run the tests on the Pythons at hand, all from one wheel.

python -m build_support.test_matrix [--all] [--only 3.12] [--gpu] [--libraries] [--wheel WHEEL]
    [--record RESULT] [-- PYTEST ARGUMENTS]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from build_support import summary
from build_support.summary import Row
from build_support.wheel_at_hand import fetch

ROOT = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

PROBE = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "version": sys.version_info[:2],
    "prefix": sys.prefix,
    "numpy": importlib.util.find_spec("numpy") is not None,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python to test on, perhaps with the packages its system brings."""

    path: str
    version: str
    system_packages: bool = False

    @property
    def tag(self) -> str:
        """Return the name of its virtual environment."""
        return self.version + ("-system" if self.system_packages else "")


@dataclass(frozen=True)
class Suite:
    """Tests that one pytest runs, and on which CUDA driver."""

    name: str
    folder: str
    settings: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


def emulated(devices: int, **settings: str) -> Suite:
    """Return the CUDA tests on an emulated driver."""
    extra = "".join(f", {name}={value}" for name, value in settings.items())
    environment = {"HAMR_TEST_CUDA": "emulator", "HAMR_EMULATOR_DEVICES": str(devices)}
    return Suite(f"CUDA, emulated devices {devices}{extra}", "tests/cuda", environment | settings)


#: The pairs of spaces are tested where there are the most: see PAIRS.
HOST = Suite("host", "tests", {"HAMR_TEST_CUDA": ""}, ("--ignore=tests/pairs",))
#: Its programs in other languages are compiled beside the rest: they take as long.
PROGRAMS = ("tests/cpp", "tests/c", "tests/fortran", "tests/kokkos")
HOST_IN_PARTS = [
    replace(HOST, arguments=(*HOST.arguments, *(f"--ignore={name}" for name in PROGRAMS))),
    replace(HOST, name="host, other languages", folder=PROGRAMS[0], arguments=PROGRAMS[1:]),
]
#: What may come out otherwise on another version of Python: tests/conftest.py names it.
EACH_PYTHON = ("-m", "each_python")
#: The tests that need array libraries run on one Python, the newest that has all of them.
#: There they are required: what is missing fails the run.
LIBRARIES = Suite(
    "array libraries",
    "tests",
    {
        "HAMR_TEST_CUDA": "",
        "HAMR_TEST_REQUIRE": "numpy,ml_dtypes,torch,jax,pyarrow,distributed,mpi4py,dpctl,"
        "xarray,zarr,PIL,astropy,pint",
    },
    ("-m", "libraries"),
)
LIBRARY_PYTHONS = ("3.11", "3.12", "3.13")
CUDA = emulated(2)
HIP = replace(emulated(2, HAMR_TEST_HIP="1"), name="HIP, stand-in", folder="tests/hip")
PAIRS = replace(HIP, name="pairs of spaces, CUDA emulated, HIP stand-in", folder="tests/pairs")
#: The long tests repeat what they do: in full with --all on one Python with one driver, at a
#: twentieth otherwise.
SHORTENED = {"HAMR_TEST_SCALE": os.environ.get("HAMR_TEST_SCALE", "0.05")}
#: What says the same in each configuration of the driver: tests/conftest.py names it.
NOT_AGAIN = ("-m", "not one_configuration")


def again(*suites: Suite) -> list[Suite]:
    """Return suites of other configurations, without what says the same in each of them."""
    return [replace(s, settings=s.settings | SHORTENED, arguments=NOT_AGAIN) for s in suites]


#: The full suite, which one Python runs: one device and no kernels come together.
FULL = [
    *(*HOST_IN_PARTS, CUDA, HIP, PAIRS),
    *again(emulated(0), emulated(1, HAMR_CUDA_KERNELS="0"), emulated(4)),
]
#: With --all, each of the two by itself, too, and all with a look at freed memory.
APART = again(emulated(1), emulated(2, HAMR_CUDA_KERNELS="0"))
CHECKED = [
    replace(
        suite,
        name=f"{suite.name}, freed memory checked",
        settings=suite.settings | SHORTENED | {"HAMR_CHECK": "raise"},
        # Go's handler of faults is there before pytest's then, which would end the process.
        arguments=(*suite.arguments, "-m", "not freed_again", "-p", "no:faulthandler"),
    )
    for suite in (HOST, CUDA)
]
#: What the newest Python runs, and of that what those between the oldest and it do, where forks,
#: exits and counts of references are; with --all they run all.
PART = [replace(suite, arguments=EACH_PYTHON) for suite in (HOST, CUDA)]
BETWEEN = [replace(PART[0], folder="tests/lifetime")]
#: What a system's packages run beside another Python of their version: NumPy is what differs.
PACKAGES = [replace(suite, folder="tests/sharing") for suite in PART[:1]]
WHOLE = [HOST, CUDA]
#: In processes of their own: the array libraries bring much that could crash.
GPU = [
    Suite("CUDA, real driver", "tests/cuda", {"HAMR_TEST_CUDA": "driver"}),
    Suite("array libraries on a GPU", "tests/gpu", {"HAMR_TEST_CUDA": "driver"}),
    Suite("pairs of spaces on a GPU", "tests/pairs", {"HAMR_TEST_CUDA": "driver"}),
    Suite("interoperability on a GPU", "tests/interop", {"HAMR_TEST_CUDA": "driver"}),
]
NO_SYSTEM_NUMPY = "/usr/bin/python3, from 3.11 on, brings no NumPy; apt's python3-numpy is one"
NO_TESTS = 5  # pytest's status where its arguments deselect every test


def find_interpreters() -> tuple[list[Interpreter], list[Row]]:
    """Return one Python of each version, and the system's own where that brings NumPy.

    The rows say what was left out for want of it.
    """
    candidates = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    candidates += [str(path) for path in Path.home().glob(".pyenv/versions/3.*/bin/python3")]
    candidates += ["/usr/bin/python3", sys.executable]
    found: dict[str, Interpreter] = {}
    for path in candidates:
        if path is None or not Path(path).exists():
            continue
        # A pyenv shim exists for versions that are not switched on, and then fails.
        done = subprocess.run([path, "-c", PROBE], text=True, capture_output=True, check=False)
        if done.returncode != 0:
            continue
        facts = json.loads(done.stdout)
        if facts["version"] < [3, 11] or facts["free_threaded"]:
            continue
        version = ".".join(map(str, facts["version"]))
        interpreter = Interpreter(path, version)
        if facts["prefix"] == "/usr" and facts["numpy"]:
            system = Interpreter(path, version, system_packages=True)
            found.setdefault(system.tag, system)
        found.setdefault(interpreter.tag, interpreter)
    rows = []
    if not any(one.system_packages for one in found.values()):
        rows.append(("the system's Python with its packages", f"left out: {NO_SYSTEM_NUMPY}"))
    return [found[tag] for tag in sorted(found)], rows


def build_wheel() -> Path:
    """Build the one wheel that every Python is tested with."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*PIP, "wheel", "--no-deps", "-w", scratch, str(ROOT)], check=True)
        (built,) = Path(scratch).glob("*.whl")
        kept = ROOT / "dist" / built.name
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(built, kept)
        if later := os.environ.get(summary.WHEELS):
            shutil.copy(built, later)
    return kept


def prepare(interpreter: Interpreter, wheel: Path, extra: str = "test") -> str:
    """Install the wheel and what the tests need; return the environment's Python."""
    # The array libraries have an environment of their own: the other tests do without.
    folder = ROOT / ".venvs" / (interpreter.tag + extra.removeprefix("test").replace(",", "-"))
    packages = ["--system-site-packages"] if interpreter.system_packages else []
    # Without pip: Debian's Python has no ensurepip unless asked.
    venv = [interpreter.path, "-m", "venv", "--without-pip", *packages, str(folder)]
    subprocess.run(venv, check=True)
    python = str(folder / "bin" / "python")
    install = [*PIP, "--python", python, "install"]
    fetch([*install, f"{wheel}[{extra}]"])
    # The version alone does not tell pip that the wheel has changed.
    subprocess.run([*install, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return python


def unpack(wheel: Path, folder: str) -> dict[str, str]:
    """Put the wheel into a folder; return the environment that finds it there.

    For machines without a network, where the tests' requirements are there already.
    """
    install = [*PIP, "install", "--no-index", "--no-deps", "--target", folder]
    subprocess.run([*install, str(wheel)], check=True)
    return {"PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))}


def has_requirements() -> bool:
    """Return whether this Python can run the tests without anything installed."""
    done = subprocess.run([sys.executable, "-c", "import hypothesis, numpy, pytest"], check=False)
    return done.returncode == 0


def run(python: str, suite: Suite, environment: dict[str, str], arguments: list[str]) -> str:
    """Run a suite; return "passed …" or what went wrong, and what was skipped and why."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        started = time.monotonic()
        done = subprocess.run(
            [
                *(python, "-m", "pytest", suite.folder, f"--junitxml={report}"),
                *(*suite.arguments, *arguments),
            ],
            cwd=ROOT,
            env=os.environ | environment | suite.settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        seconds, status = time.monotonic() - started, done.returncode
        print(f"\n=== {suite.name} ({python})\n{done.stdout}", end="", flush=True)
        if status == NO_TESTS and arguments:
            return "passed no tests: none match the arguments"
        outcome = "passed" if status == 0 else f"failed (pytest status {status})"
        return f"{outcome} in {seconds:.0f} s{skips(report)}"


def row(name: str, work: Callable[[], str]) -> Row:
    """Return a line of the summary: what came of some work."""
    return name, work()


def not_set_up(error: subprocess.CalledProcessError) -> str:
    """Return the outcome of tests whose environment is not there, with the end of what pip said."""
    said = (error.stderr or "").splitlines()[-4:]
    return "".join([f"not set up: {error}", *(f"\n    {line}" for line in said)])


def skips(report: Path) -> str:
    """Return how many tests were skipped for each reason."""
    if not report.exists():
        return ""
    found = ElementTree.parse(report).iter("skipped")
    reasons = Counter(case.get("message", "no reason") for case in found)
    return "".join(f"\n    {n} skipped: {reason}" for reason, n in reasons.most_common())


def set_up_libraries(
    interpreters: list[Interpreter], wheel: Path, arguments: list[str], record: Path | None
) -> Callable[[], Row]:
    """Install the array libraries; return what runs their tests, for a line of the summary."""
    fit = [one for one in interpreters if one.version in LIBRARY_PYTHONS]
    fit = [one for one in fit if not one.system_packages]
    if not fit:
        # Who wants a record of the run wants the run.
        outcome = "left out" if record is None else "failed"
        said = f"{outcome}: they need one of Python {', '.join(LIBRARY_PYTHONS)}"
        return partial(row, LIBRARIES.name, partial(str, said))
    interpreter = max(fit, key=lambda one: LIBRARY_PYTHONS.index(one.version))
    name = f"Python {interpreter.tag}, {LIBRARIES.name}"
    started = time.monotonic()
    try:
        python = prepare(interpreter, wheel, "test,interop")
    except subprocess.CalledProcessError as error:
        return partial(row, name, partial(not_set_up, error))
    installed = f"; installed in {time.monotonic() - started:.0f} s"
    environment = {} if record is None else {"HAMR_INTEROP_RECORD": str(record.resolve())}
    work = partial(run, python, LIBRARIES, environment, arguments)
    return partial(row, name, lambda: work() + installed)


def in_turn(interpreters: list[Interpreter]) -> list[tuple[int, Interpreter]]:
    """Return the interpreters with their numbers: first the two that run most, so the longest."""
    numbered = list(enumerate(interpreters))
    return [*numbered[:1], *numbered[1:][-1:], *numbered[1:-1]]


def main() -> int:
    """Run the tests and print a line for each Python and suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", action="store_true", help="all tests on every Python")
    parser.add_argument("--only", action="append", metavar="VERSION", help="a Python, as 3.12")
    parser.add_argument("--gpu", action="store_true", help="tests for a GPU, on this Python")
    parser.add_argument("--libraries", action="store_true", help="no tests but the libraries'")
    parser.add_argument("--record", type=Path, help="write the cells of tests/interop there")
    parser.add_argument("--wheel", type=Path, help="test this wheel instead of building one")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()

    if options.gpu:
        # The array libraries are large and tied to the driver: take those that are installed.
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        interpreters = [Interpreter(sys.executable, version, system_packages=True)]
        left_out: list[Row] = []
    else:
        interpreters, left_out = find_interpreters()
    if options.only:
        interpreters = [one for one in interpreters if one.version in options.only]
    if not interpreters:
        print("no Python 3.11 or newer found", file=sys.stderr)
        return 1
    wheel = (options.wheel or build_wheel()).resolve()
    check = [sys.executable, "-m", "build_support.check_wheel", str(wheel)]
    subprocess.run(check, cwd=ROOT, check=True)
    if shutil.which("readelf") is None:
        left_out.append(("the wheel's needed libraries", "left out: readelf is not installed"))

    # A suite is one thread, and waits for a quarter of its time; a GPU is for one at a time.
    workers = 1 if options.gpu else min(4, (os.cpu_count() or 1) + 1)
    jobs: list[Future[Row]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(1) as aside,
        ThreadPoolExecutor(workers) as pool,
    ):
        libraries = None
        if not options.gpu and (options.libraries or not options.only):
            # The installation is a long wait for the network, beside the other tests.
            arguments = interpreters, wheel, options.pytest, options.record
            libraries = aside.submit(set_up_libraries, *arguments)
        for i, interpreter in in_turn([] if options.libraries else interpreters):
            environment = SHORTENED if i or not (options.all or options.gpu) else {}
            try:
                if options.gpu and has_requirements():
                    python, environment = interpreter.path, unpack(wheel, folder)
                else:
                    # Drawing is tested on one Python. It must not bring a system another NumPy.
                    plain = i or interpreter.system_packages
                    python = prepare(interpreter, wheel, "test" if plain else "test,plot")
            except subprocess.CalledProcessError as error:
                why = partial(not_set_up, error)
                jobs.append(pool.submit(row, f"Python {interpreter.tag}", why))
                continue
            suites = FULL + APART + CHECKED if options.all else FULL
            if options.gpu:
                suites = GPU
            elif i and options.all:
                suites = WHOLE
            elif i and interpreter.system_packages:
                suites = PACKAGES
            elif i:
                suites = PART if interpreter is interpreters[-1] else BETWEEN
            for suite in suites:
                name = f"Python {interpreter.tag}, {suite.name}"
                work = partial(run, python, suite, environment, options.pytest)
                jobs.append(pool.submit(row, name, work))
            if libraries is not None:
                # Before the short suites: a long one that begins last leaves a processor idle.
                jobs.append(pool.submit(libraries.result()))
                libraries = None
        if libraries is not None:
            jobs.append(pool.submit(libraries.result()))
        rows = [job.result() for job in jobs]

    return summary.report([*rows, *([] if options.only or options.libraries else left_out)])


if __name__ == "__main__":
    sys.exit(main())
