"""Install wheels on many systems, run tests there, and write docs/wheels.md.

python -m build_support.wheel_matrix [--root FOLDER[:PYTHON]] [--only 3.12] [--record] WHEEL...
python -m build_support.wheel_matrix --check

Places are the Pythons of this machine and, by --root, other systems below a folder, as debootstrap
makes them, which need this user to be root. A system of another architecture runs where the kernel
has an emulator for its programs. Each place has the wheel for its architecture, from no index, what
the tests need, from PyPI, and runs an example and the tests of what differs from Python to Python.
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
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build_support import test_matrix, toolchain
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
#: What these tests need beside hamr, of PyPI's.
REQUIREMENTS = ("pytest>=8", "hypothesis>=6.100", "numpy>=1.24", "ml_dtypes>=0.5")


@dataclass(frozen=True)
class Place:
    """A Python of this system, or of one below a folder."""

    python: str
    root: Path | None = None

    def run(
        self, *arguments: str, cwd: str = "/", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python."""
        command = [self.python, *arguments]
        env = {**os.environ, **settings}
        if self.root is not None:
            command = ["chroot", str(self.root), "env", "-C", cwd, *command]
            env = {
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": "/root",
                "LC_ALL": "C.UTF-8",
                **settings,
            }
        return subprocess.run(
            command,
            cwd=None if self.root else cwd,
            env=env,
            text=True,
            capture_output=True,
            check=False,
        )

    @contextmanager
    def folder(self) -> Iterator[tuple[Path, str]]:
        """A folder that is there for a while, as this system and as the place names it."""
        with tempfile.TemporaryDirectory(dir=self.root and self.root / "tmp") as name:
            inside = f"/{Path(name).relative_to(self.root)}" if self.root else name
            yield Path(name), inside


def attempt(place: Place, wheels: list[Path]) -> dict[str, Any]:
    """Install, run, and return a row of the table."""
    asked = place.run("-c", FACTS)
    if asked.returncode:
        return {"python": place.python, "failed": asked.stderr[-500:]}
    version, libc, machine = json.loads(asked.stdout)
    row: dict[str, Any] = {"python": version, "libc": libc, "architecture": machine}
    fit = [wheel for wheel in wheels if wheel.name.endswith(f"_{machine}.whl")]
    if not fit:
        return row | {"failed": f"no wheel for {machine}"}
    row["wheel"] = fit[0].name
    with place.folder() as (folder, inside):
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        shutil.copy(fit[0], folder)
        # This system's pip installs for others, whose Python may have none.
        site = str(folder / "site")
        for what in ([str(fit[0]), "--no-index", "--no-deps"], [*REQUIREMENTS]):
            tags = re.sub(r"^(\d+)\.(\d+).*", r"\1.\2", version)
            command = [*test_matrix.PIP, "install", "--target", site, "--python-version", tags]
            for platform in platforms(libc, machine):
                command += ["--platform", platform]
            done = subprocess.run(
                [*command, "--only-binary=:all:", "--upgrade", *what],
                text=True,
                capture_output=True,
                check=False,
            )
            if done.returncode:
                return row | {"failed": done.stderr[-500:]}
        settings = {"PYTHONPATH": f"{inside}/site", "HAMR_TEST_CUDA": "", "HAMR_TEST_SCALE": "0.1"}
        done = place.run("examples/hello.py", cwd=inside, **settings)
        if done.returncode:
            return row | {"failed": f"examples/hello.py: {done.stderr[-500:]}"}
        options = ["-q", "-p", "no:cacheprovider", "-m", "each_python"]
        done = place.run("-m", "pytest", *options, *TESTS, cwd=inside, **settings)
    print(done.stdout[-2000:] + done.stderr[-2000:], file=sys.stderr)
    counts = {
        word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)
    }
    row |= {word: counts.get(word, 0) for word in ("passed", "skipped")}
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        row["failed"] = "; ".join(lines)[:500] or f"status {done.returncode}"
    return row


def platforms(libc: str, machine: str) -> list[str]:
    """Return the tags of wheels that a C library loads, the newest first."""
    found = re.fullmatch(r"glibc 2\.(\d+)", libc)
    if found is None:
        toolchain.fail(f"the C library is {libc!r}: accepted is glibc")
    named = [f"manylinux_2_{minor}_{machine}" for minor in range(int(found[1]), 16, -1)]
    return [*named, f"manylinux2014_{machine}"]


def places(roots: list[str], only: list[str]) -> list[Place]:
    """Return the Pythons of this machine, then those of other systems."""
    here = [one for one in test_matrix.find_interpreters()[0] if not one.system_packages]
    found = [Place(one.path) for one in here if not only or one.version in only]
    for root in roots:
        folder, _, python = root.partition(":")
        found.append(Place(python or "/usr/bin/python3", Path(folder)))
    return found


def table(record: dict[str, Any]) -> str:
    """Return a record as the page has it."""
    lines = [
        f"Version {record['version']}, commit {record['commit']}, {record['date']}.",
        "",
        "| wheel | Python | C library | architecture | passed | skipped |",
        "|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        tag = row["wheel"].removesuffix(".whl").split("-", 2)[2]
        cells = [
            tag,
            row["python"],
            row["libc"],
            row["architecture"],
            row["passed"],
            row["skipped"],
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


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
    rows = []
    for place in places(options.root, options.only):
        rows.append(attempt(place, options.wheels))
        print(rows[-1], flush=True)
    failed = [row for row in rows if "failed" in row]
    if options.record and not failed:
        commit = toolchain.run(["git", "rev-parse", "--short", "HEAD"]).strip()
        record = {
            "version": options.wheels[0].name.split("-")[1],
            "commit": commit,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "rows": rows,
        }
        RESULT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        page(check=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
