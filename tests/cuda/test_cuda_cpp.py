"""hamr.hpp on devices: what the programs in tests/cpp/programs show."""

import os

import pytest

from tests.cpp.test_cpp_programs import CODES
from tests.package.test_headers import LANGUAGES
from tests.support import emulation
from tests.support.c_programs import compile_program, run
from tests.support.paths import ROOT
from tests.support.processes import SCALE, scaled

pytestmark = [
    pytest.mark.multigpu,
    pytest.mark.skipif(not LANGUAGES["c++"][1], reason="no C++ compiler"),
]

DRIVER = os.environ.get("HAMR_CUDA_LIBRARY") or "libcuda.so.1"


def build(name, folder):
    source = ROOT / "tests" / "cpp" / "programs" / f"{name}.cpp"
    return compile_program(source, folder / name, "-O0", language="c++", standard="c++17")


def test_a_program_in_cpp(tmp_path):
    assert run(build("cuda", tmp_path), DRIVER).splitlines()[-1] == "all of C++ on devices"


#: On the emulated driver short runs have those that use memory and streams of devices most.
ALL = SCALE >= 1 or emulation.CHOSEN == "driver"
ON_DEVICES = [*CODES] if ALL else ["objects", "names", "adaptor"]


@pytest.mark.parametrize("name", ON_DEVICES)
def test_codes(name, tmp_path):
    """Structs on devices, objects in page-locked memory, references to streams, clients' codes."""
    assert run(build(name, tmp_path), DRIVER).splitlines()[-1] == CODES[name]


def test_a_random_walk(tmp_path):
    program = build("model", tmp_path)
    for seed in (1, 2):
        assert run(program, str(seed), str(scaled(300, 30)), DRIVER) == "the model holds\n"


def test_buffers_outlive_the_streams_of_a_program(tmp_path):
    """Of each kind of memory but cuda_async, in each mode, with streams of all kinds."""
    program = build("ended_streams", tmp_path)
    largest = 5000**2 if emulation.CHOSEN == "driver" else scaled(500**2, 100**2)
    assert run(program, DRIVER, "100", str(largest)) == "all streams have ended\n"
