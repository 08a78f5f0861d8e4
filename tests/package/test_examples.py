"""Each example runs against the installed package, and prints what it should."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples"

# Lines that the output must have, in this order.
OUTPUT = {
    "hello.py": [
        "[1. 2. 3. 4. 5. 6. 7. 8.]",
        "written through NumPy, seen by the buffer: 42.0",
        "<hamr.Buffer (8,) float32 malloc owner -1 at ",
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
    if request.param == "openmp_producer.py":
        reason = request.getfixturevalue("no_openmp")
        if reason:
            pytest.skip(reason)
    return request.param


def test_example(name, tmp_path):
    run_example(name, tmp_path)
