"""Free-threaded CPython is told what it needs, before a file for another interpreter is loaded."""

import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import hamr
from build_support import toolchain
from tests.support import free_threaded
from tests.support.processes import launch, run_code

PACKAGE = Path(hamr.__file__).parent
WORDS = (
    "hamr: free-threaded CPython {0}t lays its objects out otherwise than the stable ABI (abi3) "
    "that this copy of hamr is compiled for: install hamr there from source, or use an ordinary "
    "CPython, 3.11 or newer, as python{0}\n"
)
pytestmark = pytest.mark.skipif(toolchain.FREE_THREADED, reason="hamr is built for this one")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
IMPORT = """
import sys
{}
for _ in range(2):
    try:
        import {}
    except ImportError as error:
        print(error)
with open("/proc/self/maps") as maps:
    assert not [line for line in maps if "/hamr/" in line]
assert not [name for name in sys.modules if "_native" in name or "_pyhamr" in name]
"""
STUB = "sys.abiflags += 't'"


@pytest.mark.parametrize("module", ["hamr", "hamr._native", "hamr.store", "hamr.cli"])
def test_import_says_what_to_do_and_loads_nothing(module):
    said = run_code(IMPORT.format(STUB, module))
    assert said == WORDS.format(VERSION) * 2


@pytest.mark.parametrize("suffix", ["abi3.so", "so", "cpython-39t-x86_64-linux-gnu.so"])
def test_files_for_other_interpreters_are_not_taken(tmp_path, suffix):
    """Of hamr's folder the Python files alone, and an extension that is none."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "include", "_gopy")
    shutil.copytree(PACKAGE, tmp_path / "hamr", ignore=ignored)
    (tmp_path / "hamr" / f"_native.{suffix}").write_bytes(b"no library")
    place = f"sys.path.insert(0, {str(tmp_path)!r}); "
    assert run_code(IMPORT.format(place + STUB, "hamr")) == WORDS.format(VERSION) * 2


def test_a_build_of_its_own_is_loaded(tmp_path):
    """The file of this interpreter's own ABI is what the machinery of imports would take."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "include", "_gopy")
    shutil.copytree(PACKAGE, tmp_path / "hamr", ignore=ignored)
    (tmp_path / "hamr" / f"_native{EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    place = f"sys.path.insert(0, {str(tmp_path)!r}); "
    assert "file too short" in run_code(IMPORT.format(place + STUB, "hamr"))


@pytest.mark.parametrize("free", [False, True])
def test_a_build_is_for_the_stable_abi_or_for_the_interpreter_alone(monkeypatch, free):
    pytest.importorskip("setuptools")
    from build_support import extensions

    monkeypatch.setattr(toolchain, "FREE_THREADED", free)
    assert any("Py_LIMITED_API" in flag for flag in toolchain.api_flags()) is not free
    assert extensions.wheel_options().get("py_limited_api") == (None if free else "cp311")
    assert {one.py_limited_api for one in extensions.extensions()} == {not free}


@pytest.mark.skipif(not free_threaded.PYTHON, reason=free_threaded.MISSING)
def test_a_real_one_is_told_and_loads_nothing():
    python, version = free_threaded.PYTHON, free_threaded.version()
    env = {"PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    status, said = launch([python, "-c", IMPORT.format("", "hamr")], 60, env)
    assert (status, said) == (0, WORDS.format(version) * 2)
