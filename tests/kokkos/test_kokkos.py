"""Unmanaged views of Kokkos's on hamr's memory, made by a C++ library that the tests compile."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support import kokkos
from tests.support.processes import run_script

SOURCE = Path(__file__).parent / "views.cpp"

pytestmark = pytest.mark.skipif(bool(kokkos.absent()), reason=kokkos.absent())


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a process with the library says of each case."""
    built = tmp_path_factory.mktemp("kokkos") / "views.so"
    flags = [*shlex.split(kokkos.FLAGS), "-O1", "-shared", "-fPIC"]
    libraries = shlex.split(kokkos.LIBRARIES)
    command = [kokkos.COMPILER, *flags, str(SOURCE), *libraries, "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    output = run_script("kokkos_views", built, env={"OMP_NUM_THREADS": "2"})
    return json.loads(output.splitlines()[-1])


def test_views_read_and_write_hamrs_memory(said):
    wrong = {case: what for case, what in said["cases"].items() if what != "right"}
    assert not wrong
    assert len(said["cases"]) >= 7 * 7 + 7 * 2, "types, layouts and allocators"


def test_memory_that_the_host_does_not_reach_comes_to_it_and_goes_back(said):
    for name in said["others"]:
        assert said["cases"][f"float64 both, turned {name}"] == "right"
