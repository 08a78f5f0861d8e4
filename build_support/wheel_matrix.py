"""Install wheels on many systems, run tests there, and write docs/wheels.md.

python -m build_support.wheel_matrix [--systems FOLDER] [--root FOLDER:PYTHON] [--only 3.12]
    [--record] WHEEL...
python -m build_support.wheel_matrix --check

Places are the Pythons of this machine and, as root, those of other systems: --systems has
build_support/wheel_systems.py make some, --root names one more. A system of another architecture
runs where the kernel has an emulator for its programs. In each place the Python's own pip installs
the wheel and NumPy into an environment that has nothing else, and README's first example runs;
then come what the tests need, and the tests of what differs from Python to Python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build_support import test_matrix, toolchain, wheel_systems
from build_support.figures import with_runs

ROOT = toolchain.ROOT
PAGE, RESULT = ROOT / "docs" / "wheels.md", ROOT / "docs" / "results" / "wheels.json"
RUNS = {"installed wheels": RESULT}
#: What the tests need of the checkout; hamr itself is the wheel's.
PARTS = ("tests", "examples", "build_support", "docs", "include", "pyproject.toml", "README.md")
#: Where tests are for this: those of CUDA and of compilers have systems of their own.
TESTS = ("tests/lifetime", "tests/concurrency", "tests/sharing/dlpack", "tests/transport")
FACTS = """
import json, os, platform
print(json.dumps([platform.python_version(), " ".join(platform.libc_ver()), os.uname().machine]))
"""
#: Under an emulator, which takes ten times as long and more: import, host memory, one of the
#: protocols, forks.
EMULATED = (
    "tests/package/test_import.py",
    "tests/lifetime/test_lifetime.py",
    "tests/sharing/dlpack/test_dlpack_import.py",
    "tests/concurrency/test_fork.py",
)
#: What an emulator itself does otherwise: it prints when a signal ends a process, and its threads
#: and memory are the process's.
EMULATORS_OWN = (
    "tests/package/test_import.py::test_memory_of_import_and_first_use",
    "tests/package/test_import.py::test_import_loads_neither_the_library_nor_numpy",
    "tests/package/test_import.py::test_signals_still_end_the_process",
)
#: What the first example needs beside hamr, of PyPI's, then the tests.
ALONE = ("numpy>=1.24",)
REQUIREMENTS = ("pytest>=8", "hypothesis>=6.100")
#: What tests leave out where there is no wheel of it for a Python.
OPTIONAL = ("ml_dtypes>=0.5",)
NO_WHEEL = "No matching distribution found for "
#: For how many seconds pip may take, which waits for a network, and what runs in a place.
PIP_LIMIT, LIMIT = 1800, 3 * 3600
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"# prints (.*)$", re.MULTILINE)


class Failure(Exception):
    """What went wrong in a place, for its row."""


@dataclass(frozen=True)
class Place:
    """A Python of this system, or of one below a folder."""

    python: str
    root: Path | None = None

    def run(self, *arguments: str, cwd: str = "/", **settings: str) -> str:
        """Run its Python; return what it prints, or raise a Failure that ends with that."""
        command = [self.python, *arguments]
        env = {**os.environ, **settings}
        if self.root is not None:
            command = ["chroot", str(self.root), "env", "-C", cwd, *command]
            env = {**wheel_systems.ENVIRONMENT, **settings}
        try:
            done = subprocess.run(
                command,
                cwd=None if self.root else cwd,
                env=env,
                text=True,
                errors="replace",
                capture_output=True,
                check=False,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{arguments[0]}: no end after {LIMIT} s") from error
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise Failure(f"status {done.returncode} of {' '.join(arguments[:4])}: {said}")
        return done.stdout

    @contextmanager
    def folder(self) -> Iterator[tuple[Path, str]]:
        """A folder that is there for a while, as this system and as the place names it."""
        with ExitStack() as after:
            if self.root is not None:
                after.enter_context(wheel_systems.mounted(self.root))
            parent = self.root and self.root / "tmp"
            name = after.enter_context(tempfile.TemporaryDirectory(dir=parent))
            inside = f"/{Path(name).relative_to(self.root)}" if self.root else name
            yield Path(name), inside


@dataclass(frozen=True)
class Tags:
    """For which Python, C library and processor wheels are to be."""

    python: str
    libc: str
    machine: str

    def download(self, target: Path, requirements: tuple[str, ...]) -> None:
        """Have this system's pip bring wheels, as others may reach no registry by themselves."""
        short = ".".join(re.findall(r"\d+", self.python)[:2])
        command = [*test_matrix.PIP, "download", "--dest", str(target), "--python-version", short]
        for platform in platforms(self.libc, self.machine):
            command += ["--platform", platform]
        command += ["--only-binary=:all:", *requirements]
        try:
            done = subprocess.run(
                command, text=True, capture_output=True, check=False, timeout=PIP_LIMIT
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"pip: no end after {PIP_LIMIT} s") from error
        if done.returncode:
            raise Failure(f"pip download: {done.stderr.strip()[-500:]}")

    def has_wheel(self, target: Path, requirement: str) -> bool:
        """Download a wheel if there is one; a registry that does not answer is a Failure."""
        try:
            self.download(target, (requirement,))
        except Failure as failure:
            if NO_WHEEL not in str(failure):
                raise
            # pip says the same of a registry that it does not reach.
            with tempfile.TemporaryDirectory() as elsewhere:
                here = f"{sys.version_info.major}.{sys.version_info.minor}"
                replace(self, python=here).download(Path(elsewhere), (requirement,))
            return False
        return True


def attempt(place: Place, wheels: list[Path]) -> dict[str, Any]:
    """Install, run, and return a row of the table."""
    row: dict[str, Any] = {}
    try:
        with place.folder() as (folder, inside):
            version, libc, machine = json.loads(place.run("-c", FACTS))
            row |= {"python": version, "libc": libc, "architecture": machine}
            fit = [wheel for wheel in wheels if wheel.name.endswith(f"_{machine}.whl")]
            if not fit:
                raise Failure(f"no wheel for {machine}")
            row["wheel"] = fit[0].name
            shutil.copy(fit[0], folder)
            tags = Tags(version, libc, machine)
            tags.download(folder / "wheels", ALONE)
            place.run("-m", "venv", f"{inside}/venv")
            own = Place(f"{inside}/venv/bin/python", place.root)
            pip = ("-m", "pip", "--isolated", "--no-cache-dir", "--disable-pip-version-check")
            install = (*pip, "install", "--no-index", f"--find-links={inside}/wheels")
            own.run(*install, f"{inside}/{fit[0].name}", *ALONE)
            example = first_example(ROOT / "README.md")
            if (said := own.run("-c", example, cwd=inside).split("\n")[:-1]) != prints(example):
                raise Failure(f"README's first example printed {said}")
            row["alone"] = "passed"
            tags.download(folder / "wheels", REQUIREMENTS)
            wanted, left_out = list(REQUIREMENTS), []
            for requirement in OPTIONAL:
                if tags.has_wheel(folder / "wheels", requirement):
                    wanted.append(requirement)
                else:
                    name = re.split(r"[<>=]", requirement)[0]
                    left_out.append(f"{name}, of which there is no wheel")
            own.run(*install, *wanted)
            for part in PARTS:
                copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
                copy(ROOT / part, folder / part)
            tests = TESTS
            if machine != os.uname().machine:
                tests = EMULATED
                left_out.append("tests that are too long for an emulator, or ask what it is")
            row["left_out"] = left_out
            ignored = [f"--deselect={name}" for name in EMULATORS_OWN] if tests is EMULATED else []
            row |= run_tests(own, inside, (*tests, *ignored))
    except Failure as failure:
        row["failed"] = str(failure)
    return row


def attempt_all(found: list[Place], wheels: list[Path]) -> list[dict[str, Any]]:
    """Return a row for each place; those below one folder, or of this system, take turns."""

    def turns(root: Path | None) -> list[tuple[Place, dict[str, Any]]]:
        rows = [(place, attempt(place, wheels)) for place in found if place.root == root]
        print(*(row for _, row in rows), sep="\n", flush=True)
        return rows

    roots = list(dict.fromkeys(place.root for place in found))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # The last ones are the emulated ones, which take the longest.
        made = dict(row for rows in pool.map(turns, reversed(roots)) for row in rows)
    return [made[place] for place in found]


def run_tests(place: Place, cwd: str, tests: tuple[str, ...]) -> dict[str, int]:
    """Run tests of the checkout's copy; return how many passed and how many were skipped."""
    settings = {"HAMR_TEST_CUDA": "", "HAMR_TEST_SCALE": "0.1"}
    place.run("examples/hello.py", cwd=cwd, **settings)
    options = ["-q", "-p", "no:cacheprovider", "-m", "each_python"]
    said = place.run("-m", "pytest", *options, *tests, cwd=cwd, **settings)
    print(said[-2000:], file=sys.stderr)
    found = {word: int(n) for n, word in re.findall(r"(\d+) (passed|skipped)", said)}
    return {word: found.get(word, 0) for word in ("passed", "skipped")}


def first_example(page: Path) -> str:
    """Return the first block of Python that a page has."""
    found = BLOCK.search(page.read_text(encoding="utf-8"))
    if found is None:
        toolchain.fail(f"{page.name} has no block of Python")
    return found[1]


def prints(example: str) -> list[str]:
    """Return the lines that an example says it prints."""
    return [line.rstrip() for line in PRINTS.findall(example)]


def platforms(libc: str, machine: str) -> list[str]:
    """Return the tags of wheels that a C library loads, the newest first."""
    found = re.fullmatch(r"glibc 2\.(\d+)", libc)
    if found is None:
        toolchain.fail(f"the C library is {libc!r}: accepted is glibc")
    named = [f"manylinux_2_{minor}_{machine}" for minor in range(int(found[1]), 16, -1)]
    return [*named, f"manylinux2014_{machine}"]


def places(systems: Path | None, roots: list[str], only: list[str]) -> list[Place]:
    """Return the Pythons of this machine, then those of other systems."""
    here = [one for one in test_matrix.find_interpreters()[0] if not one.system_packages]
    found = [Place(one.path) for one in here if not only or one.version in only]
    made = [(root.partition(":")[0], root.partition(":")[2]) for root in roots]
    if systems is not None:
        made += wheel_systems.make_all(systems)
    return [*found, *(Place(python or "/usr/bin/python3", Path(root)) for root, python in made)]


def table(record: dict[str, Any]) -> str:
    """Return a record as the page has it."""
    lines = [
        f"Version {record['version']}.",
        "",
        "| wheel | Python | C library | architecture | README's example | tests passed | skipped "
        "| left out | commit | date |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        tag = row["wheel"].removesuffix(".whl").split("-", 2)[2]
        names = ("python", "libc", "architecture", "alone", "passed", "skipped")
        cells = [tag, *(row[name] for name in names), "; ".join(row["left_out"])]
        cells += [row["commit"], row["date"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def merged(record: dict[str, Any], version: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a record with rows in place of those of the same places; another version has none."""

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        python = tuple(map(int, re.findall(r"\d+", row["python"])[:2]))
        return row["architecture"] != "x86_64", row["libc"], python

    old = record["rows"] if record.get("version") == version else []
    kept = {place(row): row for row in [*old, *rows]}
    return {"version": version, "rows": [kept[key] for key in sorted(kept)]}


def page(check: bool) -> int:
    """Write the page anew, or report whether it is what the record says."""
    text = PAGE.read_text(encoding="utf-8")
    new = with_runs(text, RUNS, table, "docs/wheels.md")
    if check and new != text:
        print("docs/wheels.md is not what docs/results/wheels.json says", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


def main() -> int:
    """Try the wheels wherever the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--systems", type=Path, help="a folder to make other systems in")
    parser.add_argument("--root", action="append", default=[], help="another system's folder")
    parser.add_argument("--only", action="append", default=[], metavar="VERSION", help="as 3.12")
    parser.add_argument("--record", action="store_true", help="write the result and the page")
    parser.add_argument("--check", action="store_true", help="see that the page is the result")
    parser.add_argument("wheels", type=Path, nargs="*")
    options = parser.parse_args()
    if options.check:
        return page(check=True)
    if not options.wheels:
        parser.error("no wheel is named: make wheels builds them")
    run = {
        "commit": toolchain.run(["git", "rev-parse", "--short", "HEAD"]).strip(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    rows = attempt_all(places(options.systems, options.root, options.only), options.wheels)
    failed = [row for row in rows if "failed" in row]
    if options.record:
        passed = [row | run for row in rows if "failed" not in row]
        old = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
        record = merged(old, options.wheels[0].name.split("-")[1], passed)
        RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        page(check=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
