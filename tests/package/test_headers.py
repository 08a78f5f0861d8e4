"""include/hamr/types.h, as a C and a C++ compiler read it from where hamr is installed."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import hamr
from hamr import _native
from tests.support.producers import DTYPES

PROGRAM = """
#include "hamr/types.h"
#ifdef __cplusplus
#include <complex>
#include <cstdint>
#else
#include <stdbool.h>
#include <stdint.h>
#endif
#include <stdio.h>

static int named(hamr_element_type type) {
    switch (type) { /* each of them, or -Werror */
    case HAMR_INVALID: return 0;
#define CASE(type, ...) case type:
    HAMR_ELEMENT_TYPES(CASE) return 1;
    }
    return 0;
}

int main(void) {
#define ROW(type, number, name, size, kind, code, bits, typestr, format, arrow) \\
    printf("%d %d %s %d %d ", named(type), type == number, name, size, kind); \\
    printf("%d %d %s %s %s\\n", code, bits, typestr, format, arrow);
    HAMR_ELEMENT_TYPES(ROW)
    printf("%d\\n", HAMR_ELEMENT_TYPE_COUNT);
#define C_TYPE(type, c_type) printf("%d %d\\n", (int)type, (int)sizeof(c_type));
    HAMR_C_TYPES(C_TYPE)
    return 0;
}
"""

KINDS = ["invalid", "bool", "int", "uint", "float", "complex"]


def compiler(variable, *names):
    """The words of a compiler's command; empty if there is none."""
    if os.environ.get(variable):
        return shlex.split(os.environ[variable])
    return next(([found] for name in names if (found := shutil.which(name))), [])


LANGUAGES = {
    "c": ("c11", compiler("CC", "gcc", "cc", "clang")),
    "c++": ("c++17", compiler("CXX", "g++", "c++", "clang++")),
}


@pytest.mark.parametrize(
    "language",
    [
        pytest.param(name, marks=pytest.mark.skipif(not command, reason=f"no {name} compiler"))
        for name, (_, command) in LANGUAGES.items()
    ],
)
def test_compilers_read_the_cores_table(language, tmp_path):
    standard, command = LANGUAGES[language]
    source, program = tmp_path / "source", tmp_path / "program"
    source.write_text(PROGRAM)
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", f"-I{hamr.get_include()}"]
    subprocess.run([*command, *flags, "-x", language, source, "-o", program], check=True)
    output = subprocess.run([program], text=True, capture_output=True, check=True).stdout
    lines = [line.split(" ") for line in output.splitlines()]
    table = _native.element_table()
    for row, (name, typestr, form, size, code) in zip(lines, table, strict=False):
        expected = ["1", "1", name, size, row[4], code, 8 * size, typestr, form or ""]
        assert row[:9] == [str(field) for field in expected]
        assert name.replace("bfloat", "float").startswith(KINDS[int(row[4])])
    assert lines[len(table)] == [str(len(table) + 1)]
    c_types = lines[len(table) + 1 :]
    assert [table[int(number) - 1][0] for number, _ in c_types] == [
        name for name in DTYPES if name != "float16"
    ]
    assert all(table[int(number) - 1][3] == int(size) for number, size in c_types)


def test_the_folder_holds_the_headers_and_nothing_else():
    folder = Path(hamr.get_include())
    assert [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*.h"))] == [
        "hamr/allocators.h",
        "hamr/functions.h",
        "hamr/types.h",
    ]
