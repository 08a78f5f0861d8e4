"""Unmanaged views of Kokkos's on hamr's memory, made by a C++ library that the tests compile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import run_script

SOURCE = Path(__file__).parent / "views.cpp"
ROOT = os.environ.get("KOKKOS_ROOT", "/usr/local")

#: Where the header may be, and what belongs to it: Kokkos's own package, or Trilinos's.
PLACES = [
    (f"{ROOT}/include", [f"-L{ROOT}/lib", f"-Wl,-rpath,{ROOT}/lib", "-lkokkoscore"], "c++20"),
    ("/usr/include", ["-lkokkoscore"], "c++20"),
    ("/usr/include/kokkos", ["-lkokkoscore"], "c++20"),
    ("/usr/include/trilinos", ["-ltrilinos_kokkoscore"], "c++17"),
]
FOUND = [place for place in PLACES if (Path(place[0]) / "Kokkos_Core.hpp").exists()]
COMPILER = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")

pytestmark = [
    pytest.mark.skipif(
        not FOUND, reason=f"no Kokkos_Core.hpp in {', '.join(p[0] for p in PLACES)}"
    ),
    pytest.mark.skipif(not COMPILER, reason="no C++ compiler"),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a process with the library says of each case."""
    include, libraries, standard = FOUND[0]
    built = tmp_path_factory.mktemp("kokkos") / "views.so"
    flags = ["-O1", f"-std={standard}", "-shared", "-fPIC", "-fopenmp", f"-isystem{include}"]
    command = [COMPILER, *flags, str(SOURCE), *libraries, "-o", str(built)]
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
