"""What compiled programs rely on, as lines: python -m tests.c.abi prints them for abi.txt.

A line that is recorded never changes and never goes: a program that was compiled before would
call another function, or read another field. New lines are new functions at the end of a table,
new fields at the end of hamr_info, new numbers of enumerations, and types that are new.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hamr
from hamr._base.library import library_path
from tests.support.c_programs import compile_program, run

RECORD = Path(__file__).parent / "abi.txt"


HEADERS = ["interface.h", "store_interface.h"]


def _headers() -> str:
    folder = Path(hamr.get_include()) / "hamr"
    text = "".join((folder / name).read_text() for name in HEADERS)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def _structs(text: str) -> dict[str, list[tuple[str, str]]]:
    """The fields of each struct: their declarations and their names."""
    found: dict[str, list[tuple[str, str]]] = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.DOTALL):
        fields = found.setdefault(name, [])
        for declaration in filter(None, (" ".join(d.split()) for d in body.split(";"))):
            field = re.search(r"\(\*(\w+)\)|(\w+)(?:\[\d+\])?$", declaration)
            assert field, declaration
            fields.append((declaration, field[1] or field[2]))
    return found


def _numbers(text: str) -> list[str]:
    enumerations = "".join(re.findall(r"enum \{(.*?)\}", text, re.DOTALL))
    return re.findall(r"(HAMR_\w+)", enumerations) + re.findall(r"#define (HAMR_\w+) +\S", text)


def layouts() -> list[str]:
    """Sizes, offsets, declarations and numbers, as this machine's C compiler has them."""
    text = _headers()
    program = '#include "hamr/store.h"\nint main(void) {\n'
    for struct, fields in _structs(text).items():
        if struct not in ("hamr_table", "hamr_store_table", "hamr_info"):  # those grow
            program += f'printf("{struct} has %zu bytes\\n", sizeof({struct}));\n'
        for declaration, field in fields:
            at = f"offsetof({struct}, {field})"
            program += f'printf("{struct} %zu: {declaration}\\n", {at});\n'
    for name in _numbers(text):
        program += f'printf("{name} is %lld\\n", (long long)(intptr_t)({name}));\n'
    program += "return 0;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "layouts.c"
        source.write_text(program)
        return run(compile_program(source, Path(folder) / "layouts")).splitlines()


def symbols() -> list[str]:
    """What the library exports for others than itself; none without nm to tell."""
    if not shutil.which("nm"):
        return []
    command = ["nm", "-D", "--defined-only", library_path()]
    listing = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    return [f"symbol {name}" for name in sorted(re.findall(r" T (hamr_\w+)", listing))]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*symbols(), *layouts(), ""]))
