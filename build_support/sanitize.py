"""Look for memory errors: the C extension under AddressSanitizer and UBSan, all under valgrind.

python -m build_support.sanitize, by a Python of an environment that it may install hamr into.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build_support import native, toolchain, wheel_at_hand
from build_support.summary import Row, report

TESTS = toolchain.ROOT / "tests"
#: Not test_fork.py: a child of threads may find AddressSanitizer's own lock taken for ever.
SUBSET = [
    "tests/lifetime/test_lifetime.py",
    "tests/lifetime/test_kept_memory.py",
    "tests/lifetime/test_handles.py",
    "tests/lifetime/test_collector.py",
    "tests/concurrency/test_threads.py",
    "tests/concurrency/test_many_at_once.py",
    "tests/sharing/array_interface/test_fuzz_array_interface.py",
    "tests/sharing/dlpack/test_dlpack_import.py",
    "tests/sharing/dlpack/test_dlpack_ask.py",
    "tests/sharing/dlpack/test_dlpack_capsules.py",
    "tests/sharing/dlpack/test_fuzz_dlpack.py",
    "tests/contents/test_contents_changing.py",
    "tests/contents/test_native_arguments.py",
    "tests/sharing/buffer_protocol/test_protocols_buffer.py",
    "tests/diagnostics/test_errors_after_close.py",
    "tests/sharing/arrow/test_arrow.py",
    "tests/sharing/arrow/test_arrow_import.py",
    "tests/sharing/arrow/test_arrow_fuzz.py",
    "tests/c/test_python_exchange.py",
    "tests/cpp/test_python_arguments.py",
]
#: With the emulated driver, which is built as always.
CUDA_SUBSET = [
    "tests/cuda/test_cuda_arrow.py",
    "tests/cuda/test_cuda_collector.py",
    "tests/cuda/test_cuda_interface.py",
    "tests/cuda/test_cuda_interface_fuzz.py",
    "tests/cuda/test_cuda_interface_import.py",
    "tests/cuda/test_cuda_interface_memory.py",
    "tests/cuda/test_cuda_dlpack_import.py",
    "tests/cuda/test_cuda_ordering.py",
    "tests/cuda/test_cuda_errors.py",
    "tests/cuda/test_cuda_transfer.py",
]
#: Python never frees some of its own memory: leaks are tests/lifetime/test_leaks.py's matter.
#: Requests of too much memory are hamr's to refuse.
ASAN_OPTIONS = "detect_leaks=0:max_free_fill_size=4096:allocator_may_return_null=1"


def installed() -> Path:
    """Return the folder of the installed package, which brings the Go library."""
    spec = importlib.util.find_spec("hamr")
    if spec is None or spec.origin is None:
        toolchain.fail(f"hamr is not installed in {sys.prefix}")
    return Path(spec.origin).parent


def install() -> None:
    """Install hamr and what the tests need beside this Python."""
    wheel_at_hand.install("test")
    importlib.invalidate_caches()


def sanitizer(name: str) -> str | None:
    """Return the path of one of gcc's sanitizer libraries, or None."""
    path = toolchain.run(["gcc", f"-print-file-name=lib{name}.so"]).strip()
    return path if os.path.isabs(path) else None


def no_sanitizers() -> str:
    """Return why there is no AddressSanitizer, or ""."""
    if shutil.which("gcc") is None:
        return "gcc is not installed, and the ziglang package brings no AddressSanitizer"
    if sanitizer("asan") is None or sanitizer("ubsan") is None:
        return "gcc has no libasan.so or libubsan.so; apt's libasan8 and libubsan1 bring them"
    return ""


def no_valgrind() -> str:
    """Return why there is no valgrind, or ""."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed, and no package of PyPI brings it"
    return ""


def run_sanitizers(scratch: Path) -> str:
    """Run some of the tests with an instrumented C extension."""
    shutil.copytree(installed(), scratch / "hamr")
    command: list[str | Path] = [
        *("gcc", "-O1", "-g", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden"),
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        f"-DPy_LIMITED_API={toolchain.LIMITED_API}",
        *native.HEADER_FLAGS,
        *toolchain.header_flags(scratch),
        *native.sources(),
    ]
    toolchain.run([*command, "-o", scratch / "hamr" / "_native.abi3.so"])
    env = {
        **os.environ,
        "LD_PRELOAD": f"{sanitizer('asan')}:{sanitizer('ubsan')}",
        "ASAN_OPTIONS": ASAN_OPTIONS,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(scratch),
        "HAMR_TEST_SCALE": "0.02",
    }
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    cuda = {"HAMR_TEST_CUDA": "emulator", "HAMR_EMULATOR_DEVICES": "2"}

    def run(subset: list[str], more: dict[str, str]) -> int:
        done = subprocess.run(
            [*pytest, *subset],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=toolchain.ROOT,
            env=env | more,
            check=False,
        )
        print(done.stdout, end="", flush=True)
        return done.returncode

    with ThreadPoolExecutor() as pool:
        statuses = list(pool.map(run, (SUBSET, CUDA_SUBSET), ({}, cuda)))
    return "passed" if not any(statuses) else f"failed (pytest statuses {statuses})"


def run_valgrind(scratch: Path) -> str:
    """Run tests/sanitize/exercise.py; an access outside live heap blocks is an error.

    Go's accesses to memory that is no heap block are let pass: valgrind takes its change
    from one goroutine's stack to another for a stack that shrinks.
    """
    folder = TESTS / "sanitize"
    command: list[str | Path] = [
        *("valgrind", "-q", "--undef-value-errors=no", "--num-callers=20"),
        f"--suppressions={folder / 'valgrind.supp'}",
        f"--log-file={scratch}/valgrind.%p",
        *(sys.executable, folder / "exercise.py"),
    ]
    env = {**os.environ, "PYTHONMALLOC": "malloc"}
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    ended = done.returncode == 0 and done.stdout == "child ended well\nended well\n"
    if not ended:
        print(f"exit status {done.returncode}:\n{done.stdout}{done.stderr}")
    errors = []
    for log in scratch.glob("valgrind.*"):
        # One report from the next is separated by a line of the process number alone.
        reports = re.split(r"^==\d+== \n", log.read_text(), flags=re.MULTILINE)
        errors += [text for text in reports if "a block of size" in text or by_extension(text)]
    print(*errors, sep="\n")
    if not ended:
        return f"failed (exit status {done.returncode})"
    return f"failed: {len(errors)} errors" if errors else "passed"


def run_c_programs(scratch: Path) -> str:
    """Run programs in C under valgrind: an access outside live heap blocks is an error."""
    package, programs = installed(), TESTS / "c" / "programs"
    errors: list[str] = []
    for name in ("everything", "mistakes", "hand_overs", "store"):
        program, log = scratch / name, scratch / f"{name}.log"
        compiler = toolchain.find_cc() or ["cc"]
        flags = ["-g", "-pthread", "-DEACH=300", f"-I{package / 'include'}", f"-I{programs}"]
        toolchain.run([*compiler, *flags, programs / f"{name}.c", "-o", program, "-ldl"])
        command: list[str | Path] = [
            *("valgrind", "-q", "--undef-value-errors=no", "--num-callers=20"),
            *("--leak-check=full", "--show-leak-kinds=definite", f"--log-file={log}", program),
            *([scratch / "at" / "socket"] if name == "store" else []),
        ]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            return f"failed ({name}: exit status {done.returncode}: {done.stderr})"
        reports = re.split(r"^==\d+== \n", log.read_text(), flags=re.MULTILINE)
        # The C library itself loses a list of a vendor's library that is not there.
        lost = [text for text in reports if " lost in loss record" in text and "dlopen" not in text]
        errors += [text for text in reports if "a block of size" in text and not wide(text)] + lost
    print(*errors, sep="\n")
    return f"failed: {len(errors)} errors" if errors else "passed"


def wide(report: str) -> bool:
    """Return whether Go looked for a text's end, which it does 32 bytes at a time, in one page."""
    return re.search(r"Invalid read of size 32\n.*at .*(_pyhamr|memfd:hamr)", report) is not None


def by_extension(report: str) -> bool:
    """Return whether the C extension made an access, or what it called; not Go, which it calls."""
    return "_native" in re.split(r"_pyhamr|memfd:hamr", report)[0]


CHECKS = [
    ("AddressSanitizer and UBSan", no_sanitizers, run_sanitizers),
    ("valgrind", no_valgrind, run_valgrind),
    ("valgrind, C programs", no_valgrind, run_c_programs),
]


def main() -> int:
    """Run what there are tools for."""
    missing = {name: lacks() for name, lacks, _ in CHECKS}
    if not all(missing.values()):
        install()

    def run(name: str, check: Callable[[Path], str]) -> Row:
        if missing[name]:
            return name, f"left out: {missing[name]}"
        with tempfile.TemporaryDirectory() as folder:
            return name, check(Path(folder))

    # Each is one thread, and the first takes as long as the others together.
    with ThreadPoolExecutor() as pool:
        rows = list(pool.map(run, [c[0] for c in CHECKS], [c[2] for c in CHECKS]))
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
