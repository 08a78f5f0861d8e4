"""Generate the Go extension with gopy, patch what gopy writes, and compile it.

gopy turns the exported functions of pyhamr into a cgo file (pyhamr.go) and a script (build.py)
that has pybindgen write the C half (pyhamr.c). Every patch below fails the build when the text it
changes is not there, so a new gopy cannot pass unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
from pathlib import Path

from build_support import offline, tags, toolchain

FACADE = toolchain.ROOT / "pyhamr"
FACADE_IMPORT = f"{toolchain.go_module()}/pyhamr"
FOLDER = toolchain.ROOT / "python" / "hamr" / "_gopy"

# How what the library exports is marked in Go and in C.
EXPORT = r"^(?://export |HAMR_EXPORT .*?\b)(\w+)(?:$|\()"

# Marks, in a doc comment in pyhamr, a function that may block and so must release the GIL.
BLOCKING = "//hamr:blocking"

GO_FLAGS = ["-trimpath", "-buildvcs=false"]

# SIGURG is the program's, not Go's; a stack that has room for handlers of signals stays so large.
# cabi/start.c and cabi/entry.go say more.
RUNTIME = "asyncpreemptoff=1,gcshrinkstackoff=1"

# Signals that Go's threads let through, though hamr does not use what Go needs them for. The
# handlers of programs, such as profilers', would run on the stacks of goroutines, too small ones.
BLOCKABLE = ("SIGSTKFLT:", "SIGCHLD:", "SIGPROF:", "signal 34")

# The library must load in programs without Python, which may load Python later. So none of Python's
# functions is needed to load it, and its data is looked for when it is used.
WEAK_PYTHON = """\
#ifndef WEAK_PYTHON
#define WEAK_PYTHON
#define PyAPI_FUNC(type) __attribute__((weak)) type
#define PyAPI_DATA(type) extern __attribute__((weak)) type
#include <Python.h>
#include <dlfcn.h>
#include <stdlib.h>
static inline PyObject *python_none(void) {
\tstatic PyObject *none;
\tif (!none) none = (PyObject *)dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
\treturn none;
}
#undef Py_None
#define Py_None python_none()
#define PyExc_ValueError (*(PyObject **)dlsym(RTLD_DEFAULT, "PyExc_ValueError"))
#define PyExc_RuntimeError (*(PyObject **)dlsym(RTLD_DEFAULT, "PyExc_RuntimeError"))
static inline void python_runtime_error(const char *words) {
\tPyErr_SetString(PyExc_RuntimeError, words);
}
#endif"""

# Go has locks of its own, as C programs call the same functions on any thread.
WITHOUT_GIL = """\
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(m, Py_MOD_GIL_NOT_USED);
#endif
    return MOD_RETURN(m);"""

# What each call into Go goes by: pyhamr/internal/cabi.
ENTRY = '#include "../../../pyhamr/internal/cabi/entry.h"\n'

# In pyhamr.go, each with the number of times it must be found. -Ofast and -ffast-math are never
# given: at link time they would switch off denormal numbers for the whole process.
GO_PATCHES = [
    # The command line holds this machine's paths.
    (r"^gopy gen .*\n", "", 1),
    # Not linked with libpython, no rpath: the interpreter that loads the module has the symbols.
    (r"^#cgo CFLAGS: .*$", "#cgo CFLAGS: @CFLAGS@", 1),
    (r"^#cgo LDFLAGS: .*$", "", 1),
    # What the limited API lacks.
    (r"#include <Python\.h>", ENTRY + WEAK_PYTHON, 1),
    (r"PyMethod_Check\(obj\)", "PyCallable_Check(obj)", 1),
    (r"^\tv := C\.PyComplex_AsCComplex\(o\)\n", "", 2),
    (r"\(v\.real\)", "(C.PyComplex_RealAsDouble(o))", 2),
    (r"\(v\.imag\)", "(C.PyComplex_ImagAsDouble(o))", 2),
]

C_PATCHES = [
    (r"^typedef PyAsyncMethods\* cmpfunc;$", "typedef void* cmpfunc;", 1),
    (r"^#include <Python\.h>$", WEAK_PYTHON, 1),
    (r"^    return MOD_RETURN\(m\);$", WITHOUT_GIL, 1),
]

# The names Python sees: Add, where gopy would have pyhamr_Add.
METHOD = r'^(    \{\(char \*\) ")pyhamr_(\w+)(", .*, ")pyhamr_\2\('

SAVE = r"^\t_saved_thread := C\.PyEval_SaveThread\(\)\n"
RESTORE = r"^\t(?:defer )?C\.PyEval_RestoreThread\(_saved_thread\)\n"

# Where a function fails: hamr's own exceptions, where gopy knows a RuntimeError only.
FAILURE = (
    r"^\t\testr := C\.CString\(__err\.Error\(\)\)\n"
    r"\t\tC\.PyErr_SetString\(C\.PyExc_RuntimeError, estr\)\n"
    r"(?:\t\tC\.free\(unsafe\.Pointer\(estr\)\)\n)?"
)
RAISE = """\
\t\tif !pyerror.Raise(__err) {
\t\t\testr := C.CString(__err.Error())
\t\t\tC.python_runtime_error(estr)
\t\t\tC.free(unsafe.Pointer(estr))
\t\t}
"""

# A function whose only result is an error: gopy returns, and leaks, a string either way.
ERROR_ONLY = [
    (r"^\t\treturn estr\n", "\t\treturn nil\n", 1),
    (r"^\treturn C\.CString\(\"\"\)\n", "\treturn nil\n", 1),
]


def substitute(where: str, text: str, pattern: str, replacement: str, count: int) -> str:
    """Replace a pattern that must occur exactly count times."""
    text, found = re.subn(pattern, lambda _: replacement, text, flags=re.MULTILINE)
    if found != count:
        toolchain.fail(
            f"patching gopy's {where}: expected {count} of the pattern {pattern!r}, found {found}"
        )
    return text


def read_facade() -> dict[str, bool]:
    """Return the exported functions of pyhamr, each with whether it may block."""
    functions: dict[str, bool] = {}
    for path in sorted(FACADE.glob("*.go")):
        if path.name.endswith("_test.go"):
            continue
        marked = 0
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.rstrip() == BLOCKING:
                marked = number
                continue
            found = re.match(r"func ([A-Z]\w*)\(", line)
            if found:
                functions[found[1]] = bool(marked)
            elif marked and not line.startswith("//"):
                toolchain.fail(f"{path}:{marked}: {BLOCKING} is not above an exported function")
            if not line.startswith("//"):
                marked = 0
    if not functions:
        toolchain.fail(f"{FACADE} exports no function")
    return functions


def patch_functions(text: str, facade: dict[str, bool]) -> str:
    """Keep the GIL in short calls, mend error-only results, and put the functions in order."""
    head, mark, tail = text.partition("// ---- Functions ---\n")
    if not mark:
        toolchain.fail("patching gopy's pyhamr.go: the pattern '// ---- Functions ---' is missing")
    functions = {}
    for block in re.split(r"^(?=//export )", tail, flags=re.MULTILINE)[1:]:
        name = block.split("\n", 1)[0].removeprefix("//export pyhamr_")
        if name not in facade:
            toolchain.fail(f"gopy exported {name}, which pyhamr's sources do not show")
        where = f"pyhamr.go, {name}"
        if facade[name]:
            substitute(where, block, SAVE, "", 1)
            substitute(where, block, RESTORE, "", 1)
        else:
            block = substitute(where, block, SAVE, "", 1)
            block = substitute(where, block, RESTORE, "", 1)
        if "\tif __err != nil {\n" in block:
            block = substitute(where, block, FAILURE, RAISE, 1)
        if "\tvar __err error\n" in block:
            for pattern, replacement, count in ERROR_ONLY:
                block = substitute(where, block, pattern, replacement, count)
        functions[name] = block.rstrip() + "\n\n"
    # gopy leaves out, without a word, a function whose signature it cannot translate.
    skipped = sorted(facade.keys() - functions.keys())
    if skipped:
        toolchain.fail(f"gopy cannot export {', '.join(skipped)} of pyhamr")
    # gopy's own order changes from run to run.
    return head + mark + "\n" + "".join(functions[name] for name in sorted(functions))


def patch_script(text: str) -> str:
    """Put build.py's functions in order, as gopy's changes from run to run."""
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith("add_checked")), None)
    if first is None:
        toolchain.fail("patching gopy's build.py: the pattern 'add_checked' is missing")
    calls = [line for line in lines if line.startswith("add_checked")]
    rest = [line for line in lines if not line.startswith("add_checked")]
    return "".join(rest[:first] + sorted(calls, key=lambda line: line.split("'")[1]) + rest[first:])


def for_this_machine(env: dict[str, str]) -> dict[str, str]:
    """Return what tools run with, also when their output is for another machine."""
    return {
        **{key: env[key] for key in env if key not in ("CC", "GOARCH", "GOOS")},
        "CGO_ENABLED": "0",
    }


def generate(go: str, env: dict[str, str], flags: list[str]) -> None:
    """Write pyhamr.go, pyhamr_go.h and pyhamr.c into FOLDER."""
    host = for_this_machine(env)
    tool = {
        name: toolchain.run([go, "tool", "-n", name], env=host).strip()
        for name in ("gopy", "goimports")
    }
    for old in FOLDER.glob("*.[ghcp]*"):
        old.unlink()
    toolchain.run(
        [
            *(tool["gopy"], "gen", f"-vm={sys.executable}", f"-output={FOLDER}"),
            *("-name=pyhamr", "-no-make", FACADE_IMPORT),
        ],
        env=env,
    )
    for name in ("__init__.py", "go.py", "pyhamr.py"):
        (FOLDER / name).unlink()

    source = FOLDER / "pyhamr.go"
    text = source.read_text()
    for pattern, replacement, count in GO_PATCHES:
        text = substitute("pyhamr.go", text, pattern, replacement, count)
    cflags = " ".join(f'"{flag}"' for flag in flags)
    text = text.replace("@CFLAGS@", cflags)
    own = f'"{FACADE_IMPORT}"'
    text = substitute("pyhamr.go", text, rf"^\t{own}$", f'\t{own}\n\t"{FACADE_IMPORT}/pyerror"', 1)
    facade = read_facade()
    source.write_text(patch_functions(text, facade))
    toolchain.run([tool["goimports"], "-w", source], env=env)

    script = FOLDER / "build.py"
    script.write_text(patch_script(script.read_text()))
    toolchain.run([sys.executable, script.name], cwd=FOLDER)
    script.unlink()
    wrapper = FOLDER / "pyhamr.c"
    text = wrapper.read_text()
    for pattern, replacement, count in C_PATCHES:
        text = substitute("pyhamr.c", text, pattern, replacement, count)
    text, renamed = re.subn(METHOD, r"\1\2\3\2(", text, flags=re.MULTILINE)
    if renamed != len(facade):
        toolchain.fail(
            f"patching gopy's pyhamr.c: expected {len(facade)} of the pattern {METHOD!r}, "
            f"found {renamed}"
        )
    wrapper.write_text(text)


def write_header(go: str, env: dict[str, str], scratch: Path, flags: list[str]) -> None:
    """Write pyhamr_go.h, which pyhamr.c includes, without the whole build gopy makes for it."""
    command: list[str | Path] = [
        go,
        "tool",
        "cgo",
        "-objdir",
        scratch / "cgo",
        "-exportheader",
        "pyhamr_go.h",
    ]
    (scratch / "cgo").mkdir()
    toolchain.run([*command, "--", *flags, "pyhamr.go"], cwd=FOLDER, env=env)


def write_version_script(go: str, env: dict[str, str], scratch: Path) -> Path:
    """List the symbols to export: the module's entry point, what Go exports to C, and C itself."""
    listing = "{{range .CgoFiles}}{{$.Dir}}/{{.}}\n{{end}}{{range .CFiles}}{{$.Dir}}/{{.}}\n{{end}}"
    files = toolchain.run([go, "list", "-deps", "-f", listing, "."], cwd=FOLDER, env=env)
    names = {"PyInit__pyhamr"}
    exporting: dict[Path, str] = {}
    for file in map(Path, filter(None, files.splitlines())):
        text = file.read_text()
        names |= set(re.findall(EXPORT, text, re.MULTILINE))
        exporting[file.parent] = exporting.get(file.parent, "") + text
    for folder, text in exporting.items():
        if "\n//export " in text and "entry.h" not in text:
            toolchain.fail(f"{folder} exports Go functions and does not include cabi/entry.h")
    exports = " ".join(f"{name};" for name in sorted(names))
    script = scratch / "exports.map"
    script.write_text(f"{{ global: {exports} local: *; }};\n")
    return script


def write_overlay(go: str, env: dict[str, str], scratch: Path) -> Path:
    """Write what is compiled in place of Go's table of signals."""
    root = toolchain.run([go, "env", "GOROOT"], cwd=FOLDER, env=env).strip()
    table = Path(root) / "src" / "runtime" / "sigtab_linux_generic.go"
    text = table.read_text()
    for name in BLOCKABLE:
        pattern = rf' \+ _SigUnblock(?=[^"\n]*, "{name})'
        text = substitute(table.name, text, pattern, "", 1)
    patched = scratch / table.name
    patched.write_text(text)
    overlay = scratch / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(table): str(patched)}}))
    return overlay


def sources_flag(root: Path) -> str:
    """Return a flag that changes with C files outside of packages, which Go's cache ignores."""
    digest = hashlib.sha256()
    for folder in (root / "include", root / "python" / "hamr" / "native" / "plain"):
        for path in sorted(folder.rglob("*.[ch]")):
            digest.update(path.read_bytes())
    return f"-DHAMR_SOURCES=0x{digest.hexdigest()[:16]}"


def build(*, go: str, cc: list[str], version: str, scratch: Path, output: Path) -> None:
    """Build the extension."""
    env = {
        **os.environ,
        "CGO_ENABLED": "1",
        "CC": shlex.join(cc),
        "GOFLAGS": tags.go_flags(),
        "GOWORK": "off",
        **offline.settings(),
        "PATH": os.pathsep.join([str(Path(go).parent), os.environ.get("PATH", "")]),
    }
    # Flags meant for other libraries, -Ofast among them, stay out.
    for name in ("CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_LDFLAGS"):
        env.pop(name, None)
    env["CGO_CPPFLAGS"] = sources_flag(toolchain.ROOT)
    flags = [
        "-O2",
        *toolchain.api_flags(),
        *toolchain.header_flags(scratch),
    ]
    generate(go, env, flags)
    write_header(go, env, scratch, flags)
    exports = write_version_script(go, env, scratch)
    # Go's -X of this variable comes before ours, which counts.
    listing = ["list", *GO_FLAGS, *offline.go_flags(), "-f", "{{.DefaultGODEBUG}}", "."]
    default = toolchain.run([go, *listing], cwd=FOLDER, env=env).strip()
    runtime = ",".join(filter(None, [default, RUNTIME]))
    # Without build ids, which depend on where Python's headers lie, the same source gives the
    # same file anywhere.
    # Zig, and GCC of some distributions, bind all functions when a library is loaded: Python's
    # would be missing for ever where a C program loads hamr first.
    external = ["-Bsymbolic", "-z,lazy", f"--version-script={exports}", "-s"]
    link = (
        f"-s -w -buildid= -B none -X {FACADE_IMPORT}.version={version} "
        f"-X runtime.godebugDefault={runtime} "
        f"'-extldflags={' '.join(f'-Wl,{flag}' for flag in external)}'"
    )
    go_flags = [*GO_FLAGS, *offline.go_flags()]
    command = [go, "build", *go_flags, "-buildmode=c-shared", f"-ldflags={link}"]
    command.append(f"-overlay={write_overlay(go, env, scratch)}")
    print(shlex.join(map(str, command)))
    toolchain.run([*command, "-o", output, "."], cwd=FOLDER, env=env)
    output.with_suffix(".h").unlink(missing_ok=True)
    check: list[str | Path] = [go, "run", *go_flags, "./internal/pythonsymbols", output]
    toolchain.run(check, env=for_this_machine(env))
