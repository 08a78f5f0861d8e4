"""Steps at random over the memory of all runtimes in one process, beside NumPy."""

from pathlib import Path

import pytest

from tests.support import emulation
from tests.support.processes import run_script, scaled

FOLDER = Path(__file__).parent / "scripts"


@pytest.mark.skipif(not emulation.HIP, reason="needs emulated CUDA and HIP's stand-in")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("faults", [[], ["faults"]], ids=["as it is", "faults"])
def test_walk_over_whatever_runtimes_there_are(seed, faults):
    """Every element is NumPy's after each step, and nothing is left."""
    steps = scaled(10_000, 500)
    output = run_script("runtimes_walk", seed, steps, *faults, folder=FOLDER, timeout=600)
    assert output.endswith("OK\n"), output[-4000:]
