"""Check that a wheel holds what it should: python -m build_support.check_wheel WHEEL..."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from build_support import finding_files

LIMIT = 4 << 20
LIBRARIES = ("hamr/_gopy/_pyhamr.abi3.so", "hamr/_native.abi3.so")
INCLUDE = Path(__file__).parents[1] / "include"
HEADERS = tuple(
    f"hamr/include/{path.relative_to(INCLUDE).as_posix()}" for path in sorted(INCLUDE.rglob("*.*"))
)
FINDING = (
    "hamr/lib/libhamr.a",
    *(f"hamr/{name}" for name in finding_files.names(finding_files.WHEEL)),
)
# What hamr bench compiles where it measures.
MEASURED = ("hamr/_benchmark/bare_hand_over.c", "hamr/_benchmark/bare_object.c")
# The C library and what older ones split off it.
ALLOWED = re.compile(r"(libc|libpthread|libdl|libm|librt|ld-linux[\w-]*)\.so\.\d+")


def problems(wheel: Path) -> list[str]:
    """Return what is wrong with the wheel."""
    found = []
    if not re.fullmatch(r"hamr-[\w.]+-cp311-abi3-\w+\.whl", wheel.name):
        found.append("its name does not say cp311-abi3")
    if wheel.stat().st_size > LIMIT:
        found.append(f"it is {wheel.stat().st_size} bytes, more than {LIMIT}")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        names = archive.namelist()
        wanted = (*LIBRARIES, *HEADERS, *FINDING)
        found += [f"{name} is missing" for name in wanted if name not in names]
        endings = (".c", ".cpp", ".f90", ".h", ".hpp", ".go")
        sources = [name for name in names if name.endswith(endings)]
        found += [f"{name} is a source" for name in sources if name not in HEADERS + MEASURED]
        if not shutil.which("readelf"):
            return found
        for name in LIBRARIES:
            if name not in names:
                continue
            command = ["readelf", "-d", archive.extract(name, scratch)]
            dynamic = subprocess.run(command, text=True, capture_output=True, check=True).stdout
            for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
                if not ALLOWED.fullmatch(needed):
                    found.append(f"{name} needs {needed}")
            if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
                found.append(f"{name} has a run path")
    return found


def main() -> int:
    """Print what is wrong."""
    failed = False
    for wheel in map(Path, sys.argv[1:]):
        found = problems(wheel)
        failed = failed or bool(found)
        for problem in found:
            print(f"{wheel.name}: {problem}", file=sys.stderr)
        if not found:
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, good")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
