"""What CMake and pkg-config find hamr by: in the wheel, and below a prefix without Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from build_support import toolchain

#: Texts with the version, and where the library is.
TEMPLATES = Path(__file__).parent / "finding"
#: What add_subdirectory() of the sources reads, too.
CMAKE = (toolchain.ROOT / "CMakeLists.txt", *sorted((toolchain.ROOT / "cmake").iterdir()))


@dataclass(frozen=True)
class Layout:
    """Where the library is below the folder that has include/ and lib/, and how it is linked."""

    folder: str
    link: str
    #: Files that are there besides, with their contents.
    besides: tuple[tuple[str, bytes], ...] = ()


#: The module's own file, which Python loads, too. The folder is hamr's alone, so add_subdirectory()
#: takes it as it takes the sources.
WHEEL = Layout(
    "_gopy",
    "-l:_pyhamr.abi3.so",
    (
        ("CMakeLists.txt", CMAKE[0].read_bytes()),
        (
            "cmake/hamr_omp_offload.cmake",
            b'include("${CMAKE_CURRENT_LIST_DIR}/../lib/cmake/hamr/hamr_omp_offload.cmake")\n',
        ),
    ),
)
PREFIX = Layout("lib", "-lhamr")


def names(layout: Layout = PREFIX) -> list[str]:
    """The files below the folder that has include/ and lib/."""
    folders = {".cmake": "lib/cmake/hamr", ".txt": "lib/cmake/hamr", ".pc": "lib/pkgconfig"}
    found = [f"{folders[path.suffix]}/{path.name}" for path in (*TEMPLATES.iterdir(), *CMAKE)]
    return sorted([*found, *(name for name, _ in layout.besides)])


def write(folder: Path, layout: Layout, version: str) -> None:
    """Write them below the folder, for a version of hamr's."""
    sources = {path.name: path for path in (*TEMPLATES.iterdir(), *CMAKE)}
    besides = dict(layout.besides)
    for name in names(layout):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in besides:
            target.write_bytes(besides[name])
            continue
        text = sources[target.name].read_text(encoding="utf-8")
        text = text.replace("@VERSION@", version).replace("@FOLDER@", layout.folder)
        target.write_text(text.replace("@LINK@", layout.link), encoding="utf-8")
