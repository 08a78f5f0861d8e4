"""hamr.h on devices: what the programs in tests/c/programs show."""

import os

import pytest

from tests.support.c_programs import COMPILER, PROGRAMS, TENSORS, compile_program, run
from tests.support.processes import scaled

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")

DRIVER = os.environ.get("HAMR_CUDA_LIBRARY") or "libcuda.so.1"


@pytest.mark.multigpu
def test_a_program_in_c(tmp_path):
    program = compile_program(PROGRAMS / "cuda.c", tmp_path / "cuda")
    assert run(program, DRIVER).splitlines()[-1] == "all on devices"


def test_elements_with_steps(tmp_path):
    """As tests/c/programs/strides.c has them on the host."""
    program = compile_program(PROGRAMS / "cuda_strides.c", tmp_path / "cuda_strides")
    assert run(program, DRIVER).splitlines()[-1] == "all in order on devices"


@pytest.mark.multigpu
def test_a_random_walk(tmp_path):
    program = compile_program(PROGRAMS / "walk.c", tmp_path / "walk", TENSORS)
    for seed in (1, 2):
        assert run(program, str(seed), str(scaled(400, 40)), DRIVER) == "the model holds\n"
