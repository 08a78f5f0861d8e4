"""Run the tests on every Python at hand, all from one wheel.

python build_support/test_matrix.py [--only 3.12] [--gpu] [--wheel WHEEL] [-- PYTEST ARGUMENTS]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

PROBE = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "version": sys.version_info[:2],
    "prefix": sys.base_prefix,
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


def find_interpreters() -> list[Interpreter]:
    """Return one Python of each version, and the system's own where that brings NumPy."""
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
    return [found[tag] for tag in sorted(found)]


def build_wheel() -> Path:
    """Build the one wheel that every Python is tested with."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*PIP, "wheel", "--no-deps", "-w", scratch, str(ROOT)], check=True)
        (built,) = Path(scratch).glob("*.whl")
        kept = ROOT / "dist" / built.name
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(built, kept)
    return kept


def prepare(interpreter: Interpreter, wheel: Path) -> str:
    """Install the wheel and what the tests need; return the environment's Python."""
    folder = ROOT / ".venvs" / interpreter.tag
    packages = ["--system-site-packages"] if interpreter.system_packages else []
    # Without pip: Debian's Python has no ensurepip unless asked.
    venv = [interpreter.path, "-m", "venv", "--without-pip", *packages, str(folder)]
    subprocess.run(venv, check=True)
    python = str(folder / "bin" / "python")
    install = [*PIP, "--python", python, "install"]
    subprocess.run([*install, f"{wheel}[test]"], check=True)
    # The version alone does not tell pip that the wheel has changed.
    subprocess.run([*install, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return python


def main() -> int:
    """Run the tests and print a line for each Python."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", metavar="VERSION", help="a Python, as 3.12")
    parser.add_argument("--gpu", action="store_true", help="tests marked gpu, on this Python")
    parser.add_argument("--wheel", type=Path, help="test this wheel instead of building one")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()

    if options.gpu:
        # The array libraries are large and tied to the driver: take those that are installed.
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        interpreters = [Interpreter(sys.executable, version, system_packages=True)]
    else:
        interpreters = find_interpreters()
    if options.only:
        interpreters = [one for one in interpreters if one.version in options.only]
    if not interpreters:
        print("no Python 3.11 or newer found", file=sys.stderr)
        return 1
    wheel = (options.wheel or build_wheel()).resolve()
    check = [sys.executable, str(ROOT / "build_support" / "check_wheel.py"), str(wheel)]
    subprocess.run(check, check=True)

    summary = []
    for interpreter in interpreters:
        print(f"\n=== Python {interpreter.tag} ({interpreter.path})", flush=True)
        started = time.monotonic()
        try:
            python = prepare(interpreter, wheel)
        except subprocess.CalledProcessError as error:
            summary.append((interpreter.tag, f"not set up: {error}"))
            continue
        marked = "gpu" if options.gpu else "not gpu"
        pytest = [python, "-m", "pytest", "tests", "-m", marked, *options.pytest]
        status = subprocess.run(pytest, cwd=ROOT, check=False).returncode
        outcome = "passed" if status == 0 else f"failed (pytest status {status})"
        summary.append((interpreter.tag, f"{outcome} in {time.monotonic() - started:.0f} s"))

    print("\n=== Summary")
    for tag, outcome in summary:
        print(f"Python {tag}: {outcome}")
    return int(any(not outcome.startswith("passed") for _, outcome in summary))


if __name__ == "__main__":
    sys.exit(main())
