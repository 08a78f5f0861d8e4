"""Have an editable installation say when its sources changed after its extensions were built.

The build writes this file and a record of the sources beside the Go extension; the C extension of
an editable installation, and no other, imports it.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path

#: The folder, below that of the generated files, that becomes hamr._gopy.in_place.
NAME = "in_place"
RECORD = "sources.json"
#: What the extensions are compiled from, below the root: Go embeds the kernels.
FOLDERS = (
    *("arrayiface", "backends", "gobuffer", "hetero", "include", "internal", "pyhamr", "store"),
    os.path.join("python", "hamr", "native"),
)
ENDINGS = (".go", ".c", ".h", ".cu", ".ptx")
FILES = ("go.mod", "go.sum", "pyproject.toml")


def sources(root: Path) -> list[str]:
    """Return the files that the extensions are compiled from, tests left out."""
    found = [name for name in FILES if (root / name).is_file()]
    for folder in FOLDERS:
        for path, _, names in os.walk(root / folder):
            found += [
                os.path.relpath(os.path.join(path, name), root)
                for name in names
                if name.endswith(ENDINGS) and not name.endswith("_test.go")
            ]
    return sorted(found)


def fingerprint(path: Path) -> list[int | str]:
    """Return a file's time, size and digest."""
    facts = path.stat()
    return [facts.st_mtime_ns, facts.st_size, hashlib.sha256(path.read_bytes()).hexdigest()]


def write(folder: Path, root: Path) -> None:
    """Record the sources in a folder of generated files, with this program."""
    target = folder / NAME
    target.mkdir(parents=True, exist_ok=True)
    record = {name: fingerprint(root / name) for name in sources(root)}
    (target / RECORD).write_text(
        json.dumps({"root": str(root), "sources": record}), encoding="utf-8"
    )
    program = Path(__file__).read_text(encoding="utf-8")
    (target / "__init__.py").write_text(f"{program}\nwarn(Path(__file__).parent)\n")


def changed(record: dict[str, list[int | str]], root: Path) -> list[str]:
    """Return the sources that are new, gone or have another content."""
    now = sources(root)
    found = set(record).symmetric_difference(now)
    for name in record.keys() & set(now):
        facts = (root / name).stat()
        # The digest is taken only where needed: git and touch change the time alone.
        if [facts.st_mtime_ns, facts.st_size] != record[name][:2] and (
            fingerprint(root / name)[1:] != record[name][1:]
        ):
            found.add(name)
    return sorted(found)


def warn(folder: Path) -> None:
    """Say what changed since the build that a folder records, and how to build anew."""
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    root = Path(record["root"])
    found = changed(record["sources"], root)
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        warnings.warn(
            f"hamr's extensions are older than their sources: {', '.join(found[:3])}{more} "
            f"changed; build them anew by 'pip install -e {root}'",
            RuntimeWarning,
            stacklevel=2,
        )
