"""What CMake and pkg-config find hamr by: in the wheel, and below a prefix without Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TEMPLATES = Path(__file__).parent / "finding"


@dataclass(frozen=True)
class Layout:
    """Where the library is below the folder that has include/ and lib/, and how it is linked."""

    folder: str
    link: str


#: The module's own file, which Python loads, too.
WHEEL = Layout("_gopy", "-l:_pyhamr.abi3.so")
PREFIX = Layout("lib", "-lhamr")


def names() -> list[str]:
    """The files below the folder that has include/ and lib/."""
    folders = {".cmake": "lib/cmake/hamr", ".pc": "lib/pkgconfig"}
    return [f"{folders[path.suffix]}/{path.name}" for path in sorted(TEMPLATES.iterdir())]


def write(folder: Path, layout: Layout, version: str) -> None:
    """Write them below the folder, for a version of hamr's."""
    for name in names():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (TEMPLATES / target.name).read_text(encoding="utf-8")
        text = text.replace("@VERSION@", version).replace("@FOLDER@", layout.folder)
        target.write_text(text.replace("@LINK@", layout.link), encoding="utf-8")
