"""hamr.h: what a program in C or C++ does with it, and how it finds the library."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hamr
from hamr._base.library import library_path
from tests.package.test_headers import LANGUAGES
from tests.support.c_programs import (
    COMPILER,
    PACKAGES,
    PROGRAMS,
    TENSORS,
    compile_program,
    python_library,
    run,
)
from tests.support.processes import scaled

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")

#: What each program prints at its end.
ENDS = {
    "everything": "all of it",
    "mistakes": "all refused",
    "hand_overs": "all handed over",
    "forks": "all forked",
    "strides": "all in order",
    "last_calls": "all of the last call",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("c")


@pytest.mark.parametrize("name", ENDS)
def test_program(name, folder):
    """Each says in its first line what it shows; no Python is in the process."""
    program = compile_program(PROGRAMS / f"{name}.c", folder / name)
    assert run(program).splitlines()[-1] == ENDS[name]


def test_tensors(folder):
    """As Python's own part reads and gives them: tests/sharing/dlpack/test_dlpack_import.py."""
    program = compile_program(PROGRAMS / "tensors.c", folder / "tensors", TENSORS)
    assert run(program) == "all strides\n"


def test_a_random_walk(folder):
    """Of threads that each have buffers, views, handles and tensors of the same memory."""
    program = compile_program(PROGRAMS / "walk.c", folder / "walk", TENSORS)
    for seed in (1, 2, 3):
        assert run(program, str(seed), str(scaled(2000, 100))) == "the model holds\n"


@pytest.mark.skipif(not LANGUAGES["c++"][1], reason="no C++ compiler")
@pytest.mark.parametrize("name", ["everything", "mistakes"])
def test_the_header_is_cplusplus_too(name, folder):
    source = PROGRAMS / f"{name}.c"
    program = compile_program(source, folder / f"{name}++", language="c++", standard="c++17")
    assert run(program).splitlines()[-1] == ENDS[name]


#: What newer glibc's <string.h> has beside its functions, in programs that define _GNU_SOURCE.
GENERIC = """
#include <string.h>
#define keeping(text, type, call) \\
    _Generic(0 ? (text) : (void *)1, const void *: (type)(call), default: call)
#define memchr(text, c, n) keeping(text, const void *, memchr(text, c, n))
#define strchr(text, c) keeping(text, const char *, strchr(text, c))
#define strrchr(text, c) keeping(text, const char *, strrchr(text, c))
#define strpbrk(text, set) keeping(text, const char *, strpbrk(text, set))
#define strstr(text, word) keeping(text, const char *, strstr(text, word))
"""


def test_the_headers_are_c99_beside_macros_that_are_not(folder):
    generic = folder / "generic.h"
    generic.write_text(GENERIC)
    source = folder / "strict.c"
    headers = ["hamr.h", "hamr/store.h", "hamr/exchange.h"]
    source.write_text(
        "".join(f"#include <{header}>\n" for header in headers)
        + 'hamr_store_id id;\nint main(void) { return !hamr_store_id_parse("", &id); }\n'
    )
    flags = ["-include", str(generic), "-pedantic-errors", "-c"]
    compile_program(source, folder / "strict.o", *flags)
    source.write_text("int main(void) { return !strchr(\"a\", 'b'); }\n")
    with pytest.raises(AssertionError, match="_Generic"):
        compile_program(source, folder / "strict.o", *flags)


def test_every_function_is_called():
    """By the programs above, or by the one for devices."""
    table = (PROGRAMS.parents[2] / "include" / "hamr" / "interface.h").read_text()
    named = re.findall(r"\(\*(\w+)\)\(", table[table.index("typedef struct hamr_table") :])
    text = "".join(path.read_text() for path in PROGRAMS.iterdir())
    usual = {"memory_usage": "usage_of"}
    assert [n for n in named if f"hamr_{usual.get(n, n)}(" not in text and n not in usual] == []


#: The headers that are changed lie elsewhere than the library.
BESIDE = {"HAMR_LIBRARY": library_path()}

FINDING = '#include "check.h"\nint main(void) { OK(hamr_open()); puts("found"); return 0; }\n'


def test_the_library_is_found_in_each_place(folder):
    source = folder / "finding.c"
    source.write_text(FINDING)
    elsewhere = folder / "include"
    shutil.copytree(hamr.get_include(), elsewhere)
    prefix = folder / "prefix"
    (prefix / "lib").mkdir(parents=True)
    os.symlink(library_path(), prefix / "lib" / "libhamr.so")
    include = str(elsewhere)
    lonely = compile_program(source, folder / "lonely", include=include)
    flag = f'-DHAMR_PREFIX="{prefix}"'
    installed = compile_program(source, folder / "installed", flag, include=include)
    beside = compile_program(source, folder / "beside")
    nothing = {"HAMR_PYTHON": "/nowhere/python", "HAMR_LIBRARY": "", "PYTHONPATH": PACKAGES}
    assert run(installed, env=nothing) == "found\n"
    if "site-packages" in hamr.get_include():
        assert run(beside, env=nothing) == "found\n"
    assert run(lonely, env=nothing | {"HAMR_LIBRARY": library_path()}) == "found\n"
    assert run(lonely, env=nothing | {"HAMR_PYTHON": sys.executable}) == "found\n"
    for env, words in [
        (nothing, ["this process", "HAMR_LIBRARY", f"{folder}/lib/libhamr.so", "/nowhere/python"]),
        (nothing | {"HAMR_LIBRARY": "/nowhere/lib.so"}, ["/nowhere/lib.so", "cannot open"]),
        (nothing | {"HAMR_LIBRARY": python_library() or "libm.so.6"}, ["too old"]),
    ]:
        done = subprocess.run(
            [lonely], env=os.environ | env, text=True, capture_output=True, check=False
        )
        assert done.returncode == 1
        assert "hamr's library was not found" in done.stderr
        assert [word for word in words if word not in done.stderr] == []


def test_a_relative_folder_of_headers(folder):
    """From where the program was compiled the library beside them is found."""
    source = folder / "relative.c"
    source.write_text(FINDING)
    shutil.copytree(hamr.get_include(), folder / "moved" / "include")
    (folder / "moved" / "lib").mkdir()
    os.symlink(library_path(), folder / "moved" / "lib" / "libhamr.so")
    include = os.path.relpath(folder / "moved" / "include")
    program = compile_program(source, folder / "relative", include=include)
    nothing = {"HAMR_PYTHON": "/nowhere/python", "HAMR_LIBRARY": "", "PYTHONPATH": PACKAGES}
    assert run(program, env=nothing) == "found\n"


def test_a_static_program_is_refused_in_words(folder):
    """Rather than crash in a library that it loads."""
    source = folder / "static.c"
    source.write_text(FINDING)
    program = folder / "static"
    command = [*COMPILER, "-static", f"-I{hamr.get_include()}", f"-I{PROGRAMS}", source]
    done = subprocess.run([*command, "-o", program, "-ldl"], capture_output=True, check=False)
    if done.returncode == 0:  # else there is no C library to link with so
        env = os.environ | BESIDE
        done = subprocess.run([program], env=env, text=True, capture_output=True, check=False)
        assert done.returncode == 1
        assert "linked statically" in done.stderr


def test_a_linked_program(folder):
    source = folder / "linked.c"
    source.write_text(FINDING)
    flags = ["-DHAMR_LINKED", library_path(), f"-Wl,-rpath,{os.path.dirname(library_path())}"]
    assert run(compile_program(source, folder / "linked", *flags)) == "found\n"


LAST = '#include "check.h"\nint main(void) {{ {body} return 0; }}\n'


def ends(folder, name, table, calls, body):
    """A program with headers of another version does what body says."""
    headers, source = folder / name, folder / f"{name}.c"
    shutil.copytree(hamr.get_include(), headers)
    (headers / "hamr" / "interface.h").write_text(table)
    (headers / "hamr" / "calls.h").write_text(calls)
    source.write_text(LAST.format(body=body))
    run(compile_program(source, folder / f"{name}.out", include=str(headers)), env=BESIDE)


def test_older_and_newer_headers(folder):
    """An old header does with a new library; the reverse fails, in words, where it must."""
    include = Path(hamr.get_include())
    table = (include / "hamr" / "interface.h").read_text()
    calls = (include / "hamr" / "calls.h").read_text()
    last = re.search(r"    hamr_status \(\*resume\)[^;]*;\n", table)[0]
    call = re.search(r"^static inline hamr_status hamr_resume\(.*?^}\n", calls, re.M | re.S)[0]
    body = "OK(hamr_trim()); TRUE(hamr_get()->size > sizeof(hamr_table));"
    ends(folder, "older", table.replace(last, ""), calls.replace(call, ""), body)

    more = f"{last}    hamr_status (*juggle)(int32_t balls);\n"
    take = re.search(r"^static inline hamr_status hamr_take\(.*?^}\n", calls, re.M | re.S)[0]
    juggle = take.replace("take", "juggle")
    juggle = juggle.replace("hamr_buffer *buffer, hamr_buffer **made", "int32_t balls")
    more_calls = call + juggle.replace("buffer, made", "balls")
    body = """
        OK(hamr_trim());
        FAILS(hamr_juggle(3), HAMR_ERROR_LIBRARY, "older than this program: it has no hamr_juggle");
        OK(hamr_trim());
        TRUE(!*hamr_last_error());
    """
    ends(folder, "newer", table.replace(last, more), calls.replace(call, more_calls), body)

    now = "#define HAMR_TABLE_VERSION 1u"
    assert now in table
    body = 'FAILS(hamr_trim(), HAMR_ERROR_LIBRARY, "of another version than this program");'
    ends(folder, "another", table.replace(now, now.replace("1u", "2u")), calls, body)
