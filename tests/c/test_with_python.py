"""C and Python in one process have one library, whoever comes first."""

import ctypes
import os
import shutil
import sys
import sysconfig

import pytest

import hamr
from tests.support.c_programs import (
    COMPILER,
    EMBEDDED,
    PACKAGES,
    PROGRAMS,
    compile_program,
    python_library,
    run,
)
from tests.support.processes import run_code, scaled

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")

needs_library = pytest.mark.skipif(
    not python_library(), reason="this Python has no library of its own to embed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("c")


@needs_library
@pytest.mark.parametrize("linked", [True, False], ids=["linked", "late"])
def test_python_comes_later(linked, folder):
    """To a program that has buffers, and threads, and at whose end both sides have live ones."""
    flags = []
    if linked:
        library, headers = python_library(), sysconfig.get_config_var("INCLUDEPY")
        if not os.path.exists(f"{headers}/Python.h"):
            pytest.skip("no headers of Python's")
        flags = ["-DLINKED", f"-I{headers}", library, f"-Wl,-rpath,{os.path.dirname(library)}"]
    source = PROGRAMS / "embed.c"
    program = compile_program(source, folder / f"embed{linked}", *flags, standard="gnu11")
    for end in ("", "finalize"):
        for _ in range(scaled(25, 2)):
            arguments = [python_library(), *filter(None, [end])]
            assert run(program, *arguments, env=EMBEDDED) == ""


PLUGIN = """
import ctypes, os, sys
{first}
plugin = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else {plugin!r})
plugin.data.restype = ctypes.c_void_p
plugin.words.restype = ctypes.c_char_p
plugin.live.restype = ctypes.c_int64
plugin.make.argtypes = [ctypes.c_int64]
assert plugin.make(1000) == 0, plugin.words()
import hamr
b = hamr.Buffer(1000, "float64", fill=1)
field = hamr.Buffer.from_pointer(plugin.data(), 1000, "float64", owner=plugin)
assert float(field[3]) == 2
assert plugin.live() == hamr.stats()["allocators"]["malloc"]["live"] == 2
plugin.work_in_threads()
assert plugin.live() == 2
{then}
"""

FORKED = """
def child(c_first):
    if c_first:
        assert plugin.make(10) == 0, plugin.words()
        assert plugin.live() == 1, plugin.live()
    mine = hamr.Buffer(5, fill=1)
    if not c_first:
        assert plugin.make(10) == 0, plugin.words()
    live = hamr.stats()["allocators"]["malloc"]["live"]
    assert plugin.live() == live == 2, (plugin.live(), live)
    plugin.work_in_threads()
    assert plugin.drop() == 0, plugin.words()

for c_first in (False, True):
    pid = os.fork()
    if not pid:
        import signal
        signal.alarm(60)
        status = 1
        try:
            child(c_first)
            if os.fork() == 0:
                child(not c_first)
            else:
                assert os.wait()[1] == 0
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0, c_first
assert plugin.live() == 2
"""


@pytest.fixture(scope="module")
def plugin(folder):
    flags = ["-shared", "-fPIC"]
    return str(compile_program(PROGRAMS / "plugin.c", folder / "plugin.so", *flags))


@pytest.mark.parametrize(
    "first", ["import hamr; early = hamr.Buffer(1); del early", ""], ids=["python", "c"]
)
@pytest.mark.parametrize("then", ["", FORKED], ids=["", "forked"])
def test_python_loads_a_plug_in(plugin, first, then):
    """One library and one count, whoever comes first, in forked children, too."""
    env = {"HAMR_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}
    run_code(PLUGIN.format(first=first, plugin=plugin, then=then), env=env)


def test_a_plug_in_asks_the_python_that_runs_in_the_process(folder):
    """Its headers lie elsewhere, and no other Python is to be had."""
    elsewhere = folder / "plugged"
    shutil.copytree(hamr.get_include(), elsewhere)
    flags = ["-shared", "-fPIC"]
    source = PROGRAMS / "plugin.c"
    lonely = compile_program(source, folder / "lonely.so", *flags, include=str(elsewhere))
    env = {"HAMR_PYTHON": "/nowhere/python", "PYTHONPATH": PACKAGES}
    run_code(PLUGIN.format(first="", plugin=str(lonely), then=""), env=env)
    run_code(PLUGIN.format(first="import hamr", plugin=str(lonely), then=""), env=env)


def test_a_plug_in_shares_the_library_of_this_process(plugin):
    hamr.Buffer(1)
    loaded = ctypes.CDLL(plugin)
    loaded.live.restype = ctypes.c_int64
    rows = hamr.stats()["allocators"]
    assert loaded.live() == rows.get("malloc", {"live": 0})["live"]


CHECKED = """
import ctypes, warnings
plugin = ctypes.CDLL({plugin!r})
plugin.data.restype = ctypes.c_void_p
plugin.make.argtypes = [ctypes.c_int64]

def stale():
    assert plugin.make(8) == 0
    address = plugin.data()
    assert plugin.drop() == 0
    return address

stale()  # C keeps it for the next one
import hamr
warnings.simplefilter("ignore", hamr.MemoryMisuse)
for at in (0, 63):
    ctypes.memset(stale() + at, 7, 1)
    assert [(each.size, each.offset) for each in hamr.check_memory()] == [(64, at)]
plugin.work_in_threads()
assert hamr.check_memory() == []
"""


def test_small_memory_of_a_plug_in_is_checked(plugin):
    """C keeps none for itself meanwhile, of which nobody looks whether it is written to."""
    env = {"HAMR_PYTHON": sys.executable, "PYTHONPATH": PACKAGES, "HAMR_CHECK": "1"}
    run_code(CHECKED.format(plugin=plugin), env=env)
