"""Memory of OpenMP's devices in C++, by name and by addresses."""

import pytest

from tests.cpp.test_cpp_programs import build
from tests.package.test_headers import LANGUAGES
from tests.support import openmp_runtime
from tests.support.c_programs import run

pytestmark = [
    pytest.mark.skipif(not LANGUAGES["c++"][1], reason="no C++ compiler"),
    pytest.mark.skipif(not openmp_runtime.compiler(), reason="no C compiler"),
]


def test_allocators_copies_and_structs(tmp_path):
    """On devices of GCC's runtime whose memory the host cannot touch."""
    if "libgomp" not in openmp_runtime.found()["library"]:
        pytest.skip("the runtime found is not libgomp")
    env = {**openmp_runtime.ALONE, **openmp_runtime.with_plugin(tmp_path)}
    program = build("runtimes", tmp_path)
    assert run(program, "openmp", env=env).splitlines()[-1] == "all of the runtime"
