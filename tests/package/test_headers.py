"""include/hamr/types.h, as a C and a C++ compiler read it from where hamr is installed."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import hamr
from hamr import _native
from tests.cpp.upstream_names import HEADERS, INTERFACES
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


CPP = [
    "allocator", "buffer", "builder", "copies", "device", "element", "error", "event", "extents",
    "gil_state", "group", "interpreter", "launch", "making", "members", "mirror",
    "named_allocators", "namespace", "objects", "openmp", "plain", "python", "python_deleter",
    "std_allocator", "storage", "store", "stream", "utilities", "values", "view",
]  # fmt: skip


def test_the_folder_holds_the_headers_and_nothing_else():
    folder = Path(hamr.get_include())
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.*")) == sorted([
        "hamr.h",
        "hamr.f90",
        "hamr.hpp",
        "hamr_fortran.c",
        "hamr/allocators.h",
        "hamr/calls.h",
        "hamr/exchange.h",
        "hamr/fortran.h",
        "hamr/functions.h",
        "hamr/interface.h",
        "hamr/kernels.h",
        "hamr/nanobind.h",
        "hamr/open.h",
        "hamr/pybind11.h",
        "hamr/python.h",
        "hamr/records.h",
        "hamr/store.h",
        "hamr/store_calls.h",
        "hamr/store_functions.h",
        "hamr/store_interface.h",
        "hamr/thrust.h",
        "hamr/types.h",
        "hamr/version.h",
        *(f"hamr/cpp/{name}.hpp" for name in CPP),
        *(f"hamr_{name}.h" for name in HEADERS),
        *(f"hamr_{name}.i" for name in INTERFACES),
    ])  # fmt: skip


#: Which of the standard library's headers has a name. Older compilers' headers bring others along,
#: GCC 13's do not.
HOLDS = {
    "algorithm": "equal find max min sort",
    "array": "array",
    "chrono": "chrono",
    "complex": "complex",
    "cstddef": "byte ptrdiff_t size_t",
    "cstdint": (
        "int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t"
    ),
    "cstdlib": "atoi free getenv",
    "cstring": "memcmp memcpy strcmp strlen",
    "exception": "exception exception_ptr rethrow_exception terminate uncaught_exceptions",
    "functional": "function hash less",
    "initializer_list": "initializer_list",
    "iostream": "cerr cout endl",
    "iterator": "begin end make_reverse_iterator",
    "limits": "numeric_limits",
    "mdspan": "dextents mdspan",
    "memory": (
        "allocator const_pointer_cast destroy_n make_shared make_unique shared_ptr "
        "static_pointer_cast uninitialized_fill_n unique_ptr weak_ptr"
    ),
    "mutex": "lock_guard recursive_mutex",
    "new": "bad_alloc bad_array_new_length",
    "optional": "nullopt optional",
    "ostream": "ostream",
    "span": "span",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error",
    "stdfloat": "bfloat16_t float16_t",
    "string": "string to_string",
    "tuple": "get make_tuple tuple tuple_cat",
    "type_traits": (
        "conditional_t decay_t enable_if_t false_type integral_constant is_const_v "
        "is_constructible_v is_convertible_v is_copy_constructible_v is_default_constructible_v "
        "is_integral_v "
        "is_invocable_v is_lvalue_reference_v is_nothrow_move_constructible_v is_null_pointer_v "
        "is_pointer_v is_same_v is_signed_v is_trivially_copyable is_trivially_copyable_v "
        "is_unsigned_v is_volatile_v "
        "remove_const_t remove_cv_t remove_pointer_t remove_reference_t true_type void_t"
    ),
    "utility": "declval exchange forward move pair swap",
    "vector": "vector",
}


def test_headers_include_what_they_use():
    holder = {name: header for header, names in HOLDS.items() for name in names.split()}
    missing = []
    for path in sorted(Path(hamr.get_include()).rglob("*.h*")):
        if path.name == "types.h":  # it says what to include before it
            continue
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        included = set(re.findall(r"# *include <(\w+)>", code))
        used = set(re.findall(r"\bstd::(\w+)", code))
        assert used <= holder.keys(), path
        missing += [f"{path.name}: <{header}>" for header in {holder[n] for n in used} - included]
    assert missing == []
