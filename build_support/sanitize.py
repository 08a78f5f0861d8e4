"""Look for memory errors: the C extension under AddressSanitizer and UBSan, all under valgrind.

python build_support/sanitize.py, by a Python that has hamr, NumPy, pytest and Hypothesis installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from build_support import toolchain

TESTS = toolchain.ROOT / "tests"
#: Not test_fork.py: a child of threads may find AddressSanitizer's own lock taken for ever.
SUBSET = [
    "test_lifetime.py",
    "test_kept_memory.py",
    "test_handles.py",
    "test_collector.py",
    "test_threads.py",
    "test_fuzz_array_interface.py",
    "test_dlpack_import.py",
    "test_dlpack_ask.py",
    "test_dlpack_capsules.py",
    "test_fuzz_dlpack.py",
    "test_contents_changing.py",
    "test_protocols_buffer.py",
    "test_errors_after_close.py",
    "test_arrow.py",
    "test_arrow_import.py",
    "test_arrow_fuzz.py",
]
#: With the emulated driver, which is built as always.
CUDA_SUBSET = [
    "cuda/test_cuda_arrow.py",
    "cuda/test_cuda_collector.py",
    "cuda/test_cuda_interface.py",
    "cuda/test_cuda_interface_fuzz.py",
    "cuda/test_cuda_interface_import.py",
    "cuda/test_cuda_interface_memory.py",
    "cuda/test_cuda_dlpack_import.py",
    "cuda/test_cuda_ordering.py",
    "cuda/test_cuda_errors.py",
    "cuda/test_cuda_transfer.py",
]
#: Python never frees some of its own memory: leaks are tests/test_leaks.py's matter.
ASAN_OPTIONS = "detect_leaks=0:max_free_fill_size=4096"


def installed() -> Path:
    """Return the folder of the installed package, which brings the Go library."""
    spec = importlib.util.find_spec("hamr")
    if spec is None or spec.origin is None:
        toolchain.fail(f"hamr is not installed in {sys.prefix}")
    return Path(spec.origin).parent


def sanitizer(name: str) -> str:
    """Return the path of one of gcc's sanitizer libraries."""
    path = toolchain.run(["gcc", f"-print-file-name=lib{name}.so"]).strip()
    if not os.path.isabs(path):
        toolchain.fail(f"gcc has no lib{name}.so; install it, as with 'apt install libasan8'")
    return path


def run_sanitizers(scratch: Path) -> bool:
    """Run some of the tests with an instrumented C extension."""
    shutil.copytree(installed(), scratch / "hamr")
    sources = sorted((toolchain.ROOT / "python" / "hamr" / "native").glob("*.c"))
    command: list[str | Path] = [
        *("gcc", "-O1", "-g", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden"),
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        f"-DPy_LIMITED_API={toolchain.LIMITED_API}",
        f"-I{toolchain.ROOT / 'pyhamr' / 'internal' / 'cabi'}",
        *toolchain.header_flags(scratch),
        *sources,
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
    results = [
        subprocess.run([*pytest, *SUBSET], cwd=TESTS, env=env, check=False),
        subprocess.run([*pytest, *CUDA_SUBSET], cwd=TESTS, env=env | cuda, check=False),
    ]
    return all(done.returncode == 0 for done in results)


def run_valgrind(scratch: Path) -> bool:
    """Run tests/sanitize/exercise.py; an access outside live heap blocks is an error.

    Accesses to memory that is no heap block are let pass: valgrind takes Go's change
    from one goroutine's stack to another for a stack that shrinks.
    """
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: skipped")
        return True
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
        errors += [text for text in reports if "a block of size" in text or "_native" in text]
    print(*errors, sep="\n")
    print(f"valgrind: {len(errors)} errors")
    return ended and not errors


def main() -> int:
    """Run both; say which failed by the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        results = [run_sanitizers(Path(folder)), run_valgrind(Path(folder))]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
