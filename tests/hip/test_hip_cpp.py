"""Memory of HIP's in C++, by name and by addresses."""

import pytest

from tests.cpp.test_cpp_programs import build
from tests.package.test_headers import LANGUAGES
from tests.support.c_programs import run

pytestmark = pytest.mark.skipif(not LANGUAGES["c++"][1], reason="no C++ compiler")


def test_allocators_copies_and_structs(tmp_path):
    assert run(build("runtimes", tmp_path), "hip").splitlines()[-1] == "all of the runtime"
