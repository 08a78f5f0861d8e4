"""Which runtime hamr takes, and all tests on others: each in a process of its own."""

import sys
from pathlib import Path

import pytest

from tests.support import openmp_runtime
from tests.support.processes import launch

pytestmark = pytest.mark.skipif(not openmp_runtime.compiler(), reason="no C compiler")
llvm = pytest.mark.skipif(not openmp_runtime.llvm(), reason="no LLVM has a libomptarget.so")


@pytest.fixture
def run(tmp_path):
    """Run a program; {add} and the like in it become the files of what is built."""

    def run(script, **env):
        for what in ("add", "regions", "registered", "threads"):
            if f"{{{what}}}" in script:
                script = script.replace(f"{{{what}}}", openmp_runtime.build(what, tmp_path))
        command = [sys.executable, "-X", "faulthandler", "-c", script]
        status, output = launch(command, 120, {**openmp_runtime.ALONE, **env})
        assert status == 0, output
        return output

    return run


def all_tests(env):
    tests = str(Path(__file__).with_name("test_openmp.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    status, output = launch(command, 300, {**openmp_runtime.ALONE, **env})
    assert status == 0, output
    assert "skipped" not in output


def test_all_where_the_host_cannot_touch_the_memory(tmp_path):
    if "libgomp" not in openmp_runtime.found()["library"]:
        pytest.skip("the runtime found is not libgomp")
    all_tests(openmp_runtime.with_plugin(tmp_path))


@llvm
def test_all_on_llvms_devices(tmp_path):
    env = {"LD_PRELOAD": openmp_runtime.build("registered", tmp_path)}
    row = openmp_runtime.said(env)
    assert "libomptarget" in row["library"]
    if row["devices"][0].get("kind") == "cpu":
        pytest.skip("LLVM's runtime has no plugin for this processor")
    all_tests(env)


GUIDE = """
import ctypes
import numpy as np
import hamr

add = ctypes.CDLL("{add}").add
address, n = ctypes.c_void_p, 400
a0 = hamr.Buffer(n, "f4", "openmp", fill=1)
a1 = hamr.buffer(np.arange(n, dtype="f4"))
pa0, pa1 = (a.get_openmp_accessible() for a in (a0, a1))
assert (pa0.is_temporary, pa1.is_temporary) == (False, True)
ao = hamr.Buffer(n, "f4", "openmp", fill=0)
add(address(ao.ptr), address(pa0.ptr), address(pa1.ptr), ctypes.c_size_t(n))
np.testing.assert_array_equal(ao.get_host_accessible(), np.arange(1, n + 1, dtype="f4"))
"""


@pytest.mark.skipif(
    bool(openmp_runtime.absent()) or not openmp_runtime.on_host(),
    reason="GCC has compiled the regions for the host",
)
def test_the_guides_example(run):
    if openmp_runtime.cannot_link():
        pytest.skip(f"the compiler links no target regions: {openmp_runtime.cannot_link()}")
    run(GUIDE)


@llvm
@pytest.mark.skipif(not openmp_runtime.clang(), reason="no Clang that compiles for devices")
def test_the_guides_example_on_a_device(run):
    output = run(GUIDE.replace("{add}", "{regions}"), LIBOMPTARGET_INFO="16")
    assert "Launching kernel" in output


TAKES = """
import ctypes
import hamr
from hamr._base.library import core
for file in {files}:
    ctypes.CDLL(file)
assert str(hamr.Buffer(3, "f4", "openmp", fill=2)) == "{{2, 2, 2}}"
print(core().Library("openmp"))
"""


def test_what_is_loaded_already_is_taken(run, tmp_path):
    """As of a wheel that brings its own."""
    library = openmp_runtime.found()["library"]
    if "libgomp" not in library:
        pytest.skip("the runtime found is not libgomp")
    own = str(tmp_path / "libgomp-24e2ab19.so.1.0.0")
    renamed = Path(library).read_bytes().replace(b"\0libgomp.so.1\0", b"\0libgomx.so.1\0")
    Path(own).write_bytes(renamed)
    assert run(TAKES.format(files=[own])).strip() == own
    assert run(TAKES.format(files=[])).strip() == library


TWO = """
import ctypes, threading
import numpy as np
import hamr
from hamr._base.library import core
threads, gomp = ctypes.CDLL("{threads}"), ctypes.CDLL("{add}")  # LLVM's runtime, and GCC's
for library in (threads, gomp):
    library.sum.restype, library.sum.argtypes = ctypes.c_long, [ctypes.c_long]
wrong = []
def compute(library):
    wrong.extend(x for x in (library.sum(100_000) for _ in range(50)) if x != 4999950000)
workers = [threading.Thread(target=compute, args=(x,)) for x in (threads, gomp) * 2]
for each in workers:
    each.start()
for i in range(50):
    b = hamr.Buffer(1000, "i4", "openmp", fill=i)
    assert b.copy().get(np.empty(1000, "i4"))[999] == i
for each in workers:
    each.join()
assert not wrong
loaded = open("/proc/self/maps").read()
assert "libomp.so" in loaded and "libgomp" in loaded
print(core().Library("openmp"))
"""


@llvm
def test_two_runtimes_in_one_process(run):
    """libomp has no memory of devices. Where libomptarget is loaded as well, its devices count."""
    assert "libgomp" in run(TWO)
    assert "libomptarget" in run('import ctypes\nctypes.CDLL("{registered}")\n' + TWO)


LATER = """
import ctypes
import numpy as np
import hamr
b = hamr.Buffer(1000, "i4", "openmp", fill=5)
assert hamr.backends()["openmp"]["devices"][0]["kind"] == "cpu"
ctypes.CDLL("{registered}")
target = ctypes.CDLL("{library}")
assert target.omp_get_num_devices() > 0
assert b.copy().get(np.empty(1000, "i4"))[999] == 5
b.fill(6)
assert b.get(np.empty(1000, "i4"))[999] == 6
b.close()
"""


@llvm
def test_devices_that_come_later(run):
    """LLVM's runtime is asked while it has nothing to do: from version 19 on it crashes then,
    unless it is told to begin."""
    library = openmp_runtime.llvm() + "/libomptarget.so"
    run(LATER.replace("{library}", library), HAMR_OPENMP_LIBRARY=library)


def test_a_library_that_is_not_there(run):
    script = """
import hamr
try:
    hamr.Buffer(3, "f8", "openmp")
except hamr.BackendUnavailable as error:
    assert error.backend == "openmp" and error.tried == ("/nowhere/libgomp.so.1",), error.tried
    print(error)
"""
    for command in (script, "from hamr.cli import main; main(['info'])"):
        output = run(command, HAMR_OPENMP_LIBRARY="/nowhere/libgomp.so.1")
        assert "/nowhere/libgomp.so.1: cannot open shared object file" in output
