"""Install what C, C++ and Fortran programs need, for systems that may have no Python.

python -m build_support.install PREFIX [--destdir FOLDER] [--library FILE]

The library, the headers, and what CMake and pkg-config find them by, in PREFIX/lib and
PREFIX/include. The library is built unless a file is named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from build_support import finding_files, native, toolchain, versions

MEMBER = "hamr/_gopy/_pyhamr.abi3.so"


def build(scratch: Path) -> Path:
    """The library of a wheel that is built for it."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "wheel", "--no-deps", "-w", str(scratch), str(toolchain.ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, scratch))


def install(library: Path, folder: Path) -> None:
    """Copy all of it; a library that is in use is replaced and not written to."""
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    target = folder / "lib" / "libhamr.so"
    new = target.with_suffix(".so.new")
    shutil.copyfile(library, new)
    new.chmod(0o755)
    os.replace(new, target)
    shutil.copytree(native.INCLUDE, folder / "include", dirs_exist_ok=True)
    finding_files.write(folder, finding_files.PREFIX, versions.read())


def main() -> int:
    """Install as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("prefix", type=Path, help="an absolute path, such as /usr/local")
    parser.add_argument("--destdir", default="", help="a folder to install below, for packages")
    parser.add_argument("--library", type=Path, help="one that has been built")
    given = parser.parse_args()
    if not given.prefix.is_absolute():
        parser.error(f"the prefix is {str(given.prefix)!r}: accepted is an absolute path")
    folder = Path(f"{given.destdir}{given.prefix}")
    try:
        with tempfile.TemporaryDirectory(prefix="hamr-install-") as scratch:
            install(given.library or build(Path(scratch)), folder)
    except OSError as error:
        toolchain.fail(f"nothing is installed in {folder}: {error}")
    print(f"installed in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
