"""Signals, limits and floating-point traps of a program in C, which are its own."""

import pytest

from tests.support.c_programs import COMPILER, PROGRAMS, compile_program, run
from tests.support.processes import scaled

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    return compile_program(PROGRAMS / "signals.c", folder / "signals", "-lm")


@pytest.mark.parametrize(
    "case",
    ["sigwait", "masks", "urgent", "urgent_before", "ignored", "files", "traps"],
)
def test_case(case, program):
    """Each case is a function of programs/signals.c, which says what it shows."""
    assert run(program, case) == "as it was\n"


@pytest.mark.parametrize("case", ["small_stacks", "profiler"])
def test_handlers_without_a_stack_of_their_own(case, program):
    """Most runs end in a crash where a handler writes past the end of a stack."""
    for _ in range(scaled(3)):
        assert run(program, case) == "as it was\n"
