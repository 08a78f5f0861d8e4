"""Programs in C++ that use the store, and what they print."""

from __future__ import annotations

from pathlib import Path

from tests.support.c_programs import compile_program
from tests.support.paths import ROOT

CLIENT = ROOT / "tests" / "cpp" / "programs" / "store_client.cpp"
EXAMPLE = ROOT / "examples" / "store_mirror.cpp"


def build(source: Path, folder: Path) -> str:
    """Compile one, without a warning."""
    output = folder / source.stem
    return str(compile_program(source, output, "-O0", language="c++", standard="c++17"))


def lines_of_the_example(on_the_host: bool) -> list[str]:
    """What examples/store_mirror.cpp prints."""
    return [
        f"on the host: {on_the_host:d}",
        "read by another process: hello world",
        'metadata: {"language": "C++"}',
        "writing is refused: hamr::mirror::mutable_data: the buffer is read-only: accepted is "
        "data()",
        "objects left: 0",
    ]
