"""Eight threads on one buffer at random, where there is no GIL, too."""

import sys

import pytest

from tests.support.processes import run_script


@pytest.mark.parametrize("seed", range(2))
def test_random_uses_by_eight_threads(seed):
    said = run_script("threads_on_a_buffer", seed, timeout=300)
    if "t" in sys.abiflags:
        assert said == "GIL off\n"
