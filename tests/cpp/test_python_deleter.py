"""hamr::python_deleter: a buffer of C++ keeps the Python object whose memory it shares."""

import sys
import weakref

import numpy as np
import pytest

from tests.support.extension_modules import CPP, compile_in_cpp, load, loading
from tests.support.processes import run_code


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return compile_in_cpp(CPP / "keeps_objects.cpp", tmp_path_factory.mktemp("keeps"))


def test_an_object_lives_as_long_as_its_memory_is_shared(path):
    module = load(path)
    array = np.arange(4, dtype="f8")
    before, gone = sys.getrefcount(array), weakref.ref(array)
    module.share(array.ctypes.data, 4, array)
    assert sys.getrefcount(array) == before + 1
    del array
    assert module.total() == 6
    assert gone() is not None
    module.forget()  # on a thread that has no GIL
    assert gone() is None


def test_what_is_kept_at_the_interpreters_end_does_no_harm(path):
    code = "import numpy as np\na = np.arange(4.0)\nm.share(a.ctypes.data, 4, a)\n"
    assert run_code(loading(path) + code + "print(m.total())").splitlines()[-1] == "6.0"
