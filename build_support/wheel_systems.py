"""Make the systems that wheels are tried on, each below a folder, by debootstrap; as root.

python -m build_support.wheel_systems FOLDER [--only NAME] [--mirror ADDRESS]

Needs debootstrap, and for another architecture qemu-user-static and binfmt-support. A system that
is there is kept; remove its folder to have it made again. docs/wheels.md shows what they give.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from build_support import toolchain

MIRROR = "http://deb.debian.org/debian"
#: Where kernels say which programs they run by an emulator.
BINFMT = Path("/proc/sys/fs/binfmt_misc")
EMULATORS = {"amd64": ("x86_64", "qemu-x86_64"), "arm64": ("aarch64", "qemu-aarch64")}

#: Builds a CPython where the distribution has none that is new enough, from a newer one's sources.
FROM_SOURCE = """
set -e
cd /usr/src
echo "deb-src {mirror} bookworm main" > /etc/apt/sources.list.d/bookworm-source.list
apt-get update -q
apt-get source -q --download-only python3.11
tar -xf python3.11_*.orig.tar.*
cd Python-3.11*
./configure -q
make -s -j"$(nproc)"
make -s install
"""
BUILD_PACKAGES = ("build-essential", "libffi-dev", "libssl-dev", "zlib1g-dev", "libbz2-dev")


#: What is mounted: its kind, where, and how. Programs ask /sys for the processors.
MOUNTS = (("proc", "proc", "rw"), ("sysfs", "sys", "ro"), ("tmpfs", "dev/shm", "rw"))
#: The environment of what runs in a system, from whose settings this machine's are kept out.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True)
class System:
    """A release of Debian's for an architecture of Debian's, and the Pythons that it gets."""

    suite: str
    architecture: str
    packages: tuple[str, ...]
    pythons: tuple[str, ...]
    script: str = ""


SYSTEMS = {
    "oldest": System(
        "bullseye", "amd64", BUILD_PACKAGES, ("/usr/local/bin/python3.11",), FROM_SOURCE
    ),
    "newest": System(
        "sid",
        "amd64",
        ("python3.14-venv", "python3.15-venv"),
        ("/usr/bin/python3.14", "/usr/bin/python3.15"),
    ),
    "aarch64": System("trixie", "arm64", ("python3-venv",), ("/usr/bin/python3",)),
}


def _call(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], check=False)
    if done.returncode:
        toolchain.fail(f"status {done.returncode} of {' '.join(map(str, command))}")


def check_tools(architecture: str) -> None:
    """Say what is missing for a system of an architecture; mount the kernel's list if need be."""
    if os.geteuid() != 0:
        toolchain.fail("only root can make other systems and run programs in them")
    if shutil.which("debootstrap") is None:
        toolchain.fail("debootstrap is missing: 'apt install debootstrap' brings it")
    machine, emulator = EMULATORS[architecture]
    if machine == os.uname().machine:
        return
    if not (BINFMT / "register").exists():
        _call("mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT)
    if not (BINFMT / emulator).exists():
        if shutil.which("update-binfmts") is None:
            toolchain.fail(
                f"{emulator} is not registered: "
                "'apt install qemu-user-static binfmt-support' brings it"
            )
        _call("update-binfmts", "--enable", emulator)


@contextmanager
def mounted(root: Path) -> Iterator[None]:
    """Mount what programs expect in a system, for a while."""
    with ExitStack() as undo:
        for kind, folder, how in MOUNTS:
            target = root / folder
            target.mkdir(parents=True, exist_ok=True)
            if not os.path.ismount(target):
                _call("mount", "-t", kind, "-o", how, kind, target)
                undo.callback(_call, "umount", "--lazy", target)
        yield


def remove(root: Path) -> None:
    """Remove a system, in which nothing may be mounted."""
    for _, folder, _ in MOUNTS:
        if os.path.ismount(root / folder):
            toolchain.fail(
                f"{root / folder} is mounted: another run uses it, or 'umount' is to end it"
            )
    shutil.rmtree(root)


def make(system: System, root: Path, mirror: str) -> None:
    """Make a system below a folder, which is there at its end only if all went well."""
    check_tools(system.architecture)
    new = root.with_name(root.name + ".new")
    if new.exists():
        shutil.rmtree(new)
    new.mkdir(parents=True)
    bootstrap = ["debootstrap", "--variant=minbase", f"--arch={system.architecture}"]
    if system.packages:
        bootstrap.append(f"--include={','.join(('ca-certificates', *system.packages))}")
    _call(*bootstrap, system.suite, new, mirror)
    with mounted(new):
        if system.script:
            _call("chroot", new, "/bin/sh", "-c", system.script.format(mirror=mirror))
        for python in system.pythons:
            _call("chroot", new, python, "-c", "import ctypes, ensurepip, ssl, venv, zlib")
    new.rename(root)


def make_all(
    folder: Path, only: list[str] | None = None, mirror: str = MIRROR
) -> list[tuple[str, str]]:
    """Make the systems that are not there yet; return a folder for each of their Pythons."""
    found = []
    for name in only or SYSTEMS:
        root = folder.resolve() / name
        if root.exists():
            check_tools(SYSTEMS[name].architecture)
        else:
            make(SYSTEMS[name], root, mirror)
        found += [(str(root), python) for python in SYSTEMS[name].pythons]
    return found


def main() -> int:
    """Make the systems that the command line names, and print what wheel_matrix is to be given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="each system is a folder there")
    parser.add_argument("--only", action="append", choices=SYSTEMS)
    parser.add_argument("--mirror", default=MIRROR)
    options = parser.parse_args()
    for root, python in make_all(options.folder, options.only, options.mirror):
        print(f"--root {root}:{python}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
