"""Each example runs against the installed package, and prints what it should."""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.package.test_headers import LANGUAGES
from tests.support.c_programs import EMBEDDED, compile_program, python_library, run
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples"
HEADERS = Path(sysconfig.get_path("include"), "Python.h")

# Lines that the output must have, in this order.
OUTPUT = {
    "hello.py": [
        "[1. 2. 3. 4. 5. 6. 7. 8.]",
        "written through NumPy, seen by the buffer: 42.0",
        "hamr.Buffer([42.,  2.,  3.,  4.,  5.,  6.,  7.,  8.], float32, malloc) shared by ",
    ],
    "openmp_producer.py": [
        "in place: True",
        "[ 0.  1.  4.  9. 16.] of 1000",
        "written through NumPy, seen by the buffer: 42.0",
        "NumPy keeps the memory: 998001.0",
        "given back to the library",
        "end",
    ],
    "simulation.py": [
        "heat after 50 steps: 1600.000000",
        "as NumPy computes it: True",
        "cooled to 10, all heat accounted for: True",
    ],
    "threads.py": [
        "the mean square of a sine is 0.500000",
        "another thread that writes to the same elements: refused",
        "afterwards: done",
        "[0. 0. 1. 1.]",
    ],
    "event_pipeline.py": [
        *(f"event {i}: the peak is at {p}" for i, p in enumerate((1000, 1100, 1200, 1300, 1400))),
        "failed: event 13: readings failed in produce: OSError: the file of run 13 is torn",
        "the others: 99",
        "spectra by ",
        "100 events, 1 failed, in ",
    ],
    "store.py": [
        "step 7, sums of rows: [     0. 250000. 500000. 750000.]",
        "sealed: nobody writes to it any more",
        "seen from here: [[1.0, 1.0], [2.0, 2.0]]",
        "objects left: 0",
    ],
    "pybind11_module.py": [
        "made by C++: Buffer (48, 64) 1600.0",
        "written by C++, seen by NumPy: 1600.000000, of which 31.243 in one place",
        "written by NumPy, seen by C++: 2000.000000",
        "an array of NumPy's, too: 9.0",
        "TypeError: the buffer's elements are float32: accepted are float64",
    ],
    "in_situ_plot.py": [
        "step 20: peak 84.5, 10.4% of the grid is warm",
        "step 60: peak 47.6, 18.7% of the grid is warm",
    ],
    "two_libraries.py": [
        "elements: [0, ",
        "the first library has the buffer's memory: True",
    ],
    "two_processes.py": [
        "a copy was made: False",
        "the child says: written",
        "the parent's buffer: [1, 1, 1, 1, 7, 7, 7, 7]",
    ],
    "paged_cache.py": [
        " sequences: GPU ",
        " pages of ",
        "GB/s alone: ",
        "products slower by %: ",
        "all values are right: True",
    ],
    "shared_pool.py": ["elements filled: 1000", "[994009. 996004. 998001.]"],
}

# tests/gpu/test_gpu_examples.py runs these.
ON_A_GPU = {
    "ctypes_kernel.py",
    "hello_cupy.py",
    "numba_kernel.py",
    "zero_copy_from_cupy.py",
    "zero_copy_to_cupy.py",
}

# tests/transport runs these, where the libraries are.
IN_PROCESSES = {"dask_cluster.py", "event_pipeline_dask.py", "mpi_allreduce.py"}


def run_example(name, folder):
    """Run an example in a folder, and look for its lines in what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        text=True,
        capture_output=True,
        check=False,
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    rest = done.stdout
    for line in OUTPUT[name]:
        before, found, rest = rest.partition(line)
        assert found, f"{line!r} is not in {before!r}"


def test_every_example_is_here():
    found = {path.name for path in EXAMPLES.glob("*.py")}
    assert found == {*OUTPUT, *ON_A_GPU, *IN_PROCESSES}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_compiles(path):
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_all_cores_on_a_field(tmp_path):
    """Each element is written by one thread, and all are added."""
    compiler = LANGUAGES["c++"][1]
    empty = tmp_path / "empty.cpp"
    empty.write_text("#include <omp.h>\nint main() { return omp_get_thread_num(); }\n")
    command = [*compiler, "-fopenmp", empty, "-o", tmp_path / "empty"]
    if not compiler or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no C++ compiler with OpenMP")
    source, program = EXAMPLES / "openmp_field.cpp", tmp_path / "openmp_field"
    compile_program(source, program, "-fopenmp", language="c++", standard="c++17")
    for threads in ("1", "2", "5"):
        printed = run(program, env={**EMBEDDED, "OMP_NUM_THREADS": threads})
        assert printed == "sum 200000.000, in the middle 2.000000\n"


@pytest.fixture(scope="module")
def no_openmp():
    """Why the command that the OpenMP example runs cannot compile it, or ""."""
    if shutil.which("cc") is None:
        return "no cc, which the example runs"
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.c")
        empty.write_text("#include <omp.h>\nint main(void) { return omp_get_thread_num(); }\n")
        command = ["cc", "-fopenmp", empty, "-o", Path(folder, "empty")]
        done = subprocess.run(command, capture_output=True, check=False)
    return "" if done.returncode == 0 else "cc has no OpenMP, which the example needs"


@pytest.fixture(params=OUTPUT)
def name(request):
    if request.param == "simulation.py" and shutil.which("cc") is None:
        pytest.skip("no cc, which the example runs")
    if request.param == "pybind11_module.py":
        pytest.importorskip("pybind11")
        if shutil.which("c++") is None or not HEADERS.exists():
            pytest.skip("no c++, or no headers of Python's, which the example needs")
    if request.param == "openmp_producer.py":
        reason = request.getfixturevalue("no_openmp")
        if reason:
            pytest.skip(reason)
    return request.param


def test_example(name, tmp_path):
    run_example(name, tmp_path)


@pytest.mark.libraries
def test_two_libraries_have_one_memory(tmp_path):
    pytest.importorskip("torch")
    command = [sys.executable, EXAMPLES / "two_libraries.py"]
    done = subprocess.run(command, text=True, capture_output=True, check=True, cwd=tmp_path)
    assert "torch has the buffer's address: True\n" in done.stdout
    assert "elements: [0, 10, 20, 30, 40, 50]\n" in done.stdout


@pytest.mark.skipif(not python_library(), reason="this Python has no library of its own to embed")
@pytest.mark.skipif(not LANGUAGES["c++"][1], reason="no C++ compiler")
@pytest.mark.skipif(not HEADERS.exists(), reason="no headers of Python's")
def test_a_simulation_that_embeds_python(tmp_path):
    library = python_library()
    flags = [f"-isystem{HEADERS.parent}", library, f"-Wl,-rpath,{Path(library).parent}"]
    source, program = EXAMPLES / "embedding.cpp", tmp_path / "embedding"
    compile_program(source, program, *flags, language="c++", standard="c++17")
    assert run(program, env=EMBEDDED).splitlines() == [
        "means: [1.5, 2.25, 3.0] fields in this process: 1",
        "after Python's end: 2",
    ]
