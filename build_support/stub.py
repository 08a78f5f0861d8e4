"""The archive that -lhamr finds in the wheel, where the library has another name."""

from __future__ import annotations

import struct
from pathlib import Path

from build_support import native, toolchain

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ["-O2", "-std=c99", "-fPIC", "-fvisibility=hidden", "-g0"]


def build(cc: list[str], scratch: Path, target: Path) -> None:
    """Compile the one member, and write the archive."""
    made = scratch / "stub.o"
    # The folder is not where the headers are installed, and differs between builds.
    place = f"-fmacro-prefix-map={native.INCLUDE}="
    command = [*cc, *FLAGS, place, f"-I{native.INCLUDE}", "-c", str(SOURCE)]
    toolchain.run([*command, "-o", made])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(archive(made.read_bytes(), b"hamr_get_table"))


def archive(member: bytes, symbol: bytes) -> bytes:
    """An archive of a file with one symbol. System V's format, as ar writes it, without dates."""
    names = symbol + b"\0" * (2 - len(symbol) % 2)
    start = b"!<arch>\n"
    at = len(start) + 60 + 8 + len(names)
    index = _entry(b"/", struct.pack(">II", 1, at) + names)
    return start + index + _entry(b"stub.o/", member)


def _entry(name: bytes, content: bytes) -> bytes:
    head = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name, 0, 0, 0, 0o644, len(content))
    return head + content + b"\n" * (len(content) % 2)
