"""Run README's commands in a bare Debian 12: make demo and make test, from a clean clone; as root.

python -m build_support.bare [--folder FOLDER] [--mirror ADDRESS]

The system is made anew by debootstrap and has Python with headers and venv, make and git: no Go and
no C compiler. It fails unless both commands pass. Parts of make test may be left out if they are
among LEFT_OUT and say why. The commit that has passed is written to build/bare/passed, for a
release. After a failure the system stays where it is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from build_support import summary, toolchain, wheel_systems
from build_support.summary import Row

SUITE, PACKAGES = "bookworm", ("python3-dev", "python3-venv", "make", "git")
#: Each with the seconds that it may take.
COMMANDS = (("make demo", 3600), ("make test", 4 * 3600))
#: The parts of make test that need what PyPI does not have.
LEFT_OUT = (
    "AddressSanitizer and UBSan",
    "valgrind",
    "valgrind, C programs",
    "the system's Python with its packages",
    "the wheel's needed libraries",
)
#: Which variables of this machine say how its network is reached.
NETWORK = re.compile(
    r"(?i:https?|no)_proxy|PIP_(?!FIND_LINKS)\w+|GO(PROXY|SUMDB|NOSUMDB)|SSL_CERT_FILE"
)
#: The same of its files: names of hosts, and certificates.
FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt")
#: The commit that has passed, then its parts.
PASSED = toolchain.ROOT / "build" / "bare" / "passed"


def check(commit: str) -> None:
    """Refuse a commit that has not passed."""
    text = PASSED.read_text(encoding="utf-8") if PASSED.exists() else ""
    if text.partition("\n")[0] != commit:
        toolchain.fail(f"make bare has not passed with commit {commit}: 'sudo make bare' runs it")


def make(root: Path, mirror: str) -> None:
    """Make the system, and clone what is committed into it."""
    machine = os.uname().machine
    names = [name for name, (of, _) in wheel_systems.EMULATORS.items() if of == machine]
    if not names:
        toolchain.fail(f"this machine is {machine}: {SUITE} is made for x86_64 and aarch64")
    wheel_systems.make(
        wheel_systems.System(SUITE, names[0], PACKAGES, ("/usr/bin/python3",)), root, mirror
    )
    found = [name for name in ("go", "gcc", "cc", "clang") if (root / "usr/bin" / name).exists()]
    if found:
        toolchain.fail(f"the bare system has {', '.join(found)}")
    for name in map(Path, FILES):
        if name.exists():
            shutil.copy(name, root / name.relative_to("/"))
    source = f"file://{toolchain.ROOT}"
    # The checkout may be another user's than root, who asks for this.
    safe = ("-c", f"safe.directory={toolchain.ROOT}", "-c", f"safe.directory={toolchain.ROOT}/.git")
    toolchain.run(["git", *safe, "clone", "--quiet", source, root / "root" / "hamr"])


def follow(command: str, root: Path, limit: int) -> tuple[int, list[Row]]:
    """Run a command in the clone; return its status, and the parts that it reported."""
    reported = Path("tmp", "summary")
    env = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
    env |= {**wheel_systems.ENVIRONMENT, summary.VARIABLE: f"/{reported}"}
    chroot = [
        "chroot",
        str(root),
        "env",
        "-C",
        "/root/hamr",
        "timeout",
        "--kill-after=60",
        str(limit),
    ]
    done = subprocess.run([*chroot, *command.split()], env=env, check=False)
    path = root / reported
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return done.returncode, [(name, outcome) for name, outcome in map(json.loads, lines)]


def problems(parts: list[Row]) -> list[str]:
    """Return what is wrong with the parts of make test."""
    found = [] if parts else ["it reports no parts"]
    for name, outcome in parts:
        word, _, reason = outcome.partition(": ")
        if word == "left out" and not (reason and name.strip() in LEFT_OUT):
            found.append(f"{name.strip()} is left out: {reason or 'nothing says why'}")
        elif summary.failed([(name, outcome)]):
            found.append(f"{name.strip()} {outcome}")
    return found


def run(root: Path) -> list[Row]:
    """Run both commands; return a row for each, before those of its parts."""
    rows: list[Row] = []
    with wheel_systems.mounted(root):
        for command, limit in COMMANDS:
            started = time.monotonic()
            status, parts = follow(command, root, limit)
            wrong = [f"status {status}"] if status else []
            if command == "make test":
                wrong += problems(parts)
            seconds = f"in {time.monotonic() - started:.0f} s"
            outcome = f"failed {seconds}: {'; '.join(wrong)}" if wrong else f"passed {seconds}"
            rows += [(command, outcome), *((f"  {name}", said) for name, said in parts)]
    return rows


def main() -> int:
    """Make the system, run the commands, and write what has passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=PASSED.with_name("system"))
    parser.add_argument("--mirror", default=wheel_systems.MIRROR)
    options = parser.parse_args()
    PASSED.unlink(missing_ok=True)
    root = options.folder.resolve()
    if root.exists():
        wheel_systems.remove(root)
    make(root, options.mirror)
    commit = toolchain.run(["git", "-C", root / "root" / "hamr", "rev-parse", "HEAD"]).strip()
    rows = run(root)
    status = summary.report(rows)
    if status:
        print(f"The system is kept: chroot {root}", file=sys.stderr)
        return status
    wheel_systems.remove(root)
    PASSED.parent.mkdir(parents=True, exist_ok=True)
    lines = [commit, *(f"{name}: {outcome}" for name, outcome in rows)]
    PASSED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
